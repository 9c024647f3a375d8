/* program/toolchains.h: compilers and interpreters that the user installed for himself, found by a word
 *
 * A private root has /usr and /opt. What rustup, nvm, pyenv and the like put into the home is shown read-only at its
 * own path, as much of it as runs, and never the folders beside that in which they keep logins (~/.cargo, ~/.npmrc).
 */
#ifndef CLOCHE_PROGRAM_TOOLCHAINS_H
#define CLOCHE_PROGRAM_TOOLCHAINS_H

#include <limits.h>
#include <stddef.h>

#include "base/err.h"

#define TOOLCHAINS_SHOWN_MAX 48
#define TOOLCHAINS_ENV_MAX   16
#define TOOLCHAINS_PATH_MAX  16384

struct toolchains {
    const char *names[16];          /* those that are there */
    size_t n;
    char shown[TOOLCHAINS_SHOWN_MAX][PATH_MAX];     /* for --bind */
    size_t n_shown;
    char env[TOOLCHAINS_ENV_MAX][PATH_MAX + 32];    /* "RUSTUP_HOME=/home/me/.rustup" */
    size_t n_env;
    char folders[TOOLCHAINS_PATH_MAX];  /* for the PATH inside, before the usual ones: "/a:/b:", or "" */
};

#define TOOLCHAINS_HELP "auto, none, or of: rustup, npm, nvm, fnm, pyenv, uv, go, sdkman, homebrew, deno, bun"

/* What @which names ("auto": each that is there), of the home @home. What lies in the folder @project is passed over:
 * what a sandbox may write does not say what another one shows. 0; -1 with @err: "toolchains.unknown", or
 * "toolchains.absent" for one that was named and is not there. */
int toolchains_find(const char *which, const char *home, const char *project, struct toolchains *out, struct err *err);

#endif
