/* warden/epoch.h: how long a front may remember what the warden told it
 *
 * Who a credential is for and what a default sandbox does are asked for far more often than they change. The warden
 * counts the changes, in a page that it writes and fronts can only read, and counts before it answers the question
 * that made a change. A front reads the count before it asks; the answer holds as long as the count is that one. So
 * whoever has been told that a token is revoked finds no front that remembers it, whatever still waits in queues, and
 * no message has to come for that. A page is its warden's: fronts end with their warden, before there is a new one.
 */
#ifndef CLOCHE_WARDEN_EPOCH_H
#define CLOCHE_WARDEN_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share the counts without a lock");

struct epochs {
    _Atomic uint64_t credentials;   /* one is for nobody any more, or its handle (handles.h) is another's */
    _Atomic uint64_t defaults;      /* a default sandbox has changed, or is another one */
};

/* The warden's page, and in *fd, which the caller owns, what fronts map it from. Nobody can write by that, whoever has
 * it (F_SEAL_FUTURE_WRITE, fcntl(2), Linux 5.1). NULL with @err. */
struct epochs *epochs_new(int *fd, struct err *err);
/* A front's view of it, for as long as it lives; @fd may be closed. NULL with errno. */
const struct epochs *epochs_map(int fd);

static inline void
epoch_next(_Atomic uint64_t *epoch)
{
    atomic_fetch_add(epoch, 1);
}

#endif
