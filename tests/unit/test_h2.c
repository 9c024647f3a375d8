/* Heads of HTTP/2, read and written; frames counted; the ends of gRPC messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/grpc_cut.h"
#include "egress/h2_guard.h"
#include "egress/h2_head.h"

/* --- heads -------------------------------------------------------------------------------------------------------- */

#define PSEUDO ":method\0GET\0:scheme\0https\0:authority\0ok.example.org\0:path\0/a\0"
#define L(s) { s, sizeof(s) - 1 }

/* Names and values, each with a NUL behind it. */
static void
fill(struct h2_block *b, enum h2_kind kind, struct str rows)
{
    h2_block_begin(b, kind);
    for (size_t at = 0; at < rows.n;) {
        struct str name = str_of(rows.p + at), value = str_of(rows.p + at + name.n + 1);
        h2_block_field(b, name, value);
        at += name.n + value.n + 2;
    }
}

static const struct {
    struct str rows;
    bool end;
    enum http1_result want;
} requests[] = {
    { L(PSEUDO), true, HTTP1_OK },
    { L(PSEUDO "te\0trailers\0x-a\0b\0cookie\0a=b\0cookie\0c=d\0"), true, HTTP1_OK },
    { L(PSEUDO "host\0OK.example.org\0"), true, HTTP1_OK },
    { L(":method\0GET\0:scheme\0https\0:path\0/a\0host\0ok.example.org\0"), true, HTTP1_OK },
    { L(":method\0OPTIONS\0:scheme\0https\0:authority\0ok\0:path\0*\0"), true, HTTP1_OK },
    { L(PSEUDO "content-length\0" "5\0"), false, HTTP1_OK },
    { L(PSEUDO "content-length\0" "0\0"), true, HTTP1_OK },
    { L(PSEUDO "content-length\0" "5\0"), true, HTTP1_BODY_CUT },
    { L(PSEUDO "content-length\0" "5\0content-length\0" "5\0"), false, HTTP1_MANY_LENGTHS },
    { L(PSEUDO "content-length\0" "+5\0"), false, HTTP1_BAD_LENGTH },
    { L(PSEUDO "host\0evil.example.org\0"), true, HTTP1_MANY_HOSTS },
    { L(PSEUDO "host\0ok.example.org\0host\0ok.example.org\0"), true, HTTP1_MANY_HOSTS },
    { L(PSEUDO ":authority\0evil.example.org\0"), true, HTTP1_MANY_HOSTS },
    { L(PSEUDO ":path\0/b\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO ":protocol\0websocket\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO ":status\0" "200\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO "x-a\0b\0:path\0/b\0"), true, HTTP1_BAD_NAME },
    { L(":method\0CONNECT\0:scheme\0https\0:authority\0ok:443\0:path\0/\0"), true, HTTP1_TARGET_FORM },
    { L(":method\0GET\0:scheme\0http\0:authority\0ok\0:path\0/\0"), true, HTTP1_TARGET_FORM },
    { L(":method\0GET\0:authority\0ok\0:path\0/\0"), true, HTTP1_TARGET_FORM },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0https://evil/\0"), true, HTTP1_TARGET_FORM },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0*\0"), true, HTTP1_TARGET_FORM },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0\0"), true, HTTP1_BAD_TARGET },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0/a b\0"), true, HTTP1_BAD_TARGET },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0/%zz\0"), true, HTTP1_BAD_TARGET },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\0:path\0/ HTTP/1.1\r\nHost: evil\0"), true, HTTP1_BAD_TARGET },
    { L(":method\0GET / HTTP/1.1\r\nX: y\r\n\r\nGET\0:scheme\0https\0:authority\0ok\0:path\0/\0"), true, HTTP1_BAD_METHOD },
    { L(":method\0G,T\0:scheme\0https\0:authority\0ok\0:path\0/\0"), true, HTTP1_BAD_METHOD },
    { L(":scheme\0https\0:authority\0ok\0:path\0/\0"), true, HTTP1_BAD_METHOD },
    { L(":method\0GET\0:scheme\0https\0:path\0/\0"), true, HTTP1_NO_HOST },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok\r\nx: y\0:path\0/\0"), true, HTTP1_BAD_HOST },
    { L(":method\0GET\0:scheme\0https\0:authority\0user@ok\0:path\0/\0"), true, HTTP1_USERINFO },
    { L(":method\0GET\0:scheme\0https\0:authority\0ok:x\0:path\0/\0"), true, HTTP1_BAD_PORT },
    { L(PSEUDO "X-Upper\0a\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO "x a\0a\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO "x:a\0a\0"), true, HTTP1_BAD_NAME },
    { L(PSEUDO "\0a\0"), true, HTTP1_EMPTY_NAME },
    { L(PSEUDO "x-a\0b\r\nx-evil: c\0"), true, HTTP1_CONTROL_BYTE },
    { L(PSEUDO "x-a\0b\nc\0"), true, HTTP1_CONTROL_BYTE },
    { L(PSEUDO "x-a\0 b\0"), true, HTTP1_LEADING_SPACE },
    { L(PSEUDO "x-a\0b\t\0"), true, HTTP1_LEADING_SPACE },
    { L(PSEUDO "connection\0close\0"), true, HTTP1_BAD_CONNECTION },
    { L(PSEUDO "upgrade\0h2c\0"), true, HTTP1_BAD_CONNECTION },
    { L(PSEUDO "transfer-encoding\0chunked\0"), false, HTTP1_BAD_CONNECTION },
    { L(PSEUDO "te\0gzip\0"), true, HTTP1_BAD_CONNECTION },
    { L(PSEUDO "expect\0x\0"), true, HTTP1_BAD_EXPECT },
};

static void
test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct h2_block b;
        struct buf text = BUF_INIT(2 * HTTP1_HEAD_MAX);
        struct http1_head head;
        enum http1_result result;

        fill(&b, H2_REQUEST, requests[i].rows);
        result = h2_block_request(&b, requests[i].end, &text, &head);
        if (result != requests[i].want)
            fail_msg("request %zu: %s, not %s", i, http1_word(result), http1_word(requests[i].want));
        if (result == HTTP1_OK)
            assert_true(head.length == text.n && head.form != HTTP1_FORM_NONE);
        buf_free(&text);
        h2_block_free(&b);
    }
}

