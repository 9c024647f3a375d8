/* cli/net.h: what the supervisor does for a network by name
 *
 * It starts cloche-egress, tells it the rules, hears what it decided, and starts it again when it dies. Everything that
 * it waits for is behind one descriptor (an epoll), so the session's loop knows of nothing else.
 *
 * While no cloche-egress lives, connections wait in the queues of the listeners, which the supervisor keeps and never
 * accepts on; with the supervisor they go, and whoever connects is refused.
 */
#ifndef CLOCHE_CLI_NET_H
#define CLOCHE_CLI_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/net_door.h"
#include "cli/net_log.h"
#include "cli/session.h"
#include "engine/native/native.h"
#include "policy/policy.h"
#include "wall/capture.h"

#define NET_DEATHS_MAX 5            /* of cloche-egress within NET_DEATHS_US: then the network stays closed */
#define NET_DEATHS_US  60000000UL

struct net {
    const struct policy *policy;
    struct session_result *r;
    int dir;                    /* of the state folder (net_state.h); -1: neither log nor socket */
    struct net_log *log;
    struct net_door *door;
    const struct cgroup *cgroup;        /* borrowed: where cloche-egress is counted; may be of kind NONE */
    int *listeners;             /* borrowed: CAPTURE_LISTENERS of them; closed (-1) when the network stays closed */
    int epoll;                  /* readable when net_turn has something to do */
    int timer;
    int names;                  /* memfd: names keep their addresses over a restart (egress/fake.h) */
    int control;                /* to cloche-egress; -1: none lives */
    pid_t pid;
    uint64_t deaths[NET_DEATHS_MAX];    /* when; the latest at [n_deaths % NET_DEATHS_MAX] before it is counted */
    uint64_t n_deaths;
    uint64_t start_us;          /* it is started again at that time; 0: not to be */
};

/* session_egress.c. All that fails leaves @n to net_stop. Of @sb the id, the
 * listeners and the cgroup are borrowed. */
int net_start(struct net **out, const struct policy *policy, struct sandbox *sb, struct session_result *r,
              struct err *err);
int net_fd(const struct net *n);        /* -1 for NULL */
void net_turn(struct net *n);
/* The sandbox has ended: hear the last decisions, end cloche-egress, free @n (may be NULL). */
void net_stop(struct net *n);

/* One message of cloche-egress's, of @size bytes. */
void net_heard(struct net *n, const char *message, size_t size);
/* (Re)arm the timer for what comes first. */
void net_arm(struct net *n);

#endif
