/* vault/placeholder: as long as the value, of the same classes, the same lines; never the value */
#include "fuzz.h"

#include <string.h>

#include "vault/client.h"
#include "vault/placeholder.h"

static int
class_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? 'A' : c >= 'a' && c <= 'z' ? 'a' : c >= '0' && c <= '9' ? '0' : c;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t out[VAULT_VALUE_MAX], random[2 * VAULT_VALUE_MAX];
    bool kept[VAULT_VALUE_MAX];

    if (n > VAULT_VALUE_MAX)
        return 0;
    placeholder_kept(data, n, kept);
    if (placeholder_fit(data, n, NULL) < 0)
        return 0;
    FUZZ_ASSERT(n >= VAULT_VALUE_MIN);
    for (size_t i = 0; i < 2 * n; i++)
        random[i] = (uint8_t)(data[i % n] * 31 + i);
    if (!placeholder_make(data, n, random, out))
        return 0;
    FUZZ_ASSERT(memcmp(out, data, n) != 0);
    for (size_t i = 0; i < n; i++)
        FUZZ_ASSERT(class_of(out[i]) == class_of(data[i]) && (!kept[i] || out[i] == data[i]));
    return 0;
}
