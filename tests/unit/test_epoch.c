/* epoch: who has the page's descriptor reads the counts, and changes nothing */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "warden/epoch.h"

static void
test_counts_are_seen(void **state)
{
    cleanup_close int fd = -1;
    struct err err = ERR_INIT;
    struct epochs *own = epochs_new(&fd, &err);
    const struct epochs *seen;

    (void)state;
    assert_non_null(own);
    seen = epochs_map(fd);
    assert_non_null(seen);
    assert_int_equal(atomic_load(&seen->credentials), 0);
    epoch_next(&own->credentials);
    epoch_next(&own->credentials);
    epoch_next(&own->defaults);
    assert_int_equal(atomic_load(&seen->credentials), 2);
    assert_int_equal(atomic_load(&seen->defaults), 1);
}

static void
test_nobody_else_writes(void **state)
{
    cleanup_close int fd = -1, again = -1;
    struct err err = ERR_INIT;
    struct epochs *own = epochs_new(&fd, &err);
    const struct epochs *seen;
    char path[64];

    (void)state;
    assert_non_null(own);
    assert_ptr_equal(mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(errno, EPERM);
    seen = epochs_map(fd);
    assert_non_null(seen);
    assert_int_equal(mprotect((void *)(uintptr_t)seen, sizeof(*seen), PROT_READ | PROT_WRITE), -1);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 8192), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    /* nor by a description of its own */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, O_RDWR | O_CLOEXEC);
    if (again >= 0) {
        assert_ptr_equal(mmap(NULL, sizeof(*own), PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
        assert_int_equal(pwrite(again, "x", 1, 0), -1);
    }
    epoch_next(&own->credentials);
    assert_int_equal(atomic_load(&seen->credentials), 1);
}

static void
test_what_is_no_page(void **state)
{
    (void)state;
    assert_null(epochs_map(-1));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_seen),
        cmocka_unit_test(test_nobody_else_writes),
        cmocka_unit_test(test_what_is_no_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