/* A NUL cannot be told by a row. */
static void
test_bytes_of_values(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        char value[3] = { 'a', (char)c, 'b' };
        bool control = (c < 0x20 && c != '\t') || c == 0x7f;
        struct h2_block b;

        fill(&b, H2_REQUEST, (struct str)L(PSEUDO));
        h2_block_field(&b, STR_LIT("x-v"), (struct str){ value, 3 });
        assert_int_equal(b.fault, control ? HTTP1_CONTROL_BYTE : HTTP1_OK);
        h2_block_free(&b);
        h2_block_begin(&b, H2_REQUEST);
        h2_block_field(&b, STR_LIT(":path"), (struct str){ value, 3 });
        assert_int_equal(b.fault, c <= ' ' || c >= 0x7f ? HTTP1_BAD_TARGET : HTTP1_OK);
        h2_block_free(&b);
    }
}

static void
test_a_body_of_unknown_length(void **state)
{
    struct h2_block b;
    struct buf text = BUF_INIT(HTTP1_HEAD_MAX);
    struct http1_head head;

    (void)state;
    fill(&b, H2_REQUEST, (struct str)L(PSEUDO "cookie\0a=b\0x-y\0z\0cookie\0c=d\0"));
    assert_int_equal(h2_block_request(&b, false, &text, &head), HTTP1_OK);
    assert_int_equal(head.framing, HTTP1_BODY_CHUNKED);
    assert_true(str_eq_c(http1_find(&head, STR_LIT("cookie"), NULL)->value, "a=b; c=d"));
    buf_free(&text);
    h2_block_free(&b);
}

