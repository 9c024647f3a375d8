/* machine/mux: what is a frame is what writing it again makes, and lies where it was said to be */
#include "fuzz.h"

#include <string.h>

#include "machine/mux.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf again = BUF_INIT(1 << 20);
    struct mux_frame f;
    size_t at = 0, size;

    while (mux_read(data + at, n - at, &f, &size) == 1) {
        FUZZ_ASSERT(size == MUX_HEADER + f.n && size <= n - at && f.p == data + at + MUX_HEADER);
        FUZZ_ASSERT(f.channel < MUX_CHANNELS && f.n <= MUX_PIECE);
        mux_put(&again, &f);
        at += size;
        FUZZ_ASSERT(!buf_ok(&again) || (again.n == at && memcmp(again.p, data, at) == 0));
    }
    return 0;
}
