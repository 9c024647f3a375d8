/* workspace/quote.c: see quote.h */
#include "workspace/quote.h"

#include <errno.h>
#include <stdint.h>

#include "base/unseen.h"

static size_t
harmless_char(const uint8_t *p, size_t n)
{
    uint32_t cp;
    size_t len = utf8_char(p, n, &cp);

    return len == 0 || utf8_unseen(cp) ? 0 : len;
}

bool
quote_harmless(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (i < s.n) {
        size_t len = harmless_char(p + i, s.n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

static int
quoted_byte(struct buf *out, uint8_t c)
{
    static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";

    for (size_t i = 0; i < sizeof(plain) - 1; i++)
        if (c == (uint8_t)plain[i])
            return buf_printf(out, "\\%c", letters[i]);
    return buf_printf(out, "\\%03o", c);
}

int
quote_name(struct buf *out, const char *prefix, struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    bool plain = quote_harmless(s);

    for (size_t i = 0; i < s.n && plain; i++)
        plain = s.p[i] != '"' && s.p[i] != '\\';
    if (plain) {
        buf_puts(out, prefix);
        return buf_append(out, s.p, s.n);
    }
    buf_puts(out, "\"");
    buf_puts(out, prefix);
    for (size_t i = 0; i < s.n;) {
        size_t len = p[i] == '"' || p[i] == '\\' ? 0 : harmless_char(p + i, s.n - i);
        if (len == 0)
            quoted_byte(out, p[i]);
        else
            buf_append(out, p + i, len);
        i += len > 0 ? len : 1;
    }
    return buf_puts(out, "\"");
}

int
quote_encode(struct buf *out, struct str s)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c > 0x20 && c < 0x7f && c != '%') {
            buf_put_u8(out, c);
        } else {
            const char text[3] = { '%', digits[c >> 4], digits[c & 15] };
            buf_append(out, text, 3);
        }
    }
    return buf_ok(out) ? 0 : -1;
}

/* As quote_encode writes it. */
static int
lower_digit(char c)
{
    return c >= 'A' && c <= 'F' ? -1 : str_hex_digit(c);
}

int
quote_decode(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c == '%') {
            int high = i + 2 < s.n ? lower_digit(s.p[i + 1]) : -1, low = i + 2 < s.n ? lower_digit(s.p[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0)) {
                errno = EINVAL;
                return -1;
            }
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c <= 0x20 || c >= 0x7f) {
            errno = EINVAL;
            return -1;
        }
        if (buf_put_u8(out, c) < 0) {
            errno = ENOMEM;
            return -1;
        }
    }
    return 0;
}
