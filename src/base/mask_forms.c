/* base/mask_forms.c: the forms in which a value turns up (see mask.h)
 *
 * In base64 a value looks in three ways, by where in a group of three bytes it begins. Of each only the characters that
 * hold nothing but the value are known; those at its edges hold bits of what is beside it. That the alphabet of URLs
 * has "-" and "_" where the other one has "+" and "/" is seen to where texts are compared.
 */
#include <string.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/mask.h"

static void
put_percent(struct buf *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= '0' && p[i] <= '9') ||
            (p[i] != '\0' && strchr("-._~", p[i]) != NULL))
            buf_put_u8(out, p[i]);
        else
            buf_printf(out, "%%%02x", p[i]);
    }
}

static void
put_json(struct buf *out, const uint8_t *p, size_t n)
{
    static const char control[] = "\b\f\n\r\t", letter[] = "bfnrt";

    for (size_t i = 0; i < n; i++) {
        const char *at = p[i] != '\0' ? strchr(control, p[i]) : NULL;
        if (at != NULL)
            buf_printf(out, "\\%c", letter[at - control]);
        else if (p[i] < 0x20)
            buf_printf(out, "\\u%04x", p[i]);
        else if (p[i] == '"' || p[i] == '\\')
            buf_printf(out, "\\%c", p[i]);
        else
            buf_put_u8(out, p[i]);
    }
}

static void
put_hex(struct buf *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%02x", p[i]);
}

static void
tell(const struct buf *form, size_t from, size_t to, const void *value, size_t n, mask_form_fn *fn, void *ctx)
{
    bool same = to - from == n && buf_ok(form) && memcmp(form->p + from, value, n) == 0;

    if (buf_ok(form) && !same)
        fn(ctx, form->p + from, to - from);
}

void
mask_forms(const void *value, size_t n, mask_form_fn *fn, void *ctx)
{
    static void (*const puts[])(struct buf *, const uint8_t *, size_t) = { put_percent, put_json, put_hex };
    uint8_t room[MASK_MAX + 4], shifted[MASK_MAX + 2] = { 0 };

    if (n < MASK_MIN || n > MASK_MAX)
        return;
    fn(ctx, value, n);
    for (size_t i = 0; i < ARRAY_LEN(puts); i++) {
        struct buf b = BUF_INIT_IN(room, sizeof(room));
        puts[i](&b, value, n);
        tell(&b, 0, b.n, value, n, fn, ctx);
    }
    memcpy(shifted + 2, value, n);
    for (size_t shift = 0; shift < 3; shift++) {
        struct buf b = BUF_INIT_IN(room, sizeof(room));
        (void)base64_put(&b, shifted + 2 - shift, n + shift);
        tell(&b, (8 * shift + 5) / 6, 8 * (n + shift) / 6, value, n, fn, ctx);
    }
    explicit_bzero(room, sizeof(room));
    explicit_bzero(shifted, sizeof(shifted));
}