/* A block of a few bytes unpacks to any number of fields: it is cut where the list is too large. */
static void
test_too_much(void **state)
{
    static char large[8000];
    struct h2_block b;

    (void)state;
    memset(large, 'v', sizeof(large));
    h2_block_begin(&b, H2_REQUEST);
    for (int i = 0; i < 10000; i++)
        h2_block_field(&b, STR_LIT("x-bomb"), (struct str){ large, sizeof(large) });
    assert_int_equal(b.fault, HTTP1_HEAD_TOO_LARGE);
    assert_true(b.fields.cap <= 2 * HTTP1_HEAD_MAX);
    h2_block_free(&b);
    h2_block_begin(&b, H2_REQUEST);
    for (int i = 0; i < 10000; i++)
        h2_block_field(&b, STR_LIT("a"), STR_LIT(""));
    assert_int_equal(b.fault, HTTP1_TOO_MANY_FIELDS);
    h2_block_free(&b);
}

static const struct {
    struct str rows;
    bool end;
    const char *method;
    enum http1_result want;
    enum http1_framing framing;
} responses[] = {
    { L(":status\0" "200\0"), false, "GET", HTTP1_OK, HTTP1_BODY_CHUNKED },
    { L(":status\0" "200\0"), true, "GET", HTTP1_OK, HTTP1_BODY_LENGTH },
    { L(":status\0" "200\0content-length\0" "5\0"), false, "GET", HTTP1_OK, HTTP1_BODY_LENGTH },
    { L(":status\0" "200\0content-length\0" "5\0"), true, "HEAD", HTTP1_OK, HTTP1_BODY_NONE },
    { L(":status\0" "200\0content-length\0" "5\0"), true, "GET", HTTP1_BODY_CUT, 0 },
    { L(":status\0" "204\0"), true, "GET", HTTP1_OK, HTTP1_BODY_NONE },
    { L(":status\0" "103\0link\0<a>\0"), false, "GET", HTTP1_OK, HTTP1_BODY_NONE },
    { L(":status\0" "101\0"), false, "GET", HTTP1_BAD_STATUS, 0 },
    { L(":status\0" "2000\0"), false, "GET", HTTP1_BAD_STATUS, 0 },
    { L(":status\0" "2x0\0"), false, "GET", HTTP1_BAD_STATUS, 0 },
    { L("x-a\0b\0"), false, "GET", HTTP1_BAD_STATUS, 0 },
    { L(":status\0" "200\0:status\0" "404\0"), false, "GET", HTTP1_BAD_NAME, 0 },
    { L(":status\0" "200\0:path\0/\0"), false, "GET", HTTP1_BAD_NAME, 0 },
    { L(":status\0" "200\0connection\0close\0"), false, "GET", HTTP1_BAD_CONNECTION, 0 },
    { L(":status\0" "200\0te\0trailers\0"), false, "GET", HTTP1_BAD_CONNECTION, 0 },
    { L(":status\0" "200\0x-a\0b\r\nset-cookie: c\0"), false, "GET", HTTP1_CONTROL_BYTE, 0 },
    { L(":status\0" "200\0content-length\0" "5\0content-length\0" "6\0"), false, "GET", HTTP1_MANY_LENGTHS, 0 },
};

static void
test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
        struct h2_block b;
        struct buf text = BUF_INIT(2 * HTTP1_HEAD_MAX);
        struct http1_head head;
        enum http1_result result;

        fill(&b, H2_RESPONSE, responses[i].rows);
        result = h2_block_response(&b, responses[i].end, str_of(responses[i].method), &text, &head);
        if (result != responses[i].want || (result == HTTP1_OK && head.framing != responses[i].framing))
            fail_msg("response %zu: %s, not %s", i, http1_word(result), http1_word(responses[i].want));
        buf_free(&text);
        h2_block_free(&b);
    }
}

