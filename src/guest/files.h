/* guest/files.h: what files.c (requests) and remove.c (trees) share */
#ifndef CLOCHE_GUEST_FILES_H
#define CLOCHE_GUEST_FILES_H

#include "base/dirents.h"
#include "guest/guest.h"
#include "guest/replace.h"
#include "guest/walk.h"

/* Answers that are no errno (WALK_ESCAPES is -1). */
#define FILES_NOT_REGULAR (-2)
#define FILES_NO_ROOT     (-3)
#define FILES_TOO_DEEP    (-4)
#define FILES_CANCELLED   (-5)
#define REMOVE_MORE       (-6)
#define FILES_WATCHES     (-7)
#define FILES_WATCH_DIRS  (-8)
#define FILES_WATCH_SYSTEM (-9)
#define FILES_WATCH_GONE  (-10)

#define REMOVE_DEPTH_MAX 128        /* directories inside each other, each held open */

struct remove_tree;

struct file_job {
    uint16_t request;               /* 0: free */
    uint8_t type;
    bool stepping;
    int fd;                         /* -1 of a WRITE: it failed, what still comes is dropped until its end */
    off_t offset;
    uint64_t left, count;
    struct dirents *names;          /* LIST */
    struct remove_tree *tree;       /* REMOVE */
    struct replacement *replacement;    /* WRITE: what @fd is to be; NULL: it is written in place */
};

struct files {
    struct file_job jobs[MSG_FILES_MAX];
    size_t n_stepping;
};

int files_fail(struct guest *g, uint16_t request, int error);
/* Where the path of a request leads: 0, an errno or WALK_ESCAPES; @out->dir is -1 unless 0. */
int files_walk(struct guest *g, const char *path, bool follow, struct walk_place *out);
/* What to answer when a name could not be opened where that leads. */
int files_open_error(int error);

/* remove.c: one name, file or empty directory. 0 or an errno (ENOTEMPTY); counts what is gone. */
int remove_one(struct guest *g, int dir, const char *name, uint64_t *count);
/* A directory with contents; @dir becomes the tree's on success. 0 or what to answer. */
int remove_tree_begin(int dir, const char *name, struct remove_tree **out);
/* A bounded part of the work: REMOVE_MORE, 0 when all is gone, or what to answer. */
int remove_tree_step(struct guest *g, struct remove_tree *t, uint64_t *count);
void remove_tree_free(struct remove_tree *t);

#endif
