/* base/memfile: what it holds stays as it is, and a page that is held for a moment does not refuse the seal */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memfile.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void
sealed_file_stays_as_it_is(void **state)
{
    char text[8] = { 0 };
    int fd;

    (void)state;
    fd = memfile_sealed("cloche-test", false, "content", 7);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(read(fd, text, sizeof(text)), 7);
    assert_string_equal(text, "content");
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 0), -1);
    close(fd);
}

/* Pages in a pipe are held until somebody reads them. */
static void *
drain_late(void *pipe_end)
{
    char text[16];

    usleep(600000);
    (void)!read(*(const int *)pipe_end, text, sizeof(text));
    return NULL;
}

static void
page_held_for_a_moment_is_waited_for(void **state)
{
    int fd = memfd_create("cloche-test", MFD_CLOEXEC | MFD_ALLOW_SEALING), ends[2];
    pthread_t reader;
    loff_t at = 0;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(io_write_full(fd, "content", 7), 0);
    assert_int_equal(splice(fd, &at, ends[1], NULL, 7, 0), 7);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), -1);        /* what the kernel does by itself */
    assert_int_equal(errno, EBUSY);
    assert_int_equal(pthread_create(&reader, NULL, drain_late, &ends[0]), 0);
    assert_int_equal(memfile_seal(fd), 0);
    pthread_join(reader, NULL);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* Nobody waits for ever: what can be written is not said to be sealed. */
static void
file_that_is_written_is_not_sealed(void **state)
{
    int fd = memfd_create("cloche-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    char *p;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(memfile_seal(fd), -1);
    assert_int_equal(errno, EBUSY);
    munmap(p, 4096);
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_file_stays_as_it_is),
        cmocka_unit_test(page_held_for_a_moment_is_waited_for),
        cmocka_unit_test(file_that_is_written_is_not_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
