/* wire/: frames, payload cursors, message tables, and every message there and back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/array.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/packet.h"
#include "wire/table.h"

static void
test_header_round_trip(void **state)
{
    uint8_t raw[FRAME_HEADER];
    struct frame f;

    (void)state;
    frame_header_encode(raw, 0x84, 3, 0xfffe, 0x01020304);
    assert_memory_equal(raw, "\x84\x03\xff\xfe\x01\x02\x03\x04", FRAME_HEADER);
    assert_true(frame_header_decode(raw, sizeof(raw), &f));
    assert_int_equal(f.type, 0x84);
    assert_int_equal(f.flags, 3);
    assert_int_equal(f.channel, 0xfffe);
    assert_int_equal(f.length, 0x01020304);
    for (size_t n = 0; n < FRAME_HEADER; n++)
        assert_false(frame_header_decode(raw, n, &f));
}

static void
test_append_respects_the_ceiling(void **state)
{
    struct buf b = BUF_INIT(FRAME_HEADER + 4);

    (void)state;
    assert_int_equal(frame_append(&b, 1, 0, 0, "12345", 5), -1);
    assert_false(buf_ok(&b));
    buf_reset(&b);
    assert_int_equal(frame_append(&b, 1, 0, 0, "1234", 4), 0);
    assert_int_equal(b.n, FRAME_HEADER + 4);
    assert_int_equal(frame_append(&b, 1, 0, 0, NULL, 0), -1);
    buf_free(&b);
}

static void
test_begin_end_fill_the_length(void **state)
{
    struct buf b = BUF_INIT(1024);
    struct frame f;
    size_t at;

    (void)state;
    assert_int_equal(frame_append(&b, 9, 0, 0, "x", 1), 0);
    at = frame_begin(&b, 7, 0, 5);
    assert_int_equal(buf_put_be32(&b, 1), 0);
    assert_int_equal(frame_end(&b, at), 0);
    assert_true(frame_header_decode(b.p + at, b.n - at, &f));
    assert_int_equal(f.length, 4);
    assert_int_equal(frame_end(&b, b.n), -1);
    assert_int_equal(frame_end(&b, SIZE_MAX), -1);
    buf_free(&b);
}

static void
test_cursor_stops_at_the_end(void **state)
{
    static const uint8_t raw[] = { 1, 2, 3 };
    struct wire_in in = wire_in_of(raw, sizeof(raw));

    (void)state;
    assert_int_equal(wire_be16(&in), 0x0102);
    assert_int_equal(wire_be16(&in), 0);
    assert_true(in.bad);
    assert_int_equal(wire_u8(&in), 0);      /* bad stays bad, although one byte is left */
    assert_false(wire_done(&in));
    in = wire_in_of(raw, sizeof(raw));
    assert_null(wire_bytes(&in, SIZE_MAX));
    assert_true(in.bad);
}

static const struct {
    const char *what;
    uint8_t raw[16];
    size_t n;
    uint32_t max;
    bool good;
} strings[] = {
    { "empty",                    { 0, 0, 0, 0, 0 },                       5, 10, true },
    { "two bytes",                { 0, 0, 0, 2, 'a', 'b', 0 },             7, 10, true },
    { "at its ceiling",           { 0, 0, 0, 2, 'a', 'b', 0 },             7, 2,  true },
    { "above its ceiling",        { 0, 0, 0, 2, 'a', 'b', 0 },             7, 1,  false },
    { "no terminator",            { 0, 0, 0, 2, 'a', 'b', 'c' },           7, 10, false },
    { "terminator cut off",       { 0, 0, 0, 2, 'a', 'b' },                6, 10, false },
    { "a NUL inside",             { 0, 0, 0, 2, 0, 'b', 0 },               7, 10, false },
    { "length past the end",      { 0, 0, 0, 9, 'a', 0 },                  6, 10, false },
    { "length of all ones",       { 0xff, 0xff, 0xff, 0xff, 'a', 0 },      6, UINT32_MAX, false },
    { "no length",                { 0, 0 },                                2, 10, false },
};

