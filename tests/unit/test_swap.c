/* egress/swap: every cut of the stream, overlapping patterns, forms */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/swap.h"
#include "swap_hidden.h"

static struct swap *
make(const char *const (*pairs)[2], size_t n, unsigned forms)
{
    struct swap *s = swap_new();

    assert_non_null(s);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(swap_add(s, (unsigned)i, pairs[i][0], pairs[i][1], strlen(pairs[i][0]), forms), 0);
    return s;
}

static void
test_cuts(void **state)
{
    static const char *const pairs[][2] = { { "ghp_AAAAbbbb", "ghp_ZZZZyyyy" }, { "sk-1234", "sk-9876" } };
    struct swap *s = make(pairs, 2, SWAP_RAW);

    (void)state;
    check_cuts(s, "", "");
    check_cuts(s, "nothing here", "nothing here");
    check_cuts(s, "ghp_AAAAbbbb", "ghp_ZZZZyyyy");
    check_cuts(s, "x ghp_AAAAbbbbsk-1234 sk-123", "x ghp_ZZZZyyyysk-9876 sk-123");
    check_cuts(s, "ghp_AAAAghp_AAAAbbbb", "ghp_AAAAghp_ZZZZyyyy");
    check_cuts(s, "sk-sk-1234ssk-1234", "sk-sk-9876ssk-9876");
    swap_free(s);
}

static void
test_overlaps(void **state)
{
    /* one is the other's beginning, one its end, one repeats itself */
    static const char *const pairs[][2] = { { "abcd", "ABCD" }, { "abcdefgh", "12345678" }, { "efgh", "EFGH" },
                                            { "aaaa", "bbbb" } };
    struct swap *s = make(pairs, 4, SWAP_RAW);

    (void)state;
    check_cuts(s, "abcdefgh", "12345678");
    check_cuts(s, "abcdefgX", "ABCDefgX");
    check_cuts(s, "abcdefg", "ABCDefg");
    check_cuts(s, "xefghabc", "xEFGHabc");
    check_cuts(s, "aaaaaaabcd", "bbbbaaABCD");
    swap_free(s);
}

/* What is put in is not looked at again. */
static void
test_not_twice(void **state)
{
    static const char *const pairs[][2] = { { "aaaa", "bbbb" }, { "bbbb", "cccc" } };
    struct swap *s = make(pairs, 2, SWAP_RAW);

    (void)state;
    check_cuts(s, "aaaabbbb", "bbbbcccc");
    swap_free(s);
}

static void
test_byte_by_byte_and_seen(void **state)
{
    static const char *const pairs[][2] = { { "placeholder-1", "real-value--1" }, { "placeholder-2", "real-value--2" } };
    static const char in[] = "a=placeholder-2&b=placeholder-3";
    struct swap *s = make(pairs, 2, SWAP_RAW);
    struct buf out = BUF_INIT(256);

    (void)state;
    for (size_t i = 0; i < sizeof(in) - 1; i++)
        assert_int_equal(swap_feed(s, in + i, 1, false, &out), 0);
    assert_int_equal(swap_feed(s, "", 0, true, &out), 0);
    assert_memory_equal(out.p, "a=real-value--2&b=placeholder-3", sizeof(in) - 1);
    assert_int_equal(swap_seen(s), 2);
    assert_int_equal(swap_seen(s), 0);
    buf_free(&out);
    swap_free(s);
}

