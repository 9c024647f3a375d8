/* egress/tls_hello: the name in a ClientHello is read exactly as the server will read it, or the connection is refused
 * (R02, R13, R14) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "egress/tls_hello.h"
#include "tls_hello_build.h"
#include "data/tls_hello_captures.h"

#define N(a) ARRAY_LEN(a)
#define D(s) s, sizeof(s) - 1

/* Every prefix is "more"; the whole is @want, whatever follows in a record of its own. */
static void
expect_whole(const char *what, const struct buf *wire, enum tls_hello_status want, struct tls_hello *hello)
{
    enum tls_hello_status got;
    struct tls_hello part;

    for (size_t n = 0; n < wire->n; n++) {
        cleanup_free uint8_t *exact = malloc(n + 1);    /* so that a sanitizer sees a read past the end */
        assert_non_null(exact);
        memcpy(exact + 1, wire->p, n);
        got = tls_hello_parse(exact + 1, n, &part);
        if (got != TLS_HELLO_MORE)
            fail_msg("%s: %zu of %zu bytes: %s", what, n, wire->n, tls_hello_word(got));
    }
    got = tls_hello_parse(wire->p, wire->n, hello);
    if (got != want)
        fail_msg("%s: %s, want %s", what, tls_hello_word(got), tls_hello_word(want));
    if (want == TLS_HELLO_OK)
        assert_int_equal(hello->consumed, wire->n);
}

static enum tls_hello_status
parse_exts(const struct buf *exts, struct tls_hello *hello)
{
    cleanup_buf struct buf message = BUF_INIT(HELLO_BUF_MAX), wire = BUF_INIT(HELLO_BUF_MAX);

    hello_message(&message, 0x0303, exts);
    hello_records(&wire, &message, 16384);
    assert_true(buf_ok(&wire));
    return tls_hello_parse(wire.p, wire.n, hello);
}

static enum tls_hello_status
parse_ext(uint16_t type, const char *data, size_t n, struct tls_hello *hello)
{
    cleanup_buf struct buf exts = BUF_INIT(HELLO_BUF_MAX);

    hello_ext(&exts, type, data, n);
    return parse_exts(&exts, hello);
}

static void
captures(void **state)
{
    static const struct {
        const char *name, *hex, *sni;
        bool ech, h2, http11, early;
        uint16_t max;
        size_t n_alpn;
        enum tls_hello_status status;
    } rows[] = {
        { "openssl", hello_openssl, "capture.example.org", false, true, true, false, 0x0304, 2, TLS_HELLO_OK },
        { "openssl 1.2", hello_openssl_tls12, "capture.example.org", false, false, false, false, 0x0303, 0, TLS_HELLO_OK },
        { "openssl no sni", hello_openssl_no_sni, NULL, false, false, false, false, 0x0304, 0, TLS_HELLO_OK },
        { "openssl address", hello_openssl_address, NULL, false, false, false, false, 0, 0, TLS_HELLO_SNI_NAME },
        { "openssl dot", hello_openssl_dot, NULL, false, false, false, false, 0, 0, TLS_HELLO_SNI_NAME },
        { "openssl early", hello_openssl_early, "capture.example.org", false, false, false, true, 0x0304, 0, TLS_HELLO_OK },
        { "openssl fragments", hello_openssl_fragments, "capture.example.org", false, false, false, false, 0x0304, 12,
          TLS_HELLO_OK },
        { "curl", hello_curl, "capture.example.org", false, true, true, false, 0x0304, 2, TLS_HELLO_OK },
        { "node", hello_node, "capture.example.org", false, false, true, false, 0x0304, 1, TLS_HELLO_OK },
        { "python", hello_python, "capture.example.org", false, false, false, false, 0x0304, 0, TLS_HELLO_OK },
        { "go", hello_go, "capture.example.org", false, true, true, false, 0x0304, 2, TLS_HELLO_OK },
        { "go with ECH", hello_go_ech, "capture.example.org", true, true, true, false, 0x0304, 2, TLS_HELLO_OK },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        cleanup_buf struct buf wire = BUF_INIT(HELLO_BUF_MAX);
        struct tls_hello hello;
        for (const char *p = rows[i].hex; *p != '\0'; p += 2) {
            uint64_t byte;
            assert_true(str_parse_hex((struct str){ p, 2 }, 255, &byte));
            buf_put_u8(&wire, (uint8_t)byte);
        }
        expect_whole(rows[i].name, &wire, rows[i].status, &hello);
        if (hello.has_sni != (rows[i].sni != NULL) || (hello.has_sni && strcmp(hello.sni, rows[i].sni) != 0) ||
            hello.has_ech != rows[i].ech || hello.alpn_h2 != rows[i].h2 || hello.alpn_http11 != rows[i].http11 ||
            hello.early_data != rows[i].early || hello.version_max != rows[i].max || hello.n_alpn != rows[i].n_alpn)
            fail_msg("%s: sni \"%s\" ech %d h2 %d http/1.1 %d early %d max %04x alpn %zu", rows[i].name, hello.sni,
                     hello.has_ech, hello.alpn_h2, hello.alpn_http11, hello.early_data, hello.version_max, hello.n_alpn);
    }
}

