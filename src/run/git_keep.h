/* run/git_keep.h: what a sandbox added to its copy of the project's git configuration, when it has ended */
#ifndef CLOCHE_RUN_GIT_KEEP_H
#define CLOCHE_RUN_GIT_KEEP_H

#include "run/session.h"

/* @sb was killed: append to the `.git/config` of each of its folders what match/git_config_add.h lets through, and say
 * (into @r, and to stderr if @say) what that was and what was left out. */
void git_keep(const struct sandbox *sb, struct session_result *r, bool say);

#endif
