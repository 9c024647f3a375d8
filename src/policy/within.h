/* policy/within.h: whether one policy allows no more than another
 *
 * For policies that somebody asks for who may not have everything that whoever runs cloche may have: what the asked one
 * says is held against a ceiling, member by member. Whoever may give a sandbox a folder of the host's may read that
 * folder, and whoever may choose where a secret goes may have it; so this is a boundary, and what it does not know it
 * refuses.
 */
#ifndef CLOCHE_POLICY_WITHIN_H
#define CLOCHE_POLICY_WITHIN_H

#include "base/err.h"
#include "policy/policy.h"

/* Members that may exceed the ceiling, because somebody else judges them. */
#define WITHIN_NETWORK 0x1U     /* a network by name, and which names; never the host's network */
#define WITHIN_LIMITS  0x2U
#define WITHIN_REGISTRIES 0x4U  /* which registries; their hosts are among the allowed ones already */

/* Both with all their layers and not validated yet (validation only settles what follows from the rest). 0, or -1 with
 * @err (ERR_DENIED, policy.ceiling), which names the first member of @asked that is more than @ceiling has. */
int policy_within(const struct policy *ceiling, const struct policy *asked, unsigned free, struct err *err);

#endif
