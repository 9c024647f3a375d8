/* workspace/git_mark.h: which changes are, or complete, state of git that runs programs
 *
 * The tree is judged as it would be after applying, by the shape of a repository (match/git_shape.h), at any depth and
 * name. Since apply may take over a part of the changes, what either side has counts as there.
 */
#ifndef CLOCHE_WORKSPACE_GIT_MARK_H
#define CLOCHE_WORKSPACE_GIT_MARK_H

#include "workspace/diff.h"

/* Set CHANGE_GIT where it belongs, and take CHANGE_PROTECTED from what is protected only by a name of git's, is new,
 * and is harmless: repositories, submodules and worktrees that the run made. Nothing is written. 0, or -1 with @err. */
int git_mark(const struct diff_input *in, struct changes *c, struct err *err);

/* Whether a directory with changes that mean something in a repository is one by now, and was not judged as one: a
 * sandbox of the same project may have made it one meanwhile. Its path is in @path. */
bool git_mark_late(const struct diff_input *in, const struct changes *c, struct buf *path);

#endif
