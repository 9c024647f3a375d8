/* egress/decide_scope.h: whether a rule's methods and path concern a request (decide.c's own) */
#ifndef CLOCHE_EGRESS_DECIDE_SCOPE_H
#define CLOCHE_EGRESS_DECIDE_SCOPE_H

#include "egress/decide.h"

enum scope_fit {
    SCOPE_NO,
    SCOPE_YES,
    SCOPE_UNKNOWN,      /* the request cannot be read (a tunnel) */
    SCOPE_AMBIGUOUS,    /* servers differ in what the path means: no rule can be held against it */
};

/* @path in origin form ("/a/b?c"), as sent. One final slash does not matter. */
enum scope_fit decide_scope_fit(const struct decide_scope *scope, struct str method, struct str path);

#endif
