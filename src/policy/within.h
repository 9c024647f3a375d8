/* policy/within.h: whether one policy allows no more than another
 *
 * For a policy from a caller with fewer rights than the user who runs cloche. The policy is compared with a ceiling,
 * member by member. A caller who may give a sandbox a folder of the host can read that folder, and one who may choose
 * where a secret goes can have it. So this is a security boundary: it refuses what it does not know.
 */
#ifndef CLOCHE_POLICY_WITHIN_H
#define CLOCHE_POLICY_WITHIN_H

#include "base/err.h"
#include "policy/policy.h"

/* Members that may exceed the ceiling, because somebody else judges them. */
#define WITHIN_NETWORK 0x1U     /* a network by name, and which names; never the host's network */
#define WITHIN_LIMITS  0x2U
#define WITHIN_REGISTRIES 0x4U  /* which registries; their hosts are among the allowed ones already */
#define WITHIN_ENGINES 0x8U     /* which engine and runtime; never a weaker boundary (engine/engine.h: engine_within) */

/* Both with all their layers and not validated yet (validation only settles what follows from the rest). 0, or -1 with
 * @err (ERR_DENIED, policy.ceiling), which names the first member of @asked that is more than @ceiling has. */
int policy_within(const struct policy *ceiling, const struct policy *asked, unsigned free, struct err *err);

#endif
