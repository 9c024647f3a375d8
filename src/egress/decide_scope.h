/* egress/decide_scope.h: whether a rule's methods, path and tools concern a request (decide.c's own) */
#ifndef CLOCHE_EGRESS_DECIDE_SCOPE_H
#define CLOCHE_EGRESS_DECIDE_SCOPE_H

#include "egress/decide.h"

enum scope_fit {
    SCOPE_NO,
    SCOPE_YES,
    SCOPE_UNKNOWN,      /* the request cannot be read (a tunnel) */
    SCOPE_AMBIGUOUS,    /* servers differ in what the path means: no rule can be held against it */
    SCOPE_UNREAD,       /* its body has to be known */
    SCOPE_TOOL,         /* of the rule's MCP server, but another tool */
    SCOPE_GARBLED,      /* servers may differ in what its body means */
};

/* @path in origin form ("/a/b?c"), as sent. One final slash does not matter. @mcp may be NULL: it is not known. @deny:
 * the rule closes what it fits. */
enum scope_fit decide_scope_fit(const struct decide_scope *scope, struct str method, struct str path,
                                const struct mcp_message *mcp, bool deny);

#endif