static void
test_forms(void **state)
{
    static const char *const pairs[][2] = { { "Ab1/+\"cdefghij", "Zy9/+\"xwvutsrq" } };
    struct swap *s = make(pairs, 1, SWAP_ALL);

    (void)state;
    check_cuts(s, "v=Ab1%2F%2B%22cdefghij;", "v=Zy9%2F%2B%22xwvutsrq;");
    check_cuts(s, "v=Ab1%2f%2b%22cdefghij;", "v=Zy9%2f%2b%22xwvutsrq;");
    check_cuts(s, "\"Ab1/+\\\"cdefghij\"", "\"Zy9/+\\\"xwvutsrq\"");
    check_cuts(s, "\"Ab1\\/+\\\"cdefghij\"", "\"Zy9\\/+\\\"xwvutsrq\"");
    /* base64 of "u:..." and "us:..."; the last character has bits of its own */
    check_cuts(s, "dTpBYjEvKyJjZGVmZ2hpag==", "dTpaeTkvKyJ4d3Z1dHNycg==");
    check_cuts(s, "dXM6QWIxLysiY2RlZmdoaWo=", "dXM6Wnk5LysieHd2dXRzcno=");
    swap_free(s);
}

static void
test_forms_of_lines(void **state)
{
    static const char *const pairs[][2] = { { "Ab c\r\n\"d\tefghij", "Zy x\r\n\"w\tvutsrq" } };
    struct swap *s = make(pairs, 1, SWAP_ALL);

    (void)state;
    check_cuts(s, "v=Ab c\r\n\"d\tefghij;", "v=Zy x\r\n\"w\tvutsrq;");
    check_cuts(s, "v=Ab%20c%0D%0A%22d%09efghij;", "v=Zy%20x%0D%0A%22w%09vutsrq;");
    check_cuts(s, "v=Ab+c%0d%0a%22d%09efghij;", "v=Zy+x%0d%0a%22w%09vutsrq;");
    check_cuts(s, "\"Ab c\\r\\n\\\"d\\tefghij\"", "\"Zy x\\r\\n\\\"w\\tvutsrq\"");
    swap_free(s);
}

/* The characters that the string alone decides are replaced; those at the edges, which a neighbour has part of, stay. */
static void
test_base64_edges(void **state)
{
    static const char *const pairs[][2] = { { "AAAAAAAAAAAA", "zzzzzzzzzzzz" } };
    struct swap *s = make(pairs, 1, SWAP_BASE64);

    (void)state;
    check_cuts(s, "QUFBQUFBQUFBQUFB", "enp6enp6enp6enp6");
    /* of "x", twelve times "A", "x" */
    check_cuts(s, "eEFBQUFBQUFBQUFBQXg=", "eEp6enp6enp6enp6eXg=");
    swap_free(s);
}

