/* egress/swap.c: see swap.h */
#include "egress/swap.h"

#include <stdlib.h>
#include <string.h>

#define BASE64_MIN 12

struct pattern {
    uint8_t *from, *to;
    size_t n;
    unsigned id;
};

struct swap {
    struct pattern v[SWAP_PATTERNS_MAX];
    size_t n, shortest, longest;
    uint16_t skip[256];         /* by the last byte of a window of @shortest bytes: how far no pattern begins */
    uint8_t *held;              /* longest - 1 bytes of room, made with the first use */
    size_t held_n;
    uint32_t seen;
};

struct swap *
swap_new(void)
{
    return calloc(1, sizeof(struct swap));
}

static void
wipe(uint8_t *p, size_t n)
{
    if (p == NULL)
        return;
    explicit_bzero(p, n);
    free(p);
}

void
swap_free(struct swap *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        wipe(s->v[i].from, s->v[i].n);
        wipe(s->v[i].to, s->v[i].n);
    }
    wipe(s->held, s->longest);
    free(s);
}

/* --- forms -------------------------------------------------------------------------------------------------------- */

static bool
is_unreserved(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static size_t
percent(const uint8_t *p, size_t n, const char *digits, bool plus, uint8_t *out)
{
    size_t o = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_unreserved(p[i])) {
            out[o++] = p[i];
        } else if (plus && p[i] == ' ') {
            out[o++] = '+';
        } else {
            out[o++] = '%';
            out[o++] = (uint8_t)digits[p[i] >> 4];
            out[o++] = (uint8_t)digits[p[i] & 15];
        }
    }
    return o;
}

static size_t
json(const uint8_t *p, size_t n, bool slash, uint8_t *out)
{
    size_t o = 0;

    for (size_t i = 0; i < n; i++) {
        bool line = p[i] == '\n' || p[i] == '\r' || p[i] == '\t';
        if (line || p[i] == '"' || p[i] == '\\' || (slash && p[i] == '/'))
            out[o++] = '\\';
        out[o++] = !line ? p[i] : p[i] == '\n' ? 'n' : p[i] == '\r' ? 'r' : 't';
    }
    return o;
}

/* The base64 characters that @p alone decides when @offset (0 to 2) bytes of something else stand before it. */
static size_t
base64(const uint8_t *p, size_t n, size_t offset, bool url, uint8_t *out)
{
    static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t first = (offset * 8 + 5) / 6 * 6 - offset * 8, o = 0;   /* bits of @p before the first whole character */

    for (size_t bit = first; bit + 6 <= n * 8; bit += 6) {
        unsigned two = (unsigned)p[bit / 8] << 8 | (bit / 8 + 1 < n ? p[bit / 8 + 1] : 0);
        char c = standard[two >> (10 - bit % 8) & 63];
        out[o++] = (uint8_t)(url && c == '+' ? '-' : url && c == '/' ? '_' : c);
    }
    return o;
}

static int
add_pattern(struct swap *s, unsigned id, const uint8_t *from, const uint8_t *to, size_t n, size_t n_to)
{
    struct pattern *p = &s->v[s->n];

    if (n != n_to || n < SWAP_PATTERN_MIN || n > SWAP_PATTERN_MAX)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].n == n && memcmp(s->v[i].from, from, n) == 0)
            return 0;       /* the same in two forms */
    if (s->n == SWAP_PATTERNS_MAX)
        return -1;
    *p = (struct pattern){ .from = malloc(n), .to = malloc(n), .n = n, .id = id };
    if (p->from == NULL || p->to == NULL) {
        free(p->from);
        free(p->to);
        return -1;
    }
    memcpy(p->from, from, n);
    memcpy(p->to, to, n);
    s->n++;
    if (s->shortest == 0 || n < s->shortest)
        s->shortest = n;
    if (n > s->longest)
        s->longest = n;
    return 0;
}

struct room {
    uint8_t from[SWAP_PATTERN_MAX], to[SWAP_PATTERN_MAX];
};

static int
add_forms(struct swap *s, unsigned id, const uint8_t *from, const uint8_t *to, size_t n, unsigned forms,
          struct room *r)
{
    static const char *const digits[] = { "0123456789ABCDEF", "0123456789abcdef" };
    int bad = 0;

    if (forms & SWAP_RAW)
        bad |= add_pattern(s, id, from, to, n, n);
    for (size_t i = 0; (forms & SWAP_PERCENT) && i < 4; i++) {
        size_t a = percent(from, n, digits[i % 2], i >= 2, r->from);
        bad |= add_pattern(s, id, r->from, r->to, a, percent(to, n, digits[i % 2], i >= 2, r->to));
    }
    for (size_t i = 0; (forms & SWAP_JSON) && i < 2; i++) {
        size_t a = json(from, n, i == 1, r->from);
        bad |= add_pattern(s, id, r->from, r->to, a, json(to, n, i == 1, r->to));
    }
    for (size_t i = 0; (forms & SWAP_BASE64) && n >= BASE64_MIN && i < 6; i++) {
        size_t a = base64(from, n, i % 3, i >= 3, r->from);
        bad |= add_pattern(s, id, r->from, r->to, a, base64(to, n, i % 3, i >= 3, r->to));
    }
    return bad;
}

