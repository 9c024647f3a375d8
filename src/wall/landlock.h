/* wall/landlock.h: path, socket and signal rules that need no privilege and no namespace
 *
 * Theory: a Landlock domain denies every right that it *handles* and no rule grants. We handle all rights that
 * the running kernel knows, so that a newer kernel means a tighter wall, and say exactly which promises an older
 * one cannot keep (struct landlock_support). The caller names the promises that it depends on: when one of them
 * is missing, landlock_restrict refuses before it restricts anything; whether to go on with less is the caller's
 * decision, never made here. Rights are checked when a file is opened: descriptors that were open before keep
 * what they had. Inherited by every child; can only be narrowed.
 */
#ifndef CLOCHE_WALL_LANDLOCK_H
#define CLOCHE_WALL_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define LANDLOCK_RULES_MAX 16384    /* paths per domain; more are refused (20 µs for 5, then 1 µs each) */

/* What may be done below a path. No class grants making device nodes: nothing in a sandbox may. */
enum landlock_access {
    LANDLOCK_READ,          /* read files, list folders */
    LANDLOCK_READ_EXEC,     /* ... and execute */
    LANDLOCK_WRITE,         /* read, write, truncate, create, remove, rename; not execute */
    LANDLOCK_FULL,          /* WRITE and execute */
    LANDLOCK_DEVICE,        /* read, write and ioctl on what exists (/dev/null, terminals); nothing else */
};

struct landlock_rule {
    int fd;                 /* O_PATH descriptor of the file or folder; -1: open @path */
    const char *path;       /* also used in messages; may be NULL when @fd is given */
    enum landlock_access access;
    bool check_identity;    /* @path has to be the object @dev, @ino */
    dev_t dev;
    ino_t ino;
    bool optional;          /* a @path that does not exist, or that this user cannot reach, is skipped, not refused */
};

/* Promises, as a bit mask. */
enum landlock_feature {
    LANDLOCK_HAS_FILES     = 1 << 0,    /* ABI 1, Linux 5.13: open, exec, create, remove */
    LANDLOCK_HAS_REFER     = 1 << 1,    /* ABI 2, Linux 5.19: renames and links between folders are possible at all;
                                         * before, they are always refused: programs suffer, the wall does not */
    LANDLOCK_HAS_TRUNCATE  = 1 << 2,    /* ABI 3, Linux 6.2: truncate(2) of a read-only file is refused */
    LANDLOCK_HAS_TCP       = 1 << 3,    /* ABI 4, Linux 6.7: TCP bind and connect by port */
    LANDLOCK_HAS_IOCTL_DEV = 1 << 4,    /* ABI 5, Linux 6.10: ioctl on device files */
    LANDLOCK_HAS_ABSTRACT  = 1 << 5,    /* ABI 6, Linux 6.12: abstract unix sockets outside are out of reach */
    LANDLOCK_HAS_SIGNAL    = 1 << 6,    /* ABI 6, Linux 6.12: signals stay inside */
    LANDLOCK_HAS_LOG       = 1 << 7,    /* ABI 7, Linux 6.15: denials can be logged or muted */
};
#define LANDLOCK_ALL_FEATURES 0xffu

struct landlock_support {
    int abi;                /* as the kernel says; 0: no Landlock */
    unsigned features;      /* enum landlock_feature bits that this kernel has */
    unsigned missing;       /* the others */
    const char *why_not;    /* abi 0: "not built into this kernel" or "disabled at boot"; else NULL */
};

struct landlock_tcp_port {
    uint16_t port;
    bool bind, connect;
};

struct landlock_plan {
    const struct landlock_rule *rules;          /* borrowed */
    size_t n_rules;
    bool restrict_files;                        /* handle file rights; with no rule nothing can be opened */
    bool restrict_tcp;                          /* refuse TCP bind and connect but for @ports */
    const struct landlock_tcp_port *ports;
    size_t n_ports;
    bool scope_abstract;                        /* abstract sockets made outside cannot be connected to */
    bool scope_signal;                          /* processes outside cannot be signalled */
    bool log;                                   /* denials of what is executed go to the host's audit log (ABI 7) */
    bool ioctl_dev;                             /* refuse ioctl on devices opened inside, but for LANDLOCK_DEVICE */
    unsigned required;                          /* features without which to refuse; 0: take what there is */
};

/* Ask the kernel. Never fails: no Landlock is an answer. Async-signal-safe. */
void landlock_probe(struct landlock_support *out);

/* "truncate", and "Linux 6.2" */
const char *landlock_feature_name(enum landlock_feature feature);
const char *landlock_feature_kernel(enum landlock_feature feature);

/* Set no_new_privs and confine the calling thread by @plan. @support may be NULL (asked then) and is taken as
 * given otherwise, to spare the call. No allocation: fit for a clone child. All or nothing.
 * 0, or -1 with @err: wall.landlock.unsupported (a required feature: the message names it, the hint the kernel
 * that has it), wall.landlock.rule (a path that cannot be used), wall.landlock.plan, wall.landlock.restrict. */
int landlock_restrict(const struct landlock_plan *plan, const struct landlock_support *support, struct err *err);

#endif
