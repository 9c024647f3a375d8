/* proto/edge_adapter: whatever an adapter says of a visit, or a front to its adapter, what is decoded is in its range
 * and comes out as it went in
 *
 * Input: the first byte chooses the form, the rest is a message's payload.
 */
#include "fuzz.h"

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "proto/edge_adapter.h"

/* @m, which was read with @shape, is written as it was. */
static void
same(const struct shape *shape, const void *m, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    FUZZ_ASSERT(proto_put(&out, shape, m) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
visit(struct wire_in in, const uint8_t *data, size_t n)
{
    struct adapt_visit v;

    if (!adapt_visit_get(&in, &v))
        return;
    FUZZ_ASSERT(v.caller < HOLD_CALLERS && (v.flags & ~0x3f) == 0);
    FUZZ_ASSERT(strlen(v.query) <= ADAPT_QUERY_MAX && v.n_body <= EDGE_CHUNK);
    FUZZ_ASSERT(v.n_headers <= ADAPT_N_HEADERS && v.headers[v.n_headers] == NULL);
    for (size_t i = 0; i < v.n_headers; i++)
        FUZZ_ASSERT(strlen(v.headers[i]) <= ADAPT_VALUE_MAX + 1);
    same(&adapt_visit_shape, &v, data, n);
}

static void
shown(struct wire_in in, const uint8_t *data, size_t n)
{
    struct adapt_shown s;

    if (!adapt_shown_get(&in, &s))
        return;
    FUZZ_ASSERT(s.n_json >= 2 && s.n_json <= EDGE_CHUNK);
    same(&adapt_shown_shape, &s, data, n);
}

static void
head(struct wire_in in, const uint8_t *data, size_t n)
{
    struct adapt_head h;

    if (!adapt_head_get(&in, &h))
        return;
    FUZZ_ASSERT(h.status >= 200 && h.status <= 599 && h.n_body <= EDGE_CHUNK);
    FUZZ_ASSERT(h.n_puts <= ADAPT_PUTS && h.puts[h.n_puts] == NULL);
    for (size_t i = 0; i < h.n_puts; i++)
        FUZZ_ASSERT(strlen(h.puts[i]) <= ADAPT_PUT_MAX);
    same(&adapt_head_shape, &h, data, n);
}

static void
refusal(struct wire_in in, const uint8_t *data, size_t n)
{
    struct adapt_refuse r;

    if (!adapt_refuse_get(&in, &r))
        return;
    FUZZ_ASSERT(r.status >= 400 && r.status <= 599 && strlen(r.code) <= ERR_CODE_MAX);
    FUZZ_ASSERT(strlen(r.detail) <= ERR_HINT_MAX && strlen(r.text) <= ERR_MSG_MAX);
    same(&adapt_refuse_shape, &r, data, n);
}

static void
question(struct wire_in in, const uint8_t *data, size_t n)
{
    struct adapt_ask a;

    if (!adapt_ask_get(&in, &a))
        return;
    FUZZ_ASSERT(a.n_message <= EDGE_MESSAGE_MAX - 64);
    same(&adapt_ask_shape, &a, data, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const forms[])(struct wire_in, const uint8_t *, size_t) = { visit, shown, head, refusal, question };

    if (n > 0)
        forms[data[0] % ARRAY_LEN(forms)](wire_in_of(data + 1, n - 1), data + 1, n - 1);
    return 0;
}
