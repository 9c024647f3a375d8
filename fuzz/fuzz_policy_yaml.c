/* our own settings, in YAML or JSON as the text looks */
#include "fuzz_policy.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return fuzz_policy(data, n, VERB_RUN, POLICY_AUTO);
}