static void
test_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        struct wire_in in = wire_in_of(strings[i].raw, strings[i].n);
        uint32_t length = 99;
        const char *s = wire_cstr(&in, strings[i].max, &length);

        if ((s != NULL && wire_done(&in)) != strings[i].good)
            fail_msg("%s", strings[i].what);
        if (strings[i].good)
            assert_int_equal(strlen(s), length);
    }
}

static int handled;

static int
count_it(void *ctx, const struct frame *f)
{
    struct msg_gate *gate = ctx;

    handled++;
    if (f->type == 1)
        gate->state = 2;
    return f->length > 0 && f->payload[0] == 'n' ? -1 : 0;
}

static const struct msg_rule rules[] = {
    { 1,   true,  0, 1,     0, 4,  count_it },
    { 2,   false, 1, 2,     1, 16, count_it },
    { 200, true,  0, 1 | 2, 0, 0,  count_it },
};

static enum msg_verdict
send_one(struct msg_gate *gate, uint8_t type, uint8_t flags, const char *payload)
{
    struct buf b = BUF_INIT(4096);
    enum msg_verdict v;
    struct frame f;
    size_t need;
    int rc;

    assert_int_equal(frame_append(&b, type, flags, 0, payload, strlen(payload)), 0);
    rc = msg_next(gate, b.p, b.n, &f, &need, &v);
    if (rc == 1)
        v = msg_dispatch(gate, &f, gate);
    else
        assert_int_equal(rc, -1);
    buf_free(&b);
    return v;
}

static void
test_table(void **state)
{
    struct msg_gate gate = { .rules = rules, .n_rules = 3, .state = 1 };

    (void)state;
    handled = 0;
    assert_int_equal(send_one(&gate, 3, 0, ""), MSG_UNKNOWN);
    assert_int_equal(send_one(&gate, 0, 0, ""), MSG_UNKNOWN);
    assert_int_equal(send_one(&gate, 2, 0, "x"), MSG_UNPERMITTED);
    assert_int_equal(send_one(&gate, 1, 0, "12345"), MSG_TOO_LONG);
    assert_int_equal(send_one(&gate, 1, 1, ""), MSG_FLAGS);
    assert_int_equal(handled, 0);
    assert_int_equal(send_one(&gate, 1, 0, ""), MSG_OK);
    assert_int_equal(gate.state, 2);
    assert_int_equal(send_one(&gate, 1, 0, ""), MSG_UNPERMITTED);
    assert_int_equal(send_one(&gate, 2, 1, "y"), MSG_OK);
    assert_int_equal(send_one(&gate, 2, 0, "y"), MSG_OK);
    assert_int_equal(send_one(&gate, 2, 0, ""), MSG_TOO_SHORT);
    assert_int_equal(send_one(&gate, 2, 0, "no"), MSG_HANDLER);
    assert_int_equal(send_one(&gate, 200, 0, ""), MSG_OK);
    assert_int_equal(send_one(&gate, 200, 0, ""), MSG_REPEATED);
    assert_int_equal(handled, 5);
}

static void
test_next_judges_before_the_payload_is_there(void **state)
{
    struct msg_gate gate = { .rules = rules, .n_rules = 3, .state = 1 };
    uint8_t raw[FRAME_HEADER];
    enum msg_verdict v;
    struct frame f;
    size_t need;

    (void)state;
    frame_header_encode(raw, 1, 0, 0, UINT32_MAX);
    assert_int_equal(msg_next(&gate, raw, 3, &f, &need, &v), 0);
    assert_int_equal(need, FRAME_HEADER);
    assert_int_equal(msg_next(&gate, raw, sizeof(raw), &f, &need, &v), -1);
    assert_int_equal(v, MSG_TOO_LONG);
    frame_header_encode(raw, 1, 0, 0, 4);
    assert_int_equal(msg_next(&gate, raw, sizeof(raw), &f, &need, &v), 0);
    assert_int_equal(need, FRAME_HEADER + 4);
}

