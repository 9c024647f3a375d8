/* one more host into a settings file: whatever the file, all of its bytes stay, in their order */
#include "base/buf.h"
#include "fuzz.h"
#include "policy/append.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    size_t same = 0, tail = 0;

    if (policy_append_allow((struct str){ (const char *)data, n }, STR_LIT("n.example.org:443"), &out, NULL) < 0)
        return 0;
    while (same < n && out.p[same] == data[same])
        same++;
    while (tail < n - same && out.p[out.n - 1 - tail] == data[n - 1 - tail])
        tail++;
    FUZZ_ASSERT(out.n > n && same + tail == n);
    return 0;
}
