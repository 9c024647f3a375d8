/* front/html.c: see html.h */
#include "front/html.h"

#include <stdint.h>

#include "base/str.h"

/* Categories Cc, Cf, Co, Zl, Zp, Zs (but for the space), variation selectors, tags, fillers (Unicode 16). In order. */
static const struct { uint32_t from, to; } unseen[] = {
    { 0x0, 0x1f },       { 0x7f, 0xa0 },      { 0xad, 0xad },       { 0x34f, 0x34f },    { 0x600, 0x605 },
    { 0x61c, 0x61c },    { 0x6dd, 0x6dd },    { 0x70f, 0x70f },     { 0x890, 0x891 },    { 0x8e2, 0x8e2 },
    { 0x115f, 0x1160 },  { 0x1680, 0x1680 },  { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },  { 0x2000, 0x200f },
    { 0x2028, 0x202f },  { 0x205f, 0x206f },  { 0x2800, 0x2800 },   { 0x3000, 0x3000 },  { 0x3164, 0x3164 },
    { 0xe000, 0xf8ff },  { 0xfe00, 0xfe0f },  { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },  { 0xfff0, 0xfffb },
    { 0xfffe, 0xffff },  { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff }, { 0xf0000, 0x10ffff },
};

static bool
is_unseen(uint32_t c)
{
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]) && unseen[i].from <= c; i++)
        if (c <= unseen[i].to)
            return true;
    return false;
}

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
        else if (is_unseen(c) && !(lines && (c == '\n' || c == '\t')))
            buf_printf(out, "<b>U+%04X</b>", (unsigned)c);
        else if (entity(c) != NULL)
            buf_puts(out, entity(c));
        else
            buf_append(out, p + i, size);
        i += size > 0 ? size : 1;
    }
    return buf_ok(out) ? 0 : -1;
}