static void
test_trailers(void **state)
{
    static const struct { struct str rows; enum http1_result want; } rows[] = {
        { L("grpc-status\0" "0\0grpc-message\0\0"), HTTP1_OK },
        { L(""), HTTP1_OK },
        { L(":status\0" "200\0"), HTTP1_BAD_NAME },
        { L("content-length\0" "5\0"), HTTP1_BAD_TRAILER },
        { L("host\0evil\0"), HTTP1_BAD_TRAILER },
        { L("transfer-encoding\0chunked\0"), HTTP1_BAD_CONNECTION },
        { L("x-a\0b\nc\0"), HTTP1_CONTROL_BYTE },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct h2_block b;
        struct buf text = BUF_INIT(HTTP1_HEAD_MAX);
        struct http1_head head;

        fill(&b, H2_TRAILER, rows[i].rows);
        assert_int_equal(h2_block_trailer(&b, &text, &head), rows[i].want);
        buf_free(&text);
        h2_block_free(&b);
    }
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static const struct h2_field *
find(const struct h2_fields *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (str_eq_c(f->v[i].name, name))
            return &f->v[i];
    return NULL;
}

static bool
is(const struct h2_fields *f, const char *name, const char *value, bool secret)
{
    const struct h2_field *field = find(f, name);

    return field != NULL && str_eq_c(field->value, value) && field->secret == secret;
}

static int
write_request(struct h2_fields *out, const struct exchange_edit *edit, struct http1_head *head, struct buf *text)
{
    const struct h2_target to = { .host = STR_LIT("ok.example.org"), .port = 8443, .te = true };
    struct h2_block b;
    int r;

    memset(out, 0, sizeof(*out));
    fill(&b, H2_REQUEST, (struct str)L(PSEUDO "authorization\0old\0x-keep\0yes\0content-length\0" "7\0"
                                       "proxy-authorization\0mine\0host\0ok.example.org\0"));
    assert_int_equal(h2_block_request(&b, false, text, head), HTTP1_OK);
    r = h2_fields_request(out, head, edit, &to, true);
    h2_block_free(&b);
    return r;
}

static void
test_what_goes_out(void **state)
{
    struct exchange_edit edit = { .n_drop = 1, .drop = { STR_LIT("Authorization") }, .n_add = 1,
                                  .add = { { STR_LIT("Authorization"), STR_LIT("new") } }, .new_target = true,
                                  .path = STR_LIT("/b"), .query = STR_LIT("?k=v") };
    struct buf text = BUF_INIT(HTTP1_HEAD_MAX);
    struct http1_head head;
    static struct h2_fields f;

    (void)state;
    assert_int_equal(write_request(&f, &edit, &head, &text), 0);
    assert_true(is(&f, ":authority", "ok.example.org:8443", false));
    assert_true(is(&f, ":path", "/b?k=v", true));
    assert_true(is(&f, "authorization", "new", true));
    assert_true(is(&f, "content-length", "7", false));
    assert_true(is(&f, "te", "trailers", false));
    assert_true(is(&f, "x-keep", "yes", false));
    assert_null(find(&f, "host"));
    assert_null(find(&f, "proxy-authorization"));
    assert_null(find(&f, "transfer-encoding"));
    h2_fields_free(&f);
    buf_free(&text);
}

/* What a secret with a line end, or a rewritten path, would make of the head. */
static void
test_what_may_not_go_out(void **state)
{
    const struct exchange_edit edits[] = {
        { .n_add = 1, .add = { { STR_LIT("x-a"), STR_LIT("b\r\nc: d") } } },
        { .n_add = 1, .add = { { STR_LIT("x a"), STR_LIT("b") } } },
        { .n_add = 1, .add = { { STR_LIT("Host"), STR_LIT("evil") } } },
        { .n_add = 1, .add = { { STR_LIT("Connection"), STR_LIT("close") } } },
        { .new_target = true, .path = STR_LIT("/a b"), .query = STR_LIT("") },
        { .new_target = true, .path = STR_LIT("/a"), .query = STR_LIT("?\n") },
        { .new_target = true, .path = STR_LIT("https://evil/"), .query = STR_LIT("") },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        struct buf text = BUF_INIT(HTTP1_HEAD_MAX);
        struct http1_head head;
        static struct h2_fields f;

        assert_int_equal(write_request(&f, &edits[i], &head, &text), -1);
        h2_fields_free(&f);
        buf_free(&text);
    }
}

/* --- the guard ---------------------------------------------------------------------------------------------------- */

static size_t
frame(uint8_t *out, uint32_t length, uint8_t type, uint8_t flags)
{
    const uint8_t head[9] = { (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, type, flags, 0, 0, 0, 1 };

    memcpy(out, head, sizeof(head));
    memset(out + 9, 0, length);
    return 9 + length;
}

/* How many of such frames pass, at @step_ms between two; then the word. */
static unsigned
passes(struct h2_guard *g, uint32_t length, uint8_t type, uint8_t flags, uint64_t step_ms, const char **word)
{
    static uint8_t bytes[9 + H2_FRAME_MAX + 1];
    size_t n = frame(bytes, length, type, flags);

    for (unsigned i = 0; i < 100000; i++) {
        *word = h2_guard_feed(g, bytes, n, i * step_ms);
        if (*word != NULL)
            return i;
    }
    return 100000;
}

static void
test_floods(void **state)
{
    static const struct {
        uint32_t length;
        uint8_t type, flags;
        uint64_t step_ms;
        unsigned most;
        const char *word;
    } rows[] = {
        { 4, 3, 0, 0, H2_RESETS_BURST, "h2-reset-flood" },
        { 4, 3, 0, 1000, 100000, NULL },
        { 8, 6, 0, 0, H2_SMALL_BURST, "h2-small-flood" },           /* PING */
        { 0, 4, 0, 0, H2_SMALL_BURST, "h2-small-flood" },           /* SETTINGS */
        { 5, 2, 0, 0, H2_SMALL_BURST, "h2-small-flood" },           /* PRIORITY */
        { 4, 8, 0, 0, H2_SMALL_BURST, "h2-small-flood" },           /* WINDOW_UPDATE */
        { 0, 0, 0, 0, H2_SMALL_BURST, "h2-small-flood" },           /* empty DATA */
        { 0, 77, 0, 0, H2_SMALL_BURST, "h2-small-flood" },          /* unknown */
        { 100, 0, 0, 0, 100000, NULL },                             /* DATA */
        { 8, 6, 0, 10, 100000, NULL },
        { 100, 1, 4, 0, 100000, NULL },                             /* whole heads */
        { 4, 5, 4, 0, 0, "h2-push" },
        { 1, 9, 0, 0, 0, "h2-protocol" },                           /* CONTINUATION of nothing */
        { H2_FRAME_MAX + 1, 0, 0, 0, 0, "h2-frame-size" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct h2_guard g;
        const char *word;
        unsigned n;

        h2_guard_init(&g, false, 0);
        n = passes(&g, rows[i].length, rows[i].type, rows[i].flags, rows[i].step_ms, &word);
        if (n != rows[i].most || (word == NULL) != (rows[i].word == NULL) ||
            (word != NULL && strcmp(word, rows[i].word) != 0))
            fail_msg("flood %zu: %u frames, %s", i, n, word != NULL ? word : "none");
    }
}

static void
test_continuations(void **state)
{
    struct h2_guard g;
    uint8_t head[9 + 10];
    const char *word;

    (void)state;
    h2_guard_init(&g, false, 0);
    assert_null(h2_guard_feed(&g, head, frame(head, 10, 1, 0), 0));
    assert_true(g.in_block);
    assert_int_equal(passes(&g, 1, 9, 0, 0, &word), H2_CONTINUATIONS_MAX);
    assert_string_equal(word, "h2-continuation-flood");
    /* nothing may come in between */
    h2_guard_init(&g, false, 0);
    assert_null(h2_guard_feed(&g, head, frame(head, 10, 1, 0), 0));
    assert_string_equal(h2_guard_feed(&g, head, frame(head, 8, 6, 0), 0), "h2-protocol");
    h2_guard_init(&g, false, 0);
    assert_null(h2_guard_feed(&g, head, frame(head, 10, 1, 0), 0));
    assert_true(passes(&g, H2_FRAME_MAX, 9, 0, 0, &word) <= H2_BLOCK_MAX / H2_FRAME_MAX);
    assert_string_equal(word, "h2-continuation-flood");
}

/* The cuts change nothing; the preface is passed over; who is sent data may answer. */
static void
test_guard_by_bytes(void **state)
{
    struct h2_guard g;
    uint8_t bytes[24 + 9 + 8];
    size_t n = 24 + frame(bytes + 24, 8, 6, 0);
    const char *word;

    (void)state;
    memset(bytes, 0xff, 24);
    h2_guard_init(&g, true, 0);
    for (size_t i = 0; i < n; i++)
        assert_null(h2_guard_feed(&g, bytes + i, 1, 0));
    assert_int_equal(g.small.left, H2_SMALL_BURST - 1);
    for (int i = 0; i < 10; i++)
        h2_guard_sent(&g);
    assert_int_equal(g.small.left, H2_SMALL_BURST);
    assert_int_equal(passes(&g, 4, 8, 0, 0, &word), H2_SMALL_BURST);
}

/* --- gRPC --------------------------------------------------------------------------------------------------------- */

static void
test_grpc_messages(void **state)
{
    static const uint8_t bytes[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c', 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 'x', 'y', 'z' };
    static const size_t ends[] = { 8, 13, sizeof(bytes) };

    (void)state;
    for (size_t step = 1; step <= sizeof(bytes); step++) {
        struct grpc_cut c = { .on = true };
        size_t found = 0;

        for (size_t at = 0; at < sizeof(bytes);) {
            size_t n = sizeof(bytes) - at < step ? sizeof(bytes) - at : step;
            for (size_t done = 0; done < n;) {
                bool end;
                size_t took = grpc_cut_next(&c, bytes + at + done, n - done, &end);
                assert_true(took > 0 && took <= n - done);
                done += took;
                if (end)
                    assert_int_equal(at + done, ends[found++]);
            }
            at += n;
        }
        assert_int_equal(found, 2);     /* the third goes on */
    }
}

static void
test_grpc_search(void **state)
{
    static const char secret[] = "secretvalue", other[] = "placeholder";
    const struct str message = STR_LIT("\0\0\0\0\1s\0\0\0\0\13secretvalue");
    struct swap *s = swap_new();
    struct buf out = BUF_INIT(1000);
    struct grpc_cut c = { .on = true };

    (void)state;
    assert_int_equal(swap_add(s, 0, secret, other, sizeof(secret) - 1, SWAP_RAW), 0);
    assert_int_equal(grpc_cut_feed(&c, s, message, false, &out), 0);
    /* nothing is held back, although "s" begins the pattern; the value in one message is found */
    assert_int_equal(out.n, message.n);
    assert_memory_equal(out.p + 11, other, sizeof(other) - 1);
    assert_int_equal(grpc_cut_feed(&c, s, (struct str){ "\0\0\0\0\5sec", 8 }, false, &out), 0);
    assert_int_equal(out.n, message.n + 5);
    assert_int_equal(grpc_cut_feed(&c, s, (struct str){ "", 0 }, true, &out), 0);
    assert_int_equal(out.n, message.n + 8);
    swap_free(s);
    buf_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests), cmocka_unit_test(test_bytes_of_values),
        cmocka_unit_test(test_a_body_of_unknown_length), cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_responses), cmocka_unit_test(test_trailers), cmocka_unit_test(test_what_goes_out),
        cmocka_unit_test(test_what_may_not_go_out), cmocka_unit_test(test_floods), cmocka_unit_test(test_continuations),
        cmocka_unit_test(test_guard_by_bytes), cmocka_unit_test(test_grpc_messages),
        cmocka_unit_test(test_grpc_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
