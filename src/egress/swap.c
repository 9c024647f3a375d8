/* egress/swap.c: see swap.h
 *
 * What a hidden search holds back: the longest end of the stream that has the shape of a pattern's beginning: the
 * pattern with a class in place of each letter and digit. How far the stream's end agrees with it is kept from piece
 * to piece, as Knuth, Morris and Pratt do. The shape of a base64 is any of its characters: of which class they are
 * follows from the value.
 */
#include "egress/swap.h"

#include <stdlib.h>
#include <string.h>

#define BASE64_MIN 8

struct pattern {
    uint8_t *from, *to;
    size_t n;
    unsigned id;
};

struct shape {
    uint8_t *v;                 /* classes */
    uint16_t *less;             /* [i]: the longest beginning of it that v[0..i] ends with, itself not counted */
    size_t n, at;               /* @at: the stream ends with so much of its beginning, less than @n */
};

struct swap {
    struct pattern v[SWAP_PATTERNS_MAX];
    size_t n, shortest, longest;
    bool hides;
    struct shape shapes[SWAP_PATTERNS_MAX];
    size_t n_shapes, run_max, run;      /* @run: characters of base64 at the stream's end, at most @run_max */
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
    for (size_t i = 0; i < s->n_shapes; i++) {
        free(s->shapes[i].v);
        free(s->shapes[i].less);
    }
    wipe(s->held, s->longest);
    free(s);
}

/* --- shapes: what may be known of a pattern ----------------------------------------------------------------------- */

void
swap_hide(struct swap *s)
{
    s->hides = true;
}

static uint8_t
class_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? 'A' : c >= 'a' && c <= 'z' ? 'a' : c >= '0' && c <= '9' ? '0' : c;
}

static bool
is_base64(uint8_t c)
{
    uint8_t class = class_of(c);

    return class == 'A' || class == 'a' || class == '0' || c == '+' || c == '/' || c == '-' || c == '_';
}

static bool
of_one_class(const uint8_t *a, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (class_of(a[i]) != class_of(b[i]))
            return false;
    return true;
}

/* How much of the beginning there is when @c comes behind the first @at of it. */
static size_t
step(const struct shape *shape, size_t at, uint8_t c)
{
    while (at > 0 && shape->v[at] != c)
        at = shape->less[at - 1];
    return shape->v[at] == c ? at + 1 : 0;
}

/* Of what is put in, so that it is of nothing else. */
static int
add_shape(struct swap *s, const uint8_t *to, size_t n)
{
    struct shape *shape = &s->shapes[s->n_shapes];
    size_t at = 0;

    *shape = (struct shape){ .v = malloc(n), .less = calloc(n, sizeof(uint16_t)), .n = n };
    s->n_shapes++;
    if (shape->v == NULL || shape->less == NULL)
        return -1;
    for (size_t i = 0; i < n; i++)
        shape->v[i] = class_of(to[i]);
    for (size_t i = 0; i + 1 < s->n_shapes; i++)
        if (s->shapes[i].n == n && memcmp(s->shapes[i].v, shape->v, n) == 0) {
            free(shape->v);
            free(shape->less);
            s->n_shapes--;
            return 0;
        }
    for (size_t i = 1; i < n; i++) {
        at = step(shape, at, shape->v[i]);
        shape->less[i] = (uint16_t)at;
    }
    return 0;
}

/* @p comes behind the stream: the characters of base64 at its end. */
static size_t
run_behind(const struct swap *s, const uint8_t *p, size_t n)
{
    size_t run = 0;

    while (run < n && run < s->run_max && is_base64(p[n - 1 - run]))
        run++;
    if (run < n)
        return run;
    return s->run_max - run < s->run ? s->run_max : s->run + run;
}

/* @p comes behind the stream. Returns how much of its end is to be held back. */
static size_t
hold(struct swap *s, const uint8_t *p, size_t n)
{
    size_t from = n >= s->longest ? n - s->longest + 1 : 0;     /* no beginning is longer */
    size_t most = s->run = run_behind(s, p, n);

    for (size_t k = 0; k < s->n_shapes; k++) {
        struct shape *shape = &s->shapes[k];
        if (from > 0)
            shape->at = 0;
        for (size_t i = from; i < n; i++) {
            shape->at = step(shape, shape->at, class_of(p[i]));
            if (shape->at == shape->n)
                shape->at = shape->less[shape->n - 1];
        }
        most = shape->at > most ? shape->at : most;
    }
    return most;
}

/* The stream begins anew. */
static void
forget(struct swap *s)
{
    s->run = 0;
    for (size_t k = 0; k < s->n_shapes; k++)
        s->shapes[k].at = 0;
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

/* @form: one of swap_form. */
static int
add_pattern(struct swap *s, unsigned id, unsigned form, const uint8_t *from, const uint8_t *to, size_t n, size_t n_to)
{
    struct pattern *p = &s->v[s->n];

    if (n != n_to || n < SWAP_PATTERN_MIN || n > SWAP_PATTERN_MAX)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].n == n && memcmp(s->v[i].from, from, n) == 0)
            return 0;       /* the same in two forms */
    if (s->n == SWAP_PATTERNS_MAX)
        return -1;
    if (s->hides && form == SWAP_BASE64)
        s->run_max = n - 1 > s->run_max ? n - 1 : s->run_max;
    else if (s->hides && (!of_one_class(from, to, n) || add_shape(s, to, n) < 0))
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
        bad |= add_pattern(s, id, SWAP_RAW, from, to, n, n);
    for (size_t i = 0; (forms & SWAP_PERCENT) && i < 4; i++) {
        size_t a = percent(from, n, digits[i % 2], i >= 2, r->from);
        bad |= add_pattern(s, id, SWAP_PERCENT, r->from, r->to, a, percent(to, n, digits[i % 2], i >= 2, r->to));
    }
    for (size_t i = 0; (forms & SWAP_JSON) && i < 2; i++) {
        size_t a = json(from, n, i == 1, r->from);
        bad |= add_pattern(s, id, SWAP_JSON, r->from, r->to, a, json(to, n, i == 1, r->to));
    }
    for (size_t i = 0; (forms & SWAP_BASE64) && n >= BASE64_MIN && i < 6; i++) {
        size_t a = base64(from, n, i % 3, i >= 3, r->from);
        bad |= add_pattern(s, id, SWAP_BASE64, r->from, r->to, a, base64(to, n, i % 3, i >= 3, r->to));
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

/* From @until on all is held back, whatever it is. */
static int
run(struct swap *s, const struct view *v, size_t until, bool end, struct buf *out, size_t *kept)
{
    size_t i = 0, clean = 0;    /* [clean, i): nothing begins there */

    while (i < until) {
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
        if (more && !end) {
            until = i;
            break;
        }
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
    *kept = until > clean ? until : clean;
    return emit(v, clean, *kept, out);
}

int
swap_feed(struct swap *s, const void *p, size_t n, bool end, struct buf *out)
{
    struct view v = { .a = s->held, .b = p, .a_n = s->held_n, .n = s->held_n + n };
    size_t kept, from_a, until = v.n;

    if (s->n == 0)
        return n > 0 ? buf_append(out, p, n) : 0;
    if (s->held == NULL && begin(s) < 0)
        return -1;
    v.a = s->held;
    if (s->hides && !end) {
        size_t some = hold(s, p, n);
        until = some < v.n ? v.n - some : 0;    /* what it begins with may have been replaced, and be gone */
    }
    if (run(s, &v, until, end, out, &kept) < 0)
        return -1;
    if (end)
        forget(s);
    /* what is kept is the beginning of a pattern, or like one: less than the longest */
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
