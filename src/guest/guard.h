/* guest/guard.h: names that must not come into being
 *
 * Theory: in a writable project some names are protected although they do not exist yet (`.git/hooks`, `.vscode`,
 * `.bashrc`): tools on the host execute what is planted there. A mount needs an existing file, Landlock cannot deny
 * by name. So the guest is the supervisor of a seccomp user-notification filter: the few system calls that create
 * names trap, and the guard *performs them itself*. It copies the path once out of the caller's memory, resolves it,
 * decides on the parent directory that it holds, and acts on that same descriptor. The caller's call is never
 * continued: its memory may have changed meanwhile. Every rename, link and creation in the sandbox passes through
 * this one thread, so no name moves between decision and act. The guard has the rights of its callers and no more
 * (same user, same namespaces, same Landlock domain, no capabilities): it cannot be made to do what they could not.
 *
 * What is trapped, what it costs and what it cannot do: docs/name-guard.md. Linux 5.14 (SECCOMP_ADDFD_FLAG_SEND).
 *
 * The plan (first half, guard_plan.c) is pure and used on both sides; the rest is linked into cloche-guest only.
 */
#ifndef CLOCHE_GUEST_GUARD_H
#define CLOCHE_GUEST_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* --- the plan ------------------------------------------------------------------------------------------------- */

#define GUARD_WIRE_MAX    (1024 * 1024)     /* bytes of an encoded plan */
#define GUARD_ROOTS_MAX   640               /* a multiple of 64 */
#define GUARD_RULES_MAX   8192              /* different ones: each may be about any number of roots */
#define GUARD_PATHS_MAX   1024              /* sockets, and socket trees, each */
#define GUARD_PATH_MAX    4095              /* bytes of one path */
#define GUARD_DEPTH_MAX   64                /* components of one protected path */

enum guard_flag {
    GUARD_NAMES    = 1 << 0,    /* creating, renaming, linking: protected names cannot come into being */
    GUARD_EXISTING = 1 << 1,    /* nothing else protects what exists (light mode, or more than can be mounted):
                                 * GUARD_REMOVES, and files without a name */
    GUARD_CONNECT  = 1 << 2,    /* unix sockets that lie in @socket_trees can be connected to only when listed */
    GUARD_WRITES   = 1 << 3,    /* whatever changes a file that exists passes through the guard too: opening for
                                 * writing, truncating, chmod, chown, xattrs, times. Removing does not. Implies
                                 * GUARD_NAMES; part of GUARD_EXISTING */
    GUARD_GIT      = 1 << 4,    /* no state that git executes comes into being, whatever its name (guard_git.h). Implies
                                 * GUARD_REMOVES: the host may make a repository meanwhile, which stays one */
    GUARD_GIT_ANY_CONFIG = 1 << 5,  /* ... but for configurations, which are free */
    GUARD_DEVICES  = 1 << 6,    /* the devices are the host's (light mode): most are closed (guard_device.c). Implies
                                 * GUARD_EXISTING */
    GUARD_REMOVES  = 1 << 7,    /* removing passes through the guard too: a mount goes when the host replaces what it
                                 * is on, and there is none on what the host makes meanwhile. Implies GUARD_WRITES;
                                 * part of GUARD_EXISTING */
};
#define GUARD_FLAGS_ALL 0xffu

/* @flags with what they imply. */
static inline uint32_t
guard_flags_whole(uint32_t flags)
{
    if ((flags & GUARD_DEVICES) != 0)
        flags |= GUARD_EXISTING;
    if ((flags & (GUARD_EXISTING | GUARD_GIT)) != 0)
        flags |= GUARD_REMOVES;
    if ((flags & GUARD_REMOVES) != 0)
        flags |= GUARD_WRITES;
    return (flags & GUARD_WRITES) != 0 ? flags | GUARD_NAMES : flags;
}

/* Some of the roots, by number. */
struct guard_roots {
    uint64_t word[GUARD_ROOTS_MAX / 64];
};

