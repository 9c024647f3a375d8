/* base/base64.c: see base64.h */
#include "base/base64.h"

int
base64_put(struct buf *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = bytes;

    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        buf_put_u8(out, (uint8_t)digits[v >> 18]);
        buf_put_u8(out, (uint8_t)digits[v >> 12 & 63]);
        buf_put_u8(out, (uint8_t)(left > 1 ? digits[v >> 6 & 63] : '='));
        buf_put_u8(out, (uint8_t)(left > 2 ? digits[v & 63] : '='));
    }
    return buf_ok(out) ? 0 : -1;
}
