/* guest/changes.h: what changes below a directory, told as it happens (FILE_WATCH)
 *
 * Theory: one inotify instance per watched directory, one watch in it per directory below. The kernel's queue is the
 * only buffer: it is read while the host has given credit and the transport has room, so who reads slowly costs the
 * guest nothing; a queue that ran over is told (CHANGE_OVERFLOW), and then all is watched anew before it is.
 *
 * A directory that appears is watched first and read after that: what was made in it before is told by its reading,
 * what is made later by the kernel; in between perhaps by both. Directories are opened one component at a time without
 * following links, from the place that the request's path leads to, which is looked up anew each time: who moves it
 * ends the watch (FILE_CODE_WATCH_GONE).
 */
#ifndef CLOCHE_GUEST_CHANGES_H
#define CLOCHE_GUEST_CHANGES_H

#include "base/dirents.h"
#include "guest/files.h"

#define CHANGES_ROOT 0          /* index of the directory that was asked for */

/* A directory with a watch. Its place is where it was when that was last known: an event puts it right. */
struct change_dir {
    int wd;                     /* -1: free */
    int parent;                 /* index; -1 of CHANGES_ROOT */
    bool unread;                /* its entries are still to be looked at */
    char *name;                 /* owned; NULL of CHANGES_ROOT */
};

/* The first half of a rename, until the other one is seen or is not to come. */
struct change_move {
    bool is, directory;
    uint32_t cookie;
    int wd;
    uint64_t until_us;
    char name[NAME_MAX + 1];
};

struct changes {
    uint16_t request;
    int fd;                     /* of inotify */
    bool recursive;
    bool told;                  /* WATCHING was said */
    bool quiet;                 /* everything is being placed: nothing of it is told but what cannot be */
    bool lost;                  /* it is to be placed anew, when it was placed */
    bool missed;                /* a directory was not where it had to be; if one was renamed, that is why */
    uint32_t room, window;      /* credit, and the most of it */
    uint64_t dev, ino;          /* of the directory that was asked for */
    struct change_dir *dirs;    /* owned; CHANGES_ROOT is the first */
    size_t n_dirs, cap;         /* places in use or free again; allocated */
    size_t n_live, n_unread;
    int last;                   /* the latest that was found */
    struct dirents *names;      /* of the directory that is read, with its descriptor; NULL none */
    int reading;                /* which that is */
    struct change_move move;
    size_t at, n;               /* of @batch: what is not looked at yet */
    _Alignas(8) char batch[4096];
    char path[MSG_PATH_MAX + 1];
};

/* --- changes.c. As files.c's: 0, or -1 when the guest must end ---------------------------------------------------- */
int changes_begin(struct guest *g, uint16_t request, const struct msg_file *m);
struct changes *changes_of(struct guest *g, uint16_t request);
/* Answer @error (FILES_..., an errno) and forget it. */
int changes_end(struct guest *g, struct changes *c, int error);
/* Whether its descriptor is to be read, and that. */
bool changes_wants(const struct guest *g, const struct changes *c);
int changes_read(struct guest *g, struct changes *c);
/* A bounded part of what is to be done for each; and when there is more: milliseconds, 0 at once, -1 nothing. */
int changes_step(struct guest *g);
int changes_patience(const struct guest *g);

/* --- changes_dirs.c: the directories ------------------------------------------------------------------------------ */
#define DIRS_DEEP (-20)         /* what is in it could not be named */
#define DIRS_LOST (-21)         /* the directories are not what is known of them */

int dirs_find(struct changes *c, int wd);               /* index or -1 */
int dirs_child(const struct changes *c, int parent, const char *name);
/* The path of @name in a directory ("" of that itself). -1: longer than a message has room for. */
int dirs_path(const struct changes *c, int dir, const char *name, char out[MSG_PATH_MAX + 1]);
/* Watch what @fd is, as @name in @parent. It is not watched yet, or is @was (-1 none), which is there now. 0;
 * DIRS_..., FILES_WATCH_..., or an errno. */
int dirs_place(struct changes *c, int fd, int parent, const char *name, int was);
/* Whether @fd is the directory that is watched as @index: 0, DIRS_LOST, or what dirs_place() says. */
int dirs_same(struct changes *c, int fd, int index);
void dirs_set_unread(struct changes *c, int index, bool unread);
/* Not watched any more, with all below it. */
void dirs_drop(struct changes *c, int index);
void dirs_clear(struct changes *c);
/* Open @name in a directory ("" that itself) to be read. 0 with *fd, FILES_WATCH_GONE, or an errno. */
int dirs_open(struct guest *g, const struct changes *c, int dir, const char *name, int *fd);

#endif
