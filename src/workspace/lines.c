/* workspace/lines.c: see lines.h; the shortest script by Myers' greedy algorithm, "An O(ND) Difference Algorithm" */
#include "workspace/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct line {
    const char *p;
    size_t n;           /* with its newline, which the last one may lack */
    uint32_t hash;
};

struct text {
    struct line *v;     /* owned */
    bool *changed;      /* owned: removed, or added */
    size_t n;
};

static void
text_free(struct text *t)
{
    free(t->v);
    free(t->changed);
}

static size_t
count(struct str s)
{
    size_t n = s.n > 0 && s.p[s.n - 1] != '\n';

    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static int
split(struct str s, struct text *t)
{
    t->n = count(s);
    t->v = calloc(t->n + 1, sizeof(*t->v));
    t->changed = calloc(t->n + 1, sizeof(*t->changed));
    if (t->v == NULL || t->changed == NULL)
        return -1;
    for (size_t i = 0, at = 0; i < t->n; i++) {
        const char *end = memchr(s.p + at, '\n', s.n - at);
        struct line *l = &t->v[i];

        l->p = s.p + at;
        l->n = end != NULL ? (size_t)(end - l->p) + 1 : s.n - at;
        l->hash = 2166136261U;
        for (size_t k = 0; k < l->n; k++)
            l->hash = (l->hash ^ (uint8_t)l->p[k]) * 16777619U;
        at += l->n;
    }
    return 0;
}

static bool
same(const struct line *a, const struct line *b)
{
    return a->hash == b->hash && a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* --- the script --------------------------------------------------------------------------------------------------- */

struct middle {
    const struct line *a, *b;
    bool *gone, *come;
    int32_t n, m;
};

/* How far down each diagonal k (x - y) one comes with d changes: of row d, k from -d to d in steps of two. */
static int32_t *
cell(int32_t *rows, int32_t d, int32_t k)
{
    return &rows[(size_t)d * (size_t)(d + 1) / 2 + (size_t)(k + d) / 2];
}

/* The first x on diagonal @k after @d changes: from above (a line is added) or from the left (one is removed). */
static int32_t
step(int32_t *rows, int32_t d, int32_t k, bool *added)
{
    *added = k == -d || (k != d && *cell(rows, d - 1, k - 1) < *cell(rows, d - 1, k + 1));
    return *added ? *cell(rows, d - 1, k + 1) : *cell(rows, d - 1, k - 1) + 1;
}

static void
mark(const struct middle *mid, int32_t *rows, int32_t d, int32_t k)
{
    for (; d > 0; d--) {
        bool added;
        int32_t x = step(rows, d, k, &added), y = x - k;

        if (added)
            mid->come[y - 1] = true;
        else
            mid->gone[x - 1] = true;
        k += added ? 1 : -1;
    }
}

/* The shortest script, or all of it replaced. 0, or -1 without memory. */
static int
compare(const struct middle *mid)
{
    cleanup_free int32_t *rows = NULL;
    bool far = mid->n > LINES_MAX || mid->m > LINES_MAX || mid->n == 0 || mid->m == 0, added;
    int32_t most = far || mid->n + mid->m > LINES_APART ? LINES_APART : mid->n + mid->m;

    rows = far ? NULL : calloc((size_t)(most + 1) * (size_t)(most + 2) / 2, sizeof(*rows));
    if (rows == NULL && !far)
        return -1;
    for (int32_t d = 0; rows != NULL && d <= most; d++)
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = d == 0 ? 0 : step(rows, d, k, &added), y = x - k;

            while (x < mid->n && y < mid->m && x >= 0 && y >= 0 && same(&mid->a[x], &mid->b[y])) {
                x++;
                y++;
            }
            *cell(rows, d, k) = x;
            if (x >= mid->n && y >= mid->m && x - mid->n == 0 && y - mid->m == 0) {
                mark(mid, rows, d, k);
                return 0;
            }
        }
    memset(mid->gone, true, (size_t)mid->n * sizeof(bool));
    memset(mid->come, true, (size_t)mid->m * sizeof(bool));
    return 0;
}

/* --- hunks -------------------------------------------------------------------------------------------------------- */

static bool
put_line(struct buf *out, size_t max, char sign, const struct line *l)
{
    static const char none[] = "\n\\ No newline at end of file\n";
    bool open = l->n == 0 || l->p[l->n - 1] != '\n';

    if (out->n + l->n + sizeof(none) > max)
        return false;
    buf_put_u8(out, (uint8_t)sign);
    buf_append(out, l->p, l->n);
    if (open)
        buf_puts(out, none);
    return true;
}

/* The end of the hunk that begins with the change at (*i, *j): behind the last change with less than twice the context
 * before the next. */
static void
hunk_end(const struct text *a, const struct text *b, size_t *i, size_t *j)
{
    size_t end_i = *i, end_j = *j, quiet = 0;

    while (*i < a->n || *j < b->n) {
        if (*i < a->n && a->changed[*i]) {
            ++*i;
        } else if (*j < b->n && b->changed[*j]) {
            ++*j;
        } else {
            if (++quiet > 2 * (size_t)LINES_CONTEXT)
                break;
            ++*i;
            ++*j;
            continue;
        }
        quiet = 0;
        end_i = *i;
        end_j = *j;
    }
    *i = end_i;
    *j = end_j;
}

static bool
put_hunk(const struct text *a, const struct text *b, size_t from_i, size_t from_j, size_t to_i, size_t to_j, size_t max,
         struct buf *out)
{
    size_t i = from_i, j = from_j;

    if (out->n + 96 > max)
        return false;
    /* diff's way: of no lines, the number of the line before them */
    buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", from_i + (to_i > from_i), to_i - from_i, from_j + (to_j > from_j),
               to_j - from_j);
    while (i < to_i || j < to_j) {
        bool well;

        if (i < to_i && a->changed[i])
            well = put_line(out, max, '-', &a->v[i++]);
        else if (j < to_j && b->changed[j])
            well = put_line(out, max, '+', &b->v[j++]);
        else {
            well = put_line(out, max, ' ', &a->v[i]);
            i++;
            j++;
        }
        if (!well)
            return false;
    }
    return true;
}

