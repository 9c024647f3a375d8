/* base/mask.c: see mask.h */
#include "base/mask.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void
masks_init(struct masks *set)
{
    *set = (struct masks){ .v = NULL };
    set->all = getrandom(set->key, sizeof(set->key), 0) != (ssize_t)sizeof(set->key);
}

static uint8_t
fold(uint8_t c)
{
    if (c == '-')
        return '+';
    if (c == '_')
        return '/';
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
}

/* What the hash is moved by: odd, and not known to who makes texts. */
static uint64_t
base_of(const uint8_t key[MASK_KEY])
{
    uint64_t base = 0;

    for (size_t i = 0; i < 8; i++)
        base = base << 8 | key[i];
    return base | 1;
}

static void
sum_of(const uint8_t key[MASK_KEY], const uint8_t *p, size_t n, uint8_t out[SHA256_SIZE])
{
    uint8_t piece[256];
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, key, MASK_KEY);
    for (size_t at = 0, take; at < n; at += take) {
        take = n - at < sizeof(piece) ? n - at : sizeof(piece);
        for (size_t i = 0; i < take; i++)
            piece[i] = fold(p[at + i]);
        sha256_add(&h, piece, take);
    }
    sha256_end(&h, out);
    explicit_bzero(piece, sizeof(piece));
}

bool
mask_print(const uint8_t key[MASK_KEY], const void *value, size_t n, struct mask *out)
{
    const uint8_t *p = value;
    uint64_t base = base_of(key);

    if (n < MASK_MIN || n > MASK_MAX)
        return false;
    *out = (struct mask){ .n = (uint32_t)n };
    for (size_t i = 0; i < n; i++)
        out->roll = out->roll * base + fold(p[i]) + 1;
    sum_of(key, p, n, out->sum);
    return true;
}

void
masks_add_print(struct masks *set, const struct mask *print)
{
    struct mask *grown = set->n < MASKS_MAX && print->n >= MASK_MIN && print->n <= MASK_MAX
                             ? reallocarray(set->v, set->n + 1, sizeof(*grown)) : NULL;

    if (grown == NULL) {
        set->all = true;
        return;
    }
    set->v = grown;
    set->v[set->n++] = *print;
}

struct adding { struct masks *set; const char *name; bool first; };

static void
add_form(void *ctx, const void *form, size_t n)
{
    struct adding *a = ctx;
    struct mask print;
    size_t k = strnlen(a->name, MASK_NAME);
    bool first = a->first;

    a->first = false;
    if ((!first && a->set->n >= MASKS_FORMS) || !mask_print(a->set->key, form, n, &print))
        return;
    memcpy(print.name, a->name, k);
    print.name[k] = '\0';
    masks_add_print(a->set, &print);
}

void
masks_add(struct masks *set, const char *name, const void *value, size_t n)
{
    mask_forms(value, n, add_form, &(struct adding){ .set = set, .name = name, .first = true });
}

/* Where the value of @m begins in p[from..n), or n. */
static size_t
find(const struct masks *set, const struct mask *m, const uint8_t *p, size_t n, size_t from)
{
    uint64_t base = base_of(set->key), top = 1, roll = 0;
    uint8_t sum[SHA256_SIZE];

    if (n - from < m->n)
        return n;
    for (size_t i = 0; i < m->n; i++) {
        roll = roll * base + fold(p[from + i]) + 1;
        top *= base;
    }
    for (size_t at = from;; at++) {
        if (roll == m->roll) {
            sum_of(set->key, p + at, m->n, sum);
            if (memcmp(sum, m->sum, sizeof(sum)) == 0)
                return at;
        }
        if (at + m->n == n)
            return n;
        roll = roll * base + fold(p[at + m->n]) + 1 - top * ((uint64_t)fold(p[at]) + 1);
    }
}

bool
masks_redact(void *ctx, struct str text, struct buf *out)
{
    const struct masks *set = ctx;
    const uint8_t *p = (const uint8_t *)text.p;
    size_t next[MASKS_MAX], at = 0;
    bool changed = false;

    if (set->all) {
        buf_puts(out, "[redacted]");
        return true;
    }
    for (size_t i = 0; i < set->n; i++)
        next[i] = find(set, &set->v[i], p, text.n, 0);
    for (;;) {
        size_t first = text.n, which = 0;
        for (size_t i = 0; i < set->n; i++) {
            if (next[i] < at)
                next[i] = find(set, &set->v[i], p, text.n, at);
            if (next[i] < first || (next[i] == first && first < text.n && set->v[i].n > set->v[which].n)) {
                first = next[i];
                which = i;
            }
        }
        if (first == text.n)
            break;
        changed = true;
        buf_append(out, p + at, first - at);
        buf_puts(out, set->v[which].name);
        at = first + set->v[which].n;
    }
    if (changed)
        buf_append(out, p + at, text.n - at);
    return changed;
}

/* Where a value begins that is whole in @text and around @cut, and how long it is; false: none. */
static bool
around(const struct masks *set, const struct mask *m, struct str text, size_t cut, size_t *at)
{
    size_t from = cut > m->n ? cut - m->n : 0;

    *at = find(set, m, (const uint8_t *)text.p, text.n, from);
    if (*at + m->n == cut && *at < cut)         /* it ends there: look behind its beginning */
        *at = find(set, m, (const uint8_t *)text.p, text.n, *at + 1);
    return *at < cut && *at + m->n > cut;
}

size_t
masks_cut(const struct masks *set, struct str text, size_t cut)
{
    size_t at;

    for (size_t i = 0; i < set->n; i++) {
        if (cut == text.n || !around(set, &set->v[i], text, cut, &at))
            continue;
        if (at == 0)
            return masks_cut(set, text, set->v[i].n);
        cut = at;
        i = SIZE_MAX;           /* from the first one on again: it goes on with 0 */
    }
    return cut;
}

size_t
masks_tail(const struct masks *set)
{
    size_t longest = 1;

    for (size_t i = 0; i < set->n; i++)
        longest = set->v[i].n > longest ? set->v[i].n : longest;
    return longest - 1;
}

void
masks_free(struct masks *set)
{
    if (set->v != NULL)
        explicit_bzero(set->v, set->n * sizeof(*set->v));
    free(set->v);
    explicit_bzero(set, sizeof(*set));
}
