/* engine/native/fill.h: what a sandbox's own folders begin with: the files of an earlier one
 *
 * A template is a folder of cloche's own with one folder for each of engine_places, made by tree_copy
 * (workspace/copy.h). A large one has a note of its size beside these (ENGINE_BELOW): then they lie read-only below the
 * sandbox's own folders, in as much time as if they were empty. So the size is not the sandbox's: it is only compared
 * with the limit of disk, which counts what is written.
 *
 * Of a small one, and where the kernel cannot do that, the child copies them when its root stands and it has joined its
 * cgroups, before it is the guest: as the sandbox's user, so that the files are that user's, and so that their memory
 * and the limit of disk are the sandbox's. What the plan has put there itself (files with placeholders) stays in both
 * cases.
 */
#ifndef CLOCHE_ENGINE_NATIVE_FILL_H
#define CLOCHE_ENGINE_NATIVE_FILL_H

#include "engine/native/plan.h"

/* In the child. 0, or -1 with @err. */
int fill_places(const struct native_plan *plan, struct err *err);

#endif
