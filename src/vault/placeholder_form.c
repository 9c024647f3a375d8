/* vault/placeholder_form.c: what of a value is form, not secret (placeholder.h) */
#include <string.h>

#include "base/str.h"
#include "vault/placeholder.h"

#define LABEL_MAX 64        /* bytes of a PEM label */
#define DASHES "-----"

static void
keep(bool *kept, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        kept[i] = true;
}

/* --- PEM ---------------------------------------------------------------------------------------------------------- */

/* The bytes of "-----BEGIN LABEL-----" or "-----END LABEL-----" at the beginning of @s; 0 when it is neither. */
static size_t
armour(struct str s)
{
    size_t at = str_starts(s, STR_LIT(DASHES "BEGIN ")) ? 11 : str_starts(s, STR_LIT(DASHES "END ")) ? 9 : 0;
    size_t label = at;

    if (at == 0)
        return 0;
    while (at < s.n && at - label <= LABEL_MAX && ((s.p[at] >= 'A' && s.p[at] <= 'Z') || s.p[at] == ' '))
        at++;
    return str_starts((struct str){ s.p + at, s.n - at }, STR_LIT(DASHES)) ? at + 5 : 0;
}

static void
keep_armour(struct str s, bool *kept)
{
    for (size_t i = 0; i < s.n;) {
        size_t n = armour((struct str){ s.p + i, s.n - i });
        keep(kept, i, i + n);
        i += n > 0 ? n : 1;
    }
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t
skip_blanks(struct str s, size_t at)
{
    while (at < s.n && is_blank(s.p[at]))
        at++;
    return at;
}

static bool
is_object(struct str s)
{
    size_t first = skip_blanks(s, 0), last = s.n;

    while (last > 0 && is_blank(s.p[last - 1]))
        last--;
    return last > first + 1 && s.p[first] == '{' && s.p[last - 1] == '}';
}

/* Where the string that begins behind the quote at @at ends: its closing quote, or the end. */
static size_t
string_end(struct str s, size_t at)
{
    for (at++; at < s.n && s.p[at] != '"'; at++)
        if (s.p[at] == '\\')
            at++;
    return at < s.n ? at : s.n;
}

/* Escapes in the string from @from to @to: what stands behind a backslash says how to read it. */
static void
keep_escapes(struct str s, size_t from, size_t to, bool *kept)
{
    for (size_t i = from; i + 1 < to; i++) {
        size_t n = s.p[i + 1] == 'u' ? 6 : 2;
        if (s.p[i] != '\\')
            continue;
        keep(kept, i, i + n < to ? i + n : to);
        i += n - 1;
    }
}

/* Of a key's file: they say how it is used, and hold no part of it. */
static bool
says_kind(struct str name)
{
    return str_eq_c(name, "type") || str_eq_c(name, "auth_uri") || str_eq_c(name, "token_uri") ||
           str_eq_c(name, "universe_domain");
}

static void
keep_json(struct str s, bool *kept)
{
    struct str name = { "", 0 };

    for (size_t i = 0; i < s.n; i++) {
        size_t end, next;
        kept[i] = true;         /* outside of strings: numbers, words, what holds it together */
        if (s.p[i] != '"')
            continue;
        end = string_end(s, i);
        next = skip_blanks(s, end < s.n ? end + 1 : end);
        if (next < s.n && s.p[next] == ':') {
            name = (struct str){ s.p + i + 1, end - i - 1 };
            keep(kept, i, end);
        } else {
            if (says_kind(name))
                keep(kept, i, end);
            keep_escapes(s, i + 1, end, kept);
            name = (struct str){ "", 0 };
        }
        i = end;
        if (end < s.n)
            kept[end] = true;
    }
}

void
placeholder_kept(const uint8_t *value, size_t n, bool *kept)
{
    const struct str s = { (const char *)value, n };

    memset(kept, 0, n * sizeof(*kept));
    keep(kept, 0, placeholder_prefix(value, n));
    keep_armour(s, kept);
    if (is_object(s))
        keep_json(s, kept);
}
