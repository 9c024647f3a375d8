/* egress/swap_find.c: the search (swap_priv.h) */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "egress/swap_priv.h"

#define PEND SPELLING_MAX       /* bytes of a spelling behind its first */

/* --- characters and their spellings ------------------------------------------------------------------------------- */

uint8_t
swap_class(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? 'A' : c >= 'a' && c <= 'z' ? 'a' : c >= '0' && c <= '9' ? '0' : c;
}

static bool
is_alnum(uint8_t c)
{
    uint8_t class = swap_class(c);

    return class == 'A' || class == 'a' || class == '0';
}

static int
digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool
swap_is(const struct pattern *p, size_t at, uint8_t c)
{
    uint8_t want = p->from[at];

    switch (p->kind) {
    case KIND_TEXT:   return c == want;
    case KIND_BASE64: return (c == '-' ? '+' : c == '_' ? '/' : c) == want;
    case KIND_HEX:    return (c >= 'A' && c <= 'F' ? c + 32 : c) == want;
    case KIND_FOLDED: return (c >= 'A' && c <= 'Z' ? c + 32 : c) == want;
    case KIND_SHAPE:  return swap_class(c) == want;
    }
    return false;
}

static size_t
swap_find_add(struct spelling *out, size_t k, size_t n, uint8_t c, enum spelling_kind what)
{
    if (k == SPELLINGS_MAX)
        return k;
    out[k] = (struct spelling){ .n = (uint8_t)n, .c = c, .what = what };
    return k + 1;
}

/* Ways to write a character as a number: digits of @base, @least to @most of them, behind @front, before @behind. */
static const struct number_row {
    const char *front;
    uint8_t base, least, most;
    char behind;                /* '\0': nothing */
} number_rows[] = {
    { "%", 16, 2, 2, '\0' },      { "%25", 16, 2, 2, '\0' },    { "%u", 16, 4, 4, '\0' },     { "=", 16, 2, 2, '\0' },
    { "\\x", 16, 1, 2, '\0' },    { "\\x{", 16, 1, 6, '}' },    { "\\u", 16, 4, 4, '\0' },    { "\\u{", 16, 1, 6, '}' },
    { "\\\\u", 16, 4, 4, '\0' },  { "\\U", 16, 8, 8, '\0' },    { "\\'", 16, 2, 2, '\0' },    { "\\", 8, 1, 3, '\0' },
    { "\\", 16, 1, 6, ' ' },      { "\\", 16, 1, 6, '\0' },     { "\\o{", 8, 1, 6, '}' },
    { "&#", 10, 1, 7, ';' },      { "&#x", 16, 1, 6, ';' },     { "&#X", 16, 1, 6, ';' },
    { "&#", 10, 1, 7, '\0' },     { "&#x", 16, 1, 6, '\0' },    { "&#X", 16, 1, 6, '\0' },
};

/* How many digits of @base stand before @n. */
static size_t
digits_before(const uint8_t *p, size_t n, unsigned base)
{
    size_t k = 0;

    while (k < n && k < PEND && digit(p[n - 1 - k]) >= 0 && digit(p[n - 1 - k]) < (int)base)
        k++;
    return k;
}

/* @row's way of writing a character ends before @n: so many digits, else 0; the character into *@c. */
static size_t
is_written(const struct number_row *row, const uint8_t *p, size_t n, size_t hex, uint8_t *c)
{
    size_t digits = row->base == 16 ? hex : digits_before(p, n, row->base), front = strlen(row->front), number = 0;

    if (row->least == row->most && digits > row->most)
        digits = row->most;
    if (digits < row->least || digits > row->most || n < front + digits ||
        memcmp(p + n - digits - front, row->front, front) != 0)
        return 0;
    for (size_t i = n - digits; i < n; i++)
        number = number * row->base + (size_t)digit(p[i]);
    *c = (uint8_t)number;
    return number > 0 && number < 256 ? digits : 0;
}

