/* otlp: what a configuration says becomes fields of a request that stay one request; samples become metrics or nothing;
 * an answer's body is read to its end, and no further
 *
 * Input: a byte that says which, and that. */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "otlp/otlp.h"

static bool
each(void *ctx, struct str name, struct str value)
{
    struct str *text = ctx;

    FUZZ_ASSERT(name.n > 0 && name.n + value.n <= text->n);
    FUZZ_ASSERT(memchr(name.p, '\0', name.n) == NULL || memchr(text->p, '\0', text->n) != NULL);
    return true;
}

/* Every line of it is a field of ours: nothing begins another request, or a body. */
static void
lines_well(const struct buf *b)
{
    for (size_t i = 0; i < b->n;) {
        const uint8_t *end = memmem(b->p + i, b->n - i, "\r\n", 2);
        FUZZ_ASSERT(end != NULL && end > b->p + i && memchr(b->p + i, ':', (size_t)(end - b->p) - i) != NULL);
        FUZZ_ASSERT(memchr(b->p + i, '\n', (size_t)(end - b->p) - i) == NULL && b->p[i] != ' ' && b->p[i] != '\t');
        i = (size_t)(end - b->p) + 2;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20), resource = BUF_INIT(1 << 16), all = BUF_INIT(1 << 21);
    struct str text = { (const char *)data + 1, n > 0 ? n - 1 : 0 };
    unsigned line;

    if (n == 0 || n > 16384)
        return 0;
    switch (data[0] % 5) {
    case 0:
        (void)otlp_pairs(text, each, &text);
        (void)otlp_resource(&resource, "", text, "1");
        break;
    case 1:
        (void)otlp_header_pairs(text, &out);
        lines_well(&out);
        break;
    case 2:
        FUZZ_ASSERT(otlp_header_lines(text, &out, &line) || line > 0);
        lines_well(&out);
        break;
    case 3:
        if (otlp_metrics(&out, wire_in_of(text.p, text.n), 1, 2) == 0)
            FUZZ_ASSERT(otlp_numbers(&all, &resource, "warden", &out) == 0 && all.n > out.n);
        break;
    default:
        FUZZ_ASSERT(otlp_rejected(text) <= INT64_MAX);
    }
    return 0;
}