static void
names(void **state)
{
    static const struct { const char *name; size_t n; const char *want; } rows[] = {
        { D("example.org"), "example.org" },
        { D("EXAMPLE.Org"), "example.org" },
        { D("a_b-c.example.org"), "a_b-c.example.org" },
        { D("xn--mnchen-3ya.example"), "xn--mnchen-3ya.example" },
        { D("localhost"), "localhost" },        /* read here, refused by decide() */
        { D(""), NULL },
        { D("example.org."), NULL },
        { D("."), NULL },
        { D(".example.org"), NULL },
        { D("a..b"), NULL },
        { D("example.org\0"), NULL },
        { D("example.org\0.evil.example"), NULL },
        { D("\0example.org"), NULL },
        { D("example.org "), NULL },
        { D("example.org\r\n"), NULL },
        { D("exa\tmple.org"), NULL },
        { D("example.org:443"), NULL },
        { D("user@example.org"), NULL },
        { D("example.org/x"), NULL },
        { D("*.example.org"), NULL },
        { D("example%2eorg"), NULL },
        { D("ex\xc3\xa4mple.org"), NULL },
        { D("example\xe3\x80\x82org"), NULL },
        { D("127.0.0.1"), NULL },
        { D("127.1"), NULL },
        { D("2130706433"), NULL },
        { D("0x7f.1"), NULL },
        { D("0177.0.0.1"), NULL },
        { D("256.1.1.1"), NULL },
        { D("::1"), NULL },
        { D("[::1]"), NULL },
        { D("::ffff:127.0.0.1"), NULL },
        { D("-a.example"), NULL },
        { D("example.org\x7f"), NULL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        cleanup_buf struct buf exts = BUF_INIT(HELLO_BUF_MAX);
        enum tls_hello_status want = rows[i].want != NULL ? TLS_HELLO_OK : TLS_HELLO_SNI_NAME, got;
        struct tls_hello hello;
        hello_sni(&exts, rows[i].name, rows[i].n);
        got = parse_exts(&exts, &hello);
        if (got != want)
            fail_msg("row %zu \"%s\": %s", i, rows[i].name, tls_hello_word(got));
        if (rows[i].want != NULL) {
            assert_true(hello.has_sni);
            assert_int_equal(hello.sni_n, strlen(rows[i].want));
            assert_string_equal(hello.sni, rows[i].want);
        } else {
            assert_false(hello.has_sni);        /* nothing of a refused hello is handed out */
        }
    }
}

static void
name_lengths(void **state)
{
    char name[300];
    struct tls_hello hello;

    (void)state;
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 64 == 63 ? '.' : 'a';
    for (size_t n = 250; n < 260; n++) {
        cleanup_buf struct buf exts = BUF_INIT(HELLO_BUF_MAX);
        hello_sni(&exts, name, n);
        assert_int_equal(parse_exts(&exts, &hello), n <= 253 ? TLS_HELLO_OK : TLS_HELLO_SNI_NAME);
    }
}

/* Extensions whose content, byte for byte, is right or wrong. */
static void
extension_rows(void **state)
{
    static const struct { const char *what; uint16_t type; const char *data; size_t n; enum tls_hello_status want; } rows[] = {
        { "sni", 0, D("\0\4\0\0\1a"), TLS_HELLO_OK },
        { "sni without content", 0, D(""), TLS_HELLO_LENGTH },
        { "sni of an empty list", 0, D("\0\0"), TLS_HELLO_SNI },
        { "sni, list shorter than the extension", 0, D("\0\3\0\0\1a"), TLS_HELLO_LENGTH },
        { "sni, list longer than the extension", 0, D("\0\5\0\0\1a"), TLS_HELLO_LENGTH },
        { "sni, name longer than the list", 0, D("\0\4\0\0\2a"), TLS_HELLO_LENGTH },
        { "sni, two names", 0, D("\0\10\0\0\1a\0\0\1b"), TLS_HELLO_SNI },
        { "sni, a name and another type", 0, D("\0\10\0\0\1a\1\0\1b"), TLS_HELLO_SNI },
        { "sni, another type", 0, D("\0\4\1\0\1a"), TLS_HELLO_SNI },
        { "sni, bytes behind the name", 0, D("\0\5\0\0\1ab"), TLS_HELLO_SNI },
        { "sni, only a type", 0, D("\0\1\0"), TLS_HELLO_LENGTH },
        { "sni, empty name", 0, D("\0\3\0\0\0"), TLS_HELLO_SNI_NAME },
        { "alpn", 16, D("\0\3\2h2"), TLS_HELLO_OK },
        { "alpn without content", 16, D(""), TLS_HELLO_LENGTH },
        { "alpn of an empty list", 16, D("\0\0"), TLS_HELLO_ALPN },
        { "alpn with an empty name", 16, D("\0\4\2h2\0"), TLS_HELLO_ALPN },
        { "alpn, name longer than the list", 16, D("\0\3\3h2"), TLS_HELLO_LENGTH },
        { "alpn, list shorter than the extension", 16, D("\0\3\2h2x"), TLS_HELLO_LENGTH },
        { "alpn, 16 names", 16, D("\0\40\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a"), TLS_HELLO_OK },
        { "alpn, 17 names", 16, D("\0\42\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a\1a"), TLS_HELLO_ALPN },
        { "versions", 43, D("\4\3\4\3\3"), TLS_HELLO_OK },
        { "versions without content", 43, D(""), TLS_HELLO_LENGTH },
        { "versions of an empty list", 43, D("\0"), TLS_HELLO_LENGTH },
        { "versions, odd", 43, D("\3\3\4\3"), TLS_HELLO_LENGTH },
        { "versions, list shorter than the extension", 43, D("\2\3\4\3\3"), TLS_HELLO_LENGTH },
        { "versions, grease only", 43, D("\2\x1a\x1a"), TLS_HELLO_VERSION },
        { "early data", 42, D(""), TLS_HELLO_OK },
        { "early data with content", 42, D("\0"), TLS_HELLO_LENGTH },
        { "ech", 0xfe0d, D("\0\0\1\0\1\7\0\2ab\0\1x"), TLS_HELLO_OK },
        { "ech after a retry", 0xfe0d, D("\0\0\1\0\1\7\0\0\0\1x"), TLS_HELLO_OK },
        { "ech without content", 0xfe0d, D(""), TLS_HELLO_LENGTH },
        { "ech without payload", 0xfe0d, D("\0\0\1\0\1\7\0\0\0\0"), TLS_HELLO_LENGTH },
        { "ech cut", 0xfe0d, D("\0\0\1\0\1\7\0\2ab\0\2x"), TLS_HELLO_LENGTH },
        { "ech with more", 0xfe0d, D("\0\0\1\0\1\7\0\2ab\0\1xy"), TLS_HELLO_LENGTH },
        { "ech inner", 0xfe0d, D("\1"), TLS_HELLO_ECH_INNER },
        { "ech of a type that is none", 0xfe0d, D("\2"), TLS_HELLO_EXTENSION },
        { "encrypted server name", 0xffce, D("whatever"), TLS_HELLO_OK },
        { "ech of a draft", 0xfe02, D("whatever"), TLS_HELLO_OK },
        { "ech of the last draft", 0xfe0c, D("whatever"), TLS_HELLO_OK },
        { "grease", 0x1a1a, D(""), TLS_HELLO_OK },
        { "unknown", 0xffff, D("anything"), TLS_HELLO_OK },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct tls_hello hello;
        enum tls_hello_status got = parse_ext(rows[i].type, rows[i].data, rows[i].n, &hello);
        if (got != rows[i].want)
            fail_msg("%s: %s, want %s", rows[i].what, tls_hello_word(got), tls_hello_word(rows[i].want));
        if (got == TLS_HELLO_OK)
            assert_int_equal(hello.has_ech, strstr(rows[i].what, "ech") != NULL || rows[i].type == 0xffce);
    }
}

static void
alpn_is_kept(void **state)
{
    struct tls_hello hello;

    (void)state;
    assert_int_equal(parse_ext(16, D("\0\20\10http/1.1\2h2\3foo"), &hello), TLS_HELLO_OK);
    assert_true(hello.has_alpn && hello.alpn_h2 && hello.alpn_http11);
    assert_int_equal(hello.n_alpn, 3);
    assert_int_equal(hello.alpn_bytes, 16);
    assert_memory_equal(hello.alpn, "\10http/1.1\2h2\3foo", 16);
    assert_int_equal(parse_ext(16, D("\0\5\2h3\1h"), &hello), TLS_HELLO_OK);
    assert_true(hello.has_alpn && !hello.alpn_h2 && !hello.alpn_http11);
}

static void
versions(void **state)
{
    static const struct { uint16_t legacy; const char *ext; size_t n; uint16_t max; enum tls_hello_status want; } rows[] = {
        { 0x0303, NULL, 0, 0x0303, TLS_HELLO_OK },
        { 0x0301, NULL, 0, 0x0301, TLS_HELLO_OK },
        { 0x0300, NULL, 0, 0x0300, TLS_HELLO_OK },
        { 0x0304, NULL, 0, 0x0303, TLS_HELLO_OK },      /* 1.3 is offered in its extension or not at all */
        { 0x0303, D("\6\x7a\x7a\3\4\3\3"), 0x0304, TLS_HELLO_OK },
        { 0x0303, D("\4\x7f\x1c\3\2"), 0x0302, TLS_HELLO_OK },
        { 0x0305, NULL, 0, 0, TLS_HELLO_VERSION },
        { 0x0200, NULL, 0, 0, TLS_HELLO_VERSION },
        { 0xfefd, NULL, 0, 0, TLS_HELLO_VERSION },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        cleanup_buf struct buf exts = BUF_INIT(100), message = BUF_INIT(1000), wire = BUF_INIT(1000);
        struct tls_hello hello;
        if (rows[i].ext != NULL)
            hello_ext(&exts, 43, rows[i].ext, rows[i].n);
        hello_message(&message, rows[i].legacy, rows[i].ext != NULL ? &exts : NULL);
        hello_records(&wire, &message, 1000);
        assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), rows[i].want);
        assert_int_equal(hello.version_max, rows[i].max);
    }
}

