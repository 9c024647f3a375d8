/* egress/swap: whatever the patterns and the cuts, the stream is what a naive search makes of the whole, its length
 * does not change, and less than the longest pattern is ever held back
 *
 * Input: number of patterns, for each a length and that many bytes, then cuts and text by turns.
 */
#include "fuzz.h"

#include <string.h>

#include "egress/swap.h"

#define PATTERNS 6

struct piece { const uint8_t *p; size_t n; };

static size_t
naive(const struct piece *v, size_t n_v, const uint8_t *in, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n;) {
        const struct piece *best = NULL;
        for (size_t k = 0; k < n_v; k++)
            if (v[k].n <= n - i && memcmp(in + i, v[k].p, v[k].n) == 0 && (best == NULL || v[k].n > best->n))
                best = &v[k];
        for (size_t k = 0; best != NULL && k < best->n; k++)
            out[i + k] = best->p[k] ^ 0x80;
        if (best == NULL)
            out[i] = in[i];
        i += best != NULL ? best->n : 1;
    }
    return n;
}

static void
check_cuts(struct swap *s, const struct piece *text, const uint8_t *want, size_t longest, uint8_t step)
{
    struct buf out = BUF_INIT(1 << 20);

    for (size_t i = 0; i < text->n;) {
        size_t n = 1 + (step * (i + 1)) % 13;
        n = n > text->n - i ? text->n - i : n;
        FUZZ_ASSERT(swap_feed(s, text->p + i, n, false, &out) == 0);
        i += n;
        FUZZ_ASSERT(swap_held(s) < (longest > 0 ? longest : 1) && out.n + swap_held(s) == i);
    }
    FUZZ_ASSERT(swap_feed(s, text->p, 0, true, &out) == 0 && swap_held(s) == 0);
    FUZZ_ASSERT(out.n == text->n && (out.n == 0 || memcmp(out.p, want, out.n) == 0));
    buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct swap *s = swap_new();
    struct piece v[PATTERNS], text;
    size_t n_v = 0, at = 1, longest = 0, patterns = n > 0 ? data[0] % (PATTERNS + 1) : 0;
    uint8_t *want;

    FUZZ_ASSERT(s != NULL);
    for (size_t i = 0; i < patterns && at < n; i++) {
        size_t length = data[at++] % 12;
        uint8_t to[12];
        bool again = false;
        if (length > n - at)
            break;
        for (size_t k = 0; k < length; k++)
            to[k] = data[at + k] ^ 0x80;
        for (size_t k = 0; k < n_v; k++)
            again = again || (v[k].n == length && memcmp(v[k].p, data + at, length) == 0);
        FUZZ_ASSERT((swap_add(s, (unsigned)i, data + at, to, length, SWAP_RAW) == 0) == (length >= SWAP_PATTERN_MIN));
        if (length >= SWAP_PATTERN_MIN && !again)
            v[n_v++] = (struct piece){ data + at, length };
        longest = length >= SWAP_PATTERN_MIN && length > longest ? length : longest;
        at += length;
    }
    text = (struct piece){ data + (at < n ? at : n), at < n ? n - at : 0 };
    want = malloc(text.n + 1);
    FUZZ_ASSERT(want != NULL);
    naive(v, n_v, text.p, text.n, want);
    check_cuts(s, &text, want, longest, n > 0 ? data[n - 1] : 0);
    free(want);
    swap_free(s);
    return 0;
}