static struct frame
only_frame(const struct buf *b)
{
    struct frame f;

    assert_true(buf_ok(b));
    assert_true(frame_header_decode(b->p, b->n, &f));
    assert_int_equal(b->n, FRAME_HEADER + f.length);
    f.payload = b->p + FRAME_HEADER;
    return f;
}

/* Cutting a message anywhere, or adding a byte, makes it no message. */
#define EACH_CUT(f, get, m)                                                     \
    do {                                                                        \
        struct frame cut_ = (f);                                                \
        for (uint32_t n_ = 0; n_ < (f).length; n_++) {                          \
            cut_.length = n_;                                                   \
            assert_false(get(&cut_, m));                                        \
        }                                                                       \
    } while (0)

static void
test_exec_round_trip(void **state)
{
    static const char *const argv[] = { "sh", "-c", "", "echo \"x\"\n", NULL };
    static const char *const env[] = { "PATH=/bin", "A=", NULL };
    struct msg_exec m = { .stdio = EXEC_STDIO_PTY, .flags = MSG_EXEC_QUIET | MSG_EXEC_JOIN(2), .rows = 24, .cols = 80, .umask = 022,
                          .uid = MSG_KEEP, .gid = 7, .window = 4096, .n_rlimits = 1, .cwd = "/w",
                          .rlimits = { { .resource = 7, .soft = 5, .hard = UINT64_MAX } } };
    struct buf b = BUF_INIT(4096);
    const char *out[8];
    struct msg_exec got;
    struct frame f;

    (void)state;
    assert_int_equal(msg_put_exec(&b, 12, &m, argv, env), 0);
    f = only_frame(&b);
    assert_int_equal(f.channel, 12);
    assert_true(msg_get_exec(&f, &got));
    assert_int_equal(got.stdio, EXEC_STDIO_PTY);
    assert_int_equal(MSG_EXEC_JOINS(got.flags), 2);
    assert_int_equal(got.gid, 7);
    assert_int_equal(got.uid, MSG_KEEP);
    assert_int_equal(got.rlimits[0].hard, UINT64_MAX);
    assert_string_equal(got.cwd, "/w");
    assert_int_equal(got.argv.count, 4);
    msg_strings_fill(&got.argv, out);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(out[i], argv[i]);
    assert_null(out[4]);
    msg_strings_fill(&got.env, out);
    assert_string_equal(out[1], "A=");
    assert_null(out[2]);
    EACH_CUT(f, msg_get_exec, &got);
    buf_free(&b);
}

static void
test_exec_refuses_values_out_of_range(void **state)
{
    static const char *const none[] = { NULL };
    static const char *const argv[] = { "x", NULL };
    struct msg_exec good = { .umask = MSG_KEEP, .uid = MSG_KEEP, .gid = MSG_KEEP, .cwd = "" }, m, got;
    struct buf b = BUF_INIT(4096);
    struct frame f;

    (void)state;
    assert_int_equal(msg_put_exec(&b, 1, &good, none, none), 0);    /* no command */
    f = only_frame(&b);
    assert_false(msg_get_exec(&f, &got));
    for (int i = 0; i < 6; i++) {
        buf_reset(&b);
        m = good;
        switch (i) {
        case 5: m.stdio = EXEC_STDIO_FDS, m.flags = MSG_EXEC_JOIN(1); break;    /* whose descriptors are they? */
        case 0: m.stdio = 3; break;
        case 1: m.flags = 0x80; break;
        case 2: m.umask = 01000; break;
        case 3: m.n_rlimits = 1, m.rlimits[0] = (struct msg_rlimit){ 7, 6, 5 }; break;
        case 4: m.n_rlimits = 1, m.rlimits[0] = (struct msg_rlimit){ 99, 1, 2 }; break;
        }
        assert_int_equal(msg_put_exec(&b, 1, &m, argv, none), 0);
        f = only_frame(&b);
        if (msg_get_exec(&f, &got))
            fail_msg("case %d was accepted", i);
    }
    buf_free(&b);
}