static void
duplicates_and_order(void **state)
{
    static const uint16_t types[] = { 0, 16, 41, 0x1a1a, 0xffff };
    struct tls_hello hello;

    (void)state;
    for (size_t i = 0; i < N(types); i++) {
        cleanup_buf struct buf exts = BUF_INIT(1000);
        const char *data = types[i] == 0 ? "\0\4\0\0\1a" : "\0\4\3foo";
        hello_ext(&exts, types[i], data, 6);
        hello_ext(&exts, 10, "", 0);
        hello_ext(&exts, types[i], data, 6);
        assert_int_equal(parse_exts(&exts, &hello), types[i] == 41 ? TLS_HELLO_EXTENSION : TLS_HELLO_DUPLICATE);
    }
    {
        cleanup_buf struct buf exts = BUF_INIT(1000);   /* two names in two extensions: which one counts? none */
        hello_sni(&exts, D("allowed.example"));
        hello_sni(&exts, D("evil.example"));
        assert_int_equal(parse_exts(&exts, &hello), TLS_HELLO_DUPLICATE);
    }
    {
        cleanup_buf struct buf exts = BUF_INIT(1000);
        hello_sni(&exts, D("example.org"));
        hello_ext(&exts, 41, D("binder"));
        assert_int_equal(parse_exts(&exts, &hello), TLS_HELLO_OK);
    }
}