/* Every character spelled as it likes. */
static void
test_spellings(void **state)
{
    static const char *const pairs[][2] = { { "Ab1/+\"cdefghij", "Zy9/+\"xwvutsrq" } };
    static const char *const texts[][2] = {
        { "v=Ab1/%2B%22cdefghij;", "v=Zy9/%2B%22xwvutsrq;" },                           /* Python's quote() */
        { "%41%62%31%2f%2b%22%63defg%68ij", "%5A%79%39%2f%2b%22%78wvut%73rq" },
        { "%2541b1%252F+%2522cdefghij", "%255Ay9%252F+%2522xwvutsrq" },
        { "\\u0041b1\\/\\u002b\\\"cdefghij", "\\u005Ay9\\/\\u002b\\\"xwvutsrq" },
        { "\\\\u0041b1\\\\/+\\\\\\\"cdefghij", "\\\\u005Ay9\\\\/+\\\\\\\"xwvutsrq" },
        { "\\x41b1/+\\x22cdefghij", "\\x5Ay9/+\\x22xwvutsrq" },
        { "Ab1&#x2F;&#43;&quot;cdefghij", "Zy9&#x2F;&#43;&quot;xwvutsrq" },
        { "&#65;b1/+&#034;&#x63;defghij", "&#90;y9/+&#034;&#x78;wvutsrq" },
        { "Ab1/+=22cdef=\r\nghi=\nj", "Zy9/+=22xwvu=\r\ntsr=\nq" },
        { "4162312f2b22636465666768696a", "5a79392f2b227877767574737271" },
        { "41 62 31 2F 2B 22 63 64 65 66 67 68 69 6A", "5A 79 39 2F 2B 22 78 77 76 75 74 73 72 71" },
        { "41:62:31:2f:2b:22:63:64:65:66:67:68:69:6a", "5a:79:39:2f:2b:22:78:77:76:75:74:73:72:71" },
        { "4162312f2b22\n636465666768696a", "5a79392f2b22\n7877767574737271" },
        { "dTpBYjEv\r\nKyJjZGVm\r\nZ2hpag==", "dTpaeTkv\r\nKyJ4d3Z1\r\ndHNycg==" },
        { "dTpBYjEv\\nKyJjZGVm\\nZ2hpag==", "dTpaeTkv\\nKyJ4d3Z1\\ndHNycg==" },
        { "dTpBYjEvKyJjZGVmZ2hpag%3D%3D", "dTpaeTkvKyJ4d3Z1dHNycg%3D%3D" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct swap *s = make(pairs, 1, SWAP_ALL);
        struct buf out = BUF_INIT(4096);
        assert_int_equal(swap_feed(s, texts[i][0], strlen(texts[i][0]), true, &out), 0);
        assert_int_equal(out.n, strlen(texts[i][1]));
        assert_memory_equal(out.p, texts[i][1], out.n);
        assert_int_equal(swap_seen(s), 1);
        buf_free(&out);
        if (strpbrk(texts[i][0], "\r\n") == NULL)       /* lines that are short are looked for in one read alone */
            check_cuts(s, texts[i][0], texts[i][1]);
        swap_free(s);
    }
}

/* UTF-16, of either order. */
static void
test_wide(void **state)
{
    static const char from[] = "Ab1/+\"cdefghij", to[] = "Zy9/+\"xwvutsrq";
    char in[64] = { 0 }, want[64] = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(from) - 1; i++) {
        in[2 * i + 1] = from[i];
        want[2 * i + 1] = to[i];
    }
    for (size_t order = 0; order < 2; order++)
        for (size_t cut = 0; cut < 40; cut++) {
            struct swap *s = swap_new();
            struct buf out = BUF_INIT(4096);
            swap_hide(s);
            assert_int_equal(swap_add(s, 0, from, to, sizeof(from) - 1, SWAP_ALL), 0);
            assert_int_equal(swap_feed(s, in + order, cut, false, &out), 0);
            assert_int_equal(swap_feed(s, in + order + cut, 40 - cut, true, &out), 0);
            assert_int_equal(out.n, 40);
            assert_memory_equal(out.p, want + order, 40);
            buf_free(&out);
            swap_free(s);
        }
}

/* One of more than 64 characters, in all forms. */
static void
test_long(void **state)
{
    enum { N = 1000, FORMS = 3 };
    static uint8_t from[N], to[N], in[FORMS][4 * N], want[FORMS][4 * N];
    size_t n[FORMS] = { N, 3 * N, 2 * N };

    (void)state;
    for (size_t i = 0; i < N; i++) {
        from[i] = (uint8_t)('a' + i * i % 26);
        to[i] = (uint8_t)('a' + (i * i + 7) % 26);
        in[0][i] = from[i];
        want[0][i] = to[i];
        snprintf((char *)in[1] + 3 * i, 4, "%%%02X", from[i]);
        snprintf((char *)want[1] + 3 * i, 4, "%%%02X", to[i]);
        snprintf((char *)in[2] + 2 * i, 3, "%02x", from[i]);
        snprintf((char *)want[2] + 2 * i, 3, "%02x", to[i]);
    }
    for (size_t k = 0; k < FORMS; k++)
        for (size_t step = 1; step < n[k] + 1; step = step * 7 + 1) {
            struct swap *s = swap_new();
            struct buf out = BUF_INIT(8 * N);
            swap_hide(s);
            assert_int_equal(swap_add(s, 3, from, to, N, SWAP_ALL), 0);
            for (size_t at = 0; at < n[k]; at += step)
                assert_int_equal(swap_feed(s, in[k] + at, step < n[k] - at ? step : n[k] - at, false, &out), 0);
            assert_int_equal(swap_feed(s, "", 0, true, &out), 0);
            assert_int_equal(out.n, n[k]);
            assert_memory_equal(out.p, want[k], out.n);
            assert_int_equal(swap_seen(s), 8);
            buf_free(&out);
            swap_free(s);
        }
}

