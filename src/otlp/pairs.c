/* otlp/pairs.c: names and values of a configuration (otlp.h) */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "otlp/otlp.h"
#include "wire/http1.h"

/* --- NAME=VALUE,... ----------------------------------------------------------------------------------------------- */

static struct str
trimmed(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct str){ s.p + 1, s.n - 1 };
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
        s.n--;
    return s;
}

/* Without %XX, into @room. False: a % with something else behind it, or an encoded NUL. */
static bool
decoded(struct str s, char *room, struct str *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? str_hex_digit(s.p[i + 1]) : -1;
        int low = high >= 0 ? str_hex_digit(s.p[i + 2]) : -1;
        if (s.p[i] == '%' && (low < 0 || high + low == 0))
            return false;
        room[n++] = s.p[i] == '%' ? (char)(high << 4 | low) : s.p[i];
        i += s.p[i] == '%' ? 2 : 0;
    }
    *out = (struct str){ room, n };
    return true;
}

bool
otlp_pairs(struct str text, otlp_pair_fn *each, void *ctx)
{
    char room[OTLP_PAIRS_MAX];
    struct str name, value;

    if (text.n > sizeof(room))
        return false;
    for (size_t at = 0; at < text.n;) {
        const char *comma = memchr(text.p + at, ',', text.n - at);
        struct str one = trimmed((struct str){ text.p + at, comma != NULL ? (size_t)(comma - text.p) - at
                                                                          : text.n - at });
        const char *eq = one.n > 0 ? memchr(one.p, '=', one.n) : NULL;
        at = comma != NULL ? (size_t)(comma - text.p) + 1 : text.n;
        if (one.n == 0)
            continue;           /* as in "a=b," */
        if (eq == NULL || eq == one.p)
            return false;
        if (!decoded(trimmed((struct str){ one.p, (size_t)(eq - one.p) }), room, &name) || name.n == 0 ||
            !decoded(trimmed((struct str){ eq + 1, (size_t)(one.p + one.n - eq) - 1 }), room + name.n, &value) ||
            !each(ctx, name, value))
            return false;
    }
    return true;
}

/* --- fields of a request ------------------------------------------------------------------------------------------ */

/* Whether a request may have that field: a token and visible characters, none of those that we write ourselves. */
static bool
header_well(struct str name, struct str value)
{
    static const char *const ours[] = { "Host", "Content-Length", "Content-Type", "Content-Encoding", "Connection",
                                        "Transfer-Encoding", "Upgrade", "Expect", "TE", "Trailer", "User-Agent" };

    if (!http1_is_token(name) || name.n > 256)
        return false;
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = (uint8_t)value.p[i];
        if ((c < ' ' && c != '\t') || c > '~')
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strlen(ours[i]) == name.n && strncasecmp(ours[i], name.p, name.n) == 0)
            return false;
    return true;
}

static bool
put_header(void *ctx, struct str name, struct str value)
{
    struct buf *out = ctx;

    return header_well(name, value) &&
           buf_printf(out, "%.*s: %.*s\r\n", (int)name.n, name.p, (int)value.n, value.p) == 0;
}

bool
otlp_header_pairs(struct str text, struct buf *out)
{
    return otlp_pairs(text, put_header, out);
}

bool
otlp_header_lines(struct str text, struct buf *out, unsigned *line)
{
    *line = 0;
    for (size_t at = 0; at < text.n;) {
        const char *end = memchr(text.p + at, '\n', text.n - at), *colon;
        size_t n = end != NULL ? (size_t)(end - text.p) - at : text.n - at;
        struct str one = trimmed((struct str){ text.p + at, n });
        at += n + 1;
        ++*line;
        if (one.n == 0 || one.p[0] == '#')
            continue;
        colon = memchr(one.p, ':', one.n);
        if (colon == NULL || !put_header(out, (struct str){ one.p, (size_t)(colon - one.p) },
                                         trimmed((struct str){ colon + 1, (size_t)(one.p + one.n - colon) - 1 })))
            return false;
    }
    return true;
}
