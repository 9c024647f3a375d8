/* HTTP/1 heads and bodies: any prefix says MORE or what the whole says; an accepted request, written again, is read as
 * the same request; a body ends at the same place however it is cut
 *
 * Input: one byte (bit 0: a response; bits 1-2: its method; the rest: where to cut), then the bytes of a connection. */
#include "fuzz.h"

#include <string.h>

#include "wire/http1.h"

#define BODY_MAX (1 << 20)

static void
check_slice(struct str s, const uint8_t *p, const struct http1_head *head)
{
    if (s.n == 0)
        return;
    FUZZ_ASSERT((const uint8_t *)s.p >= p && (const uint8_t *)s.p + s.n <= p + head->length);
    FUZZ_ASSERT(memchr(s.p, '\r', s.n) == NULL && memchr(s.p, '\n', s.n) == NULL && memchr(s.p, '\0', s.n) == NULL);
}

static void
check_head(const struct http1_head *head, const uint8_t *p, size_t n)
{
    FUZZ_ASSERT(head->length <= n && head->length <= HTTP1_HEAD_MAX && head->n_fields <= HTTP1_FIELDS_MAX);
    FUZZ_ASSERT(memcmp(p + head->length - 4, "\r\n\r\n", 4) == 0);
    check_slice(head->target, p, head);
    check_slice(head->reason, p, head);
    check_slice(head->authority.host, p, head);
    check_slice(head->upgrade, p, head);
    for (size_t i = 0; i < head->n_fields; i++) {
        check_slice(head->fields[i].name, p, head);
        check_slice(head->fields[i].value, p, head);
        FUZZ_ASSERT(http1_is_token(head->fields[i].name) && http1_is_value(head->fields[i].value));
    }
}

static struct str
method_of(uint8_t mode)
{
    static const struct str methods[] = { { "GET", 3 }, { "HEAD", 4 }, { "CONNECT", 7 }, { "POST", 4 } };

    return methods[mode >> 1 & 3];
}

static enum http1_result
parse(uint8_t mode, const uint8_t *p, size_t n, struct http1_head *head)
{
    return mode & 1 ? http1_parse_response(p, n, method_of(mode), head) : http1_parse_request(p, n, head);
}

/* What a proxy would pass on is read by the next one as what was decided here. */
static void
request_again(const struct http1_head *head)
{
    static struct http1_head again;
    struct buf b = BUF_INIT(2 * HTTP1_HEAD_MAX);
    struct http1_request_out req = {
        .out = { .from = head, .framing = head->framing, .body_length = head->body_length },
        .method = head->method, .form = head->form, .host = head->authority.host,
        .path = head->path, .query = head->query,
        .scheme = head->scheme != HTTP1_SCHEME_NONE ? head->scheme : HTTP1_SCHEME_HTTP,
        .port = head->authority.port != 0 ? head->authority.port : 80,
    };
    enum http1_result result;

    if (head->authority.kind == HTTP1_HOST_NONE)
        return;
    /* a parser that takes what the writer refuses would be laxer than it */
    FUZZ_ASSERT(http1_write_request(&b, &req) == 0 || head->path.n + head->query.n >= HTTP1_TARGET_MAX);
    if (b.n > 0) {
        result = http1_parse_request(b.p, b.n, &again);
        /* Host and framing may be longer than they were, and one more */
        FUZZ_ASSERT(result == HTTP1_OK || result == HTTP1_TOO_MANY_FIELDS || result == HTTP1_HEAD_TOO_LARGE ||
                    result == HTTP1_TARGET_TOO_LONG);
        if (result == HTTP1_OK) {
            FUZZ_ASSERT(again.length == b.n && again.framing == head->framing);
            FUZZ_ASSERT(again.body_length == head->body_length);
            FUZZ_ASSERT(str_eq(again.method, head->method) && str_eq(again.query, head->query));
            FUZZ_ASSERT(str_eq(again.authority.host, head->authority.host));
            FUZZ_ASSERT(again.authority.kind == head->authority.kind);
            FUZZ_ASSERT(str_eq(again.host.host, head->authority.host));
            for (size_t i = 0; i < again.n_fields; i++)
                FUZZ_ASSERT(!again.fields[i].hop || http1_equal(again.fields[i].name, STR_LIT("transfer-encoding")));
        }
    }
    buf_free(&b);
}

static enum http1_result
decode(const struct http1_head *head, const uint8_t *p, size_t n, size_t step, struct buf *out, size_t *at)
{
    struct http1_body body;
    enum http1_result result = http1_body_begin(&body, head, BODY_MAX);

    *at = 0;
    if (result != HTTP1_OK)
        return result;
    result = HTTP1_MORE;
    while (result == HTTP1_MORE && *at < n) {
        size_t give = n - *at < step ? n - *at : step, used;
        struct str data;
        result = http1_body_next(&body, p + *at, give, &data, &used);
        FUZZ_ASSERT(used <= give && (used > 0 || result != HTTP1_MORE) && data.n <= used);
        FUZZ_ASSERT(data.n == 0 || (const uint8_t *)data.p + data.n <= p + *at + used);
        FUZZ_ASSERT(buf_append(out, data.p, data.n) == 0);
        *at += used;
    }
    return result;
}

static void
check_body(const struct http1_head *head, const uint8_t *p, size_t n, size_t step)
{
    struct buf whole = BUF_INIT(BODY_MAX), parts = BUF_INIT(BODY_MAX);
    size_t whole_at, parts_at;
    enum http1_result result = decode(head, p, n, SIZE_MAX, &whole, &whole_at);

    FUZZ_ASSERT(decode(head, p, n, step, &parts, &parts_at) == result);
    FUZZ_ASSERT(whole_at == parts_at && whole.n == parts.n);
    FUZZ_ASSERT(whole.n == 0 || memcmp(whole.p, parts.p, whole.n) == 0);
    if (result == HTTP1_OK && head->framing == HTTP1_BODY_LENGTH)
        FUZZ_ASSERT(whole.n == head->body_length && whole_at == whole.n);
    buf_free(&whole);
    buf_free(&parts);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct http1_head head, part;    /* large */
    enum http1_result result, cut;
    uint8_t mode;

    if (n < 2 || n > BODY_MAX)
        return 0;
    mode = *data++;
    n--;
    result = parse(mode, data, n, &head);
    FUZZ_ASSERT(http1_word(result)[0] != '\0');
    cut = parse(mode, data, n * (mode >> 3) / 32, &part);
    FUZZ_ASSERT(cut == HTTP1_MORE || cut == result);
    if (result != HTTP1_OK)
        return 0;
    check_head(&head, data, n);
    /* nothing behind the head is looked at, and every byte of it is needed */
    FUZZ_ASSERT(parse(mode, data, head.length, &part) == HTTP1_OK && part.length == head.length);
    FUZZ_ASSERT(parse(mode, data, head.length - 1, &part) == HTTP1_MORE);
    if ((mode & 1) == 0)
        request_again(&head);
    check_body(&head, data + head.length, n - head.length, 1 + (mode >> 3));
    return 0;
}
