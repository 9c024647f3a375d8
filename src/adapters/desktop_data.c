/* adapters/desktop_data.c: see desktop_data.h */
#include "adapters/desktop_data.h"

#include <string.h>

#include "base/array.h"

/* --- a picture, sound --------------------------------------------------------------------------------------------- */

static uint32_t
u32_of(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool
desktop_png(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height)
{
    static const uint8_t begin[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R' };
    static const uint8_t end[] = { 0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82 };

    if (n < sizeof(begin) + 17 + sizeof(end) || memcmp(p, begin, sizeof(begin)) != 0 ||
        memcmp(p + n - sizeof(end), end, sizeof(end)) != 0)
        return false;
    *width = u32_of(p + 16);
    *height = u32_of(p + 20);
    return *width > 0 && *width <= DESKTOP_PIXELS_MAX && *height > 0 && *height <= DESKTOP_PIXELS_MAX;
}

static void
put_le(uint8_t *p, uint32_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

void
desktop_wav(uint8_t head[44], uint32_t n)
{
    memcpy(head, "RIFF....WAVEfmt ", 16);
    put_le(head + 4, n + 36, 4);
    put_le(head + 16, 16, 4);
    put_le(head + 20, 1, 2);
    put_le(head + 22, 2, 2);
    put_le(head + 24, DESKTOP_RATE, 4);
    put_le(head + 28, DESKTOP_RATE * DESKTOP_FRAME, 4);
    put_le(head + 32, DESKTOP_FRAME, 2);
    put_le(head + 34, 16, 2);
    memcpy(head + 36, "data", 4);
    put_le(head + 40, n, 4);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static struct str
word_of(struct str *line)
{
    struct str s;

    while (line->n > 0 && *line->p == ' ')
        *line = (struct str){ line->p + 1, line->n - 1 };
    s = *line;
    while (line->n > 0 && *line->p != ' ')
        *line = (struct str){ line->p + 1, line->n - 1 };
    s.n -= line->n;
    return s;
}

bool
desktop_window(struct str *text, struct desktop_window *w)
{
    const char *end = text->n > 0 ? memchr(text->p, '\n', text->n) : NULL;
    struct str line = { text->p, end != NULL ? (size_t)(end - text->p) : text->n };

    if (text->n == 0)
        return false;
    *text = end != NULL ? (struct str){ end + 1, text->n - line.n - 1 } : (struct str){ text->p + text->n, 0 };
    w->id = word_of(&line);
    (void)word_of(&line);
    w->app = word_of(&line);
    (void)word_of(&line);
    w->title = line.n > 0 ? (struct str){ line.p + 1, line.n - 1 } : line;      /* without the blank before it */
    return true;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Keys that a PC's US keyboard does not use: those of its media keys and above, but for X's own five modifiers. */
static const struct { unsigned from, to; } spare[] = { { 156, 202 }, { 208, 255 } };

#define SPARE_KEYS 95
#define SPARE_MAX  (SPARE_KEYS * 2)     /* each with and without shift */

static unsigned
spare_key(unsigned i)
{
    unsigned first = spare[0].to - spare[0].from + 1;

    return i < first ? spare[0].from + i : spare[1].from + i - first;
}

bool
desktop_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((uint8_t)text.p[i] >= 0x80)
            return false;
    return true;
}

/* The characters of @text that have no key, each once; how far they suffice. */
static size_t
odd_ones(struct str text, uint32_t odd[SPARE_MAX], size_t *n_odd)
{
    size_t at = 0, n;
    uint32_t c;

    for (*n_odd = 0; at < text.n; at += n) {
        size_t i = 0;
        n = utf8_char((const uint8_t *)text.p + at, text.n - at, &c);
        if (n == 0)
            break;
        while (c >= 0x80 && i < *n_odd && odd[i] != c)
            i++;
        if (c < 0x80 || i < *n_odd)
            continue;
        if (*n_odd == SPARE_MAX)
            break;
        odd[(*n_odd)++] = c;
    }
    return at;
}

size_t
desktop_keymap(struct buf *out, struct str text)
{
    uint32_t odd[SPARE_MAX];
    size_t n, end = odd_ones(text, odd, &n);

    buf_puts(out, "xkb_keymap {\nxkb_keycodes { include \"evdev+aliases(qwerty)\"\n");
    for (unsigned i = 0; i < (n + 1) / 2; i++)
        buf_printf(out, "<C%u> = %u;\n", spare_key(i), spare_key(i));
    buf_puts(out, "};\nxkb_types { include \"complete\" };\nxkb_compat { include \"complete\" };\n"
                  "xkb_symbols { include \"pc+us\"\n");
    for (unsigned i = 0; i < n; i += 2)
        buf_printf(out, "key <C%u> { type[Group1] = \"TWO_LEVEL\", [ U%04X, U%04X ] };\n", spare_key(i / 2),
                   (unsigned)odd[i], (unsigned)odd[i + 1 < n ? i + 1 : i]);
    return buf_puts(out, "};\n};\n") == 0 ? end : 0;
}
