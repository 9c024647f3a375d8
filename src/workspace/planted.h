/* workspace/planted.h: what in a folder makes a program of the host run something as soon as somebody looks there
 *
 * Two kinds: state that git executes, by the shape of a repository (workspace/git_place.h), and the files that other
 * tools obey when a folder is entered or opened: direnv, editors, package managers, debuggers (planted_table.c).
 *
 * The folder may be hostile and may change meanwhile: no symlink is followed, no mount crossed, no file opened but
 * git's own, and the search is bounded in depth, entries and time. It says when it ended early.
 */
#ifndef CLOCHE_WORKSPACE_PLANTED_H
#define CLOCHE_WORKSPACE_PLANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"

#define PLANTED_DEPTH   200         /* directories above one another that are entered */
#define PLANTED_KEPT    1000        /* finds that are kept; more are counted */

struct planted_find {
    char *path;             /* below the folder, any bytes; owned */
    const char *what;       /* "git configuration", "git hook", "VS Code tasks" */
    const char *runs;       /* "any git command there": what makes it run */
    char detail[96];        /* the key of a configuration; or "" */
};

struct planted {
    struct planted_find *v;
    size_t n;
    uint64_t more;          /* found, but not kept */
    uint64_t entries;       /* looked at */
    uint64_t us;            /* it took */
    bool complete;          /* to the end, everywhere */
};

#define PLANTED_INIT { .v = NULL }
#define cleanup_planted __attribute__((cleanup(planted_free)))

struct planted_input {
    int folder;                     /* an open directory; stays the caller's */
    const struct timespec *since;   /* only what changed then or later; NULL: everything */
    uint64_t max_entries, max_us;   /* 0: no limit */
};

/* 0 and @out (also when it ended early: @out->complete), -1 with @err. */
int planted_scan(const struct planted_input *in, struct planted *out, struct err *err);
void planted_free(struct planted *p);

/* planted_path.c: add to @out the programs that changed since @since in those folders of @dir that are on the search
 * path @path (NULL: none), if others of their names come later there, outside of @dir. */
void planted_path(const char *dir, const char *path, const struct timespec *since, struct planted *out);

/* For both. @path is below the folder; NULL: too long. */
void planted_add(struct planted *p, const char *path, const char *what, const char *runs, const char *detail);
/* The earliest stamp of what was changed after @began. */
struct timespec planted_since(const struct timespec *began);
bool planted_changed(const struct timespec *since, const struct timespec *t);

/* planted_table.c: a file that a tool obeys. */
struct planted_row {
    const char *dir;        /* a directory that it lies in or below, or NULL: anywhere */
    const char *name;       /* its own name; "*": any; "*.x": any that ends so */
    const char *what, *runs;
    bool directly;          /* in @dir, not below */
};

/* The row for a file called @name, whose directory is (@in) or lies below one that planted_dir() knew; NULL: none. */
const struct planted_row *planted_match(const char *dir, bool in, const char *name);
/* The table's own text for a directory name that rows mention; NULL: none does. */
const char *planted_dir(const char *name);
/* The first row for what lies in a directory called @name; NULL: none. */
const struct planted_row *planted_below(const char *name);
/* Whether these names of the policy's ("a" or "a/b") are obeyed in a home directory only. */
bool planted_of_home(struct str names);

#endif
