/* workspace/git_place.h: looking at a directory that git may take for a repository
 *
 * The directory may be a hostile one: nothing is followed, and of what is in it only regular files are read.
 */
#ifndef CLOCHE_WORKSPACE_GIT_PLACE_H
#define CLOCHE_WORKSPACE_GIT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "match/git_index.h"
#include "match/git_shape.h"

#define GIT_PLACE_TEXT_MAX (GIT_CONFIG_MAX + 1)     /* bytes that are read of a file */

/* The parts of a repository (ORed) that directory @dir has. */
unsigned git_place_parts(int dir);

/* Bytes that are read of a file that is @state. */
#define GIT_PLACE_TEXT(state) ((state) == GIT_STATE_INDEX ? (size_t)GIT_INDEX_MAX + 1 : (size_t)GIT_PLACE_TEXT_MAX)

/* How long names of objects are, as the configuration in the directory @dir says (git_oid_bytes). 0: it has none. */
size_t git_place_oid(int dir);

/* What in a repository runs programs, or leads what git writes elsewhere. */
struct git_offence {
    enum git_state state;
    char path[512];                 /* below the repository: "config", "hooks/pre-commit" */
    struct git_config_fault fault;  /* for a configuration */
};

/* Each offence of the directory @dir, which is one or would be one, @depth directories deep: @told is called; false
 * from it ends the search. 0, or -1 when it ended early. What cannot be read is an offence. */
int git_place_search(int dir, size_t depth, bool (*told)(void *ctx, const struct git_offence *o), void *ctx);

/* Whether there is none; else the first in @o (may be NULL). A commondir counts as one: where it leads is unknown. */
bool git_place_harmless(int dir, size_t depth, struct git_offence *o);

#endif
