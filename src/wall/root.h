/* wall/root.h: a private root file system
 *
 * Theory: everything is assembled in the child's own mount namespace, as detached mounts that are attached by
 * descriptor. One tmpfs carries /, /tmp, the home directory and a tmpfs workspace, so that one size is the disk
 * limit. Trees of the host are attached read-only unless the plan says otherwise; mount points inside a tree of
 * the host must exist (nothing is ever created there). /proc is mounted before the old root is detached: the
 * kernel refuses it afterwards, since no visible procfs is left to compare with. Linux >= 5.12.
 */
#ifndef CLOCHE_WALL_ROOT_H
#define CLOCHE_WALL_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define ROOT_BINDS_MAX 1024

enum root_op {
    ROOT_BIND,          /* a tree or file of the host at @dest */
    ROOT_SYMLINK,       /* @source is the link text */
    ROOT_DIR,           /* an empty directory in the tmpfs, mode @mode */
    ROOT_FILE,          /* a small file in the tmpfs with @source as its content */
    ROOT_MASK,          /* @dest, if it exists, becomes unreadable (empty, mode 000) */
    ROOT_SEAL,          /* @dest, a mask with holes that are mounted now, becomes read-only */
    ROOT_PIN,           /* @dest, if it exists, is attached on itself read-only */
    ROOT_WRITABLE,      /* @dest, a directory of the tmpfs, stays writable under a read-only root */
    ROOT_TMPFS,         /* the tmpfs again at @dest: a fresh empty directory of it covers what is there */
    ROOT_COVER,         /* a small file of the tmpfs with @source as its content lies over the file @dest, read-only
                         * but where @writable; @optional: where there is one */
    ROOT_OVERLAY,       /* copy-on-write: the child mounts overlay layers at @dest */
    ROOT_LAYER,         /* the folder @source of the host lies below the tmpfs's own folder @dest: what is in that
                         * one hides its things; what is written goes there, where @writable; @optional: left out
                         * where the kernel cannot do that */
};

struct root_item {
    enum root_op op;
    const char *source;
    const char *dest;           /* absolute, normalised, inside */
    int tree;                   /* ROOT_BIND, ROOT_PIN, ROOT_LAYER: a detached tree of a privileged parent, or -1 */
    dev_t dev;                  /* ROOT_BIND with tree == -1: what the parent saw; a change is refused */
    ino_t ino;
    bool check_identity;
    bool writable;
    bool recursive;
    bool optional;              /* absent source: skip */
    bool fleeting;              /* a mount of the host's, which may end meanwhile: left out without a destination */
    bool holes;                 /* ROOT_MASK of a folder: places in it will be opened again */
    bool mapped;                /* ROOT_FILE: @source is a mapping of the host's file, which the plan ends */
    mode_t mode;
    size_t size;                /* ROOT_FILE, ROOT_COVER: bytes of @source */
    size_t turn;                /* its place in the order in which the plan was made */
    int *kept;                  /* ROOT_COVER: a descriptor of the file for reading (O_CLOEXEC) goes here, or NULL */
};

struct root_plan {
    const struct root_item *items;      /* in order of attachment: parents first */
    size_t n_items;
    uint64_t tmpfs_bytes;               /* ceiling of the tmpfs; 0 = the kernel's default (half of RAM) */
    uint64_t tmpfs_inodes;
    uint32_t uid, gid;                  /* owner of the tmpfs, as seen inside */
    bool host_view;                     /* start from the host's tree read-only instead of an empty tmpfs */
    int host_tree;                      /* host view: detached tree from a privileged parent, or -1 */
    bool outside_root;                  /* the sandbox's user is uid 0 outside: file modes of /proc protect nothing */
    bool proc_open;                     /* every process is visible in /proc, even one that is not dumpable: the
                                         * guest's memory watchdog has to see it */
    bool proc_subset;                   /* mount /proc with subset=pid */
    int proc_tree;                      /* the procfs that a privileged parent made (wall/proc_outer.h), or -1 */
    bool readonly_root;
    const char *place;                  /* NULL, or: only build, as the folder "root" of this one, which has a folder
                                         * "scratch" too, and leave /proc and /dev in it to who enters it: both empty */
    bool by_chroot;                     /* an outer filter refuses pivot_root: no user namespace may be made inside */
    /* ROOT_OVERLAY: makes the detached copy-on-write mount, in the child (workspace/overlay.h provides it) */
    int (*overlay_mount)(void *ctx, struct err *err);
    void *overlay_ctx;
    bool layers;                        /* there is a ROOT_LAYER */
    /* ROOT_LAYER: a detached mount of @upper over @lower (the same provides it) */
    int (*layer_mount)(int lower, int upper, int work, struct err *err);
};

/* Build the root of @plan in the calling process's mount namespace (its own, fresh) and, without a @place, move the
 * process into it: on success the old root is gone then and the working directory is "/". *disk is a descriptor
 * (O_PATH, O_CLOEXEC) of the tmpfs that what is written inside goes to. 0, or -1 with @err.
 * Caller: a single-threaded child with CAP_SYS_ADMIN in the user namespace that owns its mount namespace. */
int root_enter(const struct root_plan *plan, int *disk, struct err *err);

/* The names in /proc, one after the other, that are masked or read-only in it, for who mounts it otherwise. NULL: no
 * more. */
const char *root_proc_name(size_t i, bool *masked);

#endif
