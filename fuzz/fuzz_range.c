/* front/range: a part is inside, and what asks for one byte of it by its numbers gets the same again */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "front/range.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t size, first, last, again[2];
    char text[256], said[64];

    if (n < 8 || n - 8 >= sizeof(text))
        return 0;
    memcpy(&size, data, 8);
    memcpy(text, data + 8, n - 8);
    text[n - 8] = '\0';
    if (range_of(text, size, &first, &last) != RANGE_PART)
        return 0;
    FUZZ_ASSERT(first <= last && last < size);
    snprintf(said, sizeof(said), "bytes=%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    FUZZ_ASSERT(range_of(said, size, &again[0], &again[1]) == RANGE_PART && again[0] == first && again[1] == last);
    return 0;
}
