/* engine/native/fill.h: what a sandbox's own folders begin with: copies of files of an earlier one
 *
 * A template is a folder of cloche's own with one folder for each of fill_places, made by tree_copy (workspace/copy.h).
 * The child copies them when its root stands and it has joined its cgroups, before it is the guest: as the sandbox's
 * user, so that the files are that user's, and so that their memory and the limit of disk are the sandbox's. What the
 * plan has put there itself (files with placeholders) stays.
 */
#ifndef CLOCHE_ENGINE_NATIVE_FILL_H
#define CLOCHE_ENGINE_NATIVE_FILL_H

#include "engine/native/plan.h"

/* In the child. 0, or -1 with @err. */
int fill_places(const struct native_plan *plan, struct err *err);

#endif
