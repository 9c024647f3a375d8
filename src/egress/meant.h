/* egress/meant.h: what a request says in its fields that it means, in place of its first line
 *
 * Frameworks that serve browsers' forms or clients behind old proxies take another method from X-HTTP-Method-Override
 * and the like, and some servers another path from X-Original-URL. A rule or a binding that looks at methods or paths
 * has to fit what may be done, not what the first line says. What a query or a body says of that is not looked at.
 */
#ifndef CLOCHE_EGRESS_MEANT_H
#define CLOCHE_EGRESS_MEANT_H

#include "wire/http1.h"

struct meant {
    struct str method;      /* as well as that of the first line; empty: no other */
    bool unclear;           /* another path, or several words about the method */
};

/* Borrows from @head. */
struct meant meant_of(const struct http1_head *head);

#endif