static uint8_t timed[1 << 14];

/* Processor time to search it. */
static uint64_t
time_of_search(struct swap *s)
{
    struct buf out = BUF_INIT(sizeof(timed) + SWAP_HELD_MAX);
    struct timespec a, b;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    assert_int_equal(swap_feed(s, timed, sizeof(timed), true, &out), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    buf_free(&out);
    return (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec;
}

/* Fills @timed with what is sent for @guess. */
typedef void fill_fn(char guess);

/* How many times as long the slowest guess takes as the fastest. Each takes turns with the others, and the least of its
 * times counts: what else runs slows some of them. */
static double
times_apart(struct swap *s, fill_fn *fill, char first, char last)
{
    enum { ROUNDS = 8 };
    uint64_t of[256], least = UINT64_MAX, most = 0;

    memset(of, 0xff, sizeof(of));
    for (int round = 0; round < ROUNDS; round++)
        for (char c = first; c <= last; c++) {
            uint64_t took;
            fill(c);
            took = time_of_search(s);
            of[(uint8_t)c] = took < of[(uint8_t)c] ? took : of[(uint8_t)c];
        }
    for (char c = first; c <= last; c++) {
        least = of[(uint8_t)c] < least ? of[(uint8_t)c] : least;
        most = of[(uint8_t)c] > most ? of[(uint8_t)c] : most;
    }
    return (double)most / (double)least;
}

/* What tells does so each time; what else runs makes times differ only now and then. */
static bool
always_apart(struct swap *s, fill_fn *fill, char first, char last, double limit)
{
    for (int i = 0; i < 10; i++)
        if (times_apart(s, fill, first, last) < limit)
            return false;
    return true;
}

static void
fill_all(char guess)
{
    memset(timed, guess, sizeof(timed));
}

/* Which characters a value has, and where, is not to be had from how long their search takes: a search that skips is ten
 * times as fast where they do not occur. */
static void
test_time_tells_nothing(void **state)
{
    struct swap *s = swap_new();

    (void)state;
    swap_hide(s);
    assert_int_equal(swap_add(s, 0, "sk-gkmqgkmqgkmqgkmqgkmqgkmq", "sk-hjnphjnphjnphjnphjnphjnp", 27, SWAP_ALL), 0);
    assert_false(always_apart(s, fill_all, 'g', 'z', 3));
    swap_free(s);
}

#define KNOWN "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

/* It in hexadecimal, a digit more, and what may stand between two digits. */
static void
fill_known(char guess)
{
    const size_t n = sizeof(KNOWN) - 1;

    memset(timed, ' ', sizeof(timed));
    for (size_t at = 0; at < sizeof(timed); at += 2048) {
        for (size_t i = 0; i < n; i++)
            snprintf((char *)timed + at + 2 * i, 3, "%02x", (unsigned)KNOWN[i]);
        timed[at + 2 * n] = (uint8_t)guess;
    }
}

/* Nor what follows where the first 64 characters are known, as 32 bytes of a JWT are in hexadecimal: blanks behind a
 * digit that is right keep the search where it is. */
static void
test_time_of_long_tells_nothing(void **state)
{
    enum { VALUES = 16 };
    struct swap *s = swap_new();

    (void)state;
    swap_hide(s);
    for (unsigned i = 0; i < VALUES; i++) {
        char from[] = KNOWN "qqqa", to[] = KNOWN "zzzz";
        from[sizeof(from) - 2] = (char)('a' + i);
        assert_int_equal(swap_add(s, i, from, to, sizeof(from) - 1, SWAP_ALL), 0);
    }
    assert_false(always_apart(s, fill_known, '0', '9', 1.4));
    swap_free(s);
}

/* --- a hidden search */

static void
test_hidden_finds_the_same(void **state)
{
    struct swap *s = hidden(VALUE);
    char in[10 * sizeof(VALUE)], out[10 * sizeof(VALUE)];

    (void)state;
    check_cuts(s, "", "");
    check_cuts(s, "nothing sk-Ab1/x9Q", "nothing sk-Ab1/x9Q");
    check_cuts(s, "sk-Ab1/x9Qw+" VALUE, "sk-Ab1/x9Qw+" PLACE);
    check_cuts(s, VALUE VALUE " sk-Xx9/", PLACE PLACE " sk-Xx9/");
    check_cuts(s, "v=sk-Ab1%2Fx9Qw%2brTy7uIoP v=sk-Ab1%2fx9Qw%2brTy7uIoP",
               "v=sk-Zy2%2Fa8Mn%2bbVc3xZaS v=sk-Zy2%2fa8Mn%2bbVc3xZaS");
    for (size_t i = 0; i < sizeof(VALUE) - 1; i++) {        /* the longest spelling there is */
        snprintf(in + 10 * i, 11, "&#x%06X;", (unsigned)VALUE[i]);
        snprintf(out + 10 * i, 11, "&#x%06X;", (unsigned)PLACE[i]);
    }
    check_cuts(s, in, out);
    check_cuts(s, "c2stQWIxL3g5UXcrclR5N3VJb1A=", "c2stWnkyL2E4TW4rYlZjM3haYVM=");
    swap_free(s);
}

/* The characters beside what the value alone decides have bits of its first and last one: of a digit at its end all that
 * was not known. What comes is base64 of the same text with the other value. */
static void
test_hidden_edges(void **state)
{
    static const char *const texts[][2] = {
        { "c2stQWIxL3g5UXcrclR5N3VJb1A=", "c2stWnkyL2E4TW4rYlZjM3haYVM=" },
        { "c2stQWIxL3g5UXcrclR5N3VJb1A/", "c2stWnkyL2E4TW4rYlZjM3haYVM/" },
        { "c2stQWIxL3g5UXcrclR5N3VJb1A/fg==", "c2stWnkyL2E4TW4rYlZjM3haYVM/fg==" },
        { "fnNrLUFiMS94OVF3K3JUeTd1SW9Q", "fnNrLVp5Mi9hOE1uK2JWYzN4WmFT" },
        { "fnNrLUFiMS94OVF3K3JUeTd1SW9QPw==", "fnNrLVp5Mi9hOE1uK2JWYzN4WmFTPw==" },
        { "fnNrLUFiMS94OVF3K3JUeTd1SW9QP34=", "fnNrLVp5Mi9hOE1uK2JWYzN4WmFTP34=" },
        { "fj9zay1BYjEveDlRdytyVHk3dUlvUA==", "fj9zay1aeTIvYThNbitiVmMzeFphUw==" },
        { "fj9zay1BYjEveDlRdytyVHk3dUlvUD8=", "fj9zay1aeTIvYThNbitiVmMzeFphUz8=" },
        { "fj9zay1BYjEveDlRdytyVHk3dUlvUD9-", "fj9zay1aeTIvYThNbitiVmMzeFphUz9-" },
        { "fj9+c2stQWIxL3g5UXcrclR5N3VJb1A=", "fj9+c2stWnkyL2E4TW4rYlZjM3haYVM=" },
        { "fj9+c2stQWIxL3g5UXcrclR5N3VJb1A/", "fj9+c2stWnkyL2E4TW4rYlZjM3haYVM/" },
        { "fj9+c2stQWIxL3g5UXcrclR5N3VJb1A/fg==", "fj9+c2stWnkyL2E4TW4rYlZjM3haYVM/fg==" },
        { "YXNrLUFiMS94OVF3K3JUeTd1SW9Qc2stQWIxL3g5UXcrclR5N3VJb1Bi", "YXNrLVp5Mi9hOE1uK2JWYzN4WmFTc2stWnkyL2E4TW4rYlZjM3haYVNi" },
    };
    struct swap *s = hidden(VALUE);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_cuts(s, texts[i][0], texts[i][1]);
    swap_free(s);
}

/* @text comes in pieces of @step bytes: both hold back the same of each, whichever of two values they look for. */
static void
check_held(const char *text, size_t step)
{
    struct swap *one = hidden(VALUE), *two = hidden(OTHER);
    struct buf out = BUF_INIT(4096);

    for (size_t at = 0; at < strlen(text); at += step) {
        size_t n = strlen(text) - at < step ? strlen(text) - at : step;
        assert_int_equal(swap_feed(one, text + at, n, false, &out), 0);
        assert_int_equal(swap_feed(two, text + at, n, false, &out), 0);
        assert_int_equal(swap_seen(one) | swap_seen(two), 0);
        assert_int_equal(swap_held(one), swap_held(two));
    }
    buf_free(&out);
    swap_free(one);
    swap_free(two);
}

static void
test_hidden_tells_nothing(void **state)
{
    /* a guess at a value's beginning, in each form, right for one of them */
    static const char *const guesses[] = {
        "sk-Ab1/x9Qw+rTy7uIo", "sk-Qq7/m1Ee+hHh5jJk", "sk-Ab1%2Fx9Qw%2BrTy7uIo", "sk-Qq7%2fm1Ee%2bhHh5jJk", "sk-Ab1\\/x9Qw+rTy",
        "c2stQWIxL3g5UXcrclR5N3V", "c2stUXE3L20xRWUraEhoNWp", "x=\"sk-Ab1/x9Qw+rTy7uI\", sk-Ab1/x9Q", "sk-sk-Ab1sk-Ab1/xsk-",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(guesses); i++)
        for (size_t step = 1; step <= strlen(guesses[i]); step++)
            check_held(guesses[i], step);
}

/* What no value begins like passes at once: events, lines, objects. */
static void
test_hidden_holds_little(void **state)
{
    static const char *const texts[] = { "data: {\"x\": 1}\n\n", "a line\n", "{\"text\": \"hello\"}", "login: ", "piece 7;" };
    struct swap *s = hidden(VALUE);
    struct buf out = BUF_INIT(4096);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(swap_feed(s, texts[i], strlen(texts[i]), false, &out), 0);
        assert_int_equal(swap_held(s), 0);
    }
    assert_int_equal(swap_feed(s, "a word", 6, false, &out), 0);
    assert_int_equal(swap_held(s), 4);
    buf_free(&out);
    swap_free(s);
}

static void
test_hidden_refuses_other_classes(void **state)
{
    struct swap *s = swap_new();

    (void)state;
    assert_non_null(s);
    swap_hide(s);
    assert_int_equal(swap_add(s, 0, "abcd", "abC1", 4, SWAP_RAW), -1);
    swap_free(s);
}

static double
seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @text in pieces of @step bytes, of which as many are held back as ever are. */
static double
time_of(const char *text, size_t n, size_t step, bool hides)
{
    static char value[1701], other[1701];
    struct swap *s = swap_new();
    struct buf out = BUF_INIT(1 << 20);
    double began;

    memset(value, 'a', sizeof(value) - 1);
    memset(other, 'b', sizeof(other) - 1);
    assert_non_null(s);
    if (hides)
        swap_hide(s);
    assert_int_equal(swap_add(s, 0, value, other, sizeof(value) - 1, SWAP_ALL), 0);
    began = seconds();
    for (size_t at = 0; at < n; at += step)
        assert_int_equal(swap_feed(s, text + at, step, false, &out), 0);
    began = seconds() - began;
    buf_free(&out);
    swap_free(s);
    return began;
}

/* Who cuts a stream into bytes makes the search of each no longer than what is held has to be moved. */
static void
test_time_of_pieces(void **state)
{
    static char text[24000];

    (void)state;
    for (int hides = 0; hides < 2; hides++) {
        memset(text, 0, sizeof(text));
        memset(text, 'a', 8);
        assert_true(time_of(text, sizeof(text), 1, hides) < 300 * time_of(text, sizeof(text), sizeof(text), hides));
        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = "aab/"[i % 4];
        assert_true(time_of(text, sizeof(text), 1, hides) < 300 * time_of(text, sizeof(text), sizeof(text), hides));
    }
}

/* What is held follows from how much came alone, and all of it is found. */
static void
test_blind(void **state)
{
    static const char *const values[] = { VALUE, OTHER, "0123456789abcdefghij" };
    static const char text[] = "<a href=\"sk-Ab1/x9Qw+rTy7uIo sk-Qq7%2fm1Ee%2bhHh5jJk c2stQWIxL3g5UXcrclR5N3V\n"
                               "0123456789abcdefghi ";
    static const char nothing[] = "xxxxxxxxxxxxxxxxxxxx";

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(values); k++) {
        struct swap *s = swap_new();
        struct buf out = BUF_INIT(4096);
        const size_t most = 10 * (sizeof(nothing) - 1) + 64;
        assert_non_null(s);
        swap_blind(s);
        assert_int_equal(strlen(values[k]), strlen(nothing));
        assert_int_equal(swap_add(s, 0, values[k], nothing, strlen(nothing), SWAP_RAW | SWAP_SPELLED), 0);
        for (size_t at = 0; at < 4 * strlen(text); at++) {
            assert_int_equal(swap_feed(s, text + at % strlen(text), 1, false, &out), 0);
            assert_int_equal(swap_held(s), at + 1 < most ? at + 1 : most);
        }
        assert_int_equal(swap_feed(s, "", 0, true, &out), 0);
        assert_int_equal(swap_seen(s), 0);
        check_cuts(s, values[k], nothing);
        buf_free(&out);
        swap_free(s);
    }
}

