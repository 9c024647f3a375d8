/* program/installed.h: where a program of the user's is installed, and what of it a sandbox has to show
 *
 * A private root has /usr, /bin, /lib* and /opt. What lies elsewhere (a prefix of npm's, nvm, a virtual environment, a
 * file in ~/.local/bin) is shown read-only at its own path, as little of it as the program needs: the package's folder,
 * the environment, or the file alone, and the same of the interpreter that its first line names.
 */
#ifndef CLOCHE_PROGRAM_INSTALLED_H
#define CLOCHE_PROGRAM_INSTALLED_H

#include <limits.h>
#include <stddef.h>

#include "base/err.h"

#define INSTALLED_SHOWN_MAX 8

struct installed {
    char program[PATH_MAX];         /* the file itself */
    char shown[INSTALLED_SHOWN_MAX][PATH_MAX];
    size_t n_shown;
    char folders[2 * PATH_MAX];     /* for the PATH inside, before the usual ones: "/a:/b:", or "" */
};

/* The program @name (on PATH, absolute, or "~/..."; @more are further folders to look in, ended by NULL). What lies in
 * the folder @project is passed over: what a sandbox may write does not say what another one shows. 0, or -1 with
 * @err: "agent.not-installed" where it is not there. */
int installed_find(const char *name, const char *const *more, const char *home, const char *project,
                   struct installed *out, struct err *err);

#endif
