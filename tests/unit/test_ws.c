/* wire/ws.h: what is refused, and that messages pass whole however frames and reads are cut */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/swap.h"
#include "wire/ws.h"

static void
heads(void **state)
{
    static const struct { const char *bytes; size_t n; enum ws_result result; uint64_t length; size_t head; } rows[] = {
        { "\x81\x05", 2, WS_OK, 5, 2 }, { "\x82\x7e\x00\x7e", 4, WS_OK, 126, 4 }, { "\x02\x7e\xff\xff", 4, WS_OK, 65535, 4 },
        { "\x82\x7f\0\0\0\0\0\1\0\0", 10, WS_OK, 65536, 10 }, { "\x88\x80" "abcd", 6, WS_OK, 0, 6 },
        { "\x89\x7d", 2, WS_OK, 125, 2 }, { "\x80\x00", 2, WS_OK, 0, 2 },
        { "", 0, WS_MORE, 0, 0 }, { "\x81", 1, WS_MORE, 0, 0 }, { "\x81\x7e\1", 3, WS_MORE, 0, 0 }, { "\x81\x85" "abc", 5, WS_MORE, 0, 0 },
        { "\xc1\x05", 2, WS_RESERVED, 0, 0 }, { "\xa1", 1, WS_RESERVED, 0, 0 }, { "\x91\x05", 2, WS_RESERVED, 0, 0 },
        { "\x83", 1, WS_OPCODE, 0, 0 }, { "\x8b", 1, WS_OPCODE, 0, 0 }, { "\x8f", 1, WS_OPCODE, 0, 0 },
        { "\x09\x01", 2, WS_CONTROL, 0, 0 }, { "\x89\x7e", 2, WS_CONTROL, 0, 0 }, { "\x88\xff", 2, WS_CONTROL, 0, 0 },
        { "\x81\x7e\x00\x7d", 4, WS_LENGTH, 0, 0 }, { "\x81\x7f\0\0\0\0\0\0\xff\xff", 10, WS_LENGTH, 0, 0 },
        { "\x81\x7f\x80\0\0\0\0\0\0\0", 10, WS_LENGTH, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ws_frame f;
        assert_int_equal(ws_head((const uint8_t *)rows[i].bytes, rows[i].n, &f), rows[i].result);
        if (rows[i].result != WS_OK)
            continue;
        assert_int_equal(f.length, rows[i].length);
        assert_int_equal(f.head, rows[i].head);
    }
}

/* "secret" becomes "SECRET", across what is fed. */
struct swaps { struct swap *message, *control; };

static int
bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct swaps *s = ctx;

    return swap_feed(control ? s->control : s->message, p, n, end, out);
}

static struct swaps
new_swaps(void)
{
    struct swaps s = { swap_new(), swap_new() };

    assert_int_equal(swap_add(s.message, 0, "secret", "SECRET", 6, SWAP_RAW), 0);
    assert_int_equal(swap_add(s.control, 0, "secret", "SECRET", 6, SWAP_RAW), 0);
    return s;
}

/* Read what went out as its receiver would: "T(text)", "B(...)" for messages, "9(...)" for control frames. */
static void
read_out(const struct buf *out, bool masked, char *text, size_t size)
{
    char message[1024];
    size_t message_n = 0, n = 0, kind = 0;

    for (size_t at = 0; at < out->n;) {
        struct ws_frame f;
        uint8_t plain[512];
        assert_int_equal(ws_head(out->p + at, out->n - at, &f), WS_OK);
        assert_int_equal(f.masked, masked);
        assert_true(f.length < sizeof(plain) && f.length <= out->n - at - f.head);
        for (size_t i = 0; i < f.length; i++)
            plain[i] = out->p[at + f.head + i] ^ (masked ? f.key[i & 3] : 0);
        at += f.head + (size_t)f.length;
        if (f.opcode >= WS_CLOSE) {
            n += (size_t)snprintf(text + n, size - n, "%d(%.*s)", f.opcode, (int)f.length, (char *)plain);
            continue;
        }
        assert_int_equal(f.opcode == WS_CONTINUATION, kind != 0);
        kind = kind != 0 ? kind : f.opcode;
        memcpy(message + message_n, plain, (size_t)f.length);
        message_n += (size_t)f.length;
        if (f.fin) {
            n += (size_t)snprintf(text + n, size - n, "%c(%.*s)", kind == WS_TEXT ? 'T' : 'B', (int)message_n, message);
            kind = message_n = 0;
        }
    }
}

