/* policy/secret_text.c: see secret_text.h */
#include "policy/secret_text.h"

#include <string.h>

/* The name that begins at @at, behind its "${"; *@end is behind its "}". False: it has no end, or is none. */
static bool
name_at(struct str text, size_t at, struct str *name, size_t *end)
{
    const char *close = at < text.n ? memchr(text.p + at, '}', text.n - at) : NULL;

    if (close == NULL)
        return false;
    *name = (struct str){ text.p + at, (size_t)(close - text.p) - at };
    *end = at + name->n + 1;
    return name->n > 0 && memchr(name->p, '\n', name->n) == NULL;
}

enum secret_text
secret_text_make(struct str text, secret_text_fn *look, void *ctx, struct buf *out, struct str *name)
{
    size_t names = 0, end;
    struct str value;

    for (size_t i = 0; i < text.n && buf_ok(out); i++) {
        struct str rest = { text.p + i, text.n - i };
        if (str_starts(rest, STR_LIT("$${"))) {
            buf_append(out, "${", 2);
            i += 2;
        } else if (!str_starts(rest, STR_LIT("${"))) {
            buf_put_u8(out, (uint8_t)text.p[i]);
        } else {
            if (!name_at(text, i + 2, name, &end))
                return SECRET_TEXT_OPEN;
            if (!look(ctx, *name, &value))
                return SECRET_TEXT_UNKNOWN;
            buf_append(out, value.p, value.n);
            i = end - 1;
            names++;
        }
    }
    return !buf_ok(out) ? SECRET_TEXT_LONG : names == 0 ? SECRET_TEXT_PLAIN : SECRET_TEXT_OK;
}