static size_t
spelled_as_number(const uint8_t *p, size_t n, struct spelling *out, size_t k)
{
    char last = (char)p[n - 1];
    size_t behind = last == ';' || last == '}' || last == ' ', hex = digits_before(p, n - behind, 16);

    for (size_t i = 0; hex > 0 && i < ARRAY_LEN(number_rows); i++) {
        const struct number_row *row = &number_rows[i];
        uint8_t c;
        size_t digits = row->behind == (behind ? last : '\0') ? is_written(row, p, n - behind, hex, &c) : 0;
        if (digits == 0 || k == SPELLINGS_MAX)
            continue;
        out[k++] = (struct spelling){ .n = (uint8_t)(strlen(row->front) + digits + behind), .c = c, .what = SPELLS,
                                      .base = row->base, .digits = (uint8_t)digits, .behind = (uint8_t)behind };
    }
    return k;
}

/* HTML's names, with their ";" before @n, or without. */
static size_t
spelled_by_name(const uint8_t *p, size_t n, struct spelling *out, size_t k)
{
    static const struct { const char *name; uint8_t c; } names[] = {
        { "&amp;", '&' },  { "&lt;", '<' },    { "&gt;", '>' },     { "&quot;", '"' },   { "&apos;", '\'' },
        { "&sol;", '/' },  { "&plus;", '+' },  { "&equals;", '=' }, { "&lowbar;", '_' }, { "&colon;", ':' },
        { "&bsol;", '\\' }, { "&Tab;", '\t' }, { "&NewLine;", '\n' }, { "&num;", '#' },  { "&percnt;", '%' },
        { "&period;", '.' }, { "&semi;", ';' }, { "&hyphen;", '-' }, { "&dash;", '-' },
        { "&amp", '&' },   { "&lt", '<' },     { "&gt", '>' },      { "&quot", '"' },
    };
    size_t from = n - 1;

    while (from > 0 && n - from < PEND && p[from] != '&')
        from--;
    for (size_t i = 0; p[from] == '&' && i < ARRAY_LEN(names); i++)
        if (n - from == strlen(names[i].name) && memcmp(p + from, names[i].name, n - from) == 0)
            return swap_find_add(out, k, n - from, names[i].c, SPELLS);
    return k;
}

size_t
swap_spellings(const uint8_t *p, size_t n, struct spelling out[SPELLINGS_MAX])
{
    uint8_t c = p[n - 1];
    size_t k = 0;

    if (n >= 2 && (digit(c) >= 0 || c == ';' || c == '}' || c == ' '))
        k = spelled_as_number(p, n, out, k);
    if (c == ';' || c == 't' || c == 'p')
        k = spelled_by_name(p, n, out, k);
    /* a string within a string has more of them */
    for (size_t slashes = 1; slashes <= 3 && n > slashes && p[n - 1 - slashes] == '\\'; slashes++) {
        bool line = c == 'n' || c == 'r' || c == 't';
        if (line || !is_alnum(c))
            k = swap_find_add(out, k, slashes + 1, c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c, SPELLS);
        if (line)
            k = swap_find_add(out, k, slashes + 1, 0, SKIPS_CODED);
    }
    if (c == '+')
        k = swap_find_add(out, k, 1, ' ', SPELLS);
    if (c == '\n' && n >= 2 && p[n - 2] == '=')
        k = swap_find_add(out, k, 2, 0, SKIPS);
    if (c == '\n' && n >= 3 && p[n - 2] == '\r' && p[n - 3] == '=')
        k = swap_find_add(out, k, 3, 0, SKIPS);
    if (c == '\0')              /* UTF-16 */
        k = swap_find_add(out, k, 1, 0, SKIPS);
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == ':')
        k = swap_find_add(out, k, 1, 0, SKIPS_CODED);
    return k;
}

/* --- the automaton ------------------------------------------------------------------------------------------------ */

static uint64_t
last_bit(const struct pattern *p)
{
    return UINT64_C(1) << ((p->n - 1) % 64);
}

/* The characters that stand for place @at of @p, @n of them from @first on, and *@other. */
static size_t
chars_of(const struct pattern *p, size_t at, uint8_t *first, uint8_t *other)
{
    uint8_t c = p->from[at];

    *first = *other = c;
    if (p->kind == KIND_SHAPE)
        return c == 'A' || c == 'a' ? 26 : c == '0' ? 10 : 1;
    if (p->kind == KIND_BASE64)
        *other = c == '+' ? '-' : c == '/' ? '_' : c;
    else if ((p->kind == KIND_HEX || p->kind == KIND_FOLDED) && c >= 'a' && c <= 'z')
        *other = (uint8_t)(c - 32);
    return 1;
}

