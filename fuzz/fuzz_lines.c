/* differences in lines: applied to the first text they give the second, and nothing is longer than it may be */
#include "fuzz.h"

#include <string.h>

#include "workspace/lines.h"

#define MOST (64UL * 1024)

static bool
next_line(struct str *s, struct str *line)
{
    const char *end;
    size_t n;

    if (s->n == 0)
        return false;
    end = memchr(s->p, '\n', s->n);
    n = end != NULL ? (size_t)(end - s->p) + 1 : s->n;
    *line = (struct str){ s->p, n };
    s->p += n;
    s->n -= n;
    line->n -= end != NULL;     /* of the last line of a text it may be missing */
    return true;
}

/* What the hunks say of each text, in its order, is a part of it: what is ' ' or @sign. */
static void
check_side(struct str hunks, struct str text, char sign)
{
    struct str line, own = { .p = NULL, .n = 0 };

    while (next_line(&hunks, &line)) {
        if (line.n == 0 || (line.p[0] != ' ' && line.p[0] != sign))
            continue;
        do
            FUZZ_ASSERT(next_line(&text, &own));
        while (own.n != line.n - 1 || memcmp(own.p, line.p + 1, own.n) != 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size > 0 ? memchr(data, 0, size) : NULL;
    struct str a = { (const char *)data, cut != NULL ? (size_t)(cut - data) : size };
    struct str b = { (const char *)data + a.n + (cut != NULL), size - a.n - (cut != NULL) };
    struct buf out = BUF_INIT(MOST);
    int r = lines_diff(a, b, MOST, &out);

    FUZZ_ASSERT(r >= 0 && out.n <= MOST);
    FUZZ_ASSERT((out.n == 0 && r == 0) == (a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0)));
    if (r == 0) {
        check_side((struct str){ (const char *)out.p, out.n }, a, '-');
        check_side((struct str){ (const char *)out.p, out.n }, b, '+');
    }
    buf_reset(&out);
    FUZZ_ASSERT(lines_diff(a, b, 100, &out) >= 0 && out.n <= 100);
    buf_free(&out);
    return 0;
}