int
swap_add(struct swap *s, unsigned id, const void *from, const void *to, size_t n, unsigned forms)
{
    struct room *r;
    int bad;

    if (id > 31 || n < SWAP_PATTERN_MIN || n > SWAP_PATTERN_MAX / 3 || s->held != NULL)
        return -1;
    r = malloc(sizeof(*r));
    if (r == NULL)
        return -1;
    bad = add_forms(s, id, from, to, n, forms, r);
    explicit_bzero(r, sizeof(*r));
    free(r);
    return bad;
}

/* --- the stream --------------------------------------------------------------------------------------------------- */

static int
begin(struct swap *s)
{
    s->held = malloc(s->longest);
    if (s->held == NULL)
        return -1;
    for (size_t c = 0; c < 256; c++)
        s->skip[c] = (uint16_t)s->shortest;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->shortest; k++) {
            uint16_t far = (uint16_t)(s->shortest - 1 - k);
            if (far < s->skip[s->v[i].from[k]])
                s->skip[s->v[i].from[k]] = far;
        }
    return 0;
}

/* The stream is two pieces: what was held, then what came. */
struct view {
    const uint8_t *a, *b;
    size_t a_n, n;
};

static uint8_t
at(const struct view *v, size_t i)
{
    return i < v->a_n ? v->a[i] : v->b[i - v->a_n];
}

/* Whether the @n bytes at @i are @p's. */
static bool
same(const struct view *v, size_t i, const uint8_t *p, size_t n)
{
    size_t first = i < v->a_n ? v->a_n - i : 0;

    if (first > n)
        first = n;
    if (first > 0 && memcmp(v->a + i, p, first) != 0)
        return false;
    return n == first || memcmp(v->b + (i + first - v->a_n), p + first, n - first) == 0;
}

static int
emit(const struct view *v, size_t from, size_t to, struct buf *out)
{
    size_t split = to < v->a_n ? to : from > v->a_n ? from : v->a_n;

    if (from < split && from < v->a_n && buf_append(out, v->a + from, split - from) < 0)
        return -1;
    return to > split ? buf_append(out, v->b + (split - v->a_n), to - split) : 0;
}

/* What stands at @i: the longest pattern that is there whole; @more when one might be there that goes on beyond. */
static const struct pattern *
look(const struct swap *s, const struct view *v, size_t i, bool *more)
{
    const struct pattern *best = NULL;
    size_t left = v->n - i;

    *more = false;
    for (size_t k = 0; k < s->n; k++) {
        const struct pattern *p = &s->v[k];
        if (best != NULL && p->n <= best->n)
            continue;
        if (!same(v, i, p->from, p->n < left ? p->n : left))
            continue;
        if (p->n <= left)
            best = p;
        else
            *more = true;
    }
    return best;
}

static int
run(struct swap *s, const struct view *v, bool end, struct buf *out, size_t *kept)
{
    size_t i = 0, clean = 0;    /* [clean, i): nothing begins there */

    while (i < v->n) {
        const struct pattern *p;
        bool more;
        if (v->n - i >= s->shortest) {
            size_t far = s->skip[at(v, i + s->shortest - 1)];
            if (far > 0) {
                i += far;
                continue;
            }
        }
        p = look(s, v, i, &more);
        if (more && !end)
            break;
        if (p == NULL) {
            i++;
            continue;
        }
        s->seen |= UINT32_C(1) << p->id;
        if (emit(v, clean, i, out) < 0 || buf_append(out, p->to, p->n) < 0)
            return -1;
        i += p->n;
        clean = i;
    }
    *kept = i < v->n ? i : v->n;
    return emit(v, clean, *kept, out);
}

int
swap_feed(struct swap *s, const void *p, size_t n, bool end, struct buf *out)
{
    struct view v = { .a = s->held, .b = p, .a_n = s->held_n, .n = s->held_n + n };
    size_t kept, from_a;

    if (s->n == 0)
        return n > 0 ? buf_append(out, p, n) : 0;
    if (s->held == NULL && begin(s) < 0)
        return -1;
    v.a = s->held;
    if (run(s, &v, end, out, &kept) < 0)
        return -1;
    /* what is kept is the beginning of a pattern: less than the longest */
    from_a = kept < v.a_n ? v.a_n - kept : 0;
    memmove(s->held, s->held + v.a_n - from_a, from_a);
    s->held_n = v.n - kept;
    if (s->held_n > from_a)
        memcpy(s->held + from_a, v.b + (n - (s->held_n - from_a)), s->held_n - from_a);
    return 0;
}

size_t
swap_held(const struct swap *s)
{
    return s->held_n;
}

uint32_t
swap_seen(struct swap *s)
{
    uint32_t seen = s->seen;

    s->seen = 0;
    return seen;
}
