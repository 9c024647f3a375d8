/* match/git_config_add.h: what a sandbox added to its copy of a repository's configuration, for the owner's own
 *
 * Theory: a sandbox has a copy of `.git/config` that it can write as it likes. When it has ended, some of what it
 * added is appended to the owner's. Whoever is inside must not gain that the owner's git goes by itself where it would
 * not have gone: to push what nobody inside may send, or to fetch into the project what nobody inside may see. So
 *  - a new remote is an address on the network under a plain name that the owner's configuration says nowhere (a word
 *    in `remote.pushDefault`, or in an alias) and that is no path either, writes to its own refs, and is left out of
 *    `fetch --all`, `remote update` and prefetching (`skipFetchAll`, which also marks it: it is not the owner's to the
 *    next run). The owner's `url.*.insteadOf` makes nothing else of its address, and no include of the owner's waits
 *    for it (`includeIf.hasconfig:remote.*.url:`);
 *  - a branch follows its own name at the remote to which git would go from it anyhow;
 *  - submodules are the owner's to begin (`git submodule init`): with them here, `update` and `pull` clone.
 * Nothing that the owner's configuration says, here or elsewhere, is changed, removed or given a second value,
 * whatever became of the copy; and no byte of the copy is copied: what is appended is written anew from what was read,
 * and read again.
 *
 * It is appended, so a reader that comes while it is written sees the owner's whole file and the beginning of that.
 */
#ifndef CLOCHE_MATCH_GIT_CONFIG_ADD_H
#define CLOCHE_MATCH_GIT_CONFIG_ADD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "match/git_config.h"

#define GIT_CONFIG_ADD_MAX 256      /* entries, for one configuration */
#define GIT_CONFIG_ADD_ROOM 65536   /* bytes that they take */

/* Entry by entry: @key ("remote.fork.url"; its bytes may be any) came, or would have changed or ended what is there;
 * @kept: it is among what is appended. */
typedef void git_config_said(void *ctx, struct str key, bool kept);

struct git_config_owner {
    struct str now;         /* the owner's file */
    struct str elsewhere;   /* what the rest of the owner's configuration says, as one text of git_config_write() */
    /* whether the owner's git takes @name, a plain word, for something that is no remote of a configuration: a path.
     * NULL: it does not */
    bool (*is_taken)(void *ctx, const char *name);
    void *ctx;
};

/* @base is what the copy was at the start, @copy what it is now. What is to be appended to @owner->now goes to @out,
 * empty before, with the ceiling GIT_CONFIG_ADD_ROOM; it stays empty where that is nothing. 0; -1: one of them cannot
 * be read as git reads it, or there is no memory: then nothing is to be appended. */
int git_config_add(struct str base, struct str copy, const struct git_config_owner *owner, struct buf *out,
                   git_config_said *said, void *ctx);

/* Append an entry, with a header of its own. */
void git_config_write(struct buf *out, const struct git_config_entry *e);

#endif
