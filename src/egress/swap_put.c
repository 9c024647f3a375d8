/* egress/swap_put.c: where exactly what was found stands, and what takes its place (swap_priv.h) */
#include <stdlib.h>
#include <string.h>

#include "egress/swap_priv.h"

#define STEPS 64                /* for each character, until it is given up */

struct hop {
    size_t to, at;              /* the end of what is before character @at of the pattern */
    unsigned next;              /* the way to be tried next */
};

/* Back from f->to to where the pattern begins; the hops, @n of them. NULL: no memory, too many ways, or, when @n is 0,
 * none. */
static struct hop *
trace(const struct pattern *p, const uint8_t *b, const struct found *f, size_t *n)
{
    size_t room = 4 * p->n + 64, steps = STEPS * room;
    struct hop *v = calloc(room, sizeof(*v));

    *n = 1;
    if (v == NULL)
        return NULL;
    v[0] = (struct hop){ .to = f->to, .at = p->n };
    while (steps-- > 0 && *n > 0 && *n < room) {
        struct hop *h = &v[*n - 1];
        struct spelling ways[SPELLINGS_MAX];
        size_t n_ways;
        if (h->at == 0)
            return v;
        n_ways = h->to > 0 && p->spelled ? swap_spellings(b, h->to, ways) : 0;
        if (h->to == 0 || h->next > n_ways) {
            --*n;
            continue;
        }
        if (h->next++ == 0) {           /* as itself */
            if (swap_is(p, h->at - 1, b[h->to - 1]))
                v[(*n)++] = (struct hop){ .to = h->to - 1, .at = h->at - 1 };
            continue;
        }
        ways[0] = ways[h->next - 2];
        if (ways[0].what == SPELLS && swap_is(p, h->at - 1, ways[0].c))
            v[(*n)++] = (struct hop){ .to = h->to - ways[0].n, .at = h->at - 1 };
        else if (h->at < p->n && (ways[0].what == SKIPS || (ways[0].what == SKIPS_CODED && p->kind != KIND_TEXT)))
            v[(*n)++] = (struct hop){ .to = h->to - ways[0].n, .at = h->at };
    }
    free(v);
    return NULL;
}

int
swap_place(const struct swap *s, const uint8_t *b, struct found *f)
{
    size_t n;
    struct hop *v = trace(&s->v[f->pattern], b, f, &n);

    if (v == NULL && n > 0)
        return -1;
    f->from = v != NULL ? (uint32_t)v[n - 1].to : NO_PLACE;
    free(v);
    return 0;
}

/* Digits of @c in base @base in all of @out but what is before and behind. False: they do not fit. */
static bool
number(uint8_t *out, size_t n, unsigned base, bool lower, uint8_t c)
{
    unsigned left = c;

    for (size_t i = n; i-- > 0; left /= base)
        out[i] = (uint8_t)(lower ? "0123456789abcdef" : "0123456789ABCDEF")[left % base];
    return left == 0;
}

static bool
any_lower(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] >= 'a' && p[i] <= 'f')
            return true;
    return false;
}

/* @c for the character @at of @p, which the @n bytes of @b before @to spell. What has no spelling of this length
 * becomes letters that say nothing. */
static int
put_spelled(const struct pattern *p, size_t at, const uint8_t *b, size_t to, size_t n, uint8_t c, struct buf *out)
{
    struct spelling ways[SPELLINGS_MAX];
    size_t n_ways = swap_spellings(b, to, ways);
    uint8_t s[RING];
    bool done = false;

    if (n > sizeof(s))
        return -1;
    memcpy(s, b + to - n, n);
    for (size_t i = 0; i < n_ways && !done; i++) {
        size_t first = n - ways[i].digits - ways[i].behind;
        if (ways[i].what == SPELLS && ways[i].n == n && ways[i].base > 0 && swap_is(p, at, ways[i].c))
            done = number(s + first, ways[i].digits, ways[i].base, any_lower(s + first, ways[i].digits), c);
    }
    if (!done)
        memset(s, 'A', n);
    return buf_append(out, s, n);
}

static uint8_t
styled(const struct pattern *p, uint8_t c, bool url, bool upper)
{
    if (p->kind == KIND_BASE64 && url)
        return c == '+' ? '-' : c == '/' ? '_' : c;
    return p->kind == KIND_HEX && upper && c >= 'a' ? (uint8_t)(c - 32) : c;
}

uint8_t
swap_edge(const struct pattern *p, bool behind, uint8_t c)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";
    const char *at = c != '\0' ? strchr(letters, c) : NULL;
    struct edge e = behind ? p->back : p->front;
    unsigned ours = ((1U << e.bits) - 1) << (behind ? 6 - e.bits : 0), n;
    bool url = c == '-' || c == '_';

    if (p->kind != KIND_BASE64 || e.bits == 0 || at == NULL)
        return c;
    n = (unsigned)(at - letters) - (url ? 2 : 0);
    n = (n & ~ours) | (unsigned)e.to << (behind ? 6 - e.bits : 0);
    return (uint8_t)letters[n > 61 && url ? n + 2 : n];
}

int
swap_put(const struct swap *s, const uint8_t *b, const struct found *f, struct buf *out)
{
    const struct pattern *p = &s->v[f->pattern];
    bool url = false, upper = false;
    size_t n;
    struct hop *v = trace(p, b, f, &n);
    int r = v == NULL ? -1 : 0;

    for (size_t i = f->from; i < f->to; i++) {
        url |= b[i] == '-' || b[i] == '_';
        upper |= b[i] >= 'A' && b[i] <= 'F';
    }
    for (size_t i = n; r == 0 && i-- > 1;) {
        const uint8_t *at = b + v[i].to;
        size_t bytes = v[i - 1].to - v[i].to, k = v[i].at;
        uint8_t c;
        if (v[i - 1].at == k || (p->kind == KIND_TEXT && p->from[k] == p->to[k])) {
            r = buf_append(out, at, bytes);
            continue;
        }
        c = styled(p, p->to[k], url, upper);
        r = bytes == 1 ? buf_append(out, &c, 1) : put_spelled(p, k, b, v[i - 1].to, bytes, c, out);
    }
    free(v);
    return r;
}
