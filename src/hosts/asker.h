/* hosts/asker.h: the process that asks registries' clients
 *
 * Clients take seconds, or minutes if something is wrong, and their output is untrusted. So a child process asks them
 * and sends its answer in one message. It ends after that, at its time limit (ASKER_MS), or when we end; every client
 * ends with it. Its memory is limited, like the clients', and so is its answer.
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
