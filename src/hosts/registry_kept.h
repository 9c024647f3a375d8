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

/* The answer about @name by the program @client: an object {"hosts": [HOST], "env": {NAME: VALUE}, "files": {PATH:
 * state}, "at": seconds}, to be freed with json_decref; NULL: ask. */
json_t *registry_kept(const struct policy *p, const char *name, const char *client);
/* Keep @answer, of which "hosts", "env" and the names of "files" are set, and which was asked for from @began on. What
 * cannot be kept is not. */
void registry_keep(const struct policy *p, const char *name, const char *client, const struct timespec *began,
                   json_t *answer);

#endif