/* The same hello, cut anywhere: the same answer, at the same byte. */
static void
fragments(void **state)
{
    static const size_t steps[] = { 1, 2, 3, 4, 5, 7, 16, 50, 64, 100 };

    (void)state;
    for (size_t i = 0; i < N(steps); i++) {
        cleanup_buf struct buf exts = BUF_INIT(1000), message = BUF_INIT(1000), wire = BUF_INIT(10000);
        struct tls_hello hello;
        hello_sni(&exts, D("example.org"));
        hello_ext(&exts, 16, D("\0\14\2h2\10http/1.1"));
        hello_message(&message, 0x0303, &exts);
        hello_records(&wire, &message, steps[i]);
        expect_whole("fragments", &wire, TLS_HELLO_OK, &hello);
        assert_string_equal(hello.sni, "example.org");
        assert_true(hello.alpn_h2 && hello.alpn_http11);
    }
}

static void
framing(void **state)
{
    static const struct { const char *what; const char *data; size_t n; enum tls_hello_status want; } rows[] = {
        { "nothing", D(""), TLS_HELLO_MORE },
        { "http", D("GET / HTTP/1.1\r\n"), TLS_HELLO_NOT_TLS },
        { "ssl 2", D("\x80\x2e\1\3\1"), TLS_HELLO_NOT_TLS },
        { "application data", D("\x17\3\3\0\1x"), TLS_HELLO_NOT_TLS },
        { "alert", D("\x15\3\1\0\2\1\0"), TLS_HELLO_NOT_TLS },
        { "another major version", D("\x16\2\0\0\4"), TLS_HELLO_NOT_TLS },
        { "dtls", D("\x16\xfe\xfd\0\0"), TLS_HELLO_NOT_TLS },
        { "another minor version", D("\x16\3\5\0\4"), TLS_HELLO_RECORD },
        { "empty record", D("\x16\3\1\0\0"), TLS_HELLO_RECORD },
        { "the longest record", D("\x16\3\1\x41\0\1\0\x40\xfc"), TLS_HELLO_MORE },
        { "a longer record", D("\x16\3\1\x41\1\1"), TLS_HELLO_RECORD },
        { "server hello", D("\x16\3\1\0\4\2\0\0\0"), TLS_HELLO_TYPE },
        { "hello request", D("\x16\3\1\0\4\0\0\0\0"), TLS_HELLO_TYPE },
        { "an empty hello", D("\x16\3\1\0\4\1\0\0\0"), TLS_HELLO_LENGTH },
        { "a hello of 16 MB", D("\x16\3\1\0\4\1\xff\xff\xff"), TLS_HELLO_TOO_LONG },
        { "a hello of 64 KiB", D("\x16\3\1\0\4\1\1\0\0"), TLS_HELLO_TOO_LONG },
        { "bytes behind it", D("\x16\3\1\0\5\1\0\0\0x"), TLS_HELLO_TRAILING },
        { "alert between fragments", D("\x16\3\1\0\4\1\0\1\0\x15\3\1\0\2\1\0"), TLS_HELLO_RECORD },
        { "ccs between fragments", D("\x16\3\1\0\4\1\0\1\0\x14\3\3\0\1\1"), TLS_HELLO_RECORD },
        { "empty fragment", D("\x16\3\1\0\1\1\x16\3\1\0\0"), TLS_HELLO_RECORD },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct tls_hello hello;
        enum tls_hello_status got = tls_hello_parse((const uint8_t *)rows[i].data, rows[i].n, &hello);
        if (got != rows[i].want)
            fail_msg("%s: %s, want %s", rows[i].what, tls_hello_word(got), tls_hello_word(rows[i].want));
    }
}