static void
test_exec_above_its_ceiling_is_not_made(void **state)
{
    static const char *const none[] = { NULL };
    char *big = malloc(MSG_STRING_MAX + 2);
    const char *argv[] = { "x", big, NULL };
    struct msg_exec m = { .umask = MSG_KEEP, .cwd = "" };
    struct buf b = BUF_INIT(8 * 1024 * 1024);
    const char *many[42];

    (void)state;
    memset(big, 'a', MSG_STRING_MAX + 1);
    big[MSG_STRING_MAX + 1] = '\0';
    assert_int_equal(msg_put_exec(&b, 1, &m, argv, none), -1);
    buf_reset(&b);
    big[MSG_STRING_MAX] = '\0';
    assert_int_equal(msg_put_exec(&b, 1, &m, argv, none), 0);
    buf_reset(&b);
    for (size_t i = 0; i < 41; i++)
        many[i] = big;
    many[41] = NULL;
    assert_int_equal(msg_put_exec(&b, 1, &m, many, none), -1);
    buf_free(&b);
    free(big);
}

static void
test_setup_round_trip(void **state)
{
    const struct msg_setup m = { .version = 1, .flags = MSG_SETUP_LIGHT, .memory_limit = 1 << 20, .pids_limit = 9, .sample_ms = 50,
                                 .root = "/workspace", .denied = (const uint8_t *)"\0\1\1\0", .n_denied = 2,
                                 .guard = (const uint8_t *)"plan", .guard_n = 4 };
    struct buf b = BUF_INIT(4096);
    struct msg_setup got, bad = m;
    struct frame f;

    (void)state;
    assert_int_equal(msg_put_setup(&b, &m), 0);
    f = only_frame(&b);
    assert_true(msg_get_setup(&f, &got));
    assert_int_equal(got.memory_limit, 1 << 20);
    assert_int_equal(got.pids_limit, 9);
    assert_string_equal(got.root, "/workspace");
    assert_memory_equal(got.guard, "plan", 4);
    assert_int_equal(got.n_denied, 2);
    assert_memory_equal(got.denied, "\0\1\1\0", 4);
    EACH_CUT(f, msg_get_setup, &got);
    for (int i = 0; i < 3; i++) {
        buf_reset(&b);
        bad = m;
        switch (i) {
        case 0: bad.root = "relative"; break;
        case 1: bad.sample_ms = 0; break;
        case 2: bad.flags = 2; break;
        }
        assert_int_equal(msg_put_setup(&b, &bad), 0);
        f = only_frame(&b);
        assert_false(msg_get_setup(&f, &got));
    }
    buf_free(&b);
}

