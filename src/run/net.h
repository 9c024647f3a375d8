/* run/net.h: what the supervisor does for a network by name
 *
 * It starts cloche-egress, sends it the rules, receives its decisions, and restarts it when it dies: in the loop of
 * whoever made the sandbox.
 *
 * While no cloche-egress lives, connections wait in the queues of the listeners. The supervisor keeps the listeners and
 * never accepts on them; when it ends they are closed, and connections are refused.
 */
#ifndef CLOCHE_RUN_NET_H
#define CLOCHE_RUN_NET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "egress/control.h"
#include "policy/policy.h"
#include "run/net_door.h"
#include "run/net_log.h"
#include "run/session.h"
#include "run/starter.h"
#include "wall/capture.h"

#define NET_DEATHS_MAX 5            /* of cloche-egress within NET_DEATHS_US: then the network stays closed */
#define NET_DEATHS_US  60000000UL

#define NET_UPDATES_MAX   32        /* changes of rules that cloche-egress has not confirmed */
#define NET_KEEPER        UINT64_MAX    /* of callers: the process itself */
#define NET_QUESTIONS_MAX 32        /* as many as cloche-egress asks at a time */
#define NET_LINE_MAX      POLICY_FILE_MAX

struct net_question {
    json_t *event;              /* as cloche-egress said it, but with an id of ours; NULL: none */
    json_int_t number;          /* its id there, where ids begin anew with each process */
    uint64_t until_us;
};

struct net {
    struct live *live;                  /* borrowed: the vault's edge is made there */
    const struct policy *policy;        /* borrowed, or @replaced */
    struct policy *replaced;            /* by SRT's control descriptor; owned */
    struct policy added;                /* of it the lists of hosts: rules that came while the run went on */
    size_t kept_allow, kept_deny;       /* how many of them cloche-egress has taken */
    struct net_update { uint64_t number, caller; } updates[NET_UPDATES_MAX];    /* that its word is awaited about, */
    size_t n_updates;                   /* in their order, and who waits for it (0: nobody) */
    uint64_t n_changes;                 /* that there were: their numbers */
    struct net_question questions[NET_QUESTIONS_MAX];
    json_int_t n_questions;             /* that there were: an id is never another question's */
    void (*told_keeper)(void *keeper, const char *why_not);     /* what became of net_rules_replace; NULL: taken */
    void *keeper;
    /* Who is asked in the place of whoever looks into the socket, where that is not NULL: the question, and that nobody
     * waits for it any more. */
    void (*ask)(void *keeper, const struct net_question *q);
    void (*ask_over)(void *keeper, const struct net_question *q);
    bool told;                          /* that there are questions */
    bool warned;                        /* that a secret was on its way to a wrong place */
    struct watch control_in;            /* SRT's control descriptor; borrowed; there may be none */
    struct buf control_text;
    bool control_skip;                  /* the rest of a line that is too long */
    struct session_result *r;
    int dir;                    /* of the state folder (net_state.h); -1: neither log nor socket */
    struct net_log *log;
    struct net_door *door;
    const struct cgroup *cgroup;        /* borrowed: where cloche-egress is counted; may be of kind NONE */
    int *listeners;             /* borrowed: CAPTURE_LISTENERS of them; closed (-1) when the network stays closed */
    struct loop *loop;          /* borrowed */
    struct timer timer;
    int names;                  /* memfd: names keep their addresses over a restart (egress/fake.h) */
    struct watch control;       /* to cloche-egress; there is none where none lives */
    struct starter starter;     /* who starts it anew where we cannot */
    pid_t pid;
    bool up;                    /* it has started: from then on it reads what the sandbox sends */
    uint64_t deaths[NET_DEATHS_MAX];    /* when; the latest at [n_deaths % NET_DEATHS_MAX] before it is counted */
    uint64_t n_deaths;
    uint64_t start_us;          /* it is started again at that time; 0: not to be */
};

struct live;

/* session_egress.c: into l->net. All that fails leaves it to net_stop. Of l->sb the id, the listeners and the cgroup
 * are borrowed. */
int net_start(struct live *l, struct err *err);
/* This process gives up what starts programs and reaches sockets next: from then on somebody else starts cloche-egress
 * anew. 0 (also for NULL) or -1 with @err. */
int net_confine(struct net *n, struct err *err);
/* Before each round of the loop: what comes first of what it does at a time. @n may be NULL. */
void net_arm(struct net *n);
/* The sandbox has ended: hear the last decisions, end cloche-egress, free @n (may be NULL). */
void net_stop(struct net *n);

/* To cloche-egress: an answer to its question @number; all rules, as the change @number while it has others, 0: it has
 * just been started. 0 or -1 with @err. */
int net_say_answer(struct net *n, json_int_t number, enum ask_says says, const char *by, struct err *err);
int net_say_rules(struct net *n, uint64_t number, struct err *err);

/* net_rules.c: one more rule, whose fate is told to @caller (0: nobody) by door_answer; cloche-egress's word about a
 * change; it has died; more on the control descriptor (false: its end). */
int net_rules_add(struct net *n, bool deny, const char *rule, uint64_t caller, struct err *err);
/* The rules of @fresh, which stays the caller's, in the place of those that it began with; what became of that is said
 * to told_keeper, maybe at once. Where they are not taken, n->policy has to be set back by then. */
int net_rules_replace(struct net *n, const struct policy *fresh, struct err *err);
void net_rules_heard(struct net *n, const json_t *event);
void net_rules_lost(struct net *n);
bool net_control_read(struct net *n);

/* net_ask.c: a question; one is over; all are, because cloche-egress has died. */
void net_ask_heard(struct net *n, const json_t *event);
void net_ask_over(struct net *n, const json_t *event);
void net_ask_lost(struct net *n);
/* Rules name requests to that host, and the one that is asked about is none of them: a yes to the host is more. */
bool net_ask_is_narrow(const struct net_question *q);
/* The answer to the question @id, if it is open still; @sandbox: and a rule for all further ones. */
void net_ask_answer(struct net *n, json_int_t id, enum ask_says says, bool sandbox);

#endif
