/* warden/trace_id.c: see trace_id.h */
#include "warden/trace_id.h"

#include <string.h>

#include "base/str.h"

void
trace_digits(const uint8_t *bytes, size_t n, char *out)
{
    str_hex(bytes, n, out);
    if (strspn(out, "0") == 2 * n)
        out[2 * n - 1] = '1';
}
