/* program/logins.h: logins that an installed program keeps beside itself
 *
 * npm and pip have a configuration for all who use an installation (`npm config set -g //registry/:_authToken=...`),
 * and Homebrew the data of its servers. They lie in the folders that are shown so that the program runs.
 */
#ifndef CLOCHE_PROGRAM_LOGINS_H
#define CLOCHE_PROGRAM_LOGINS_H

#include <stddef.h>

#include "base/err.h"

#define LOGINS_MAX 256

/* Zero-initialise; free with logins_free(). */
struct logins {
    char *v[LOGINS_MAX];        /* for --deny-read: patterns that mean one place each */
    size_t n;
};

/* Add those in @folder, which is shown. 0; -1 with @err: there are more. */
int logins_find(struct logins *l, const char *folder, struct err *err);

void logins_free(struct logins *l);
#define cleanup_logins __attribute__((cleanup(logins_free)))

#endif
