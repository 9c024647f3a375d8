/* policy/place.h: which thing a path means, before anything is mounted
 *
 * Under a private root two names lead to one file: the host's (/home/u/app/x) and the sandbox's (/workspace/x). Rules
 * and questions may use either. Pure: nobody looks at the disk.
 */
#ifndef CLOCHE_POLICY_PLACE_H
#define CLOCHE_POLICY_PLACE_H

#include "match/path.h"
#include "policy/policy.h"

#define PLACE_WORKSPACE "/workspace"    /* where a private root has it, but with keep_path */

enum place_kind {
    PLACE_ABSENT,       /* not in the sandbox */
    PLACE_HOST,         /* the host's file, shown by the workspace, a bind, or the host view */
    PLACE_OWN,          /* the sandbox's own memory: /tmp, home, an empty /workspace */
    PLACE_SYSTEM,       /* the system, read-only */
    PLACE_KERNEL,       /* /proc and /dev of the sandbox */
};

struct place {
    enum place_kind kind;
    bool writable;                      /* by what shows it; rules may still close it */
    bool copy;                          /* a copy-on-write workspace: writes never reach the host */
    const struct origin *from;          /* of what shows it; NULL for the sandbox's own and the system */
    const struct policy_bind *bind;     /* the bind that shows it, if it is one */
    size_t root_n;                      /* bytes of @host that name the shown tree itself */
    char host[PATH_TEXT_MAX + 1];       /* the host's name; "" when the host has none */
    char inside[PATH_TEXT_MAX + 1];     /* the sandbox's name; "" when it has none */
};

/* Names in /etc that a private root has from the host, when they are there: only what programs need to start. The
 * engine shows these and no others. */
extern const char *const place_etc_host[];
extern const size_t n_place_etc_host;

/* The path of the workspace inside; in the host's tree its own. NULL where there is none of its own (the host's tree,
 * no folder). */
const char *policy_workspace_at(const struct policy *p);

/* What the normal absolute @path means under @p. Where both could be meant, the sandbox's name wins; with @host_name
 * (the path was relative, or below `~`: it can only be the host's) the host's name does. */
void policy_place(const struct policy *p, const char *path, bool host_name, struct place *out);
/* The same of a name that is the sandbox's, and nobody else's. */
void policy_place_inside(const struct policy *p, const char *path, struct place *out);
/* The same, knowing the workspace and the binds only: false when @path lies in none of them. */
bool policy_place_mounted(const struct policy *p, const char *path, bool host_name, struct place *out);

#endif
