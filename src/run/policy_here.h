/* run/policy_here.h: whether this host can keep what a policy asks for
 */
#ifndef CLOCHE_RUN_POLICY_HERE_H
#define CLOCHE_RUN_POLICY_HERE_H

#include <stdbool.h>

#include "base/err.h"
#include "policy/policy.h"

/* Whether what @p asks for is refused at every start on this host, for this user; then @why says so as
 * the start would. Tries the host's features where that depends on them. */
bool policy_refused_here(const struct policy *p, struct err *why);
/* That, as a warning about @file. */
void policy_warn_here(const char *file, const struct err *why);

#endif
