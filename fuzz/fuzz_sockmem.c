/* wall/sockmem: any answer is read to its end or refused, and one that is cut adds no more than the whole */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "wall/sockmem.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t whole = 0, half = 0;
    uint8_t *copy = malloc(n / 2 + 1);  /* of exactly that size: a byte behind it is noticed */
    int r = sockmem_add(data, n, &whole);

    FUZZ_ASSERT(r >= -1 && r <= 1);
    FUZZ_ASSERT(copy != NULL);
    memcpy(copy, data, n / 2);
    (void)sockmem_add(copy, n / 2, &half);
    FUZZ_ASSERT(half <= whole);
    free(copy);
    return 0;
}
