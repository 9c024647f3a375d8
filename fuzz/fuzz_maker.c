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

    if (!maker_wanted_get(&in, &w))
        return 0;
    FUZZ_ASSERT(w.program < MAKE_PROGRAMS && w.words[0] != NULL && strlen(w.log) <= 64);
    FUZZ_ASSERT(w.n_words <= MAKER_WORDS && w.words[w.n_words] == NULL);
    FUZZ_ASSERT(w.has_files || (w.soft == 0 && w.hard == 0));
    FUZZ_ASSERT(maker_wanted_put(&out, &w) == 0);
    FUZZ_ASSERT(out.n == n && memcmp(out.p, data, n) == 0);
    return 0;
}
