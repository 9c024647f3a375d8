/* fuzz/fuzz.h: what every target shares
 *
 * A target states what must hold for any input; FUZZ_ASSERT ends the process where it does not, and libFuzzer keeps
 * the input.
 */
#ifndef CLOCHE_FUZZ_FUZZ_H
#define CLOCHE_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FUZZ_ASSERT(claim)                                                              \
    do {                                                                                \
        if (!(claim)) {                                                                 \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #claim);  \
            abort();                                                                    \
        }                                                                               \
    } while (0)

#endif
