/* egress/decide_scope.c: see decide_scope.h
 *
 * A path is compared as it was sent. That is sound only when every server reads it as we do, so what is read
 * differently (dot segments, empty segments, encoded slashes, letters that need no encoding, backslashes, path
 * parameters) matches nothing and is refused where a rule for the host looks at paths.
 */
#include "egress/decide_scope.h"

#include <string.h>

#include "match/path.h"

static bool
unreserved(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/* "%XY" at @p: encoded for a reason, and for none that a second decoder could turn into structure. */
static bool
encoding_ok(const char *p, size_t n)
{
    uint64_t c;

    if (n < 3 || !str_parse_hex((struct str){ p + 1, 2 }, 255, &c))
        return false;
    return c > 0x20 && c != 0x7f && c != '/' && c != '\\' && c != '%' && c != '?' && c != '#' && c != ';' &&
           !unreserved((unsigned)c);
}

/* Neither empty nor "." nor "..". */
static bool
segment_ok(const char *p, size_t n)
{
    return n > 2 || (n > 0 && p[n - 1] != '.') || (n == 2 && p[0] != '.');
}

static bool
path_clear(struct str path)
{
    size_t start = 1;

    if (path.n == 0 || path.n > PATH_TEXT_MAX || path.p[0] != '/')
        return false;
    for (size_t i = 1; i <= path.n; i++) {
        bool end = i == path.n;
        unsigned char c = end ? '/' : (unsigned char)path.p[i];
        if (c == '/') {
            if (!(end && i == start) && !segment_ok(path.p + start, i - start))
                return false;
            start = i + 1;
        } else if (c <= 0x20 || c >= 0x7f || c == '\\' || c == '#' || c == ';') {
            return false;
        } else if (c == '%' && !encoding_ok(path.p + i, path.n - i)) {
            return false;
        }
    }
    return true;
}

static bool
method_fits(const struct decide_scope *scope, struct str method)
{
    for (size_t i = 0; i < scope->n_methods; i++)
        if (str_eq(scope->methods[i], method))
            return true;
    return scope->n_methods == 0;
}

enum scope_fit
decide_scope_fit(const struct decide_scope *scope, struct str method, struct str path)
{
    const char *query = path.n > 0 ? memchr(path.p, '?', path.n) : NULL;

    if (!method_fits(scope, method))
        return SCOPE_NO;
    if (scope->path.n == 0)
        return SCOPE_YES;
    if (query != NULL)
        path.n = (size_t)(query - path.p);
    if (!path_clear(path))
        return SCOPE_AMBIGUOUS;
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path_glob_match(scope->path, path) ? SCOPE_YES : SCOPE_NO;
}