static void
frame(struct buf *b, bool fin, uint8_t opcode, const char *text, bool masked)
{
    static const uint8_t key[4] = { 1, 2, 3, 4 };
    size_t at;

    assert_int_equal(ws_write_head(b, fin, opcode, strlen(text), masked ? key : NULL), 0);
    at = b->n;
    buf_append(b, text, strlen(text));
    for (size_t i = 0; masked && at + i < b->n; i++)
        b->p[at + i] ^= key[i & 3];
}

static void
passes(void **state)
{
    (void)state;
    for (int masked = 0; masked < 2; masked++) {
        struct buf in = BUF_INIT(4096);
        frame(&in, true, WS_TEXT, "a secret here", masked);
        frame(&in, false, WS_BINARY, "no sec", masked);
        frame(&in, true, WS_PING, "secret?", masked);
        frame(&in, false, WS_CONTINUATION, "", masked);
        frame(&in, false, WS_CONTINUATION, "ret sec", masked);
        frame(&in, true, WS_CONTINUATION, "re", masked);
        frame(&in, true, WS_TEXT, "", masked);
        frame(&in, true, WS_CLOSE, "\3\xe8" "secret", masked);
        frame(&in, true, WS_TEXT, "late", masked);
        for (size_t step = 1; step <= in.n; step++) {
            struct swaps s = new_swaps();
            struct buf out = BUF_INIT(65536);
            struct ws_way w;
            char text[512] = "";
            ws_init(&w, masked);
            for (size_t at = 0; at < in.n; at += step)
                assert_int_equal(ws_feed(&w, in.p + at, in.n - at < step ? in.n - at : step, bytes, &s, &out), WS_OK);
            read_out(&out, masked, text, sizeof(text));
            assert_string_equal(text, "T(a SECRET here)9(SECRET?)B(no SECRET secre)T()8(\3\xe8" "SECRET)");
            ws_free(&w);
            buf_free(&out);
            swap_free(s.message);
            swap_free(s.control);
        }
        buf_free(&in);
    }
}

/* A control frame is not kept waiting by what is held back of a message. */
static void
control_goes_ahead(void **state)
{
    struct swaps s = new_swaps();
    struct buf in = BUF_INIT(256), out = BUF_INIT(4096);
    struct ws_way w;
    char text[128] = "";

    (void)state;
    ws_init(&w, false);
    frame(&in, false, WS_TEXT, "secre", false);
    frame(&in, true, WS_PING, "p", false);
    assert_int_equal(ws_feed(&w, in.p, in.n, bytes, &s, &out), WS_OK);
    read_out(&out, false, text, sizeof(text));
    assert_string_equal(text, "9(p)");
    ws_free(&w);
    buf_free(&in);
    buf_free(&out);
    swap_free(s.message);
    swap_free(s.control);
}

static void
refused(void **state)
{
    static const struct { bool client; const char *bytes; size_t n; enum ws_result result; } rows[] = {
        { true, "\x81\x01" "a", 3, WS_MASK }, { false, "\x81\x81" "keysa", 7, WS_MASK },
        { false, "\x80\x01" "a", 3, WS_ORDER }, { false, "\x01\x01" "a\x81\x01" "b", 6, WS_ORDER },
        { false, "\x81\x01" "a\x80\x01" "b", 6, WS_ORDER }, { false, "\x81\x01" "a\xc1\x01" "b", 6, WS_RESERVED },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct swaps s = new_swaps();
        struct buf out = BUF_INIT(4096);
        struct ws_way w;
        ws_init(&w, rows[i].client);
        assert_int_equal(ws_feed(&w, (const uint8_t *)rows[i].bytes, rows[i].n, bytes, &s, &out), rows[i].result);
        ws_free(&w);
        buf_free(&out);
        swap_free(s.message);
        swap_free(s.control);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads), cmocka_unit_test(passes), cmocka_unit_test(control_goes_ahead), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
