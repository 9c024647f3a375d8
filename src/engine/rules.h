/* engine/rules.h: a policy's rules as the engine takes them
 *
 * The same policy with its paths as they really are on this host: links resolved, patterns as what exists and fits
 * them. What a sandbox made now would be held to; `cloche why` asks policy_why_path() about this one.
 */
#ifndef CLOCHE_ENGINE_RULES_H
#define CLOCHE_ENGINE_RULES_H

#include "base/err.h"
#include "policy/place.h"
#include "policy/policy.h"

struct engine_rules;

/* For the validated @p, which outlives it. 0 or -1 with @err, when a run would be refused for its rules. */
int engine_rules_make(const struct policy *p, struct engine_rules **out, struct err *err);
const struct policy *engine_rules_policy(const struct engine_rules *rules);
/* What somebody means by @path, links on the way followed as the sandbox would find them. False when it is no path. */
bool engine_rules_place(const struct engine_rules *rules, const char *path, struct place *out);
void engine_rules_free(struct engine_rules *rules);

#endif
