/* run/args.h: a command line becomes a policy
 */
#ifndef CLOCHE_RUN_ARGS_H
#define CLOCHE_RUN_ARGS_H

#include <stdio.h>

#include "base/err.h"
#include "policy/policy.h"
#include "program/verb.h"

/* The flags of a policy, a line each, for --help. */
void cli_policy_flags(FILE *to);

/* Fill @p from the policy flags among argv[1..]: mode and settings first, whatever their place, then the rest in
 * order. Stops at the first operand or after "--". A flag that is not the policy's is @own's and goes to its @options
 * (verb_take), or is refused: "unknown flag", with the nearest known one. Returns the index of the first operand, or -1
 * with @err. */
int cli_policy_args(struct policy *p, enum policy_verb verb, int argc, char **argv, const struct policy_host *host,
                    const struct verb *own, void *options, struct err *err);
/* The same in mode @mode, whatever they say of the mode. */
int cli_policy_args_in(const char *mode, struct policy *p, enum policy_verb verb, int argc, char **argv,
                       const struct policy_host *host, const struct verb *own, void *options, struct err *err);

/* The index of the first word of argv[1..] that is neither a flag of a policy nor of @own, nor the value of one; or -1
 * with @err. */
int cli_policy_flags_end(int argc, char **argv, const struct verb *own, void *options, struct err *err);

#endif
