/* egress/unpack: both encodings, every cut, bounded steps, damage */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "egress/unpack.h"

static size_t
pack(const void *p, size_t n, int window, uint8_t *out, size_t size)
{
    z_stream z = { 0 };

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)p;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = (unsigned)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return size - z.avail_out;
}

/* All of it, offered @step bytes at a time, what was not taken again. -1 or 0. */
static int
unpack_all(enum unpack_kind kind, const uint8_t *p, size_t n, size_t step, struct buf *out)
{
    struct unpack *u = unpack_new(kind);
    int r = 0;

    assert_non_null(u);
    for (size_t at = 0; r == 0 && at < n;) {
        size_t offer = n - at < step ? n - at : step, used, before = out->n;
        r = unpack_feed(u, p + at, offer, at + offer == n, out, &used);
        assert_true(used <= offer && (r < 0 || used > 0 || out->n > before));
        assert_true(out->n - before < UNPACK_STEP + 32768);
        at += used;
    }
    if (r == 0 && !unpack_done(u))
        r = -1;
    unpack_free(u);
    return r;
}

static void
test_round(void **state)
{
    static const struct { enum unpack_kind kind; int window; } rows[] = {
        { UNPACK_GZIP, 31 }, { UNPACK_DEFLATE, 15 }, { UNPACK_DEFLATE, -15 } };
    static uint8_t plain[300000], packed[400000];

    (void)state;
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i % 251 * (i / 1000));
    for (size_t i = 0; i < 3; i++) {
        size_t n = pack(plain, sizeof(plain), rows[i].window, packed, sizeof(packed));
        for (size_t step = 1; step < 2 * n; step = step * 3 + 1) {
            struct buf out = BUF_INIT(sizeof(plain) + 65536);
            assert_int_equal(unpack_all(rows[i].kind, packed, n, step, &out), 0);
            assert_int_equal(out.n, sizeof(plain));
            assert_memory_equal(out.p, plain, sizeof(plain));
            buf_free(&out);
        }
    }
}

/* A thousandfold: what comes out of one call is bounded, and the last call brings the rest. */
static void
test_bomb(void **state)
{
    size_t size = 64 << 20;
    uint8_t *plain = calloc(1, size), *packed = malloc(1 << 20);
    struct buf out = BUF_INIT((64 << 20) + 65536);
    size_t n;

    (void)state;
    assert_true(plain != NULL && packed != NULL);
    n = pack(plain, size, 31, packed, 1 << 20);
    assert_int_equal(unpack_all(UNPACK_GZIP, packed, n, n, &out), 0);
    assert_int_equal(out.n, size);
    buf_free(&out);
    free(plain);
    free(packed);
}

static void
test_damage(void **state)
{
    static const char plain[] = "a text that is packed, and then damaged";
    uint8_t packed[256];
    size_t n = pack(plain, sizeof(plain), 31, packed, sizeof(packed));
    struct buf out = BUF_INIT(65536);

    (void)state;
    assert_int_equal(unpack_all(UNPACK_GZIP, packed, n - 1, 7, &out), -1);          /* cut */
    memcpy(packed + n, "x", 1);
    assert_int_equal(unpack_all(UNPACK_GZIP, packed, n + 1, 7, &out), -1);          /* something behind it */
    assert_int_equal(unpack_all(UNPACK_GZIP, packed, n + 1, n + 1, &out), -1);
    packed[n - 5] ^= 1;
    assert_int_equal(unpack_all(UNPACK_GZIP, packed, n, n, &out), -1);              /* its checksum */
    assert_int_equal(unpack_all(UNPACK_GZIP, (const uint8_t *)plain, 20, 20, &out), -1);
    buf_free(&out);
}

static void
test_kind(void **state)
{
    (void)state;
    assert_int_equal(unpack_kind(STR_LIT("")), UNPACK_PLAIN);
    assert_int_equal(unpack_kind(STR_LIT("Identity")), UNPACK_PLAIN);
    assert_int_equal(unpack_kind(STR_LIT("GZIP")), UNPACK_GZIP);
    assert_int_equal(unpack_kind(STR_LIT("x-gzip")), UNPACK_GZIP);
    assert_int_equal(unpack_kind(STR_LIT("deflate")), UNPACK_DEFLATE);
    assert_int_equal(unpack_kind(STR_LIT("gzip, gzip")), UNPACK_UNKNOWN);
    assert_int_equal(unpack_kind(STR_LIT("br")), UNPACK_UNKNOWN);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round), cmocka_unit_test(test_bomb),
                                        cmocka_unit_test(test_damage), cmocka_unit_test(test_kind) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
