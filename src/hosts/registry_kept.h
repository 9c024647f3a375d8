/* hosts/registry_kept.h: what a registry's client said, kept for its user
 *
 * Clients take seconds to say what seldom changes. What one said is taken again while all that it depends on is as it
 * was: the client, PATH, the variables that decide, each configuration file that it reads or would read (by inode and
 * change time, which nobody can set), and for KEPT_S at most, since an index may move its files.
 *
 * It lies in a folder of the state folder that is its user's alone, and is not taken when others may write or read it,
 * nor when the sandbox may: then, as with any doubt, the client is asked.
 */
#ifndef CLOCHE_HOSTS_REGISTRY_KEPT_H
#define CLOCHE_HOSTS_REGISTRY_KEPT_H

#include <jansson.h>
#include <time.h>

#include "policy/policy.h"

#define KEPT_S 3600

/* An answer is an object {"hosts": [HOST], "env": {NAME: VALUE}, "files": {PATH: state}, "cas": [PATH], "inner": {HOST:
 * ADDRESS}}, and "at": seconds where it was kept. */

/* The answer about @name by the program @client, to be freed with json_decref; NULL: ask. */
json_t *registry_kept(const struct policy *p, const char *name, const char *client);
/* The same of one that is up to @most_s old, for who wants to know whether anything has changed since. */
json_t *registry_kept_for(const struct policy *p, const char *name, long most_s);
/* Keep @answer, which was asked for from @began on; of "files" the names are set. What cannot be kept is not. */
void registry_keep(const struct policy *p, const char *name, const char *client, const struct timespec *began,
                   json_t *answer);
/* Wait until nobody else asks about @name, so that what another one keeps meanwhile is taken. A descriptor, which holds
 * the lock; -1: there is none to be had, and it is asked all the same. */
int registry_lock(const struct policy *p, const char *name);

#endif
