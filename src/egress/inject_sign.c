/* egress/inject_sign.c: see inject_sign.h */
#include "egress/inject_sign.h"

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define CANONICAL_MAX (2 * HTTP1_HEAD_MAX)

static const struct http1_field *
field_of(const struct http1_head *head, struct str name)
{
    for (size_t i = 0; i < head->n_fields; i++)
        if (http1_equal(head->fields[i].name, name))
            return &head->fields[i];
    return NULL;
}

/* What of a request decides how it is signed is said once: of two the service may take the other. */
static const char *
said_twice(const struct http1_head *head)
{
    static const struct { struct str name; const char *why; } once[] = {
        { { "x-amz-date", 10 }, "x-amz-date twice" },
        { { "x-amz-content-sha256", 20 }, "x-amz-content-sha256 twice" },
    };

    for (size_t i = 0; i < ARRAY_LEN(once); i++) {
        size_t at = 0;
        if (http1_find(head, once[i].name, &at) != NULL && http1_find(head, once[i].name, &at) != NULL)
            return once[i].why;
    }
    return NULL;
}

bool
inject_sign_claim(const struct http1_head *head, struct inject_sign *out)
{
    const struct http1_field *field = field_of(head, STR_LIT("Authorization"));

    memset(out, 0, sizeof(*out));
    return field != NULL && sigv4_parse(field->value, &out->claim);
}

/* With these a client says in which other ways it would have an answer: compressed, whole or message by message (gRPC,
 * Connect), as what differs from another (RFC 3229), in parts. */
static const struct {
    struct str name;
    enum inject_asked from;
} other_ways[] = {
    { { "Accept-Encoding", 15 }, INJECT_ASKED_PLAINLY },
    { { "Grpc-Accept-Encoding", 20 }, INJECT_ASKED_PLAINLY },
    { { "Connect-Accept-Encoding", 23 }, INJECT_ASKED_PLAINLY },
    { { "A-IM", 4 }, INJECT_ASKED_PLAINLY },
    { { "Range", 5 }, INJECT_ASKED_WHOLE },
    { { "If-Range", 8 }, INJECT_ASKED_WHOLE },
};

static bool
is_left_out(enum inject_asked asked, struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(other_ways); i++)
        if (asked >= other_ways[i].from && http1_equal(name, other_ways[i].name))
            return true;
    return false;
}

void
inject_leave_out(enum inject_asked asked, struct exchange_edit *edit)
{
    for (size_t i = 0; i < ARRAY_LEN(other_ways); i++)
        if (asked >= other_ways[i].from)
            edit->drop[edit->n_drop++] = other_ways[i].name;
    edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("Accept-Encoding"), STR_LIT("identity") };
}

/* The client's list without what is not sent. */
static bool
copy_names(const struct str list, enum inject_asked asked, char *out, size_t size)
{
    size_t n = 0;

    for (size_t at = 0; at < list.n;) {
        const char *end = memchr(list.p + at, ';', list.n - at);
        struct str name = { list.p + at, end == NULL ? list.n - at : (size_t)(end - list.p) - at };
        at += name.n + 1;
        if (is_left_out(asked, name))
            continue;
        if (n + name.n + 2 > size)
            return false;
        if (n > 0)
            out[n++] = ';';
        memcpy(out + n, name.p, name.n);
        n += name.n;
    }
    out[n] = '\0';
    return n > 0;
}

enum inject_payload
inject_sign_payload(const struct http1_head *head)
{
    const struct http1_field *said = field_of(head, STR_LIT("x-amz-content-sha256"));

    if (said == NULL)
        return head->framing == HTTP1_BODY_CHUNKED || head->body_length > 0 ? INJECT_PAYLOAD_HASH : INJECT_PAYLOAD_SAID;
    return str_starts(said->value, STR_LIT("STREAMING-")) &&
                   !str_eq_c(said->value, "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
               ? INJECT_PAYLOAD_PIECES : INJECT_PAYLOAD_SAID;
}

/* The hash of the body as the client says it, or of what there is. */
static const char *
payload_of(const struct http1_head *head, const uint8_t *body, char hex[SIGV4_HEX + 1], struct str *out)
{
    const struct http1_field *said = field_of(head, STR_LIT("x-amz-content-sha256"));
    uint8_t empty[SIGV4_HASH];

    *out = str_of(hex);
    switch (inject_sign_payload(head)) {
    case INJECT_PAYLOAD_PIECES: return "its body is signed in pieces (STREAMING-AWS4-...)";
    case INJECT_PAYLOAD_HASH:
        if (body == NULL)
            return "the request has a body and no x-amz-content-sha256";
        sha256_text(body, hex);
        break;
    case INJECT_PAYLOAD_SAID:
        if (said == NULL && !sigv4_hash("", 0, empty))
            return "no hash";
        if (said == NULL)
            sha256_text(empty, hex);
        else
            *out = said->value;
        break;
    }
    out->n = said != NULL ? out->n : SIGV4_HEX;
    return NULL;
}

const char *
inject_sign_prepare(const struct http1_head *head, struct str host, struct str token, enum inject_asked asked,
                    const uint8_t *body, struct inject_sign *out)
{
    struct sigv4_header headers[HTTP1_FIELDS_MAX];
    cleanup_buf struct buf text = BUF_INIT(CANONICAL_MAX);
    const struct http1_field *date = field_of(head, STR_LIT("x-amz-date"));
    char hash[SIGV4_HEX + 1] = "";
    struct sigv4_request r = { .method = head->method, .target = head->target, .headers = headers };
    const char *why;

    if (date == NULL || head->form != HTTP1_ORIGIN)
        return "no x-amz-date";
    why = said_twice(head);
    if (why == NULL)
        why = payload_of(head, body, hash, &r.payload);
    if (why != NULL)
        return why;
    if (!copy_names(out->claim.signed_headers, asked, out->signed_headers, sizeof(out->signed_headers)))
        return "its signed headers";
    for (size_t i = 0; i < head->n_fields; i++) {
        struct sigv4_header h = { head->fields[i].name, head->fields[i].value };
        if (head->fields[i].hop || is_left_out(asked, h.name))
            continue;
        if (http1_equal(h.name, STR_LIT("host")))
            h.value = host;
        else if (token.n > 0 && http1_equal(h.name, STR_LIT("x-amz-security-token")))
            h.value = token;
        headers[r.n_headers++] = h;
    }
    r.signed_headers = str_of(out->signed_headers);
    r.s3 = str_starts(out->claim.service, STR_LIT("s3"));
    out->date = date->value;
    if (!sigv4_canonical(&r, &text) || !sigv4_hash(text.p, text.n, out->canonical))
        return "what it signs";
    return NULL;
}
