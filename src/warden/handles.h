/* warden/handles.h: the numbers by which a front names its callers
 *
 * A handle stands for a credential on one front's edge. There is room for WARDEN_HANDLES, and a credential may be in a
 * few places only, which its hash says. A new one takes an empty place, else one of a credential that opens nothing any
 * more, else that which was used longest ago: who presents many evicts nobody who asks more often than that.
 */
#ifndef CLOCHE_WARDEN_HANDLES_H
#define CLOCHE_WARDEN_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"

#define WARDEN_HANDLES 8192     /* callers that one front may know at once */
#define HANDLE_WAYS    8        /* places that one credential may have */

struct handle {
    uint32_t number;                    /* its place, and above that how many had that place; 0 none yet */
    uint64_t used;                      /* in the order of uses */
    uint8_t hash[SHA256_SIZE];          /* of the credential */
};

struct handles {
    uint64_t uses;
    uint64_t ended;                     /* how many of the numbers are nobody's any more */
    struct handle at[WARDEN_HANDLES];
};

typedef bool handle_good_fn(void *ctx, const uint8_t hash[SHA256_SIZE]);

/* The handle of that credential, the one that it has or a new one, which no other has had; it is used now. @good tells
 * whether the credential of an older one is any still. 0: its place has had all the numbers there are. */
uint32_t handle_of(struct handles *h, const uint8_t hash[SHA256_SIZE], handle_good_fn *good, void *ctx);
/* The one of that number, which is used now. NULL: it is no more, or never was. */
const struct handle *handle_find(struct handles *h, uint32_t number);

#endif
