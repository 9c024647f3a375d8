/* wire/json_text.c: see json_text.h */
#include "wire/json_text.h"

#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"

/* Bytes of the character at p[0..n): 0 none begins here, or more are needed than there are (*cut). */
static size_t
character(const uint8_t *p, size_t n, bool *cut)
{
    size_t want = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                  : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < want; i++) {
        if (i == n) {
            *cut = true;
            return 0;
        }
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    /* too long a form, a surrogate, above the last */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return want;
}

/* Whole characters to @out, each byte that is part of none as U+FFFD. How many bytes at the end are the beginning of
 * one that may still come (0 when @last). */
static size_t
clean(const uint8_t *p, size_t n, bool last, struct buf *out)
{
    for (size_t i = 0; i < n;) {
        bool cut = false;
        size_t want = character(p + i, n - i, &cut);
        if (want == 0 && cut && !last)
            return n - i;
        buf_append(out, want > 0 ? (const char *)p + i : "\xef\xbf\xbd", want > 0 ? want : 3);
        i += want > 0 ? want : 1;
    }
    return 0;
}

json_t *
json_of_piece(struct buf *half, const uint8_t *p, size_t n, bool last)
{
    cleanup_buf struct buf all = BUF_INIT(JSON_TEXT_MAX + 8), out = BUF_INIT(3 * JSON_TEXT_MAX + 32);
    size_t rest;

    buf_append(&all, half->p, half->n);
    buf_append(&all, p, n);
    rest = all.n > 0 ? clean(all.p, all.n, last, &out) : 0;
    buf_reset(half);
    if (rest > 0)
        buf_append(half, all.p + all.n - rest, rest);
    return buf_ok(&out) ? json_stringn_nocheck((const char *)out.p, out.n) : NULL;
}

const char *
json_cstr(const json_t *v)
{
    const char *text = json_string_value(v);

    return text != NULL && strlen(text) == json_string_length(v) ? text : NULL;
}

json_t *
json_of_text(const uint8_t *p, size_t n)
{
    struct buf none = BUF_INIT(8);

    return n > 0 ? json_of_piece(&none, p, n, true) : json_string("");
}

json_t *
json_of_base64(const uint8_t *p, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(2 * JSON_TEXT_MAX);

    (void)base64_put(&out, p, n);
    return buf_ok(&out) ? json_stringn(out.n > 0 ? (const char *)out.p : "", out.n) : NULL;
}