static void
limits(void **state)
{
    static const uint8_t zeros[65536];
    struct tls_hello hello;

    (void)state;
    for (size_t n = 60000; n <= 65500; n += 5500) {         /* large, within the limit or not; then the edge */
        cleanup_buf struct buf exts = BUF_INIT(HELLO_BUF_MAX), message = BUF_INIT(HELLO_BUF_MAX), wire = BUF_INIT(HELLO_BUF_MAX);
        hello_sni(&exts, D("example.org"));
        hello_ext(&exts, 21, zeros, n - exts.n);
        hello_message(&message, 0x0303, &exts);
        hello_records(&wire, &message, 16384);
        assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), n == 60000 ? TLS_HELLO_OK : TLS_HELLO_TOO_LONG);
    }
    for (size_t fragment = 1; fragment <= 2; fragment++) {  /* 1 byte a record is more than 256 records; 2 bytes are not */
        cleanup_buf struct buf exts = BUF_INIT(HELLO_BUF_MAX), message = BUF_INIT(HELLO_BUF_MAX), wire = BUF_INIT(HELLO_BUF_MAX);
        hello_ext(&exts, 21, zeros, 300);
        hello_message(&message, 0x0303, &exts);
        hello_records(&wire, &message, fragment);
        assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), fragment == 1 ? TLS_HELLO_FRAGMENTS : TLS_HELLO_OK);
    }
}

