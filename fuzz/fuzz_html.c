/* front/html: whatever it is given, the result is text: no tag but the mark, no entity but the five, nothing unseen */
#include "fuzz.h"

#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "front/html.h"

static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

/* Bytes at @p that are one entity or one mark; 0 none. */
static size_t
ours(const char *p, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(entities); i++)
        if (n >= strlen(entities[i]) && memcmp(p, entities[i], strlen(entities[i])) == 0)
            return strlen(entities[i]);
    if (n > 3 && memcmp(p, "<b>", 3) == 0) {
        size_t end = 3;
        while (end < n && p[end] != '<')
            end++;
        if (end > 3 && end <= 11 && n - end >= 4 && memcmp(p + end, "</b>", 4) == 0)
            return end + 4;
    }
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1024 * 1024);
    bool lines = n > 0 && (data[0] & 1) != 0;
    const char *p;

    if (n > 16384 || html_put(&out, (const char *)data, n, lines) < 0)
        return 0;
    p = (const char *)out.p;
    for (size_t i = 0; i < out.n;) {
        size_t one = ours(p + i, out.n - i);
        unsigned char c = (unsigned char)p[i];
        FUZZ_ASSERT(one > 0 || (c != '<' && c != '>' && c != '&' && c != '"' && c != '\'' && c != 0x7f &&
                                (c >= ' ' || (lines && (c == '\n' || c == '\t')))));
        i += one > 0 ? one : 1;
    }
    return 0;
}
