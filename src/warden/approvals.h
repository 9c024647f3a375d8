/* warden/approvals.h: operations that wait for somebody's approval
 *
 * A question that the gate's rules do not let through is put aside as it came, or answered at once when its caller
 * does not want to wait. An approval is for one thing: one caller, one tool, one sandbox, and the SHA-256 of all that
 * will be done; it is used once. What was put aside is heard again, whole, when it is approved: who asks is judged
 * again, and nothing is done but what was put aside.
 */
#ifndef CLOCHE_WARDEN_APPROVALS_H
#define CLOCHE_WARDEN_APPROVALS_H

#include "gate/gate.h"
#include "proto/edge_gate.h"
#include "proto/edge_write.h"
#include "warden/state_gate.h"
#include "warden/warden.h"

#define APPROVALS_MAX    128        /* that are open at once */
#define APPROVALS_CALLER 16         /* of one principal (principal_of) */
#define APPROVALS_NET    64         /* connections that wait, besides: what code asks for blocks nobody's operations */
#define APPROVALS_NET_CALLER 16     /* ... in sandboxes of one principal */
_Static_assert(APPROVALS_MAX + APPROVALS_NET <= EDGE_APPROVALS_OPEN, "who follows is told of all of them");
#define APPROVAL_USE_S   600        /* what was approved while nobody waited is done within this, or is void */
#define APPROVAL_NO_S    300        /* what somebody denied is not asked about again for so long */
#define DENIALS_MAX      256        /* the oldest is forgotten */
#define PASSES_MAX       256        /* where all are in use one is forgotten (pass.c) */
#define PASS_S           600
#define TANKS_MAX        256        /* the one that was longest not used is forgotten: it would be full again */

/* PENDING, or APPROVED and not used yet. */
struct approval {
    struct approval *next;
    struct edge_approval r;         /* its texts are owned */
    char principal[EDGE_CALLER_MAX + 1];    /* for whom it counts */
    char rule_digest[SHA256_TEXT + 1];      /* of the rule that asked, as it was (gate_rule) */
    uint64_t until_ms;              /* on the monotonic clock */
    struct asker to;                /* who waits; ticket 0: nobody */
    struct proof proof;             /* theirs */
    uint32_t net;                   /* a connection waits: the number of its question at the keeper of r.box; 0: none */
    uint8_t type;                   /* of the question that is put aside, and what came with it */
    uint8_t *question;
    size_t n_question;
    enum approval_scope scope;      /* of @net: for which it was approved */
    bool narrow;                    /* of @net: rules name other requests to that host, so it is approved once only */
    struct work work;               /* that it is part of */
};

/* A call that was let through (pass.c): its questions are asked by this number instead of the handle of the
 * caller's. */
struct pass {
    uint32_t number;                /* 0 none */
    struct proof proof;             /* the caller's */
    char principal[EDGE_CALLER_MAX + 1];    /* whose places it takes */
    uint32_t front;
    uint64_t until_ms;
    char tool[GATE_NAME_MAX + 1];
    char box[EDGE_ID + 1];          /* "": it makes one */
    bool network;                   /* that has one */
    bool wants;                     /* it reads files afterwards */
    bool made, done;                /* what it is for has been asked */
    unsigned acts;                  /* commands of a desktop that were asked */
    size_t n_files;                 /* that it brings along: SHA-256 of what each is judged by, zeroes once asked */
    uint8_t files[EDGE_GIVEN_MAX][SHA256_SIZE];
};

struct approval_follower {
    struct asker to;
    struct proof proof;             /* of who it is: judged anew each time */
    struct who who;                 /* as they were then */
    bool names;                     /* of variables without their values */
};

/* What somebody said no to. */
struct denial {
    uint64_t until_ms;
    char principal[EDGE_CALLER_MAX + 1], digest[SHA256_TEXT + 1], id[EDGE_ID + 1], reason[EDGE_REASON_MAX + 1];
};

/* What one principal may have searched (gate.h). */
struct caller_tank {
    char principal[EDGE_CALLER_MAX + 1];
    struct gate_tank tank;
};

struct approvals {
    struct gate *gate;
    struct state_gate *store;
    struct approval *open;
    struct timer late;                      /* the time of one of these may be over */
    const struct approval *approved;        /* whose question is heard again right now */
    const struct trial *tried;              /* likewise */
    struct approval_follower followers[FOLLOW_MAX];
    size_t n_followers;
    struct pass passes[PASSES_MAX];
    uint32_t n_passes;
    struct pass *pass;              /* of the question at hand; NULL */
    struct denial denials[DENIALS_MAX];
    size_t n_denials;
    struct caller_tank tanks[TANKS_MAX];
    char defaults[SHA256_TEXT + 1]; /* of what sandboxes get without asking, as the launcher said it last */
    bool grants_over;               /* some, by a change of that, and it is not on record yet */
};