static void
test_small_messages_round_trip(void **state)
{
    struct buf b = BUF_INIT(16384);
    struct frame f;

    (void)state;
#define ROUND(put, get, type, ...)                      \
    do {                                                \
        const struct type in_ = { __VA_ARGS__ };        \
        struct type out_;                               \
        memset(&out_, 0, sizeof(out_));                 \
        buf_reset(&b);                                  \
        assert_int_equal(put, 0);                       \
        f = only_frame(&b);                             \
        assert_true(get(&f, &out_));                    \
        EACH_CUT(f, get, &out_);                        \
    } while (0)
    ROUND(msg_put_hello(&b, &in_), msg_get_hello, msg_hello, 1, MSG_HELLO_PID1, 42);
    ROUND(msg_put_window(&b, 1, &in_), msg_get_window, msg_window, MSG_STREAM_ERR, 42);
    ROUND(msg_put_resize(&b, 1, &in_), msg_get_resize, msg_resize, 24, 80);
    ROUND(msg_put_signal(&b, 1, &in_), msg_get_signal, msg_signal, 64, SIGNAL_LEADER);
    ROUND(msg_put_exec_failed(&b, 1, &in_), msg_get_exec_failed, msg_exec_failed, 2, EXEC_STAGE_EXEC);
    ROUND(msg_put_exit(&b, 1, &in_), msg_get_exit, msg_exit, MSG_EXIT_SIGNALED, 9, 1, 2, 3, 4);
    ROUND(msg_put_stdin_window(&b, 1, &in_), msg_get_stdin_window, msg_stdin_window, MSG_STDIN_GONE, 9);
    ROUND(msg_put_notice(&b, &in_), msg_get_notice, msg_notice, NOTICE_BLIND, 1, 2);
    ROUND(msg_put_denied(&b, &in_), msg_get_denied, msg_denied, 3, "mkdir", "/w/.vscode", "/w/.vscode");
    ROUND(msg_put_file(&b, MSG_FILE_RENAME, 1, &in_), msg_get_file, msg_file, MSG_FILE_EXCLUSIVE, 0644, 7, 8, "a", "b");
    ROUND(msg_put_file_error(&b, 1, &in_), msg_get_file_error, msg_file_error, FILE_CODE_ERRNO, 13);
    ROUND(msg_put_change(&b, 1, &in_), msg_get_change, msg_change, CHANGE_RENAMED, true, "a/b c", "..a");
    ROUND(msg_put_change(&b, 1, &in_), msg_get_change, msg_change, CHANGE_MODIFIED, false, "\xff\n", "");
    ROUND(msg_put_change(&b, 1, &in_), msg_get_change, msg_change, CHANGE_OVERFLOW, false, "", "");
    ROUND(msg_put_file_info(&b, 1, &in_), msg_get_file_info, msg_file_info, 0100644, 1, 2, 3, 4, 5, "");
#undef ROUND
    buf_free(&b);
}

static void
test_claims_out_of_range(void **state)
{
    struct buf b = BUF_INIT(16384);
    const struct msg_exit exits[] = { { .status = 256 }, { .flags = MSG_EXIT_SIGNALED }, { .flags = 0x80 },
                                      { .flags = MSG_EXIT_SIGNALED, .status = 65 } };
    const struct msg_file_info infos[] = { { .name = "a/b" }, { .name = ".." }, { .name = "." } };
    const struct msg_signal signals[] = { { 0, 0 }, { 65, 0 }, { 9, 2 } };
    struct frame f;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct msg_exit m;

        buf_reset(&b);
        assert_int_equal(msg_put_exit(&b, 1, &exits[i]), 0);
        f = only_frame(&b);
        assert_false(msg_get_exit(&f, &m));
    }
    for (size_t i = 0; i < 3; i++) {
        struct msg_signal m;

        buf_reset(&b);
        assert_int_equal(msg_put_signal(&b, 1, &signals[i]), 0);
        f = only_frame(&b);
        assert_false(msg_get_signal(&f, &m));
    }
    for (size_t i = 0; i < 3; i++) {
        struct msg_file_info m;
        struct wire_in in;
        size_t at;

        buf_reset(&b);
        at = frame_begin(&b, MSG_FILE_ENTRIES, 0, 1);
        assert_int_equal(msg_put_entry(&b, &infos[i]), 0);
        assert_int_equal(frame_end(&b, at), 0);
        f = only_frame(&b);
        in = wire_in_of(f.payload, f.length);
        assert_false(msg_next_entry(&in, &m));
        assert_true(in.bad);
    }
    buf_free(&b);
}

