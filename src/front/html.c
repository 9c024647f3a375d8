/* front/html.c: see html.h */
#include "front/html.h"

#include <stdint.h>

#include "base/str.h"
#include "base/unseen.h"

static const char *
entity(uint32_t c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

int
html_put(struct buf *out, const char *text, size_t n, bool lines)
{
    const uint8_t *p = (const uint8_t *)text;

    for (size_t i = 0; i < n && buf_ok(out);) {
        uint32_t c = 0;
        size_t size = utf8_char(p + i, n - i, &c);
        if (size == 0)
            buf_printf(out, "<b>0x%02X</b>", p[i]);
        else if (utf8_unseen(c) && !(lines && (c == '\n' || c == '\t')))
            buf_printf(out, "<b>U+%04X</b>", (unsigned)c);
        else if (entity(c) != NULL)
            buf_puts(out, entity(c));
        else
            buf_append(out, p + i, size);
        i += size > 0 ? size : 1;
    }
    return buf_ok(out) ? 0 : -1;
}
