/* match/git_config_add.h: what a sandbox added to its copy of a repository's configuration, for the owner's own
 *
 * Theory: a sandbox has a copy of `.git/config` that it can write as it likes. When it has ended, what it added is
 * appended to the owner's, if that is a new remote, what a branch follows, or a submodule, by keys of the list in
 * git_config.c. Nothing that the owner's file has is changed, removed or given a second value, whatever became of the
 * copy; and no byte of the copy is copied: what is appended is written anew from what was read. So an addition names
 * what nobody had named before, and git runs nothing for it.
 *
 * It is appended, so a reader that comes while it is written sees the owner's whole file and the beginning of that.
 */
#ifndef CLOCHE_MATCH_GIT_CONFIG_ADD_H
#define CLOCHE_MATCH_GIT_CONFIG_ADD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define GIT_CONFIG_ADD_MAX 256      /* entries, for one configuration */
#define GIT_CONFIG_ADD_ROOM 65536   /* bytes that they take */

/* Entry by entry: @key ("remote.fork.url"; its bytes may be any) came, or would have changed or ended what is there;
 * @kept: it is among what is appended. */
typedef void git_config_said(void *ctx, struct str key, bool kept);

/* @base is what the copy was at the start, @copy what it is now, @now the owner's file. What is to be appended to @now
 * goes to @out, empty before, with the ceiling GIT_CONFIG_ADD_ROOM; it stays empty where that is nothing. 0; -1: one of
 * the three cannot be read as git reads it, or there is no memory: then nothing is to be appended. */
int git_config_add(struct str base, struct str copy, struct str now, struct buf *out, git_config_said *said, void *ctx);

#endif