static inline void
guard_roots_add(struct guard_roots *s, size_t i)
{
    s->word[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool
guard_roots_has(const struct guard_roots *s, size_t i)
{
    return (s->word[i / 64] >> i % 64 & 1) != 0;
}

static inline bool
guard_roots_any(const struct guard_roots *s)
{
    uint64_t any = 0;

    for (size_t i = 0; i < GUARD_ROOTS_MAX / 64; i++)
        any |= s->word[i];
    return any != 0;
}

/* The first one from @from on, or @n, which is how many there are at most. */
static inline size_t
guard_roots_next(const struct guard_roots *s, size_t from, size_t n)
{
    for (size_t i = from; i < n; i = (i / 64 + 1) * 64) {
        uint64_t rest = s->word[i / 64] >> i % 64;
        if (rest != 0)
            return i + (size_t)__builtin_ctzll(rest);
    }
    return n;
}

/* A name that counts in one writable folder counts in hundreds of others too: it is there once, with those in which it
 * does. */
struct guard_rule {
    char *path;     /* relative to each root: components joined by one '/', none of them "." or "..". What it names
                     * (file or directory, and everything below) is protected; its ancestors up to the root can only
                     * be plain directories and cannot be renamed */
    bool allow;     /* the opposite: this place below a protected one is open again. The longer path wins */
    bool own;       /* protected, and a file of the sandbox's own lies over it, which gets what is renamed to it. Beside
                     * a rule that only protects it, or without one */
    struct guard_roots in;
};

struct guard_plan {
    uint32_t flags;             /* enum guard_flag */
    char **roots;               /* absolute, as seen inside; each must exist when the guard starts */
    size_t n_roots, last_root;
    struct guard_rule *rules;
    size_t n_rules, room;
    uint32_t *table;            /* by path and kind: rule + 1, 0 is free; a power of two slots */
    size_t n_table;
    char **sockets;             /* absolute paths inside that may be connected to; may be absent */
    size_t n_sockets;
    char **socket_trees;        /* directories (with what is below) in which sockets belong to the host; "/" is all. A
                                 * tree that is no mount of its own could be emptied by renaming */
    size_t n_socket_trees;
    char **trees;               /* GUARD_WRITES: absolute paths inside: what of the host is written to. A file of which
                                 * there are names elsewhere too (hard links) is copied before it is changed */
    size_t n_trees;
};

#define GUARD_PLAN_INIT { .flags = 0 }
#define cleanup_guard_plan __attribute__((cleanup(guard_plan_free)))

/* Copy one entry into @plan. Repeated entries are kept once. 0 or -1 (guard.plan.path, guard.plan.limit, memory). */
int guard_plan_protect(struct guard_plan *plan, const char *root, const char *path, struct err *err);
int guard_plan_allow(struct guard_plan *plan, const char *root, const char *path, struct err *err);
int guard_plan_own(struct guard_plan *plan, const char *root, const char *path, struct err *err);
int guard_plan_socket(struct guard_plan *plan, const char *path, struct err *err);
int guard_plan_socket_tree(struct guard_plan *plan, const char *path, struct err *err);
int guard_plan_tree(struct guard_plan *plan, const char *path, struct err *err);
/* The rules of @from into @plan, which has none yet. */
int guard_plan_copy(struct guard_plan *plan, const struct guard_plan *from, struct err *err);
void guard_plan_free(struct guard_plan *plan);

/* Append the encoding of @plan to @out. 0 or -1 (guard.plan.limit, memory). */
int guard_plan_emit(const struct guard_plan *plan, struct buf *out, struct err *err);
/* @plan must be GUARD_PLAN_INIT; freed by the caller in both cases. Whole input or refusal (guard.plan.wire ...). */
int guard_plan_parse(const void *p, size_t n, struct guard_plan *plan, struct err *err);

/* --- the filter ----------------------------------------------------------------------------------------------- */

#define GUARD_FILTER_MAX 384    /* instructions */

struct guard_insn {             /* struct sock_filter, named here so that no kernel header is needed */
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};

struct guard_filter {
    uint16_t n;
    struct guard_insn insn[GUARD_FILTER_MAX];
};

/* The filter that @flags need. @f->n is 0 when they need none (then install nothing). Pure. */
void guard_filter_build(uint32_t flags, struct guard_filter *f);

/* In the child, right before execve: install @f and send its listener over @sock, a connected AF_UNIX socket.
 * Nothing that the filter traps may be called between this and execve: the guest waits there (vfork). No memory, no
 * libc state; no_new_privs must be set. 0 or an errno: EBUSY when a supervisor is there already (a guard inside a
 * guard), EINVAL/ENOSYS on a kernel without it. On error the child must not go on. */
int guard_child_install(const struct guard_filter *f, int sock);

/* In the guest: take the listener that the child sent (blocks only when the child still lives and has not sent).
 * The descriptor (CLOEXEC) or -1 with errno. */
int guard_listener_take(int sock);

/* Does this kernel have what the guard needs? Installs nothing. 0 or -1 with @err (guard.unsupported). */
int guard_probe(struct err *err);

/* --- the supervisor ------------------------------------------------------------------------------------------- */

struct guard;

/* Open what the plan names; copies what it needs. Also makes this process non-dumpable: its descriptors are not
 * for those it watches. Needs /proc. 0 or -1 (guard.root, guard.proc, memory). */
int guard_new(const struct guard_plan *plan, struct guard **out, struct err *err);
void guard_free(struct guard *g);

/* Serve one call that waits on @listener, as poll(2) has just said by @revents, without blocking: what may block is
 * done by a forked child, which answers and ends by itself; tell guard_worker_ended() whom you reaped. May change and
 * restore the umask and the working directory.
 * 0: done for now; 1: no process uses the filter any more, close @listener; -1 with errno: it cannot be served. */
int guard_on_notify(struct guard *g, int listener, int revents);
/* Files that somebody writes in place take their names when they are complete. True when some are not: ask again. */
bool guard_settle(struct guard *g);
/* SIGIO came: somebody waits to read a file that we have a lease on. Who uses the guard without a handler for SIGIO
 * has no leases. */
void guard_lease_broken(struct guard *g);
/* A worker was reaped. True when @pid was one. */
bool guard_worker_ended(struct guard *g, pid_t pid);

/* The guest's own file requests go around the filter (it is not below it): ask before creating, replacing or
 * removing @name in the directory @dirfd. 0, or EACCES (and a denial is noted). */
int guard_check(struct guard *g, int dirfd, const char *name, const char *op);
/* Whether the file system takes @name, which was made, for a protected one: the same answers. Then the caller undoes
 * it. guard_check() asks this of what is there before. */
int guard_aliased(struct guard *g, int dirfd, const char *name, const char *op);
/* Whether what was made at @name, or came there by a rename, may be there (guard_after.c). guard_made() takes it away
 * if not. */
int guard_made(struct guard *g, int dirfd, const char *name, bool directory);
int guard_renamed(struct guard *g, int from, const char *from_name, int to, const char *to_name);
/* May the file @name be written to where it is? */
int guard_check_write(struct guard *g, int dirfd, const char *name);
/* Rename, if git's state is concerned: 0 when it is for the caller to do, GUARD_DONE, or an errno. Besides
 * guard_check() of both names. */
#define GUARD_DONE (-1000)     /* no code of files.h or walk.h */
int guard_rename(struct guard *g, int from, const char *from_name, int to, const char *to_name, bool replace);
/* The file @fd (open, complete) is to be @name: the same answers. GUARD_DONE: a copy of it has the name. */
int guard_place(struct guard *g, int fd, int dirfd, const char *name, bool replace);

/* The same before it writes to the file @name in @dirfd: one with names outside of the plan's trees becomes a copy, of
 * its first @keep bytes. 0, or EACCES (a denial is noted). */
int guard_unshare(struct guard *g, int dirfd, const char *name, uint64_t keep);
/* Whether @fd, opened for writing by that name since, is that file: 0, or EACCES. */
int guard_opened(struct guard *g, int dirfd, const char *name, int fd);

struct guard_denial {
    uint32_t count;         /* since it was last taken */
    const char *op;         /* "create", "mkdir", "rename", "link", "symlink", "write", "connect" ... */
    const char *target;     /* path inside */
    const char *rule;       /* "ROOT/PATH" of the plan, or the socket tree */
};

/* Take the next denial. False when there is none. Valid until the next call of any function here. Repetitions are
 * counted, and so are those that found no room (target "...": the rest). */
bool guard_next_denial(struct guard *g, struct guard_denial *out);

#endif