static void
test_changes_that_lead_elsewhere(void **state)
{
    char name[MSG_NAME_MAX + 2];
    const struct msg_change bad[] = {
        { CHANGE_CREATED, false, "", "" }, { CHANGE_CREATED, false, "/etc", "" }, { CHANGE_CREATED, false, "..", "" },
        { CHANGE_CREATED, false, "a/../b", "" }, { CHANGE_CREATED, false, "a//b", "" }, { CHANGE_DELETED, false, "a/", "" },
        { CHANGE_MODIFIED, false, ".", "" }, { CHANGE_MODIFIED, false, "a", "b" }, { CHANGE_RENAMED, false, "a", "" },
        { CHANGE_RENAMED, false, "a", "../b" }, { CHANGE_UNWATCHED, false, "a", "" }, { CHANGE_WATCHING, false, "a", "" },
        { CHANGE_WATCHING, true, "", "" }, { CHANGE_OVERFLOW, false, "", "a" }, { 0, false, "a", "" },
        { CHANGE_OVERFLOW + 1, false, "a", "" }, { CHANGE_CREATED, false, name, "" },
    };
    struct buf b = BUF_INIT(16384);

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct msg_change m;
        struct frame f;

        buf_reset(&b);
        assert_int_equal(msg_put_change(&b, 1, &bad[i]), 0);
        f = only_frame(&b);
        assert_false(msg_get_change(&f, &m));
    }
    name[MSG_NAME_MAX] = '\0';
    assert_true(msg_change_path(name));
    buf_free(&b);
}

static const struct { const char *root, *path, *rel; } shapes[] = {
    { "/workspace", "a",                    "a" },
    { "/workspace", "a/b c",                "a/b c" },
    { "/workspace", ".",                    "." },
    { "/workspace", "..x/x..",              "..x/x.." },
    { "/workspace", "/workspace",           "." },
    { "/workspace", "/workspace/",          "." },
    { "/workspace", "/workspace//a",        "a" },
    { "/workspace/", "/workspace/a",        "a" },
    { "/",          "/etc/passwd",          "etc/passwd" },
    { "/",          "/",                    "." },
    { "/workspace", "",                     NULL },
    { "/workspace", "..",                   NULL },
    { "/workspace", "a/../b",               NULL },
    { "/workspace", "a/..",                 NULL },
    { "/workspace", "../workspace/a",       NULL },
    { "/workspace", "/workspace/../etc",    NULL },
    { "/workspace", "/etc/passwd",          NULL },
    { "/workspace", "/workspaces/a",        NULL },
    { "/workspace", "/work",                NULL },
    { "/workspace", "//workspace/a",        NULL },
    { "",           "/a",                   NULL },
};

static void
test_path_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const char *rel = NULL;
        bool ok = msg_path_shape(shapes[i].root, shapes[i].path, &rel);

        if (ok != (shapes[i].rel != NULL))
            fail_msg("\"%s\" below \"%s\"", shapes[i].path, shapes[i].root);
        if (ok)
            assert_string_equal(rel, shapes[i].rel);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static struct err
an_error(void)
{
    struct err e = ERR_INIT;

    err_sys(&e, ENOSPC, "wall.root", "make \"%s\"", "/x");
    err_hint(&e, "free some space");
    return e;
}

static bool
same_err(const struct err *a, const struct err *b)
{
    return a->kind == b->kind && a->sys_errno == b->sys_errno && strcmp(a->code, b->code) == 0 &&
           strcmp(a->msg, b->msg) == 0 && strcmp(a->hint, b->hint) == 0;
}

