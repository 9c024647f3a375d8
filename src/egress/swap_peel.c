/* egress/swap_peel.c: what a text says beneath its codings (swap_priv.h)
 *
 * A text is read in each way (digits of a coding: base64, base32, hexadecimal; escapes; lists of numbers), and what it
 * becomes is read so again, DEPTH times in all; the text and each of these is searched for the values, in letters of
 * either case. Where a string in base64 begins is not known, so it is read from each bit where it may begin. What
 * becomes nothing that is printable, long enough for a value, is not looked at further. All this follows from the text,
 * not from the values. What the search of the text itself has found as well is left to that (swap.c, drop_twice()).
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "egress/swap_priv.h"

#define DEPTH  3
#define PIECE  32768            /* of a text, done at a time; they overlap by what a value can take */
#define SKIP   0xfe             /* in tables of digits: passed over, */
#define NONE   0xff             /* no digit */

/* Bytes, and where each came from in the text. @from NULL: the text itself. */
struct layer {
    uint8_t *c;
    uint32_t *from, *to;
    size_t n;
};

struct peeling {
    struct swap *values;
    struct layer of[DEPTH + 1];
    uint32_t base;              /* where the piece is */
    size_t least;               /* bytes of the shortest value */
    struct buf finds, *out;
};

static int peel_layer(struct peeling *l, size_t depth);

static uint32_t
from_of(const struct layer *in, size_t i)
{
    return in->from != NULL ? in->from[i] : (uint32_t)i;
}

static uint32_t
to_of(const struct layer *in, size_t i)
{
    return in->to != NULL ? in->to[i] : (uint32_t)i + 1;
}

/* --- what was read ------------------------------------------------------------------------------------------------ */

static int
look_beneath(struct peeling *l, const struct layer *t)
{
    const struct found *v;
    size_t n;
    int r;

    l->finds.n = 0;
    swap_find_anew(l->values);
    r = swap_find(l->values, t->c, 0, t->n, &l->finds);
    n = l->finds.n / sizeof(*v);
    v = (const struct found *)(void *)l->finds.p;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct pattern *p = &l->values->v[v[i].pattern];
        struct found f = { .from = l->base + from_of(t, v[i].to - p->n), .to = l->base + to_of(t, v[i].to - 1),
                           .pattern = FOUND_BENEATH + p->id };
        r = buf_append(l->out, &f, sizeof(f));
    }
    return r;
}

static bool
is_printable(uint8_t c)
{
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
}

/* [@a, @b) of the layer at @depth is text: it is searched, and read in its turn. */
static int
look_at(struct peeling *l, size_t depth, size_t a, size_t b)
{
    struct layer all = l->of[depth], *t = &l->of[depth];
    int r = 0;

    *t = (struct layer){ .c = all.c + a, .from = all.from + a, .to = all.to + a };
    for (size_t i = 0; i < b - a; i++)
        if (t->c[i] != '\0') {
            t->c[t->n] = t->c[i];
            t->from[t->n] = t->from[i];
            t->to[t->n++] = t->to[i];
        }
    if (t->n >= l->least)
        r = look_beneath(l, t);
    if (r == 0 && t->n >= l->least && depth < DEPTH)
        r = peel_layer(l, depth);
    *t = all;
    return r;
}

/* The layer at @depth is whole: what in it is text, and long enough, is looked at. Then it is empty. */
static int
whole(struct peeling *l, size_t depth)
{
    struct layer *t = &l->of[depth];
    size_t a = 0;
    int r = 0;

    /* from behind, for most has no text that is long enough */
    while (r == 0 && t->n - a >= l->least) {
        size_t b = a + l->least, i = b;
        while (i > a && (is_printable(t->c[i - 1]) || t->c[i - 1] == '\0'))
            i--;
        if (i > a) {
            a = i;
            continue;
        }
        while (b < t->n && (is_printable(t->c[b]) || t->c[b] == '\0'))
            b++;
        r = look_at(l, depth, a, b);
        a = b;
    }
    t->n = 0;
    return r;
}

/* A byte more of the layer at @depth, which stands at [from, to) of the text. */
static void
push(struct peeling *l, size_t depth, uint8_t c, uint32_t from, uint32_t to)
{
    struct layer *t = &l->of[depth];

    t->c[t->n] = c;
    t->from[t->n] = from;
    t->to[t->n++] = to;
}

/* --- digits of so many bits --------------------------------------------------------------------------------------- */

