/* run/fallback.h: what a run may go on with where its sandbox could not be made
 *
 * `fallback: warn` takes the next weaker mode (standard, then light); `no-sandbox` has no wall at all behind that. Both
 * only where the *host* lacks what the mode is built of. That question is put to the host alone
 * (engine_lacks), never to the run that failed: what a project holds, a disk that is full or namespaces that
 * are used up are things that a sandbox can bring about, so that the next one would have no wall.
 */
#ifndef CLOCHE_RUN_FALLBACK_H
#define CLOCHE_RUN_FALLBACK_H

#include <stdbool.h>

#include "base/err.h"
#include "run/session.h"

/* Whether @why, with which the sandbox for @policy could not be made, comes of a feature that this host lacks. What is
 * missing goes to @text, for people. Tries the host's features: 5-20 ms. */
bool fallback_lacks(const struct policy *policy, const struct err *why, char text[256]);

/* The policy of @s in mode light into r->weaker; before that @why was missing. 1; 0: that mode does not give what the
 * policy asks for, or it is the mode already; -1 with @err. */
int fallback_light(const struct session *s, struct session_result *r, const char *why, struct err *err);

#endif
