/* workspace/git_mark.h: which changes are, or complete, state of git that runs programs
 *
 * The tree is judged as it would be after applying, by the shape of a repository (match/git_shape.h), at any depth and
 * name. Since apply may take over a part of the changes, what either side has counts as there.
 */
#ifndef CLOCHE_WORKSPACE_GIT_MARK_H
#define CLOCHE_WORKSPACE_GIT_MARK_H

#include "workspace/apply.h"

/* Set CHANGE_GIT where it belongs, and take CHANGE_PROTECTED from what is protected only by a name of git's, is new,
 * and is harmless: repositories, submodules and worktrees that the run made. Nothing is written. 0, or -1 with @err. */
int git_mark(const struct diff_input *in, struct changes *c, struct err *err);

/* Whether the directory of change @i, open as @dir, may be what it is now that its changes were moved into it. Not when
 * it is a repository and was not judged as one, or has what git runs beside what completed it: another sandbox of the
 * same project may have made that meanwhile. What comes after this, its guard judges. */
bool git_mark_holds(const struct changes *c, const enum fate *fate, size_t i, int dir);

#endif
