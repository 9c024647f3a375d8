/* scribe/transcript: which transcripts go (R29): of those that ended, whatever those that live have, by time and by bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "scribe/scribe.h"

#define OWNER_A "a0000000000000000000000000000000"
#define OWNER_B "b0000000000000000000000000000000"
#define KIB     1024

static char folder[64];

static const char *
path_of(int n)
{
    static char path[160];

    snprintf(path, sizeof(path), "%s/%032x.jsonl", folder, (unsigned)n);
    return path;
}

/* The @n-th, of @owner (""; the daemon's), that changed @ago_s seconds ago. The descriptor, which holds it with @lives; -1. */
static int
make(int n, const char *owner, off_t bytes, int64_t ago_s, bool lives)
{
    int fd = open(path_of(n), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) - ago_s } };

    assert_true(fd >= 0);
    if (owner[0] != '\0')
        assert_true(dprintf(fd, TRANSCRIPT_OWNER "%s\"}\n", owner) > 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(futimens(fd, times), 0);
    if (lives) {
        assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
        return fd;
    }
    close(fd);
    return -1;
}

static bool
is_there(int n)
{
    return access(path_of(n), F_OK) == 0;
}

static int
begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/ct-transcripts-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int
end(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++)
        (void)unlink(path_of(i));
    return rmdir(folder);
}

static void
prune(const struct transcript_keep *keep, uint32_t want_files)
{
    uint32_t files;
    uint64_t bytes;

    transcript_prune(folder, keep, &files, &bytes);
    assert_int_equal(files, want_files);
}

static struct transcript_keep
keeps(uint64_t n, uint64_t s, uint64_t bytes)
{
    static struct steady clock;

    clock = steady_begin(clock_wall_ms(), clock_boot_ms());
    return (struct transcript_keep){ .n = n, .s = s, .bytes = bytes, .clock = &clock };
}

/* Nobody's files go for what another one's sandbox writes, and nobody looks through all of them every time. */
static void
test_what_lives_takes_no_room(void **state)
{
    const struct transcript_keep keep = keeps(1000, 0, 1024 * KIB);
    int held = make(1, OWNER_B, 1700 * KIB, 0, true);

    (void)state;
    make(2, "", 10 * KIB, 3600, false);
    make(3, OWNER_A, 10 * KIB, 7200, false);
    assert_false(transcript_too_much(folder, keep.bytes));
    prune(&keep, 0);
    assert_true(is_there(1) && is_there(2) && is_there(3));
    close(held);        /* its sandbox ended: now it is what there is too much of */
    assert_true(transcript_too_much(folder, keep.bytes));
    prune(&keep, 1);
    assert_true(!is_there(1) && is_there(2) && is_there(3));
    assert_false(transcript_too_much(folder, keep.bytes));
}

static void
test_who_has_most_loses_though_it_lives_too(void **state)
{
    const struct transcript_keep keep = keeps(1000, 0, 1024 * KIB);
    int held = make(1, OWNER_B, 3000 * KIB, 0, true);

    (void)state;
    make(2, OWNER_A, 300 * KIB, 7200, false);
    make(3, OWNER_B, 600 * KIB, 60, false);
    make(4, OWNER_B, 600 * KIB, 30, false);
    assert_true(transcript_too_much(folder, keep.bytes));
    prune(&keep, 1);
    assert_true(is_there(1) && is_there(2) && !is_there(3) && is_there(4));
    close(held);
}

static void
test_what_lives_takes_no_place(void **state)
{
    const struct transcript_keep keep = keeps(2, 0, 1024 * KIB);
    int held[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        held[i] = make(i, OWNER_B, KIB, 0, true);
    for (int i = 4; i < 7; i++)
        make(i, OWNER_B, KIB, 1000 - i, false);
    prune(&keep, 0);
    assert_true(!is_there(4) && is_there(5) && is_there(6));
    for (int i = 0; i < 4; i++) {
        assert_true(is_there(i));
        close(held[i]);
    }
}

/* Also where time began with a clock that was wrong (2099, 1970), and is right now; not by one that is ahead now. */
static void
test_ages(void **state)
{
    const int64_t now = time(NULL);
    const struct { int64_t began_s; bool kept; } rows[] = { { now, false }, { 4070908800, false }, { 60, false },
                                                            { now - 40 * 3600, true } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct steady clock = steady_begin((uint64_t)rows[i].began_s * 1000, clock_boot_ms());
        const struct transcript_keep keep = { .n = 1000, .s = 3600, .bytes = 1024 * KIB, .clock = &clock };

        make(1, "", KIB, 60, false);
        make(2, "", KIB, 7200, false);
        prune(&keep, 0);
        if (!is_there(1) || is_there(2) != rows[i].kept)
            fail_msg("began at %lld", (long long)rows[i].began_s);
        (void)unlink(path_of(1));
        (void)unlink(path_of(2));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_lives_takes_no_room, begin, end),
        cmocka_unit_test_setup_teardown(test_who_has_most_loses_though_it_lives_too, begin, end),
        cmocka_unit_test_setup_teardown(test_what_lives_takes_no_place, begin, end),
        cmocka_unit_test_setup_teardown(test_ages, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
