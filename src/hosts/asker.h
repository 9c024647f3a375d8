/* hosts/asker.h: the process that asks registries' clients
 *
 * Clients take seconds, and minutes where something is wrong; what they say comes from strangers. So they are asked by
 * a child, which says its answer in one message: it ends when that is said, when its time is up (ASKER_MS), and when we
 * do, and every client with it. It is bounded in memory, as the clients are, and in what it may say.
 */
#ifndef CLOCHE_HOSTS_ASKER_H
#define CLOCHE_HOSTS_ASKER_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"

#define ASKER_MS 180000

struct asker {
    pid_t pid;                  /* 0: it asks nothing */
    int fd;                     /* to be looked at when it is readable; -1 */
    uint64_t end_ms;            /* and at this time (clock_ms) */
};

#define ASKER_INIT { .pid = 0, .fd = -1, .end_ms = 0 }

/* Ask for what @p wants and @answers does not have (registry_ask); both are looked at now, and need not stay. 0, or -1
 * with @err. */
int asker_start(struct asker *a, const struct policy *p, json_t *answers, uint64_t ms, struct err *err);
/* What it said so far: 1, with what it found added to @answers; 0: nothing yet; -1 with @err (policy.registry.late: its
 * time is up). With an answer or an error it has ended. */
int asker_hear(struct asker *a, json_t *answers, struct err *err);
/* End it, and the clients that it asks. */
void asker_stop(struct asker *a);

/* All of it, for ASKER_MS at most. 0, or -1 with @err. */
int asker_wait(const struct policy *p, json_t *answers, struct err *err);

#endif
