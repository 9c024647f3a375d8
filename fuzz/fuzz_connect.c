/* wire/connect.c: a message that is taken is all of what came but its head, whose words are those that a head has */
#include "fuzz.h"

#include <string.h>

#include "wire/connect.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t head[CONNECT_HEAD];
    struct str one;
    uint64_t ms;
    char text[32];

    if (connect_one((struct str){ (const char *)data, n }, &one) == NULL) {
        FUZZ_ASSERT(n >= CONNECT_HEAD && one.n == n - CONNECT_HEAD && one.p == (const char *)data + CONNECT_HEAD);
        connect_head(head, 0, (uint32_t)one.n);
        FUZZ_ASSERT(memcmp(head, data, sizeof(head)) == 0);
    }
    if (n < sizeof(text) && memchr(data, '\0', n) == NULL) {
        memcpy(text, data, n);
        text[n] = '\0';
        if (connect_timeout(text, &ms))
            FUZZ_ASSERT(ms <= 9999999999 && n <= 10);
    }
    for (unsigned status = 100; status < 600; status++)
        FUZZ_ASSERT(connect_code(status)[0] != '\0');
    return 0;
}
