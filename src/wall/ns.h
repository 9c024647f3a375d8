/* wall/ns.h: namespaces, and who the sandbox's user is */
#ifndef CLOCHE_WALL_NS_H
#define CLOCHE_WALL_NS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Fork into the namespaces of @flags (CLONE_NEW*). Returns 0 in the child, the pid in the parent with *pidfd set
 * (O_CLOEXEC), or -1 with @err, whose hint says what the host forbids. clone3 is used when it is there (it is what
 * places the child into the cgroup @cgroup_fd of a v2 hierarchy, -1 for none); clone otherwise. The caller must be
 * single-threaded. */
pid_t ns_clone(uint64_t flags, int cgroup_fd, int *pidfd, struct err *err);

struct ns_ids {
    uint32_t inside_uid, inside_gid;
    uint32_t outside_uid, outside_gid;
    bool deny_setgroups;        /* required when the writer is an ordinary user: groups stay */
};

/* Write the maps of @pid: exactly one uid and one gid exist inside. */
int ns_write_maps(pid_t pid, const struct ns_ids *ids, struct err *err);

/* In the child, after the maps are written: become the mapped user, with no supplementary group where that is
 * allowed. */
int ns_become(const struct ns_ids *ids, struct err *err);

/* Whether the real, the effective and the saved uid and gid all are that user's already, with no group to give up. */
bool ns_is(const struct ns_ids *ids);

/* Move the calling thread into a network namespace of its own in which `lo` is up. Returns a descriptor of it
 * (O_CLOEXEC), with which another thread can follow, or -1 with @err and the hints of ns_clone. */
int ns_network(struct err *err);
int ns_own_network(void);       /* the one that we are in: a descriptor (O_CLOEXEC); -1 with errno */
int ns_enter_network(int ns, struct err *err);

/* A user namespace that maps exactly host uid/gid @from (as stored on disk) to @to, and @also (0: nobody else) to
 * itself, for idmapped mounts. Returns its fd or -1. Needs CAP_SETUID over the caller's namespace. */
int ns_idmap(uint32_t from_uid, uint32_t to_uid, uint32_t from_gid, uint32_t to_gid, uint32_t also, struct err *err);

#endif
