/* engine/native/light_folder.h: the private HOME and TMPDIR of a sandbox in light mode
 *
 * Without a mount namespace they must be a real folder of the host: made for one run in the temporary folder, owned
 * by the sandbox's user, removed at its end (by the janitor when cloche is killed).
 */
#ifndef CLOCHE_ENGINE_NATIVE_LIGHT_FOLDER_H
#define CLOCHE_ENGINE_NATIVE_LIGHT_FOLDER_H

#include "engine/native/plan.h"

/* Its path, decided first of all, so that the janitor knows it: nobody can guess it before it exists. */
int light_folder_plan(struct native_plan *plan, const char *id, struct err *err);
/* Make it with its home/ and tmp/. Nothing may be there yet. */
int light_folder_make(const struct native_plan *plan, struct err *err);
/* Remove it and all that the sandbox left in it. 0 when it is gone (or never was). */
int light_folder_remove(const struct native_plan *plan, struct err *err);

#endif
