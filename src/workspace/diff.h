/* workspace/diff.h: what a copy-on-write run changed
 *
 * Reads the upper layer against the project into a tree of changes. Nothing is written (but see tree_lift), nothing is
 * followed, and of an entry nothing is opened but directories and regular files.
 *
 * A file whose content, mode, type, target and user attributes are the project's is no change, whatever its times are.
 * Directories are listed when they are added, deleted or change their mode. Everything below a deleted or added
 * directory is listed too.
 */
#ifndef CLOCHE_WORKSPACE_DIFF_H
#define CLOCHE_WORKSPACE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "workspace/cow.h"
#include "workspace/protect.h"

#define CHANGES_MAX    1000000      /* entries looked at; a state with more is refused */
#define CHANGE_NOT     ((size_t)-1)

enum change_kind {
    CHANGE_NONE,            /* a directory that only leads to changes */
    CHANGE_ADDED,
    CHANGE_MODIFIED,        /* content, target or user attributes; perhaps mode too */
    CHANGE_DELETED,
    CHANGE_TYPE,            /* a file became a directory, a symlink ... */
    CHANGE_MODE,            /* only the permission bits */
};

/* Why an entry will not be taken over by apply, or not wholly. */
enum change_flag {
    CHANGE_SPECIAL = 1 << 0,        /* FIFO, socket or device: never applied */
    CHANGE_PROTECTED = 1 << 1,      /* only when named */
    CHANGE_OUTSIDE = 1 << 2,        /* a symlink that may leave the project: only when allowed */
    CHANGE_TOO_DEEP = 1 << 3,       /* path over TREE_PATH_MAX: not entered, never applied */
    CHANGE_UNREADABLE = 1 << 4,     /* the project's side cannot be read: never applied */
    CHANGE_OTHER_FS = 1 << 5,       /* a mount lies there on the host: never applied */
    CHANGE_SETID = 1 << 6,          /* applied without its set-user-id, set-group-id or sticky bit */
    CHANGE_ATTRS_LOST = 1 << 7,     /* applied without attributes that no sandbox may set */
    CHANGE_HOST = 1 << 8,           /* the project's side was changed after the run began: conflict */
    CHANGE_GIT = 1 << 9,            /* git would run what it says, or it completes a repository that has such: only
                                       when named */
    CHANGE_TOOL = 1 << 10,          /* another program runs or obeys it by itself (planted_table.c): only said */
};
#define CHANGE_NEVER (CHANGE_SPECIAL | CHANGE_TOO_DEEP | CHANGE_UNREADABLE | CHANGE_OTHER_FS)

struct change_side {
    mode_t mode;            /* with type; 0: there is nothing */
    uint32_t uid, gid;
    uint64_t size, ino, dev;
    uint64_t nlink;
    struct timespec mtime, ctime;
    char *target;           /* of a symlink; owned */
};

struct change {
    char *name;             /* one component; owned; "" for the root */
    size_t parent;          /* index; CHANGE_NOT for the root */
    size_t first, n;        /* its children are consecutive, sorted by name */
    size_t pair;            /* the other end of a rename (ADDED ↔ DELETED), or CHANGE_NOT */
    enum change_kind kind;
    unsigned flags;
    unsigned depth;         /* components of its path */
    bool opaque;            /* upper directory that hides the lower one */
    bool origin;            /* overlayfs copied it up from the project, under this or another name */
    bool has_changes;       /* itself or something below */
    unsigned char protection;   /* enum protect_match */
    bool git_place;         /* a directory that was judged as a repository (git_mark.h) */
    bool git_new;           /* and is one only with the changes */
    struct change_side lower, upper;
};

struct changes {
    struct change *v;       /* v[0] is the root */
    size_t n, cap;
    size_t bytes;           /* of names and targets, for the ceiling */
};

#define CHANGES_INIT { .v = NULL }
#define cleanup_changes __attribute__((cleanup(changes_free)))

struct diff_input {
    int project;                    /* the project's directory */
    int layers;                     /* holds upper/ */
    struct timespec since;          /* when the run began */
    const struct protect *protect;
};

/* 0 and @out, or -1 with @err (workspace.diff.too-large, workspace.diff.read). */
int diff_scan(const struct diff_input *in, struct changes *out, struct err *err);
void changes_free(struct changes *c);

/* The path of change @i, without NUL in its length, NUL-terminated. -1 when @path's ceiling is met. */
int change_path(const struct changes *c, size_t i, struct buf *path);
/* The next entry after @i in path order that is a change of its own; start with 0; CHANGE_NOT at the end. */
size_t change_next(const struct changes *c, size_t i);
/* The next entry in path order whether it is a change or not; with @skip not into the children of @i. */
size_t change_walk(const struct changes *c, size_t i, bool skip);

const char *change_kind_name(enum change_kind kind);    /* "added" ... */
const char *change_type_name(mode_t mode);              /* "file", "directory", "symlink", "fifo", "socket", "device" */

/* Whether the regular files behind @a and @b have the same bytes. Holes cost nothing. -1 with errno. */
int diff_same_content(int a, int b);

/* workspace/diff_rename.c: pair deleted with added files of the same size, time and content. */
int diff_renames(const struct diff_input *in, struct changes *c, struct err *err);

#endif
