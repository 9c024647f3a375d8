/* What a machine is told, and the archive that it is told it in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "engine/microvm/microvm.h"
#include "machine/config.h"
#include "machine/mux.h"

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

/* --- connections -------------------------------------------------------------------------------------------------- */

static const uint8_t nowhere[MUX_ADDRESS] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1, [17] = 1 };

/* What the host's end makes of @frames, and then of the end: 0 or -1. */
static int
told(const struct mux_frame *frames, size_t n)
{
    cleanup_buf struct buf bytes = BUF_INIT(1 << 20);
    int pair[2], r, room = 1 << 20;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < n; i++)
        mux_put(&bytes, &frames[i]);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_return_code(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
    assert_int_equal(write(pair[0], bytes.p, bytes.n), bytes.n);
    shutdown(pair[0], SHUT_WR);
    r = mux_run(pair[1], NULL, &err);
    assert_true((r < 0) == (err.kind != ERR_NONE));
    close(pair[0]);
    close(pair[1]);
    return r;
}

static void
test_who_breaks_the_protocol_is_not_listened_to(void **state)
{
    static const uint8_t most[MUX_PIECE + 1], room[4] = { 0, 0, 0, 1 };
    const struct mux_frame open = { 7, MUX_OPEN, nowhere, MUX_ADDRESS }, data = { 7, MUX_DATA, most, MUX_PIECE };
    const struct mux_frame more = { 7, MUX_ROOM, room, 4 }, end = { 7, MUX_END, most, 0 };
    const struct mux_frame wrong[][6] = {
        { open, open }, { data }, { more }, { end }, { open, more }, { open, end, end }, { open, end, data },
        { { MUX_CHANNELS, MUX_OPEN, nowhere, MUX_ADDRESS } },
        { { 7, MUX_OPEN, nowhere, 1 } }, { { 7, (enum mux_type)0, most, 0 } }, { { 7, (enum mux_type)6, most, 0 } },
        { open, { 7, MUX_DATA, most, 0 } }, { open, { 7, MUX_DATA, most, MUX_PIECE + 1 } }, { open, { 7, MUX_END, most, 1 } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        size_t n = 0;
        while (n < 6 && (wrong[i][n].p != NULL))
            n++;
        assert_int_equal(told(wrong[i], n), -1);
    }
    assert_int_equal(told(&open, 0), 0);
    assert_int_equal(told(&open, 1), 0);
    assert_int_equal(told((const struct mux_frame[]){ open, data, data, data, data, end }, 6), 0);
}

static void
test_a_frame_comes_in_parts(void **state)
{
    cleanup_buf struct buf bytes = BUF_INIT(4096);
    struct mux_frame f;
    size_t size;

    (void)state;
    mux_put(&bytes, &(struct mux_frame){ 255, MUX_DATA, nowhere, 18 });
    for (size_t n = 0; n < bytes.n; n++)
        assert_int_equal(mux_read(bytes.p, n, &f, &size), 0);
    assert_int_equal(mux_read(bytes.p, bytes.n, &f, &size), 1);
    assert_int_equal(size, bytes.n);
    assert_int_equal(f.channel, 255);
    assert_int_equal(f.type, MUX_DATA);
    assert_int_equal(f.n, 18);
    assert_memory_equal(f.p, nowhere, 18);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_put_is_read),
        cmocka_unit_test(test_what_is_no_configuration_is_refused),
        cmocka_unit_test(test_an_archive_has_its_entries_where_they_belong),
        cmocka_unit_test(test_who_breaks_the_protocol_is_not_listened_to),
        cmocka_unit_test(test_a_frame_comes_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
