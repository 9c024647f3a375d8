/* engine/native/orphans.h: light mode has no process namespace whose end would end all that is in it
 *
 * Whatever the guest could not end (it was killed itself) becomes a child of this process, because that is a subreaper
 * (PR_SET_CHILD_SUBREAPER, prctl(2)). Children that it had before are not the sandbox's: a shell may have started some
 * and then become cloche by exec.
 */
#ifndef CLOCHE_ENGINE_NATIVE_ORPHANS_H
#define CLOCHE_ENGINE_NATIVE_ORPHANS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Before the sandbox starts: this process becomes a subreaper. *earlier, which the caller frees, are its children now.
 * SIGCHLD is no longer ignored: so a number in the list stays that child's, as nobody waits for it. */
int orphans_begin(pid_t **earlier, size_t *n, struct err *err);
/* Kills and reaps every child but those in @earlier and @janitor until there is none. What a child of @earlier leaves
 * behind when it ends meanwhile cannot be told from the sandbox's, and is killed too. */
void orphans_kill(const pid_t *earlier, size_t n, pid_t janitor);

#endif
