/* wire/rfb.h: what of a viewer's words passes, whole, however they are cut; and what ends them (R48) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "wire/rfb.h"

#define HELLO    "RFB 003.008\n\1\1"
#define KEY      "\4\1\0\0\0\0\0a"
#define POINT    "\5\1\0\12\0\24"
#define TEXT     "\6\0\0\0\0\0\0\3abc"
#define EXTENDED "\6\0\0\0\xff\xff\xff\xfb\2\0\0\0x"
#define SIZE     "\373\0\4\0\3\0\1\0" "\0\0\0\0" "\0\0\0\0\4\0\3\0" "\0\0\0\0"
#define QEMU     "\377\0\0\1\0\0\0a\0\0\0\36"
#define XVP      "\372\0\1\2"
#define ASKS     "\3\1\0\0\0\0\5\0\3\40"
#define FORMAT   "\0\0\0\0\40\30\0\1\0\377\0\377\0\377\20\10\0\0\0\0"
#define ENABLE   "\226\1\0\0\0\0\5\0\3\40"
#define FENCE    "\370\0\0\0\200\0\0\0\3abc"
#define RAW      "\2\0\0\1\0\0\0\0"

struct row { const char *in; size_t n; const char *out; size_t out_n; };
#define ROW(in, out) { in, sizeof(in) - 1, out, sizeof(out) - 1 }

/* What passes of @in, which is said in pieces of @piece bytes; -1: it was refused. */
static int
fed(bool control, const char *in, size_t n, size_t piece, struct buf *out, struct err *err)
{
    struct rfb r;
    int rc = 0;

    rfb_init(&r, control);
    for (size_t at = 0; at < n && rc == 0; at += piece)
        rc = rfb_feed(&r, (const uint8_t *)in + at, piece < n - at ? piece : n - at, out, err);
    rfb_free(&r);
    return rc;
}

static void
expect(bool control, const struct row *row)
{
    for (size_t piece = 1; piece <= row->n; piece++) {
        cleanup_buf struct buf out = BUF_INIT(4096);
        struct err err = ERR_INIT;
        assert_int_equal(fed(control, row->in, row->n, piece, &out, &err), 0);
        assert_int_equal(out.n, row->out_n);
        assert_memory_equal(out.p, row->out, row->out_n);
    }
}

