/* warden/trace_id.c: see trace_id.h */
#include "warden/trace_id.h"

#include <string.h>

void
trace_digits(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
    if (strspn(out, "0") == 2 * n)
        out[2 * n - 1] = '1';
}
