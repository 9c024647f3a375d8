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

static int
digit_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' ? 62 : c == '/' ? 63 : -1;
}

int
base64_get(struct buf *out, const char *p, size_t n)
{
    if (n % 4 != 0)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = i + 4 == n ? (size_t)(p[i + 3] == '=') + (p[i + 3] == '=' && p[i + 2] == '=') : 0;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : digit_of(p[i + k]);
            if (d < 0)
                return -1;
            v = v << 6 | (uint32_t)d;
        }
        for (size_t k = 0; k < 3 - pad; k++)
            buf_put_u8(out, (uint8_t)(v >> (16 - 8 * k)));
    }
    return buf_ok(out) ? 0 : -1;
}