/* Which characters are in any of them, into row_of. */
static void
mark_chars(struct swap *s)
{
    struct lanes *l = &s->lanes;
    unsigned rows = 1;          /* that of the characters that are in none */

    for (size_t k = 0; k < s->n; k++)
        for (size_t i = 0; i < s->v[k].n; i++) {
            uint8_t first, other;
            size_t chars = chars_of(&s->v[k], i, &first, &other);
            for (size_t c = 0; c < chars; c++)
                l->row_of[first + c] = 1;
            l->row_of[other] = 1;
        }
    for (size_t c = 0; c < 256; c++)
        l->row_of[c] = l->row_of[c] != 0 ? (uint16_t)rows++ : 0;
    l->n_rows = rows;
}

/* In which places of @p each character stands, 64 from @from on: bits of every row's word @word, rows of @n words. */
static void
fill_rows(const struct lanes *l, const struct pattern *p, size_t from, uint64_t *rows, size_t word, size_t n)
{
    for (size_t i = 0; i < 64 && from + i < p->n; i++) {
        uint8_t first, other;
        size_t chars = chars_of(p, from + i, &first, &other);
        for (size_t c = 0; c < chars; c++)
            rows[l->row_of[first + c] * n + word] |= UINT64_C(1) << i;
        rows[l->row_of[other] * n + word] |= UINT64_C(1) << i;
    }
}

static int
make_rows(struct swap *s)
{
    struct lanes *l = &s->lanes;

    mark_chars(s);
    l->rows = calloc(l->n_rows * l->n, sizeof(uint64_t));
    for (size_t k = 0; l->rows != NULL && k < s->n; k++)
        fill_rows(l, &s->v[k], 0, l->rows, k, l->n);
    return l->rows == NULL ? -1 : 0;
}

/* What is behind the first 64 places of @p. */
static int
make_upper(const struct lanes *l, struct pattern *p)
{
    size_t n = p->words - 1;

    if (n == 0)
        return 0;
    p->upper = calloc(RING * n, sizeof(uint64_t));
    p->rows = calloc(l->n_rows * n, sizeof(uint64_t));
    if (p->upper == NULL || p->rows == NULL)
        return -1;
    for (size_t w = 0; w < n; w++)
        fill_rows(l, p, (w + 1) * 64, p->rows, w, n);
    return 0;
}

int
swap_lanes_make(struct swap *s)
{
    struct lanes *l = &s->lanes;

    l->n = (s->n + LANES - 1) / LANES * LANES;
    l->ring = calloc((RING + 5) * l->n, sizeof(uint64_t));
    if (l->ring == NULL || make_rows(s) < 0)
        return -1;
    l->spelled = l->ring + RING * l->n;
    l->coded = l->spelled + l->n;
    l->watch = l->coded + l->n;
    l->find = l->watch + l->n;
    l->last = l->find + l->n;
    for (size_t k = 0; k < s->n; k++) {
        struct pattern *p = &s->v[k];
        bool coded = p->kind == KIND_BASE64 || p->kind == KIND_HEX;
        p->words = (p->n + 63) / 64;
        l->last[k] = p->words == 1 ? last_bit(p) : 0;
        l->find[k] = p->kind != KIND_SHAPE ? l->last[k] : 0;
        l->watch[k] = s->hides == (p->kind == KIND_SHAPE) ? ~l->last[k] : 0;
        l->spelled[k] = p->spelled ? ~UINT64_C(0) : 0;
        l->coded[k] = coded && p->spelled ? ~UINT64_C(0) : 0;
        if (make_upper(l, p) < 0)
            return -1;
        s->spells |= p->spelled;
        s->longs |= p->words > 1;
    }
    return 0;
}

/* Rows tell of values. */
static void
free_rows(uint64_t *rows, size_t n)
{
    if (rows != NULL)
        explicit_bzero(rows, n * sizeof(*rows));
    free(rows);
}

void
swap_lanes_free(struct swap *s)
{
    free_rows(s->lanes.rows, s->lanes.n * s->lanes.n_rows);
    free(s->lanes.ring);
    for (size_t k = 0; k < s->n; k++) {
        free(s->v[k].upper);
        free_rows(s->v[k].rows, s->v[k].rows != NULL ? s->lanes.n_rows * (s->v[k].words - 1) : 0);
    }
}

