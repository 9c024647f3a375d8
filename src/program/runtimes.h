/* program/runtimes.h: the languages of the user's own, from the folders runtimes.d (docs/runtimes.md)
 *
 * /etc/cloche/runtimes.d for everybody on the machine, then $XDG_CONFIG_HOME/cloche/runtimes.d (~/.config by default).
 * Who can write there decides what cloche runs *inside* a sandbox for a name that is none of its own; files of other
 * users are refused all the same.
 */
#ifndef CLOCHE_PROGRAM_RUNTIMES_H
#define CLOCHE_PROGRAM_RUNTIMES_H

#include "base/err.h"
#include "policy/runtime.h"

struct runtimes {
    struct arena *arena;            /* owns the texts */
    struct language rows[LANGUAGES_MORE];
    size_t n;
};

/* All of them, in the order of folders and names. A folder that is not there has none; a file that cannot be used is
 * refused, and so are all. 0, or -1 with @err and nothing loaded. */
int runtimes_load(struct runtimes *r, struct err *err);
void runtimes_free(struct runtimes *r);     /* harmless on one that is all zero */
/* The language of that name: one of cloche's, which needs no folder, or else of the user's own, which are loaded for
 * language_find() and stay. NULL with @err, which names all. @name may be NULL: none was said. */
const struct language *runtimes_find(const char *name, struct err *err);
/* The same by the ending of a file's name. NULL with @err: no language has that ending, or the file has none. */
const struct language *runtimes_of_path(const char *path, struct err *err);

#endif
