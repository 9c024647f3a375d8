/* egress/inject_place: whatever the head, what goes out is a head with the same fields, and a value stands in it only
 * where the placeholder stood before
 *
 * Input: one byte that chooses the places of the binding, then the head of a request.
 */
#include "fuzz.h"

#include <string.h>

#include "egress/inject_place.h"

#define P "ph-0123456789abcdef"
#define V "se-/+&=%secret-9999"

static struct binding
binding_of(uint8_t places)
{
    struct binding b = { .schemes = BINDING_HTTPS, .header = "x-k", .query = "key", .cookie = "sid" };

    b.places = places & (BINDING_BEARER | BINDING_BASIC | BINDING_HEADER | BINDING_QUERY | BINDING_COOKIE);
    return b;
}

static bool
holds(const struct buf *b, const char *what)
{
    return b->n > 0 && memmem(b->p, b->n, what, strlen(what)) != NULL;
}

static void
check(const struct http1_head *head, const struct exchange_edit *edit, bool had_value)
{
    struct buf out = BUF_INIT(4 * HTTP1_HEAD_MAX);
    struct http1_head again;
    struct http1_request_out r = {
        .method = head->method, .form = head->form == HTTP1_ASTERISK ? HTTP1_ASTERISK : HTTP1_ORIGIN,
        .scheme = HTTP1_SCHEME_HTTPS, .host = STR_LIT("a.example.org"), .port = 443,
        .path = head->path, .query = edit->new_target ? edit->query : head->query,
        .out = { .from = head, .framing = head->framing, .body_length = head->body_length, .drop = edit->drop,
                 .n_drop = edit->n_drop, .add = edit->add, .n_add = edit->n_add } };

    if (r.path.n == 0 && r.form == HTTP1_ORIGIN)
        r.path = STR_LIT("/");
    if (http1_write_request(&out, &r) == 0 && out.n <= HTTP1_HEAD_MAX) {
        enum http1_result result = http1_parse_request(out.p, out.n, &again);
        FUZZ_ASSERT(result == HTTP1_OK || result == HTTP1_TARGET_TOO_LONG || result == HTTP1_TOO_MANY_FIELDS);
        FUZZ_ASSERT(edit->n_add > 0 || edit->new_target || had_value || !holds(&out, V));
    }
    buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf text = BUF_INIT(INJECT_TEXT_MAX), in = BUF_INIT(2 * HTTP1_HEAD_MAX);
    struct binding b = binding_of(n > 0 ? data[0] : 0);
    const struct inject_pair pair = { .binding = &b, .role = VAULT_ROLE_VALUE, .placeholder = (const uint8_t *)P,
                                      .value = (const uint8_t *)V, .n = sizeof(P) - 1 };
    struct exchange_edit edit = { 0 };
    struct http1_head head;

    if (n > 1 && buf_append(&in, data + 1, n - 1) == 0 && http1_parse_request(in.p, in.n, &head) == HTTP1_OK &&
        head.form != HTTP1_AUTHORITY && inject_place(&head, &pair, 1, &text, &edit) == 0) {
        FUZZ_ASSERT(edit.n_add >= edit.n_drop);
        FUZZ_ASSERT(edit.n_add == 0 || holds(&text, V) || holds(&text, "Basic "));
        check(&head, &edit, holds(&in, V));
    }
    buf_free(&text);
    buf_free(&in);
    return 0;
}
