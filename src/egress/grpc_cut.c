/* egress/grpc_cut.c: see grpc_cut.h */
#include "egress/grpc_cut.h"

#define PREFIX 5            /* a flag, and the length */

void
grpc_cut_begin(struct grpc_cut *c, const struct http1_head *head)
{
    const struct http1_field *type = http1_find(head, STR_LIT("Content-Type"), NULL);
    const struct str grpc = STR_LIT("application/grpc");

    *c = (struct grpc_cut){ .on = type != NULL && type->value.n >= grpc.n &&
                                  http1_equal((struct str){ type->value.p, grpc.n }, grpc) };
}

size_t
grpc_cut_next(struct grpc_cut *c, const uint8_t *p, size_t n, bool *end)
{
    size_t at = 0;

    *end = false;
    if (!c->on)
        return n;
    for (; c->have < PREFIX && at < n; at++, c->have++)
        if (c->have > 0)
            c->left = c->left << 8 | p[at];
    if (c->have < PREFIX)
        return at;
    if (c->left > n - at) {
        c->left -= (uint32_t)(n - at);
        return n;
    }
    at += c->left;
    *c = (struct grpc_cut){ .on = true };
    *end = true;
    return at;
}

int
grpc_cut_feed(struct grpc_cut *c, struct swap *s, struct str data, bool last, struct buf *out)
{
    while (data.n > 0) {
        bool end;
        size_t n = grpc_cut_next(c, (const uint8_t *)data.p, data.n, &end);
        if (swap_feed(s, data.p, n, end, out) < 0)
            return -1;
        data = (struct str){ data.p + n, data.n - n };
    }
    return last ? swap_feed(s, "", 0, true, out) : 0;
}
