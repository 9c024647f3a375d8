/* launcher/keeper_settings: whatever the file holds, what is read are strings and comes out as it went in */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "launcher/keeper_settings.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(KEEPER_SETTINGS_MAX);
    struct wire_in in = wire_in_of(data, n);
    struct keeper_settings s;

    if (n > KEEPER_SETTINGS_MAX || !keeper_settings_get(&in, &s))
        return 0;
    FUZZ_ASSERT(keeper_settings_put(&out, &s) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
    return 0;
}