static bool
put_hunks(const struct text *a, const struct text *b, size_t max, struct buf *out)
{
    for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
        size_t before, after, to_i, to_j;

        if (!(i < a->n && a->changed[i]) && !(j < b->n && b->changed[j])) {
            i++;
            j++;
            continue;
        }
        before = i < LINES_CONTEXT ? i : LINES_CONTEXT;
        before = j < before ? j : before;
        to_i = i;
        to_j = j;
        hunk_end(a, b, &to_i, &to_j);
        after = a->n - to_i < LINES_CONTEXT ? a->n - to_i : LINES_CONTEXT;
        if (!put_hunk(a, b, i - before, j - before, to_i + after, to_j + after, max, out))
            return false;
        i = to_i + after;
        j = to_j + after;
    }
    return true;
}

int
lines_diff(struct str before, struct str after, size_t max, struct buf *out)
{
    struct text a = { .n = 0 }, b = { .n = 0 };
    size_t head = 0, tail = 0;
    int r = -1;

    if (split(before, &a) == 0 && split(after, &b) == 0) {
        struct middle mid;

        while (head < a.n && head < b.n && same(&a.v[head], &b.v[head]))
            head++;
        while (tail < a.n - head && tail < b.n - head && same(&a.v[a.n - 1 - tail], &b.v[b.n - 1 - tail]))
            tail++;
        mid = (struct middle){ .a = a.v + head, .b = b.v + head, .gone = a.changed + head, .come = b.changed + head,
                               .n = (int32_t)(a.n - head - tail), .m = (int32_t)(b.n - head - tail) };
        r = compare(&mid);
        if (r == 0)
            r = !put_hunks(&a, &b, max, out) || !buf_ok(out);
    }
    text_free(&a);
    text_free(&b);
    return r;
}
