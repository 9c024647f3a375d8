/* engine/native/mountinfo.c: lines as the kernel writes them, and others */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "engine/native/mountinfo.h"

static void
test_lines(void **state)
{
    char text[] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                  "of another form\n"
                  "23 22 8:1 /home\\040of /mnt/a\\134b\\040 ro - ext4 /dev/sda1 ro\n"
                  "x 22 8:1 / /y ro - ext4 z ro\n"
                  "24 22 0:5 / /proc rw shared:2 master:1 - proc proc rw";
    static const struct { uint64_t id; const char *device, *root, *point, *type; } want[] = {
        { 22, "8:1", "/", "/", "ext4" },
        { 23, "8:1", "/home of", "/mnt/a\\b ", "ext4" },
        { 24, "0:5", "/", "/proc", "proc" },
    };
    struct mount_line line;
    char *at = text;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(mountinfo_next(&at, &line));
        assert_int_equal(line.id, want[i].id);
        assert_string_equal(line.device, want[i].device);
        assert_string_equal(line.root, want[i].root);
        assert_string_equal(line.point, want[i].point);
        assert_string_equal(line.type, want[i].type);
    }
    assert_false(mountinfo_next(&at, &line));
    assert_false(mountinfo_next(&at, &line));
}

static void
test_our_own(void **state)
{
    struct buf text = BUF_INIT(4UL * 1024 * 1024);
    struct err err = ERR_INIT;
    struct mount_line line;
    size_t n = 0;
    char *at;

    (void)state;
    assert_int_equal(mountinfo_read(&text, &err), 0);
    for (at = (char *)text.p; mountinfo_next(&at, &line); n++)
        assert_true(line.point[0] == '/' && strchr(line.device, ':') != NULL);
    assert_true(n > 0);
    buf_free(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_our_own) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
