/* egress/swap.c: see swap.h */
#include <stdlib.h>
#include <string.h>

#include "egress/swap_priv.h"

#define CODED_MIN 8
#define LINE_MIN  56            /* characters of base64 or hexadecimal before a line end that they may go on behind */
#define EDGE      (SPELLING_MAX + 1)    /* bytes of the character beside it, and one */
#define FOUND_MAX (4u << 20)    /* bytes of struct found, of one read */

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
    swap_lanes_free(s);
    for (size_t i = 0; i < s->n; i++) {
        wipe(s->v[i].from, s->v[i].n);
        wipe(s->v[i].to, s->v[i].n);
    }
    wipe(s->held, SWAP_HELD_MAX);
    buf_free(&s->finds);
    swap_free(s->beneath);
    free(s);
}

void
swap_hide(struct swap *s)
{
    s->hides = true;
}

void
swap_blind(struct swap *s)
{
    s->blind = true;
}

/* --- forms -------------------------------------------------------------------------------------------------------- */

static bool
of_one_class(const uint8_t *a, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (swap_class(a[i]) != swap_class(b[i]))
            return false;
    return true;
}

/* The base64 characters that @p alone decides when @offset (0 to 2) bytes of something else stand before it. */
static size_t
base64(const uint8_t *p, size_t n, size_t offset, uint8_t *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t first = (offset * 8 + 5) / 6 * 6 - offset * 8, o = 0;   /* bits of @p before the first whole character */

    for (size_t bit = first; bit + 6 <= n * 8; bit += 6) {
        unsigned two = (unsigned)p[bit / 8] << 8 | (bit / 8 + 1 < n ? p[bit / 8 + 1] : 0);
        out[o++] = (uint8_t)letters[two >> (10 - bit % 8) & 63];
    }
    return o;
}

static size_t
hexadecimal(const uint8_t *p, size_t n, uint8_t *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (uint8_t)digits[p[i] >> 4];
        out[2 * i + 1] = (uint8_t)digits[p[i] & 15];
    }
    return 2 * n;
}

static int
add_pattern(struct swap *s, unsigned id, enum swap_kind kind, bool spelled, const uint8_t *from, const uint8_t *to,
            size_t n)
{
    struct pattern *p = &s->v[s->n];
    size_t cap = spelled ? SPELLING_MAX * n + 64 : n - 1;

    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].n == n && s->v[i].kind == kind && memcmp(s->v[i].from, from, n) == 0)
            return 0;
    if (s->n == SWAP_PATTERNS_MAX)
        return -1;
    *p = (struct pattern){ .from = malloc(n), .to = malloc(n), .n = n, .id = id, .kind = kind, .spelled = spelled };
    s->n++;
    if (p->from == NULL || p->to == NULL)
        return -1;
    memcpy(p->from, from, n);
    memcpy(p->to, to, n);
    if (s->hides == (kind == KIND_SHAPE) && cap > s->cap)
        s->cap = cap < SWAP_HELD_MAX ? cap : SWAP_HELD_MAX;
    return 0;
}

struct room {
    uint8_t from[2 * SWAP_PATTERN_MAX], to[2 * SWAP_PATTERN_MAX];
};

