/* workspace/cow.h: the states that copy-on-write runs leave behind
 *
 *   $XDG_STATE_HOME/cloche/cow/<id>/         0700, the caller's (as root without XDG_STATE_HOME: /var/lib/cloche/cow)
 *       meta.json                            whose changes these are, written once
 *       lock                                 flock: held by the run while it lives, and by the verbs at work
 *       layers/{upper,work}                  what the overlay wrote; owned by the project's owner
 *       journal, stage/                      only while an apply works, or was interrupted (apply.h)
 *
 * The last three components of that path are opened one by one, refused when they are symlinks, somebody else's, or
 * writable by others. What is in layers/ is hostile; everything else was written by us.
 *
 * When a run began is told by the ctime that the file system gave to the state's own files: a file of the project whose
 * ctime is later was changed by somebody else meanwhile (the sandbox's own writes never reach it).
 */
#ifndef CLOCHE_WORKSPACE_COW_H
#define CLOCHE_WORKSPACE_COW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

#define COW_ID_MAX   64     /* characters of an id: 8 to 64 lower-case hexadecimal digits */
#define COW_META_MAX (16 * 1024 * 1024)      /* bytes of meta.json */

struct cow_state {
    char id[COW_ID_MAX + 1];
    char *project;              /* absolute path as given when the run was made; owned */
    dev_t dev;                  /* of the project then */
    ino_t ino;
    char boot[64];              /* boot id then: @dev compares only within one boot */
    struct timespec created;    /* of the state's files, in the file system's clock */
    char **protect;             /* names that the run's policy protects beside the built-in ones, ended by NULL; owned.
                                 * NULL: an older cloche made the state, which did not write them down */
    char *path;                 /* of layers/; owned */
    int dir_fd;                 /* layers/ */
    int state_fd;               /* <id>/ */
    int lock_fd;                /* exclusive lock while >= 0 */
};

#define COW_STATE_INIT { .project = NULL, .path = NULL, .dir_fd = -1, .state_fd = -1, .lock_fd = -1 }
#define cleanup_cow __attribute__((cleanup(cow_close)))

/* Make the state of a run on @project (absolute) and lock it. What @protect names (ended by NULL) is kept with it, out
 * of the sandbox's reach: who applies the changes need not have the settings of the run, and what lies at their path by
 * then may be what the sandbox made of them. The layers belong to the project's owner and upper/ has its mode. The
 * caller passes @out->lock_fd on or keeps it open for as long as the sandbox lives. When the run cannot start after
 * all, cow_discard() takes the state away. 0, or -1 with @err (workspace.state.*). */
int cow_create(const char *project, const char *id, const char *const *protect, struct cow_state *out,
               struct err *err);

enum cow_lock {
    COW_LOCK_NONE,
    COW_LOCK_EXCLUSIVE,     /* refuses (workspace.state.busy) while the run or another verb has it */
    COW_LOCK_DISCARD,       /* the same, and what is damaged or missing inside is no reason to fail */
};

/* Open the state @id. */
int cow_open(const char *id, enum cow_lock lock, struct cow_state *out, struct err *err);
/* Whether somebody holds its lock. */
bool cow_busy(const struct cow_state *state);
void cow_close(struct cow_state *state);

/* An fd on the project, checked to be the directory that the run saw (workspace.project.changed otherwise). */
int cow_project_open(const struct cow_state *state, struct err *err);

/* One row of the list. */
struct cow_info {
    char id[COW_ID_MAX + 1];
    char *project;              /* owned; NULL when meta.json cannot be read */
    struct timespec created;
    bool busy;
    bool interrupted;           /* an apply did not end */
};
/* All states, newest first, into a malloc'ed array. Leftovers of interrupted discards are finished on the way.
 * Returns how many, or -1 with @err. Free with cow_list_free. */
ssize_t cow_list(struct cow_info **out, struct err *err);
void cow_list_free(struct cow_info *list, size_t n);

/* Which state a person means: an id or a beginning of one (at least four digits, unique), a project directory, or with
 * NULL the directory @cwd or the nearest one above it that has a state; of several the newest. Writes the id, or
 * workspace.state.none. */
int cow_find(const char *which, const char *cwd, char id[COW_ID_MAX + 1], struct err *err);

/* Remove the state and all that it holds. @state must be locked; it is closed. */
int cow_discard(struct cow_state *state, struct err *err);

#endif