/* What one question would do. */
struct deed {
    const char *tool;
    char box[EDGE_ID + 1];          /* "" none */
    json_t *params;                 /* an object */
    char *text;                     /* the same, canonical */
    char digest[SHA256_TEXT + 1];
    bool once;                      /* it cannot be asked for again: no other question is the same */
};

/* deed.c: what the question @f of warden.who would do. 1; 0: nothing that is judged (its handler sees to it); -1 with
 * @err: what it holds cannot be shown to anybody. Free it. */
#define DEED_GATED(message, name) \
    int deed_##name(struct warden *w, const struct message *m, struct deed *out, struct err *err);
#define DEED_WAITS(message, name)
#define DEED_FREE(message, name)
#define DEED(number, value, message, name, roles, gate, ...) DEED_##gate(message, name)
EDGE_QUESTIONS(DEED)
/* The same from parts; @params is taken, and brought to the form that is judged. @more: what else it depends on. */
int deed_make(const struct warden *w, const char *tool, const char *box, json_t *params, const void *more, size_t n,
              struct deed *out, struct err *err);
/* A call of MCP: its paths may be below /workspace, whatever that is called in the sandbox. */
int deed_call(const struct warden *w, const char *tool, const char *box, json_t *params, struct deed *out,
              struct err *err);
/* Where it is done: the sandbox of that id, living or stopped; "" none. It borrows @box and @room. */
struct place_room { char root[EDGE_PATH_MAX + 1], name[EDGE_NAME_MAX + 1]; };
struct gate_place deed_place(const struct warden *w, const char *box, struct place_room *room);
void deed_free(struct deed *d);
/* The same parameters, but of variables (env) only the names: for what is kept, and for who only looks. An owned text;
 * NULL: no memory, or it is no JSON. */
char *deed_names(const char *text);
/* "owner", "agent:ID", "key:ID" */
void caller_of(const struct who *who, char out[EDGE_CALLER_MAX + 1]);
/* For limits: the same, but the keys of an agent's sandboxes are that agent, who makes as many as it likes. Those of an
 * owner's or operator's are each somebody of their own: they were given to somebody. */
void principal_of(struct warden *w, const struct who *who, char out[EDGE_CALLER_MAX + 1]);
/* Whether @caller is the key of a sandbox that @who, who is no owner of the daemon's, made. */
bool is_own_key(struct warden *w, const char *caller, const struct who *who);

/* gate.c: judging. */
/* With the built-in rules; what was pending on disk is denied: nobody waits for it. 0 or -1 with @err. */
int gate_open(struct warden *w, struct err *err);
/* Whether what warden.who asks is judged. */
bool gate_judges(const struct warden *w);
/* What a sandbox that warden.who makes is held to (EDGE_BOUNDED ...): an agent's to the daemon's settings, but for its
 * network by name and its limits where rules judge them. */
uint8_t gate_bounds(const struct warden *w);
/* The rules, as YAML. 0 or -1 with @err: the old ones stay. Grants of rules that are not the same do not count. */
int gate_set(struct warden *w, const char *name, const void *data, size_t n, struct err *err);
/* gate_end.c: there is no going back to the former rules and settings: what was asked or approved under others is over.
 * A grant that cannot be taken off the disk still does not count (gate_rule, gate_grants_count). */
void gate_counts(struct warden *w);
/* The sandbox @id, which may have stopped, has another policy: what was asked or approved about it before is over. 0;
 * -1 with @err: that end is not on record. Of one that lives it counts all the same, and its policy is not put on
 * record before that is. */
int gate_policy_changed(struct warden *w, const char *id, struct err *err);
/* Put on record what of that is not yet: 0 or -1 with @err. */
int gate_grants_settle(struct box *b, struct err *err);
/* Whether grants count for the sandbox @id ("" none): not while its policy changes, nor where those from before a
 * change are still on record. */
bool gate_grants_count(struct warden *w, const char *id);
/* Whether @a was asked under what is so now. */
bool gate_stands(const struct warden *w, const struct approval *a);
/* Before a question's handler. True: it waits, or was answered. */
bool gate_is_on(struct warden *w);
bool gate_holds(struct warden *w, int r, struct deed *d, struct err *err);
/* Of @d for warden.who: ALLOWED; ASIDE: it is not known yet, and the question is heard again then; DENIED or WAIT with
 * @out. WAIT: when not @async the question (warden.question) is put aside. DENIED
 * with @err: nobody said no, but it cannot be asked about (too much waits already, or nothing can be stored). */