static int
add_text(struct swap *s, unsigned id, const uint8_t *from, const uint8_t *to, size_t n, unsigned forms, struct room *r)
{
    bool spelled = (forms & SWAP_SPELLED) != 0;

    if ((s->hides || (spelled && !s->blind)) && !of_one_class(from, to, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        r->to[i] = swap_class(to[i]);
    if (s->hides && add_pattern(s, id, KIND_SHAPE, spelled, r->to, r->to, n) < 0)
        return -1;
    return add_pattern(s, id, KIND_TEXT, spelled, from, to, n);
}

/* What of @to is in the characters beside the @m that it decides alone. */
static void
add_edges(struct pattern *p, const uint8_t *to, size_t n, size_t offset, size_t m)
{
    unsigned first = offset == 1 ? 4 : offset == 2 ? 2 : 0, rest = (unsigned)(8 * n - first - 6 * m);

    p->front = (struct edge){ .bits = (uint8_t)first, .to = (uint8_t)(to[0] >> (8 - first)) };
    p->back = (struct edge){ .bits = (uint8_t)rest, .to = (uint8_t)(to[n - 1] & ((1U << rest) - 1)) };
}

/* What swap_peel() looks for. */
static int
add_beneath(struct swap *s, unsigned id, const uint8_t *value, size_t n, uint8_t *room)
{
    for (size_t i = 0; i < n; i++)
        room[i] = swap_class(value[i]) == 'A' ? (uint8_t)(value[i] + 32) : value[i];
    if (s->beneath == NULL)
        s->beneath = swap_new();
    if (s->beneath == NULL || add_pattern(s->beneath, id, KIND_FOLDED, false, room, room, n) < 0)
        return -1;
    s->least = s->least == 0 || n < s->least ? n : s->least;
    return 0;
}

static int
add_coded(struct swap *s, unsigned id, const uint8_t *from, const uint8_t *to, size_t n, unsigned forms, struct room *r)
{
    bool spelled = (forms & SWAP_SPELLED) != 0;
    size_t most = SPELLING_MAX * n + 64 < SWAP_HELD_MAX / 2 ? SPELLING_MAX * n + 64 : SWAP_HELD_MAX / 2;

    if (s->hides && add_beneath(s, id, from, n, r->from) < 0)
        return -1;
    if (s->hides && most > s->run_max)
        s->run_max = most;
    for (size_t offset = 0; (forms & SWAP_BASE64) && offset < 3; offset++) {
        size_t m = base64(from, n, offset, r->from), before = s->n;
        (void)base64(to, n, offset, r->to);
        if (add_pattern(s, id, KIND_BASE64, spelled, r->from, r->to, m) < 0)
            return -1;
        if (s->hides && s->n > before)
            add_edges(&s->v[before], to, n, offset, m);
    }
    if ((forms & SWAP_HEX) == 0)
        return 0;
    (void)hexadecimal(to, n, r->to);
    return add_pattern(s, id, KIND_HEX, spelled, r->from, r->to, hexadecimal(from, n, r->from));
}

int
swap_add(struct swap *s, unsigned id, const void *from, const void *to, size_t n, unsigned forms)
{
    struct room *r;
    int bad = 0;

    if (id > 31 || n < SWAP_PATTERN_MIN || n > SWAP_PATTERN_MAX || s->held != NULL)
        return -1;
    r = malloc(sizeof(*r));
    if (r == NULL)
        return -1;
    if (forms & (SWAP_RAW | SWAP_SPELLED))
        bad |= add_text(s, id, from, to, n, forms, r);
    if ((forms & (SWAP_BASE64 | SWAP_HEX)) && n >= CODED_MIN && bad == 0)
        bad |= add_coded(s, id, from, to, n, forms, r);
    explicit_bzero(r, sizeof(*r));
    free(r);
    return bad;
}

/* --- what could be of a coding ------------------------------------------------------------------------------------ */

/* ... or is of one of its spellings. */
static bool
is_coded(uint8_t c)
{
    /* 32 to a word: letters and digits, "#", "%", "&", "+", "-", ".", "/", "=", "\\", "_", "~", NUL */
    static const uint32_t coded[8] = { 1, 0x23ffe868, 0x97fffffe, 0x47fffffe };

    return (coded[c / 32] >> c % 32 & 1) != 0;
}

static bool
is_digit(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The ";" before @n ends a character as HTML has it; its "&" may be spelled. */
static bool
is_entity(const uint8_t *p, size_t n)
{
    for (size_t back = 2; back <= 10 && back <= n; back++)
        if (p[n - back] == '&' || p[n - back] == '#')
            return true;
    return false;
}

/* Whether @p[@at] is a brace of \u{6b}. */
static bool
is_brace(const uint8_t *p, size_t at)
{
    size_t n = at;

    while (p[at] == '}' && n > 0 && at - n < 7 && is_digit(p[n - 1]))
        n--;
    n -= p[at] == '}' && n > 0 && p[n - 1] == '{' ? 1 : 0;
    return n > 1 && p[n] == '{' && p[n - 2] == '\\' && (p[n - 1] == 'u' || p[n - 1] == 'x' || p[n - 1] == 'o');
}

/* @p[0..n) ends with a whole line of it. */
static bool
is_line(const uint8_t *p, size_t n)
{
    size_t run = 0;

    while (run < LINE_MIN && run < n && is_coded(p[n - 1 - run]))
        run++;
    return run == LINE_MIN;
}

/* Two digits before @n, where something stands between pairs of them. */
static bool
is_pair(const uint8_t *p, size_t n)
{
    return n >= 2 && is_digit(p[n - 1]) && is_digit(p[n - 2]);
}

/* A number ends before @n, as in a list: 107, 0x6b. */
static bool
is_number(const uint8_t *p, size_t n)
{
    size_t digits = 0;

    while (digits < 4 && digits < n && is_digit(p[n - 1 - digits]))
        digits++;
    if (digits > 0 && digits < 3 && n >= digits + 2 && (p[n - digits - 1] | 32) == 'x' && p[n - digits - 2] == '0')
        return true;
    for (size_t i = 0; i < digits; i++)
        if (p[n - 1 - i] > '9')
            return false;
    return digits > 0 && digits < 4 && (n == digits || p[n - digits - 1] == ',' || !is_coded(p[n - digits - 1]));
}

/* The blank before @n ends a character as CSS has it. */
static bool
is_css(const uint8_t *p, size_t n)
{
    size_t digits = 0;

    while (digits < 6 && digits + 1 < n && is_digit(p[n - 2 - digits]))
        digits++;
    return digits > 0 && n > digits + 1 && p[n - 2 - digits] == '\\';
}

/* Whether what came before @at goes on with @p[@at], which is nothing that a string of a coding has. */
static bool
goes_on(const uint8_t *p, size_t at)
{
    uint8_t c = p[at];
    size_t n = at;

    if (c == ';')
        return is_entity(p, at + 1);
    if (c == '{' || c == '}')
        return is_brace(p, at);
    if (c == ',' || c == ':')
        return is_number(p, at) || (c == ':' && is_pair(p, at));
    if (c == ' ' && at > 0 && (is_pair(p, at) || is_number(p, at) || is_css(p, at + 1) ||
                              (p[at - 1] == ',' && is_number(p, at - 1))))
        return true;
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
        return false;
    if (c == ' ' || c == '\t') {
        while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        if (n == 0 || (p[n - 1] != '\n' && p[n - 1] != '\r'))
            return false;
        n--;
    }
    n -= n > 0 && p[n] == '\n' && p[n - 1] == '\r' ? 1 : 0;
    return is_line(p, n) || (n > 1 && p[n - 1] == ',' && is_number(p, n - 1));
}

/* What is new in @p, and could be of a coding, is read: each string when its end has come. What goes on at the end is
 * s->run. Of one that is too long to be held the beginning is read, and goes; so that each byte is not read again with
 * every one that comes, twice as much is held as is needed. */
static int
read_runs(struct swap *s, const uint8_t *p, size_t before, size_t n, bool end)
{
    size_t run = s->run;

    for (size_t i = before; i < n; i++) {
        if (is_coded(p[i]) || (run > 0 && goes_on(p, i))) {
            run++;
            continue;
        }
        if (run >= s->least && swap_peel(s, p, i - run, i, &s->finds) < 0)
            return -1;
        run = 0;
    }
    s->run = run;
    if (run < s->least || (!end && run < 2 * s->run_max))
        return 0;
    s->run = end ? 0 : s->run_max;
    return swap_peel(s, p, n - run, n, &s->finds);
}

/* --- the stream --------------------------------------------------------------------------------------------------- */

static int
swap_begin(struct swap *s)
{
    s->held = malloc(SWAP_HELD_MAX);
    s->finds = (struct buf)BUF_INIT(FOUND_MAX);
    if (s->held == NULL || swap_lanes_make(s) < 0)
        return -1;
    return s->beneath == NULL ? 0 : swap_lanes_make(s->beneath);
}

static int
earlier(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to > y->to ? -1 : x->to < y->to;
}

static unsigned
id_of(const struct swap *s, const struct found *f)
{
    return f->pattern >= FOUND_BENEATH ? f->pattern - FOUND_BENEATH : s->v[f->pattern].id;
}

/* @g is what @f, which is beneath something, is. */
static bool
is_same(const struct swap *s, const struct found *f, const struct found *g)
{
    return g->pattern < FOUND_BENEATH && id_of(s, g) == id_of(s, f) && g->to + EDGE > f->to;
}

/* What the search of the text itself found, but for some characters at its ends, is not beneath something as well:
 * what stands for it can be put there. */
static void
drop_twice(const struct swap *s, struct found *v, size_t *n)
{
    size_t left = 0;

    for (size_t i = 0; i < *n; i++) {
        bool twice = false;
        if (v[i].pattern >= FOUND_BENEATH)
            for (size_t k = i; k > 0 && v[k - 1].from + EDGE > v[i].from; k--)
                twice |= is_same(s, &v[i], &v[k - 1]);
        for (size_t k = i + 1; v[i].pattern >= FOUND_BENEATH && k < *n && v[k].from < v[i].from + EDGE; k++)
            twice |= is_same(s, &v[i], &v[k]);
        v[i].twice = twice;
    }
    for (size_t i = 0; i < *n; i++)
        if (!v[i].twice)
            v[left++] = v[i];
    *n = left;
}

/* Where each that is new begins. Of one that began in what is out already nothing more comes; in what was replaced, it
 * is none. */
static int
place(struct swap *s, const uint8_t *p, size_t *n)
{
    struct found *v = (struct found *)(void *)s->finds.p;
    size_t all = s->finds.n / sizeof(*v);

    *n = 0;
    for (size_t i = 0; i < all; i++) {
        if (v[i].from == NOT_PLACED && swap_place(s, p, &v[i]) < 0)
            return -1;
        if (v[i].from == NO_PLACE && s->behind)
            continue;
        if (v[i].from == NO_PLACE)
            v[i] = (struct found){ 0, v[i].to, FOUND_BENEATH + s->v[v[i].pattern].id, false };
        v[(*n)++] = v[i];
    }
    if (*n > 1)
        qsort(v, *n, sizeof(*v), earlier);
    drop_twice(s, v, n);
    return 0;
}

/* Of what was beneath something nothing is left: what stands for it has no other length. */
static int
put(const struct swap *s, const uint8_t *p, const struct found *f, struct buf *out)
{
    static const uint8_t nothing[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    int r = 0;

    if (f->pattern < FOUND_BENEATH)
        return swap_put(s, p, f, out);
    for (size_t n = f->to - f->from, k; r == 0 && n > 0; n -= k) {
        k = n < sizeof(nothing) - 1 ? n : sizeof(nothing) - 1;
        r = buf_append(out, nothing, k);
    }
    return r;
}

/* The character before what was found at @f went to @out: what it tells of the value goes. */
static void
mend_before(const struct swap *s, const struct found *f, struct buf *out, size_t was)
{
    if (out->n > was && f->pattern < FOUND_BENEATH)
        out->p[out->n - 1] = swap_edge(&s->v[f->pattern], false, out->p[out->n - 1]);
}

/* Likewise the one behind it, which goes out with it; *@done is behind what was found. */
static int
mend_behind(const struct swap *s, const uint8_t *p, size_t n, const struct found *f, const struct found *next,
            struct buf *out, size_t *done)
{
    uint8_t c = *done < n && f->pattern < FOUND_BENEATH ? swap_edge(&s->v[f->pattern], true, p[*done]) : 0;

    if (*done == n || f->pattern >= FOUND_BENEATH || c == p[*done] || (next != NULL && next->from == *done))
        return 0;
    ++*done;
    return buf_append(out, &c, 1);
}

/* What is found and begins before @until goes to @out with its other side in its place; all before it too. *@done: so
 * much of @p is through. What begins behind that is kept. */
static int
replace(struct swap *s, const uint8_t *p, size_t all, size_t until, struct buf *out, size_t *done)
{
    struct found *v = (struct found *)(void *)s->finds.p;
    size_t n, i, left = 0, was = out->n;

    *done = 0;
    if (place(s, p, &n) < 0)
        return -1;
    for (i = 0; i < n && v[i].from < until; i++) {
        if (v[i].from < *done)
            continue;
        s->seen |= UINT32_C(1) << id_of(s, &v[i]);
        if (buf_append(out, p + *done, v[i].from - *done) < 0)
            return -1;
        mend_before(s, &v[i], out, was);
        if (put(s, p, &v[i], out) < 0)
            return -1;
        *done = v[i].to;
        s->behind = true;
        if (mend_behind(s, p, all, &v[i], i + 1 < n ? &v[i + 1] : NULL, out, done) < 0)
            return -1;
    }
    s->behind &= *done >= until;
    if (*done < until && buf_append(out, p + *done, until - *done) < 0)
        return -1;
    *done = *done < until ? until : *done;
    if (i < n && v[i].from == *done)
        mend_before(s, &v[i], out, was);
    for (; i < n; i++)
        if (v[i].from >= *done)
            v[left++] = (struct found){ v[i].from - (uint32_t)*done, v[i].to - (uint32_t)*done, v[i].pattern, false };
    s->finds.n = left * sizeof(*v);
    return 0;
}

/* @p[0..n) begins with what is held. */
static int
search(struct swap *s, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    size_t before = s->held_n, done, open, most;

    if (n > INT32_MAX || swap_find(s, p, before, n, &s->finds) < 0 ||
        (s->beneath != NULL && read_runs(s, p, before, n, end) < 0))
        return -1;
    open = s->chain < s->cap ? s->chain : s->cap;
    most = s->blind ? s->cap : open > s->run ? open : s->run;
    most = most < SWAP_HELD_MAX ? most : SWAP_HELD_MAX;
    most = most < n ? most : n;
    if (replace(s, p, n, end ? n : n - most, out, &done) < 0)
        return -1;
    s->held_n = n - done;
    memcpy(s->held, p + done, s->held_n);
    s->lanes.base = (s->lanes.base + done) % RING;
    s->chain = s->chain < s->held_n ? s->chain : s->held_n;
    s->run = s->run < s->held_n ? s->run : s->held_n;
    if (end) {
        swap_find_anew(s);
        s->run = 0;
        s->behind = false;
    }
    return 0;
}

int
swap_feed(struct swap *s, const void *p, size_t n, bool end, struct buf *out)
{
    uint8_t *both;
    size_t all = s->held_n + n;
    int r;

    if (s->n == 0)
        return n > 0 ? buf_append(out, p, n) : 0;
    if (s->held == NULL && swap_begin(s) < 0)
        return -1;
    if (s->held_n == 0)
        return search(s, p, n, end, out);
    both = malloc(all);
    if (both == NULL)
        return -1;
    memcpy(both, s->held, s->held_n);
    if (n > 0)
        memcpy(both + s->held_n, p, n);
    r = search(s, both, all, end, out);
    wipe(both, all);
    return r;
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
