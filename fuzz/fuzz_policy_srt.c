/* SRT settings files */
#include "fuzz_policy.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return fuzz_policy(data, n, VERB_SRT, POLICY_SRT);
}