static void
test_errors_round_trip(void **state)
{
    struct err e = an_error(), long_one = ERR_INIT, out;
    uint8_t room[PACKET_ERR_MAX];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    struct wire_in in;

    (void)state;
    assert_int_equal(packet_put_err(&b, &e), 0);
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(packet_get_err(&in, &out));
    }
    in = wire_in_of(b.p, b.n);
    assert_true(packet_get_err(&in, &out));
    assert_true(same_err(&e, &out));
    /* the longest one fits */
    memset(long_one.code, 'c', ERR_CODE_MAX);
    memset(long_one.msg, 'm', ERR_MSG_MAX);
    memset(long_one.hint, 'h', ERR_HINT_MAX);
    long_one.kind = ERR_DENIED;
    buf_reset(&b);
    assert_int_equal(packet_put_err(&b, &long_one), 0);
    assert_int_equal(b.n, PACKET_ERR_MAX);
    in = wire_in_of(b.p, b.n);
    assert_true(packet_get_err(&in, &out));
    assert_true(same_err(&long_one, &out));
}

static void
test_errors_that_are_none(void **state)
{
    static const char *const codes[] = { "", "with space", "quote\"", "Upper", "new\nline", "under_score" };
    struct err out;
    uint8_t room[PACKET_ERR_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct buf b = BUF_INIT_IN(room, sizeof(room));
        struct err e = an_error();
        struct wire_in in;

        err_rename(&e, codes[i]);
        assert_int_equal(packet_put_err(&b, &e), 0);
        in = wire_in_of(b.p, b.n);
        assert_false(packet_get_err(&in, &out));
    }
    for (unsigned kind = 0; kind < 256; kind++) {
        struct buf b = BUF_INIT_IN(room, sizeof(room));
        struct err e = an_error();
        struct wire_in in;

        assert_int_equal(packet_put_err(&b, &e), 0);
        b.p[0] = (uint8_t)kind;
        in = wire_in_of(b.p, b.n);
        assert_int_equal(packet_get_err(&in, &out), kind > ERR_NONE && kind <= ERR_DENIED);
    }
}

/* What a child says before its exec: whole, none, or no error at all. */
static int
heard(const void *p, size_t n, struct err *out)
{
    int ends[2], r;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], p, n), (ssize_t)n);
    close(ends[1]);
    r = packet_hear_err(ends[0], out);
    close(ends[0]);
    return r;
}

static void
test_errors_before_an_exec(void **state)
{
    struct err e = an_error(), out = ERR_INIT;
    uint8_t room[PACKET_ERR_MAX + 1];
    struct buf b = BUF_INIT_IN(room, PACKET_ERR_MAX);
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    packet_say_err(ends[1], &e);
    close(ends[1]);
    assert_int_equal(packet_hear_err(ends[0], &out), 1);
    close(ends[0]);
    assert_true(same_err(&e, &out));
    assert_int_equal(heard("", 0, &out), 0);
    assert_int_equal(packet_put_err(&b, &e), 0);
    assert_int_equal(heard(b.p, b.n, &out), 1);
    assert_int_equal(heard(b.p, b.n - 1, &out), -1);
    room[b.n] = 0;
    assert_int_equal(heard(room, b.n + 1, &out), -1);
    memset(room, 1, sizeof(room));
    assert_int_equal(heard(room, sizeof(room), &out), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_round_trip),
        cmocka_unit_test(test_append_respects_the_ceiling),
        cmocka_unit_test(test_begin_end_fill_the_length),
        cmocka_unit_test(test_cursor_stops_at_the_end),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_next_judges_before_the_payload_is_there),
        cmocka_unit_test(test_exec_round_trip),
        cmocka_unit_test(test_exec_refuses_values_out_of_range),
        cmocka_unit_test(test_exec_above_its_ceiling_is_not_made),
        cmocka_unit_test(test_setup_round_trip),
        cmocka_unit_test(test_small_messages_round_trip),
        cmocka_unit_test(test_claims_out_of_range),
        cmocka_unit_test(test_changes_that_lead_elsewhere),
        cmocka_unit_test(test_path_shapes),
        cmocka_unit_test(test_errors_round_trip),
        cmocka_unit_test(test_errors_that_are_none),
        cmocka_unit_test(test_errors_before_an_exec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
