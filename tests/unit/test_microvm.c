/* What a machine is told, and the archive that it is told it in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "engine/microvm/microvm.h"
#include "machine/config.h"

static void
test_what_is_put_is_read(void **state)
{
    struct machine_config c = { .uid = 1000, .gid = UINT32_MAX, .nproc = 4097, .nofile = UINT64_MAX, .inodes = 5 }, read;
    cleanup_buf struct buf text = BUF_INIT(4096);

    (void)state;
    strcpy(c.hostname, "cloche");
    strcpy(c.guest, "/.cloche/cloche-guest");
    strcpy(c.workdir, "/a folder");
    machine_config_put(&c, &text);
    assert_true(buf_ok(&text));
    assert_true(machine_config_read((struct str){ (const char *)text.p, text.n }, &read));
    assert_memory_equal(&c, &read, sizeof(c));
}

static void
test_what_is_no_configuration_is_refused(void **state)
{
    static const char *const wrong[] = { "uid 1", "uid\n", "uid x\n", "uid 4294967296\n", "uid -1\n", "other 1\n", " 1\n", "\n",
                                         "uid 1\n\n" };
    char long_name[MACHINE_TEXT_MAX + 32];
    struct machine_config c;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(machine_config_read(str_of(wrong[i]), &c));
    for (size_t n = MACHINE_TEXT_MAX; n <= MACHINE_TEXT_MAX + 1; n++) {
        snprintf(long_name, sizeof(long_name), "guest %0*d\n", (int)n, 0);
        assert_int_equal(machine_config_read(str_of(long_name), &c), n == MACHINE_TEXT_MAX);
    }
    assert_false(machine_config_read((struct str){ "guest a\0b\n", 10 }, &c));
    assert_true(machine_config_read(str_of(""), &c));
}

static size_t
number(const uint8_t *at)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < 8; i++) {
        const char *digit = strchr(digits, at[i]);
        assert_non_null(digit);
        n = n * 16 + (size_t)(digit - digits);
    }
    return n;
}

/* Four bytes at a time, from where the kernel looks for them (Documentation/driver-api/early-userspace/buffer-format). */
static void
test_an_archive_has_its_entries_where_they_belong(void **state)
{
    static const char *const names[] = { "a", "ab", "abc", "abcd/e" };
    cleanup_buf struct buf out = BUF_INIT(65536);
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        microvm_cpio(&out, names[i], S_IFREG | 0444, "01234567", i + 1);
    assert_true(buf_ok(&out));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t size = number(out.p + at + 54), name = number(out.p + at + 94);

        assert_memory_equal(out.p + at, "070701", 6);
        assert_int_equal(size, i + 1);
        assert_int_equal(name, strlen(names[i]) + 1);
        assert_string_equal((const char *)out.p + at + 110, names[i]);
        at = (at + 110 + name + 3) & ~(size_t)3;
        assert_memory_equal(out.p + at, "01234567", size);
        at = (at + size + 3) & ~(size_t)3;
    }
    assert_int_equal(at, out.n);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_put_is_read),
        cmocka_unit_test(test_what_is_no_configuration_is_refused),
        cmocka_unit_test(test_an_archive_has_its_entries_where_they_belong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
