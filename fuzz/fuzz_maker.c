/* launcher/maker_order: whatever cloche-maker is told, what is read is in its range and comes out as it went in */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "launcher/maker.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct maker_wanted w;
    size_t words = 0;

    if (!maker_get(&in, &w))
        return 0;
    FUZZ_ASSERT(w.program < MAKE_PROGRAMS && w.words[0] != NULL && strlen(w.log) <= 64);
    while (w.words[words] != NULL)
        words++;
    FUZZ_ASSERT(words <= MAKER_WORDS);
    FUZZ_ASSERT(maker_put(&out, &(struct maker_order){ .program = w.program, .words = w.words, .log = w.log,
                                                       .files = w.has_files ? &w.files : NULL }) == 0);
    FUZZ_ASSERT(out.n == n && memcmp(out.p, data, n) == 0);
    return 0;
}
