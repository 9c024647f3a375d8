/* egress/decide_scope.c: see decide_scope.h
 *
 * What has no canonical form (match/url_path.h) matches nothing, and is refused where a rule for the host looks at
 * paths.
 */
#include "egress/decide_scope.h"

#include <string.h>

#include "match/url_path.h"

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
    char canonical[PATH_TEXT_MAX + 1];
    size_t n;

    if (!method_fits(scope, method))
        return SCOPE_NO;
    if (scope->path.n == 0)
        return SCOPE_YES;
    if (query != NULL)
        path.n = (size_t)(query - path.p);
    if (!url_path_canonical(path, canonical, &n))
        return SCOPE_AMBIGUOUS;
    return path_glob_match(scope->path, (struct str){ canonical, n }) ? SCOPE_YES : SCOPE_NO;
}
