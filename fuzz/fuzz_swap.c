/* egress/swap: whatever the patterns and the cuts, the stream is what a naive search makes of the whole, its length
 * does not change, and less than the longest pattern is ever held back; a hidden search holds back as much as one for
 * other values of the same classes, as long as nothing was found, in other spellings too
 *
 * Input: number of patterns (from 128 on hidden), for each a length and that many bytes, then cuts and text by turns.
 */
#include "fuzz.h"

#include <string.h>

#include "egress/swap.h"

#define PATTERNS 6

struct piece { const uint8_t *p; size_t n; };

/* Another byte of the same class. */
static uint8_t
turned(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c == 'Z' ? 'A' : (uint8_t)(c + 1);
    if (c >= 'a' && c <= 'z')
        return c == 'z' ? 'a' : (uint8_t)(c + 1);
    if (c >= '0' && c <= '9')
        return c == '9' ? '0' : (uint8_t)(c + 1);
    return c;
}

static uint8_t
put(uint8_t c, bool hides)
{
    return hides ? turned(c) : c ^ 0x80;
}

static size_t
naive(const struct piece *v, size_t n_v, const uint8_t *in, size_t n, bool hides, uint8_t *out)
{
    for (size_t i = 0; i < n;) {
        const struct piece *best = NULL;
        for (size_t k = 0; k < n_v; k++)
            if (v[k].n <= n - i && memcmp(in + i, v[k].p, v[k].n) == 0 && (best == NULL || v[k].n > best->n))
                best = &v[k];
        for (size_t k = 0; best != NULL && k < best->n; k++)
            out[i + k] = put(best->p[k], hides);
        if (best == NULL)
            out[i] = in[i];
        i += best != NULL ? best->n : 1;
    }
    return n;
}

static void
check_cuts(struct swap *s, struct swap *other, const struct piece *text, const uint8_t *want, size_t longest,
           uint8_t step)
{
    struct buf out = BUF_INIT(1 << 20), others = BUF_INIT(1 << 20);
    bool found = false;

    for (size_t i = 0; i < text->n;) {
        size_t n = 1 + (step * (i + 1)) % 13;
        n = n > text->n - i ? text->n - i : n;
        FUZZ_ASSERT(swap_feed(s, text->p + i, n, false, &out) == 0);
        i += n;
        FUZZ_ASSERT(swap_feed(other, text->p + i - n, n, false, &others) == 0);
        found = found || swap_seen(s) != 0 || swap_seen(other) != 0;
        FUZZ_ASSERT(found || swap_held(s) == swap_held(other));
        FUZZ_ASSERT(swap_held(s) < (longest > 0 ? longest : 1) && out.n + swap_held(s) == i);
    }
    FUZZ_ASSERT(swap_feed(s, text->p, 0, true, &out) == 0 && swap_held(s) == 0);
    FUZZ_ASSERT(out.n == text->n && (out.n == 0 || memcmp(out.p, want, out.n) == 0));
    buf_free(&out);
    buf_free(&others);
}

/* In all spellings: no byte more or less, and as much is held back for either of two values, which the text begins. */
static void
check_spellings(const uint8_t *text, size_t n)
{
    static const char *const values[] = { "sk-Ab1/+ \"cd\n0", "sk-Zy9/+ \"xw\n7" };
    struct swap *v[2] = { swap_new(), swap_new() };
    struct buf out[2] = { BUF_INIT(1 << 20), BUF_INIT(1 << 20) };
    bool found = false;

    for (size_t k = 0; k < 2; k++) {
        FUZZ_ASSERT(v[k] != NULL);
        swap_hide(v[k]);
        FUZZ_ASSERT(swap_add(v[k], 0, values[k], "sk-Xx0/+ \"yy\n5", strlen(values[0]), SWAP_ALL) == 0);
    }
    for (size_t at = 0; at < n;) {
        size_t step = text[at] % 7 + 1u < n - at ? text[at] % 7 + 1u : n - at;
        for (size_t k = 0; k < 2; k++) {
            FUZZ_ASSERT(swap_feed(v[k], text + at, step, at + step == n, &out[k]) == 0);
            found = found || swap_seen(v[k]) != 0;
            FUZZ_ASSERT(out[k].n + swap_held(v[k]) == at + step);
        }
        FUZZ_ASSERT(found || swap_held(v[0]) == swap_held(v[1]));
        at += step;
    }
    FUZZ_ASSERT(found || n == 0 || memcmp(out[0].p, text, n) == 0);
    for (size_t k = 0; k < 2; k++) {
        buf_free(&out[k]);
        swap_free(v[k]);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct swap *s = swap_new(), *other = swap_new();
    struct piece v[PATTERNS], text;
    size_t n_v = 0, at = 1, longest = 0, patterns = n > 0 ? data[0] % 128 % (PATTERNS + 1) : 0;
    bool hides = n > 0 && data[0] >= 128;
    uint8_t *want;

    FUZZ_ASSERT(s != NULL && other != NULL);
    if (hides) {
        swap_hide(s);
        swap_hide(other);
    }
    for (size_t i = 0; i < patterns && at < n; i++) {
        size_t length = data[at++] % 12;
        uint8_t to[12];
        const uint8_t *from = hides ? to : data + at;       /* of the other search */
        bool again = false;
        if (length > n - at)
            break;
        for (size_t k = 0; k < length; k++)
            to[k] = put(data[at + k], hides);
        for (size_t k = 0; k < n_v; k++)
            again = again || (v[k].n == length && memcmp(v[k].p, data + at, length) == 0);
        FUZZ_ASSERT((swap_add(s, (unsigned)i, data + at, to, length, SWAP_RAW) == 0) == (length >= SWAP_PATTERN_MIN));
        FUZZ_ASSERT((swap_add(other, (unsigned)i, from, to, length, SWAP_RAW) == 0) == (length >= SWAP_PATTERN_MIN));
        if (length >= SWAP_PATTERN_MIN && !again)
            v[n_v++] = (struct piece){ data + at, length };
        longest = length >= SWAP_PATTERN_MIN && length > longest ? length : longest;
        at += length;
    }
    text = (struct piece){ data + (at < n ? at : n), at < n ? n - at : 0 };
    check_spellings(data, n);
    want = malloc(text.n + 1);
    FUZZ_ASSERT(want != NULL);
    naive(v, n_v, text.p, text.n, hides, want);
    check_cuts(s, other, &text, want, longest, n > 0 ? data[n - 1] : 0);
    free(want);
    swap_free(s);
    swap_free(other);
    return 0;
}