struct at {
    size_t now, old;            /* places in the ring */
    bool skips;
    uint8_t c;
};

/* What is behind the first 64 places of @p. All of it, each time: who knows how a value begins, or sends what keeps a
 * state alive, would see how far it goes. */
static void
step_upper(struct swap *s, size_t k, const struct at *at)
{
    const struct pattern *p = &s->v[k];
    size_t n = p->words - 1;
    uint64_t *restrict now = p->upper + at->now * n;
    const uint64_t *restrict old = p->upper + at->old * n, *restrict row = p->rows + s->lanes.row_of[at->c] * n;

    if (at->skips) {
        for (size_t w = 0; w + 1 < n; w++)
            now[w] |= old[w];
        now[n - 1] |= old[n - 1] & ~last_bit(p);
        return;
    }
    now[0] |= (old[0] << 1 | s->lanes.ring[at->old * s->lanes.n + k] >> 63) & row[0];
    for (size_t w = 1; w < n; w++)
        now[w] |= (old[w] << 1 | old[w - 1] >> 63) & row[w];
}

/* A character came that is spelled, or nothing did. */
static void
step(struct swap *s, const struct at *at, const uint64_t *mask)
{
    struct lanes *l = &s->lanes;
    uint64_t *now = l->ring + at->now * l->n;
    const uint64_t *old = l->ring + at->old * l->n, *row = l->rows + l->row_of[at->c] * l->n;

    for (size_t k = 0; k < l->n; k++)
        now[k] |= (at->skips ? old[k] & ~l->last[k] : (old[k] << 1 | 1) & row[k]) & mask[k];
    for (size_t k = 0; s->longs && k < s->n; k++)
        if (s->v[k].words > 1 && mask[k] != 0)
            step_upper(s, k, at);
}

typedef uint64_t two __attribute__((vector_size(2 * sizeof(uint64_t))));

/* A character came, as itself. */
static void
step_plain(struct swap *s, const struct at *at)
{
    const struct lanes *l = &s->lanes;
    two *restrict now = (two *)(void *)(l->ring + at->now * l->n);
    const two *restrict old = (const two *)(const void *)(l->ring + at->old * l->n);
    const two *restrict row = (const two *)(const void *)(l->rows + l->row_of[at->c] * l->n);

    for (size_t k = 0; k < l->n / 2; k += 2) {
        now[k] = (old[k] << 1 | 1) & row[k];
        now[k + 1] = (old[k + 1] << 1 | 1) & row[k + 1];
    }
    for (size_t k = 0; s->longs && k < s->n; k++) {
        size_t n = s->v[k].words - 1;
        for (size_t w = 0; w < n; w++)
            s->v[k].upper[at->now * n + w] = 0;
        if (n > 0)
            step_upper(s, k, at);
    }
}

/* Whether a spelling may end with @p[@i]; most bytes are none. @begun: one has, and is not too long yet. */
static bool
may_spell(const uint8_t *p, size_t i, bool begun)
{
    enum { ALONE = 1, LAST = 2 };
    static const uint8_t kinds[256] = {
        ['\0'] = ALONE, ['\n'] = ALONE, ['\r'] = ALONE, ['\t'] = ALONE, [' '] = ALONE, [':'] = ALONE, [';'] = ALONE,
        ['+'] = ALONE, ['0'] = LAST, ['1'] = LAST, ['2'] = LAST, ['3'] = LAST, ['4'] = LAST, ['5'] = LAST, ['6'] = LAST,
        ['7'] = LAST, ['8'] = LAST, ['9'] = LAST, ['a'] = LAST, ['b'] = LAST, ['c'] = LAST, ['d'] = LAST, ['e'] = LAST,
        ['f'] = LAST, ['A'] = LAST, ['B'] = LAST, ['C'] = LAST, ['D'] = LAST, ['E'] = LAST, ['F'] = LAST, ['}'] = LAST,
        ['t'] = LAST, ['p'] = LAST,
    };

    return (kinds[p[i]] & ALONE) || (i > 0 && p[i - 1] == '\\') || (begun && (kinds[p[i]] & LAST));
}

