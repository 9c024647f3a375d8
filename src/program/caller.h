/* program/caller.h: who calls, and from where: what policies depend on
 */
#ifndef CLOCHE_PROGRAM_CALLER_H
#define CLOCHE_PROGRAM_CALLER_H

#include "base/err.h"
#include "policy/policy.h"

/* The caller's facts. Strings live until exit. */
int cli_host(struct policy_host *host, struct err *err);

#endif
