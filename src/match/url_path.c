/* match/url_path.c: see url_path.h */
#include "match/url_path.h"

#include <string.h>

static const char ambiguous[] = "is a path that servers read in different ways";

static bool
unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/* "%XY" at @p: encoded for a reason, and for none that a second decoder could turn into structure. */
static bool
encoding_ok(const char *p, size_t n, unsigned char *out)
{
    uint64_t c;

    if (n < 3 || !str_parse_hex((struct str){ p + 1, 2 }, 255, &c))
        return false;
    *out = (unsigned char)c;
    return c > 0x20 && c != 0x7f && memchr("/\\%?#;", (int)c, 6) == NULL && !unreserved(*out);
}

/* Neither empty nor "." nor "..". */
static bool
segment_ok(const char *p, size_t n)
{
    return n > 2 || (n > 0 && p[n - 1] != '.') || (n == 2 && p[0] != '.');
}

struct writer {
    char *out;
    size_t n;
    bool pattern;
};

/* A decoded byte: what may stand as it is stands so, the rest is encoded in capitals. */
static void
put_decoded(struct writer *w, unsigned char c)
{
    static const char hex[] = "0123456789ABCDEF";

    if (c < 0x80) {
        if (w->pattern && memchr("*[]!", c, 4) != NULL)
            w->out[w->n++] = '\\';
        w->out[w->n++] = (char)c;
        return;
    }
    w->out[w->n++] = '%';
    w->out[w->n++] = hex[c >> 4];
    w->out[w->n++] = hex[c & 15];
}

/* One byte or escape at @p; how many bytes of @p it takes, 0 when it may not be there. No more are written. */
static size_t
put_one(struct writer *w, const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p, decoded;

    if (c == '%') {
        if (!encoding_ok(p, n, &decoded))
            return 0;
        put_decoded(w, decoded);
        return 3;
    }
    if (w->pattern && c == '\\') {
        if (n < 2 || memchr("*[]!\\", p[1], 4) == NULL)
            return 0;
        w->out[w->n++] = '\\';
        w->out[w->n++] = p[1];
        return 2;
    }
    if (c <= 0x20 || c >= 0x7f || memchr("\\#;?", c, 4) != NULL)
        return 0;
    w->out[w->n++] = (char)c;
    return 1;
}

static bool
canonical(struct str path, bool pattern, char *out, size_t *n)
{
    struct writer w = { .out = out, .pattern = pattern };
    size_t start = 1;

    if (path.n == 0 || path.n > PATH_TEXT_MAX || path.p[0] != '/')
        return false;
    for (size_t i = 0, took; i < path.n; i += took) {
        if (i > 0 && path.p[i] == '/') {
            if (!segment_ok(path.p + start, i - start))
                return false;
            start = i + 1;
        }
        took = put_one(&w, path.p + i, path.n - i);
        if (took == 0)
            return false;
    }
    if (start < path.n && !segment_ok(path.p + start, path.n - start))
        return false;
    if (w.n > 1 && w.out[w.n - 1] == '/')
        w.n--;
    w.out[w.n] = '\0';
    *n = w.n;
    return true;
}

bool
url_path_canonical(struct str path, char out[PATH_TEXT_MAX + 1], size_t *n)
{
    return canonical(path, false, out, n);
}

/* How long one of @marks is at the beginning of @rest, as itself or in percent; 0: there is none. */
static size_t
mark_at(struct str rest, const char *marks)
{
    uint64_t c;

    if (memchr(marks, (unsigned char)rest.p[0], strlen(marks)) != NULL)
        return 1;
    return rest.n >= 3 && rest.p[0] == '%' && str_parse_hex((struct str){ rest.p + 1, 2 }, 255, &c) &&
                   memchr(marks, (int)c, strlen(marks)) != NULL
               ? 3 : 0;
}

/* How long the segment is that @rest begins with; whether its name, all before a parameter, is "." or "..". */
static size_t
segment_at(struct str rest, bool *dots)
{
    size_t i = 0, count = 0, took;
    bool parameter = false, other = false;

    for (; i < rest.n; i += took) {
        struct str here = { rest.p + i, rest.n - i };
        if (mark_at(here, "/\\") > 0)
            break;
        parameter |= mark_at(here, ";") > 0;
        took = parameter ? 0 : mark_at(here, ".");
        count += took > 0;
        other |= took == 0 && !parameter;
        took = took > 0 ? took : 1;
    }
    *dots = !other && (count == 1 || count == 2);
    return i;
}

bool
url_path_moves(struct str path)
{
    if (path.n > 1 && path.p[0] == '/' && path.p[1] == '/')
        return true;
    for (size_t i = 0; i < path.n;) {
        bool dots;
        i += segment_at((struct str){ path.p + i, path.n - i }, &dots);
        if (dots || (i < path.n && path.p[i] == '\\'))
            return true;
        if (i < path.n)
            i += mark_at((struct str){ path.p + i, path.n - i }, "/\\");
    }
    return false;
}

const char *
url_path_pattern(struct str text, char out[PATH_TEXT_MAX + 1], size_t *n)
{
    char normal[PATH_TEXT_MAX + 1];
    enum path_fault fault;
    size_t ignored;

    if (text.n == 0 || text.p[0] != '/')
        return "does not begin with \"/\"";
    if (text.n > PATH_TEXT_MAX)
        return "is too long";
    if (memchr(text.p, '?', text.n) != NULL)
        return "holds a query, which no rule looks at";
    if (!canonical(text, true, out, n))
        return ambiguous;
    fault = path_normalise((struct str){ out, *n }, (struct str){ NULL, 0 }, true, normal, sizeof(normal), &ignored);
    return fault != PATH_OK ? path_fault_text(fault) : NULL;
}