/* @p[@i] comes: the state behind it. */
static void
step_all(struct swap *s, const uint8_t *p, size_t i)
{
    struct lanes *l = &s->lanes;
    const size_t here = l->base + i;
    const struct at at = { .now = (here + 1) % RING, .old = here % RING, .c = p[i] };
    struct spelling ways[SPELLINGS_MAX];
    size_t n_ways;

    step_plain(s, &at);
    if (!s->spells || !may_spell(p, i, s->left > 0))
        return;
    n_ways = swap_spellings(p, i + 1, ways);
    for (size_t w = 0; w < n_ways; w++) {
        const struct at other = { .now = at.now, .old = (here + 1 - ways[w].n) % RING, .c = ways[w].c,
                                  .skips = ways[w].what != SPELLS };
        step(s, &other, ways[w].what == SKIPS_CODED ? l->coded : l->spelled);
    }
}

static int
note(size_t i, size_t k, struct buf *out)
{
    const struct found f = { .from = NOT_PLACED, .to = (uint32_t)(i + 1), .pattern = (uint32_t)k };

    return buf_append(out, &f, sizeof(f));
}

/* look() for what is longer than 64. */
static int
look_upper(struct swap *s, size_t i, uint64_t *goes_on, struct buf *out)
{
    for (size_t k = 0; k < s->n; k++) {
        const struct pattern *p = &s->v[k];
        size_t n = p->words - 1;
        const uint64_t *now = n > 0 ? p->upper + (s->lanes.base + i + 1) % RING * n : NULL;
        if (n == 0)
            continue;
        for (size_t w = 0; s->lanes.watch[k] != 0 && w < n; w++)
            *goes_on |= now[w] & ~(w + 1 == n ? last_bit(p) : 0);
        if ((now[n - 1] & last_bit(p)) != 0 && p->kind != KIND_SHAPE && note(i, k, out) < 0)
            return -1;
    }
    return 0;
}

/* Whether a pattern goes on behind @i, and which are whole there: into @out, with the end alone. */
static int
look(struct swap *s, size_t i, bool *open, struct buf *out)
{
    const struct lanes *l = &s->lanes;
    const uint64_t *restrict now = l->ring + (l->base + i + 1) % RING * l->n;
    uint64_t on[LANES] = { 0 }, ends[LANES] = { 0 }, goes_on, whole;

    for (size_t k = 0; k < l->n; k += LANES)
        for (size_t j = 0; j < LANES; j++) {
            on[j] |= now[k + j] & l->watch[k + j];
            ends[j] |= now[k + j] & l->find[k + j];
        }
    goes_on = on[0] | on[1] | on[2] | on[3];
    whole = ends[0] | ends[1] | ends[2] | ends[3];
    if (s->longs && look_upper(s, i, &goes_on, out) < 0)
        return -1;
    *open = goes_on != 0;
    for (size_t k = 0; whole != 0 && k < s->n; k++)
        if ((now[k] & l->find[k]) != 0 && note(i, k, out) < 0)
            return -1;
    return 0;
}

/* A spelling has begun and may go on: @left bytes more. */
static size_t
pending(const uint8_t *p, size_t i, size_t left)
{
    uint8_t c = p[i];

    if (c == '%' || c == '\\' || c == '&' || c == '=')
        return PEND;
    if (c == '\r' && i > 0 && p[i - 1] == '=')
        return 1;
    return left > 0 && (is_alnum(c) || (c != '\0' && strchr("#{}'", c) != NULL)) ? left - 1 : 0;
}

void
swap_find_anew(struct swap *s)
{
    memset(s->lanes.ring, 0, RING * s->lanes.n * sizeof(uint64_t));
    for (size_t k = 0; k < s->n; k++)
        if (s->v[k].words > 1)
            memset(s->v[k].upper, 0, RING * (s->v[k].words - 1) * sizeof(uint64_t));
    s->lanes.base = s->chain = s->left = 0;
}

int
swap_find(struct swap *s, const uint8_t *p, size_t from, size_t n, struct buf *out)
{
    for (size_t i = from; i < n; i++) {
        bool goes_on;
        step_all(s, p, i);
        if (look(s, i, &goes_on, out) < 0)
            return -1;
        s->left = s->spells ? pending(p, i, s->left) : 0;
        s->chain = goes_on || s->left > 0 ? s->chain + 1 : 0;
    }
    return 0;
}
