/* adapters/adapters.h: what adapters share among themselves */
#ifndef CLOCHE_ADAPTERS_ADAPTERS_H
#define CLOCHE_ADAPTERS_ADAPTERS_H

#include "adapters/visit.h"
#include "match/language.h"

extern struct visit *adapters_visits;           /* all that are there */

#define ADAPTER_FUNCTION(method, path, function, flags) void function(struct visit *r);
VISIT_ROUTES(ADAPTER_FUNCTION)
#undef ADAPTER_FUNCTION

void api_platform_look(const char *engine);     /* before confinement */
void adapters_packages(const struct language *l, struct edge_op *op);  /* where what was installed lies, for its code */
void mcp_gone(struct visit *r);                 /* nobody hears what it says any more; frees its call */

#endif