static const struct coding {
    uint8_t bits, places;               /* of a digit; from how many of them on a string may begin */
    const char *digits[2];              /* the second stand for the same as the first */
} codings[] = {
    { 6, 4, { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" } },
    { 5, 8, { "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" } },
    { 5, 8, { "abcdefghijklmnopqrstuvwxyz234567", "abcdefghijklmnopqrstuvwxyz234567" } },
    { 4, 2, { "0123456789abcdef", "0123456789ABCDEF" } },
};

enum { HEX = 3 };

static const uint8_t (*
digit_tables(void))[256]
{
    static uint8_t of[ARRAY_LEN(codings)][256];

    if (of[0]['B'] == 1)
        return of;
    memset(of, NONE, sizeof(of));
    for (size_t k = 0; k < ARRAY_LEN(codings); k++) {
        for (unsigned i = 0; i < 1U << codings[k].bits; i++)
            of[k][(uint8_t)codings[k].digits[0][i]] = of[k][(uint8_t)codings[k].digits[1][i]] = (uint8_t)i;
        of[k]['\0'] = of[k]['\n'] = of[k]['\r'] = of[k]['\t'] = SKIP;
        if (codings[k].bits == 4)
            of[k][':'] = of[k][' '] = SKIP;
    }
    return of;
}

/* Digits of @coding in [@a, @b) of the layer at @depth, into the next one. */
static int
read_digits(struct peeling *l, size_t depth, const struct coding *coding, const uint8_t *value, size_t a, size_t b)
{
    const struct layer *in = &l->of[depth];
    uint32_t first = 0, bits = 0, n = 0;        /* where what is left of the last digit stands; it; its bits */

    for (size_t i = a; i < b; i++) {
        uint8_t v = value[in->c[i]];
        if (v == SKIP)
            continue;
        if (n == 0)
            first = from_of(in, i);
        bits = bits << coding->bits | v;
        n += coding->bits;
        if (n < 8)
            continue;
        n -= 8;
        push(l, depth + 1, (uint8_t)(bits >> n), first, to_of(in, i));
        first = from_of(in, i);
    }
    return whole(l, depth + 1);
}

/* Whether [@a, @b) has @least digits. */
static bool
is_long(const struct layer *in, size_t a, size_t b, size_t least)
{
    size_t digits = 0;

    for (size_t i = a; i < b; i++)
        digits += in->c[i] > ' ';
    return digits >= least;
}

static int
read_coding(struct peeling *l, size_t depth, size_t k)
{
    const struct layer *in = &l->of[depth];
    const uint8_t *value = digit_tables()[k];
    size_t least = l->least * 8 / codings[k].bits, a = 0;
    int r = 0;

    /* it ends with what is no digit: looked for from behind, for most texts have no string that is long enough */
    while (r == 0 && in->n - a >= least) {
        size_t b = a + least, i = b;
        while (i > a && value[in->c[i - 1]] != NONE)
            i--;
        if (i > a) {
            a = i;
            continue;
        }
        while (b < in->n && value[in->c[b]] != NONE)
            b++;
        for (size_t place = is_long(in, a, b, least) ? 0 : 8; r == 0 && place < codings[k].places; place++)
            r = read_digits(l, depth, &codings[k], value, a + place, b);
        a = b;
    }
    return r;
}

/* --- escapes, and lists of numbers -------------------------------------------------------------------------------- */

/* The spelling that begins at @at of @in, the longest: its bytes, and into *@c the character. 0: none does. Digits
 * behind a backslash are octal ones, or, with @css, hexadecimal. */
static size_t
escape_at(const struct layer *in, size_t at, bool css, uint8_t *c)
{
    size_t left = in->n - at;

    for (size_t n = left < SPELLING_MAX ? left : SPELLING_MAX; n > 1; n--) {
        struct spelling ways[SPELLINGS_MAX];
        size_t n_ways = swap_spellings(in->c + at, n, ways);
        for (size_t i = 0; i < n_ways; i++) {
            bool bare = in->c[at] == '\\' && ways[i].digits + ways[i].behind + 1U == n;
            if (ways[i].n != n || ways[i].what == SKIPS_CODED || (bare && css != (ways[i].base == 16)))
                continue;
            *c = ways[i].what == SPELLS ? ways[i].c : '\0';
            return n;
        }
    }
    return 0;
}

/* Only where there is one. */
static int
read_escapes(struct peeling *l, size_t depth, bool css)
{
    const struct layer *in = &l->of[depth];
    size_t i = 0, changed = 0;

    while (i < in->n && in->c[i] != '%' && in->c[i] != '\\' && in->c[i] != '&' && in->c[i] != '=')
        i++;
    if (i == in->n)
        return 0;
    for (i = 0; i < in->n;) {
        uint8_t c = in->c[i];
        size_t n = c == '%' || c == '\\' || c == '&' || c == '=' ? escape_at(in, i, css, &c) : 0;
        changed += n > 0;
        n = n > 0 ? n : 1;
        push(l, depth + 1, c, from_of(in, i), to_of(in, i + n - 1));
        i += n;
    }
    if (changed == 0)
        l->of[depth + 1].n = 0;
    return whole(l, depth + 1);
}

/* A backslash, and a digit behind it. */
static bool
has_bare(const struct layer *in)
{
    const uint8_t *digit = digit_tables()[HEX], *end = in->c + in->n, *at = in->c;

    while (at < end && (at = memchr(at, '\\', (size_t)(end - at))) != NULL)
        if (++at < end && digit[*at] < 16)
            return true;
    return false;
}

static bool
is_letter(uint8_t c)
{
    uint8_t class = swap_class(c);

    return class == 'A' || class == 'a' || class == '0';
}

/* The number of one byte that begins @p: its bytes, and into *@c what it stands for. 0: none does. */
static size_t
number_at(const uint8_t *p, size_t n, uint8_t *c)
{
    const uint8_t *digit = digit_tables()[HEX];
    size_t front = n > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X') ? 2 : 0, i = front;
    unsigned number = 0, base = front > 0 ? 16 : 10;

    while (i < n && i < front + 3 && digit[p[i]] < base)
        number = number * base + digit[p[i++]];
    *c = (uint8_t)number;
    return i > front && number < 256 && (i == n || !is_letter(p[i])) ? i : 0;
}

/* A list of numbers, one for each byte: [107, 101, 121], 0x6b,0x65,0x79. Letters before the first are none of it. */
static int
read_numbers(struct peeling *l, size_t depth)
{
    const struct layer *in = &l->of[depth];
    uint8_t c = 0;

    for (size_t i = 0, n; i < in->n; i += n) {
        const uint8_t *p = in->c + i;
        size_t at = 0, digits = 0;
        for (n = is_letter(*p) ? 0 : 1; i + n < in->n && is_letter(p[n]) && is_letter(*p); n++)
            ;
        while (is_letter(*p) && at < n && (digits = number_at(p + at, n - at, &c)) == 0)
            at++;
        if (digits == 0 ? *p != ',' && *p != ' ' && *p != '\n' && *p != '\r' : at > 0)
            push(l, depth + 1, 0xff, 0, 0);     /* no list goes on behind it */
        if (digits > 0)
            push(l, depth + 1, c, from_of(in, i + at), to_of(in, i + n - 1));
    }
    return whole(l, depth + 1);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int
peel_layer(struct peeling *l, size_t depth)
{
    int r = read_escapes(l, depth, false);

    if (r == 0 && has_bare(&l->of[depth]))
        r = read_escapes(l, depth, true);
    for (size_t k = 0; r == 0 && k < ARRAY_LEN(codings); k++)
        r = read_coding(l, depth, k);
    if (r == 0 && (memchr(l->of[depth].c, ',', l->of[depth].n) != NULL ||
                   memchr(l->of[depth].c, ' ', l->of[depth].n) != NULL))
        r = read_numbers(l, depth);
    return r;
}

static int
peel_piece(struct peeling *l, const uint8_t *p, size_t n)
{
    size_t each = n * (1 + 2 * sizeof(uint32_t));
    uint32_t *room = malloc(DEPTH * each);
    int r;

    if (room == NULL)
        return -1;
    l->of[0] = (struct layer){ .c = (uint8_t *)(uintptr_t)p, .n = n };
    for (size_t d = 0; d < DEPTH; d++)
        l->of[d + 1] = (struct layer){ .from = room + 2 * d * n, .to = room + (2 * d + 1) * n,
                                       .c = (uint8_t *)(room + DEPTH * 2 * n) + d * n };
    r = look_beneath(l, &l->of[0]);
    r = r == 0 ? peel_layer(l, 0) : r;
    explicit_bzero(room, DEPTH * each);
    free(room);
    return r;
}

int
swap_peel(const struct swap *s, const uint8_t *p, size_t from, size_t to, struct buf *out)
{
    struct peeling l = { .values = s->beneath, .least = s->least, .out = out, .finds = BUF_INIT(4u << 20) };
    int r = 0;

    for (size_t at = from; r == 0 && to - at >= s->least;) {
        size_t n = to - at < PIECE ? to - at : PIECE;
        l.base = (uint32_t)at;
        r = peel_piece(&l, p + at, n);
        at = n < PIECE ? to : at + n - s->run_max;
    }
    buf_free(&l.finds);
    return r;
}