/* Any one length byte changed: never accepted with another name. Any cut of the message: refused. */
static void
lengths_are_exact(void **state)
{
    cleanup_buf struct buf exts = BUF_INIT(1000), message = BUF_INIT(1000), wire = BUF_INIT(1000);
    struct tls_hello hello;

    (void)state;
    hello_ext(&exts, 16, D("\0\3\2h2"));
    hello_sni(&exts, D("example.org"));
    hello_message(&message, 0x0303, &exts);
    for (size_t cut = 5; cut < message.n; cut++) {
        cleanup_buf struct buf part = BUF_INIT(1000), records = BUF_INIT(1000);
        enum tls_hello_status got;
        buf_append(&part, message.p, cut);
        part.p[2] = 0;
        part.p[3] = (uint8_t)(cut - 4);
        hello_records(&records, &part, 1000);
        got = tls_hello_parse(records.p, records.n, &hello);
        /* a hello may end before its extensions */
        assert_int_equal(got, cut == message.n - exts.n - 2 ? TLS_HELLO_OK : TLS_HELLO_LENGTH);
    }
    hello_records(&wire, &message, 1000);
    wire.p[wire.n - exts.n - 1]--;              /* extensions shorter than the message: bytes behind them */
    assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), TLS_HELLO_LENGTH);
    wire.p[wire.n - exts.n - 1] = (uint8_t)(wire.p[wire.n - exts.n - 1] + 2);
    assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), TLS_HELLO_LENGTH);
    {
        cleanup_buf struct buf more = BUF_INIT(1000), records = BUF_INIT(1000);     /* all well, then bytes inside the message */
        buf_append(&more, message.p, message.n);
        buf_append(&more, D("xyz"));
        more.p[3] = (uint8_t)(more.p[3] + 3);
        hello_records(&records, &more, 1000);
        assert_int_equal(tls_hello_parse(records.p, records.n, &hello), TLS_HELLO_LENGTH);
    }
}

static void
records_after_it_are_not_its_own(void **state)
{
    cleanup_buf struct buf message = BUF_INIT(1000), wire = BUF_INIT(1000);
    struct tls_hello hello;
    size_t n;

    (void)state;
    hello_message(&message, 0x0303, NULL);
    hello_records(&wire, &message, 1000);
    n = wire.n;
    buf_append(&wire, D("\x14\3\3\0\1\1\x17\3\3\0\5early"));
    assert_int_equal(tls_hello_parse(wire.p, wire.n, &hello), TLS_HELLO_OK);
    assert_int_equal(hello.consumed, n);
    assert_false(hello.has_sni);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures),
        cmocka_unit_test(names),
        cmocka_unit_test(name_lengths),
        cmocka_unit_test(extension_rows),
        cmocka_unit_test(alpn_is_kept),
        cmocka_unit_test(versions),
        cmocka_unit_test(duplicates_and_order),
        cmocka_unit_test(fragments),
        cmocka_unit_test(framing),
        cmocka_unit_test(limits),
        cmocka_unit_test(lengths_are_exact),
        cmocka_unit_test(records_after_it_are_not_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
