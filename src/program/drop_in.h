/* program/drop_in.h: folders of small files that users add (runtimes.d, agents.d, recipes)
 *
 * Who can write there decides what cloche runs inside a sandbox, or opens for it: files and folders of other users,
 * files that others can write to, and links are refused.
 */
#ifndef CLOCHE_PROGRAM_DROP_IN_H
#define CLOCHE_PROGRAM_DROP_IN_H

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct drop_in {
    const char *read, *unsafe;      /* codes of what cannot be read, and of what is not safe */
    size_t max;                     /* bytes of a file */
    uid_t owner;                    /* trusted as root and the caller are: of the program that the folder came with */
    /* The file @path, which is called @name.yaml and says @text. 0 or -1 with @err, which ends the reading. */
    int (*take)(void *ctx, const char *path, const char *name, struct str text, struct err *err);
    void *ctx;
};

/* Each file *.yaml, in the order of names; a folder that is not there has none. 0 or -1 with @err.
 * The folder @name that came with cloche: beside the program, where it is installed, or built; its owner is trusted,
 * whatever @d says. */
int drop_in_came_with(const struct drop_in *d, const char *name, struct err *err);
/* Those that users add: /etc/cloche/NAME, then the caller's own, so that the nearer one replaces the other. */
int drop_in_added(const struct drop_in *d, const char *name, const char *home, struct err *err);
/* The caller's own folder @name: $XDG_CONFIG_HOME/cloche/NAME, or ~/.config/cloche/NAME. -1: there is no home. */
int drop_in_own(const char *name, const char *home, char out[PATH_MAX]);

#endif
