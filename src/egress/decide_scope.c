/* egress/decide_scope.c: see decide_scope.h
 *
 * What has no canonical form (match/url_path.h) matches nothing, and is refused where a rule for the host looks at
 * paths.
 */
#include "egress/decide_scope.h"

#include <string.h>

#include "match/tool.h"
#include "match/url_path.h"

/* Methods are in capitals in rules, and case is of their essence (RFC 9110 9.1); but many a server takes "delete" for
 * DELETE: what closes one closes it in any case, what opens one opens it alone. */
static bool
method_is(struct str ours, struct str method, bool deny)
{
    if (!deny || ours.n != method.n)
        return str_eq(ours, method);
    for (size_t i = 0; i < ours.n; i++)
        if (ours.p[i] != (method.p[i] >= 'a' && method.p[i] <= 'z' ? method.p[i] - 'a' + 'A' : method.p[i]))
            return false;
    return true;
}

static bool
method_fits(const struct decide_scope *scope, struct str method, bool deny)
{
    for (size_t i = 0; i < scope->n_methods; i++)
        if (method_is(scope->methods[i], method, deny))
            return true;
    return scope->n_methods == 0;
}

static enum scope_fit
tool_fit(const struct decide_scope *scope, const struct mcp_message *mcp, bool deny)
{
    switch (mcp != NULL ? mcp->kind : MCP_UNREAD) {
    case MCP_UNREAD: return SCOPE_UNREAD;
    case MCP_ELSE: return SCOPE_NO;
    case MCP_OTHER: return deny ? SCOPE_NO : SCOPE_YES;
    case MCP_CALL:
        for (size_t i = 0; i < scope->n_tools; i++)
            if (tool_match(scope->tools[i], mcp->tool))
                return SCOPE_YES;
        return deny ? SCOPE_NO : SCOPE_TOOL;
    case MCP_BAD: break;
    }
    return SCOPE_GARBLED;
}

static enum scope_fit
path_fit(const struct decide_scope *scope, struct str method, struct str path, bool deny)
{
    const char *query = path.n > 0 ? memchr(path.p, '?', path.n) : NULL;
    char canonical[PATH_TEXT_MAX + 1];
    size_t n;

    if (!method_fits(scope, method, deny))
        return SCOPE_NO;
    if (scope->path.n == 0)
        return SCOPE_YES;
    if (query != NULL)
        path.n = (size_t)(query - path.p);
    if (!url_path_canonical(path, canonical, &n))
        return SCOPE_AMBIGUOUS;
    return path_glob_match(scope->path, (struct str){ canonical, n }) ? SCOPE_YES : SCOPE_NO;
}

enum scope_fit
decide_scope_fit(const struct decide_scope *scope, struct str method, struct str path, const struct mcp_message *mcp,
                 bool deny)
{
    enum scope_fit fit = path_fit(scope, method, path, deny);

    return fit == SCOPE_YES && scope->n_tools > 0 ? tool_fit(scope, mcp, deny) : fit;
}