static void
test_refusals(void **state)
{
    struct swap *s = swap_new();
    static uint8_t big[SWAP_PATTERN_MAX + 1];

    (void)state;
    assert_non_null(s);
    assert_int_equal(swap_add(s, 0, "abc", "xyz", 3, SWAP_RAW), -1);
    assert_int_equal(swap_add(s, 32, "abcd", "wxyz", 4, SWAP_RAW), -1);
    assert_int_equal(swap_add(s, 0, big, big, sizeof(big), SWAP_RAW), -1);
    assert_int_equal(swap_add(s, 0, "ab/d", "wxyz", 4, SWAP_SPELLED), -1);   /* not of one class */
    swap_free(s);
}

static void
test_ceiling(void **state)
{
    static const char *const pairs[][2] = { { "abcd", "wxyz" } };
    struct swap *s = make(pairs, 1, SWAP_RAW);
    struct buf out = BUF_INIT(6);

    (void)state;
    assert_int_equal(swap_feed(s, "abcdabcd", 8, true, &out), -1);
    buf_free(&out);
    swap_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts), cmocka_unit_test(test_overlaps), cmocka_unit_test(test_not_twice),
        cmocka_unit_test(test_byte_by_byte_and_seen), cmocka_unit_test(test_forms), cmocka_unit_test(test_forms_of_lines),
        cmocka_unit_test(test_base64_edges), cmocka_unit_test(test_spellings), cmocka_unit_test(test_wide),
        cmocka_unit_test(test_long), cmocka_unit_test(test_time_tells_nothing),
        cmocka_unit_test(test_time_of_long_tells_nothing), cmocka_unit_test(test_refusals), cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_hidden_finds_the_same), cmocka_unit_test(test_hidden_edges), cmocka_unit_test(test_hidden_tells_nothing),
        cmocka_unit_test(test_hidden_holds_little), cmocka_unit_test(test_hidden_refuses_other_classes),
        cmocka_unit_test(test_time_of_pieces), cmocka_unit_test(test_blind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