static void
looking(void **state)
{
    static const struct row rows[] = {
        ROW(HELLO, HELLO), ROW(HELLO FORMAT RAW ASKS ENABLE FENCE, HELLO FORMAT RAW ASKS ENABLE FENCE),
        ROW(HELLO KEY, HELLO), ROW(HELLO POINT ASKS, HELLO ASKS), ROW(HELLO TEXT ASKS, HELLO ASKS),
        ROW(HELLO EXTENDED ASKS, HELLO ASKS), ROW(HELLO SIZE ASKS, HELLO ASKS), ROW(HELLO QEMU ASKS, HELLO ASKS),
        ROW(HELLO XVP ASKS, HELLO ASKS),
        /* whoever does not share is made to */
        ROW("RFB 003.008\n\1\0" ASKS, HELLO ASKS),
        /* a half of what passes is not said */
        ROW(HELLO "\3\1\0", HELLO), ROW(HELLO FENCE "\370\0\0\0\200\0\0\0\3ab", HELLO FENCE),
        /* a key within a text is a text, and a text of none has none */
        ROW(HELLO "\6\0\0\0\0\0\0\10" KEY ASKS, HELLO ASKS), ROW(HELLO "\6\0\0\0\0\0\0\0" KEY ASKS, HELLO ASKS),
        /* encodings by which a display says or hears something else */
        ROW(HELLO "\2\0\0\5\0\0\0\0\377\377\376\376\300\241\345\316\377\377\376\313\0\0\0\20",
            HELLO "\2\0\0\2\0\0\0\0\0\0\0\20"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect(false, &rows[i]);
}

static void
controlling(void **state)
{
    static const struct row rows[] = {
        ROW(HELLO KEY POINT TEXT EXTENDED SIZE QEMU ASKS, HELLO KEY POINT TEXT EXTENDED SIZE QEMU ASKS),
        ROW("RFB 003.008\n\1\0" KEY, HELLO KEY), ROW(HELLO XVP KEY, HELLO KEY), ROW(HELLO "\4\1\0\0\0", HELLO),
        /* xvp (-309), and pointers with more buttons (-316), are nobody's */
        ROW(HELLO "\2\0\0\5\0\0\0\0\377\377\376\376\300\241\345\316\377\377\376\313\377\377\376\304",
            HELLO "\2\0\0\3\0\0\0\0\377\377\376\376\300\241\345\316"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect(true, &rows[i]);
}

/* And what came before passes, what comes behind does not. */
static void
refused(void **state)
{
    static const struct row rows[] = {
        ROW("RFB 003.003\n\1\1", ""), ROW("RFB 003.889\n", ""), ROW("GET / HTTP/1.1\r\n\r\n", ""),
        ROW("RFB 003.008\n\2", "RFB 003.008\n"), ROW("RFB 003.008\n\0", "RFB 003.008\n"), ROW("RFB 003.008\n\20", "RFB 003.008\n"),
        ROW(HELLO "\1", HELLO), ROW(HELLO "\7" KEY, HELLO), ROW(HELLO ASKS "\374\0\0\0", HELLO ASKS), ROW(HELLO "\377\1", HELLO),
        ROW(HELLO "\6\0\0\0\0\1\0\1" KEY, HELLO), ROW(HELLO "\6\0\0\0\377\377\377\377" KEY, HELLO),
        ROW(HELLO "\6\0\0\0\200\0\0\0" KEY, HELLO), ROW(HELLO "\6\0\0\0\177\377\377\377" KEY, HELLO),
        ROW(HELLO "\2\0\1\1", HELLO), ROW(HELLO "\370\0\0\0\0\0\0\0\101", HELLO),
        ROW(HELLO "\0\0\0\0\30\30\0\1\0\377\0\377\0\377\20\10\0\0\0\0", HELLO),
        ROW(HELLO "\0\0\0\0\40\0\0\1\0\377\0\377\0\377\20\10\0\0\0\0", HELLO),
        ROW(HELLO "\0\0\0\0\40\30\0\1\0\377\0\377\0\377\40\10\0\0\0\0", HELLO),
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i / 2];
        for (size_t piece = 1; piece <= row->n; piece++) {
            cleanup_buf struct buf out = BUF_INIT(4096);
            struct err err = ERR_INIT;
            assert_int_equal(fed(i % 2 != 0, row->in, row->n, piece, &out, &err), -1);
            assert_true(err_is(&err, "desktop.viewer"));
            assert_int_equal(out.n, row->out_n);
            if (row->out_n > 0)
                assert_memory_equal(out.p, row->out, row->out_n);
        }
    }
}

static void
stays_refused(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(4096);
    struct err err = ERR_INIT;
    struct rfb r;

    (void)state;
    rfb_init(&r, true);
    assert_int_equal(rfb_feed(&r, (const uint8_t *)HELLO "\7", sizeof(HELLO), &out, &err), -1);
    assert_int_equal(rfb_feed(&r, (const uint8_t *)KEY, sizeof(KEY) - 1, &out, &err), -1);
    assert_int_equal(out.n, sizeof(HELLO) - 1);
    rfb_free(&r);
}

/* The longest text there may be. */
static void
long_text(void **state)
{
    static uint8_t text[8 + RFB_TEXT_MAX] = { 6, 0, 0, 0, 0, 1, 0, 0 };

    (void)state;
    for (int control = 0; control < 2; control++) {
        cleanup_buf struct buf out = BUF_INIT(RFB_MESSAGE_MAX + sizeof(text));
        struct err err = ERR_INIT;
        struct rfb r;
        rfb_init(&r, control != 0);
        assert_int_equal(rfb_feed(&r, (const uint8_t *)HELLO, sizeof(HELLO) - 1, &out, &err), 0);
        assert_int_equal(rfb_feed(&r, text, sizeof(text), &out, &err), 0);
        assert_int_equal(rfb_feed(&r, (const uint8_t *)ASKS, sizeof(ASKS) - 1, &out, &err), 0);
        assert_int_equal(out.n, sizeof(HELLO) - 1 + sizeof(ASKS) - 1 + (control != 0 ? sizeof(text) : 0));
        rfb_free(&r);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking), cmocka_unit_test(controlling), cmocka_unit_test(refused),
        cmocka_unit_test(stays_refused), cmocka_unit_test(long_text),
    };

    return cmocka_run_group_tests_name("rfb", tests, NULL, NULL);
}
