/* run/refusals.h: what a run was refused, said once at its end to a person at a terminal */
#ifndef CLOCHE_RUN_REFUSALS_H
#define CLOCHE_RUN_REFUSALS_H

#include "run/session.h"

/* Say on stderr in a few lines what @r was refused and, for a connection, the flag that would open it. Nothing
 * where nothing was refused. The names are the sandbox's: they are quoted (workspace/quote.h). */
void refusals_tell(const struct session *s, const struct session_result *r);

#endif
