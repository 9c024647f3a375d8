/* run/net_state.h: what runs with a network by name leave in the state folder
 *
 * In $XDG_STATE_HOME/cloche/net: ID.json, what was decided in the run ID, and while it lives ID.sock, the socket on
 * which its supervisor answers `cloche net` and `cloche approvals`. The folder is the user's own (0700) and is never
 * shown in a sandbox (policy.h, credentials).
 */
#ifndef CLOCHE_RUN_NET_STATE_H
#define CLOCHE_RUN_NET_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define NET_ID_LENGTH   32
#define NET_RUNS_MAX    256                 /* logs that are kept, the newest; older ones of runs that ended go */
#define NET_MESSAGE_MAX (128 * 1024)        /* bytes of one request or answer */
#define NET_WAIT_MS     5000                /* for a supervisor's answer */

struct net_run {
    char id[NET_ID_LENGTH + 1];
    bool alive;                 /* its socket is there; whether somebody answers is another matter */
    long long seen;             /* when its log was written last, in milliseconds */
};

/* The folder, made where it is missing. A descriptor or -1; refused when it is not the caller's own. */
int net_state_open(struct err *err);
/* The runs, newest first, at most @max. How many, or -1. */
int net_runs(int dir, struct net_run *out, size_t max, struct err *err);
/* The run whose id begins with @which (NULL: the newest, of those that live when @alive). 0 or -1 with @err. */
int net_run_find(int dir, const char *which, bool alive, struct net_run *out, struct err *err);
/* One request to a run's supervisor and its answer, which the caller frees; NULL with @err, also when the answer is
 * an error. */
json_t *net_request(int dir, const char *id, const json_t *request, struct err *err);
/* Remove what is too much. Never fails. */
void net_state_prune(int dir);

#endif
