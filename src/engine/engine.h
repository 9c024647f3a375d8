/* engine/engine.h: what every engine offers
 *
 * An engine builds walls and gives a byte transport to the guest; everything else (exec, stdin, pty, files,
 * limits on output and time) is the guest protocol (guest/client.h), identical on every engine.
 */
#ifndef CLOCHE_ENGINE_ENGINE_H
#define CLOCHE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/policy.h"

/* The promises an engine may make. `doctor` prints them; a policy that needs one that is not enforced is refused
 * unless it has a `fallback`. */
enum promise {
    PROMISE_OWN_ROOT,           /* own root file system */
    PROMISE_OWN_NETWORK,
    PROMISE_OWN_PIDS,
    PROMISE_UID_MAPPING,        /* its user is nobody on the host, or the caller without any privilege */
    PROMISE_NO_CAPABILITIES,
    PROMISE_SYSCALL_FILTER,
    PROMISE_LANDLOCK,
    PROMISE_MEMORY_LIMIT,
    PROMISE_CPU_LIMIT,
    PROMISE_PIDS_LIMIT,
    PROMISE_DISK_QUOTA,
    PROMISE_READONLY_ROOT,
    PROMISE_NAME_GUARD,         /* absent protected names cannot be created; sockets by path */
    PROMISE_KERNEL_BOUNDARY,    /* own kernel (microVM, gVisor) */
    PROMISE_N
};

enum enforcement { NOT_ENFORCED, ENFORCED, SUPERVISED /* by sampling and killing: bounded delay */ };

struct promise_state {
    enum enforcement state;
    char how[128];      /* "cgroup v1", "Landlock ABI 7" */
    char why_not[256];  /* empty when enforced */
    char remedy[512];   /* exact command or setting; empty when enforced */
};

struct engine_report {
    const char *engine;
    bool usable;                            /* standard mode can be built */
    bool usable_light;
    struct promise_state promises[PROMISE_N];
};

const char *promise_name(enum promise p);           /* "own-root" */
const char *promise_describe(enum promise p);       /* "own root file system" */

struct sandbox;     /* opaque; one live sandbox */

/* What ended the sandbox, in the engine's eyes. */
struct sandbox_usage {
    uint64_t peak_memory;       /* bytes; 0 when unknown */
    uint64_t cpu_us;
    bool oom_killed;
    const char *cgroup;         /* "cgroup v1", "cgroup v2", "none" */
};

struct engine {
    const char *name;
    int (*probe)(struct engine_report *out, struct err *err);
    /* Build the wall for @p. @id names the sandbox (32 hex digits that nobody can guess); NULL: the engine chooses it.
     * The sandbox dies with the caller, whatever happens. */
    int (*create)(const struct policy *p, const char *id, struct sandbox **out, struct err *err);
    /* Transport to the guest: a connected stream socket, owned by the sandbox. */
    int (*connect)(struct sandbox *, int *guest_fd, struct err *err);
    int (*usage)(struct sandbox *, struct sandbox_usage *out, struct err *err);
    int (*pause)(struct sandbox *, struct err *);
    int (*resume)(struct sandbox *, struct err *);
    /* Kill everything inside, wait until it is gone, remove what was made. Frees @sb. */
    int (*destroy)(struct sandbox *sb, struct err *err);
};

extern const struct engine engine_native;

#endif