enum gate_says gate_decide(struct warden *w, const struct deed *d, bool async,
                           struct edge_verdict *out, struct err *err);

/* trial.c: before somebody is asked about @d, the question of warden.who: can it be had? 0: it can, or that is known
 * when it is done; 1: a keeper looks, and it is put aside until then; -1 with @err: it cannot. */
int trial_begin(struct warden *w, const struct deed *d, struct err *err);
void trial_passed(struct box *b);                       /* its keeper has nothing against it */

/* The digest of the gate's rule @rule as it is now; "": there is none, or @tool is judged by the sandbox's own rules
 * (APPROVAL_NETWORK). */
const char *gate_rule(const struct warden *w, const char *tool, const char *rule);
/* Whether @d is settled for warden.who where @rule asks: 1 by a grant, -1 by a denial a moment ago, 0 it is not. */
int gate_settled(struct warden *w, const struct deed *d, const char *rule);

/* approvals_net.c: connections of sandboxes that wait for somebody (network.ask). */
#define APPROVAL_NETWORK "network"      /* the tool that they are */
int net_on_ask(struct warden *w, const struct keep_net_ask *q);      /* the keepers' words */
int net_on_over(struct warden *w, const struct edge_number *m);
void net_answer(struct warden *w, const struct approval *a, bool allow, enum approval_scope scope);
void net_box_gone(struct warden *w, const char *id);    /* nobody waits for its questions any more */

/* hook.c: to the server that is told of approvals, if there is one. Never waits. */
int hook_on_edge(struct warden *w, const struct nothing *m);         /* the launcher's word */
void hook_tell(struct warden *w, const struct edge_approval *a);

/* pass.c: calls that were let through. */
/* Whether @number is a pass on that front's edge; it is the question's at hand then, and @out its caller's. */
bool gate_pass(struct warden *w, const struct front_edge *e, uint32_t number, struct proof *out);
/* A handle for the questions that the call @d of warden.who is made of. */
uint32_t pass_new(struct warden *w, const struct deed *d);
/* The same without a number. */
struct pass pass_of(const struct deed *d);
/* The file @i that the call @d brings along, as parameters of code_write_file; NULL: there are no more. */
const json_t *deed_file(const struct deed *d, size_t i);
/* The pattern @i of what the call @d wants back; NULL: there are no more. */
const json_t *deed_wants(const struct deed *d, size_t i);
/* Whether @d is one of those questions; it is asked by this. */
bool pass_covers(struct pass *p, const struct deed *d);
/* @d was let through by itself: the sandbox of a call that says what it is to be. */
void pass_made(struct pass *p, const struct deed *d);
/* Calls that were let through in that sandbox, and have not been asked for. */
void passes_end(struct warden *w, const char *box);

/* approvals.c: the queue. */
int approvals_load(struct warden *w, struct err *err);
/* A new one; NULL with @err: too many, or it cannot be kept. @net: of a connection that waits, else 0. */
struct approval *approval_new(struct warden *w, const struct deed *d, const struct gate_verdict *v, uint32_t net,
                              struct err *err);
/* Put the question aside for it, to be heard when it is approved. */
int approval_hold(struct warden *w, struct approval *a);
/* What was put aside is heard as it came: of @to, proved by @by, as part of @in. */
void approvals_hear(struct warden *w, const struct frame *f, struct asker to, const struct proof *by,
                    const struct work *in);
/* The open one of this caller for exactly that, in that state; NULL none. */
struct approval *approval_find(struct warden *w, const char *caller, const struct deed *d, enum approval_state state);
/* It is done now, and can be done once. 0 or -1: it cannot be written down, so it is not done. */
int approval_use(struct warden *w, struct approval *a, struct err *err);
/* Ends the question: denied or over. @by "" nobody. */
void approval_refuse(struct warden *w, struct approval *a, enum approval_state state, const char *by,
                     const char *by_text, const char *reason);
/* Whether warden.who may decide about it, now. 0 or -1 with @err. */
int approval_may(struct warden *w, const struct approval *a, struct err *err);
/* Who may decides. 0 or -1 with @err. */
int approval_decide(struct warden *w, struct approval *a, const struct edge_decision *d, struct err *err);
/* It was approved: who waits for it goes on. @a is no more then, if somebody did. */
void approval_release(struct warden *w, struct approval *a);
void approvals_front_gone(struct warden *w, uint32_t front);
void approvals_cancel(struct warden *w, struct asker to);
void approvals_caller_ended(struct warden *w, const struct who *who);   /* what they asked and is undecided is denied */

/* approvals_ask.c: questions about them. */
void approval_tell(struct warden *w, const struct edge_approval *a);    /* those who follow */
extern const struct msg_rule approval_rules[];
extern const size_t approval_n_rules;

#endif
