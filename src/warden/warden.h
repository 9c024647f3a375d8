/* warden/warden.h: cloche-warden: which sandboxes there are, and what becomes of them
 *
 * One thread, one loop. The record of a sandbox is in the state file (state.h) before anything is made and after
 * every step; in memory are only those that live, each with its keeper's socket. Nothing of a sandbox's own bytes comes
 * here: an operation is judged, granted, and then spoken between the front and the keeper.
 */
#ifndef CLOCHE_WARDEN_WARDEN_H
#define CLOCHE_WARDEN_WARDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mask.h"
#include "base/sha256.h"
#include "warden/count.h"
#include "proto/edge_keeper.h"
#include "proto/edge_launcher.h"
#include "proto/question.h"
#include "warden/epoch.h"
#include "warden/handles.h"
#include "warden/latest.h"
#include "warden/pool.h"
#include "warden/state.h"
#include "warden/tell.h"
#include "wire/packet.h"
#include "wire/table.h"

#define WARDEN_CHECK_MS 2000    /* between two looks at a sandbox's health */
#define WARDEN_LATE_MS  20000   /* a keeper that does not answer is not healthy */
#define WARDEN_LOOK_MS  1000    /* of whether a keeper owes an answer. Looks are counted and not time: while this
                                 * process, or the whole machine, stood still nobody was late */
#define WARDEN_WAKE     4       /* looks in turn that it did: it is told to go on, */
#define WARDEN_HUNG     30      /* and killed. Its sandbox ends, and what waits for it is answered */
#define WARDEN_MAKING   300     /* one that makes its sandbox, and hears nobody meanwhile */
#define WARDEN_STOP_MS  10000   /* for a keeper to end when told; then it is killed */
#define WARDEN_WAITERS  1024    /* questions that wait for one sandbox */
#define WARDEN_BY_ID    1024    /* lists of sandboxes by the beginning of their ids */
#define WARDEN_BOXES    256     /* sandboxes at once, unless the settings say otherwise */

#define WARDEN_CALLS   64
#define WARDEN_FRONTS  2        /* the owner's, and that of strangers */
#define WARDEN_TOKENS  1024
#define WARDEN_TICKETS 64

#define FOLLOW_MAX    64        /* streams of one kind at once */
#define FOLLOW_EACH   8         /* with one credential; the owner has none */
#define FOLLOW_AGENTS 48        /* of all agents: the rest is kept for those who look after them */

/* Where an answer goes: on which front's edge, under which of its tickets. */
struct asker {
    uint32_t front;                     /* in warden.fronts */
    uint32_t ticket;                    /* 0: nobody asked */
};

/* Who asks. */
struct who {
    enum edge_role role;
    char id[EDGE_ID + 1];               /* the token's; "" the daemon's owner; a key's: its sandbox's; "-" nobody */
    char box[EDGE_ID + 1];              /* of a key: its sandbox */
};
#define WHO_NOBODY ((struct who){ .role = EDGE_NOBODY, .id = "-" })

/* What something is part of. */
struct work {
    char trace[2 * EDGE_TRACE + 1];     /* its id as digits; "": none */
    uint8_t id[EDGE_TRACE];             /* the same, as it came, */
    uint8_t span[EDGE_SPAN];            /* and of the span that it is done for */
    bool sampled;                       /* a collector is told */
};

/* By what somebody asks. What it opens is looked up for each question; what is put aside keeps this, not the handle. */
struct proof {
    bool is;                            /* false: who asks without a credential */
    uint8_t hash[SHA256_SIZE];          /* of the credential */
};

/* The edge to one front. */
struct front_edge {
    struct warden *w;
    struct watch edge;
    bool owner;                         /* who comes without a credential is the daemon's owner */
    struct packet_queue out;
    struct handles handles;
};

struct token {
    struct edge_token r;
    bool over;                          /* its time, as far as that was looked at (ends.c) */
    uint8_t hash[SHA256_SIZE];
};

/* For the console: a session of @role for @seconds (console.c). */
struct console_ticket {
    uint8_t hash[SHA256_SIZE];
    enum edge_role role;
    uint32_t seconds;
    bool used;
    uint64_t until_ms;                  /* 0: there is none here */
    char person[EDGE_ID + 1];           /* whose token asked for it; "" the daemon's owner */
    char by[EDGE_WHO_MAX + 1];          /* the same for people */
};

struct record;

/* Who waits for what comes of a sandbox. */
enum wait_for { WAIT_MADE, WAIT_PAUSED, WAIT_SHOWN, WAIT_GONE };
struct waiter {
    struct waiter *next;
    struct asker to;
    enum wait_for what;
    bool keyed;                         /* WAIT_MADE: the answer brings its key */
    uint32_t number;                    /* WAIT_SHOWN: of the question to the keeper, */
    size_t bytes;                       /* and what has come of the answer */
};

/* A policy that a keeper was told to hold its sandbox to, and whose answer is awaited. */
struct box_change {
    char *policy;                       /* owned; NULL: none */
    uint32_t number;
    struct asker to;
};

/* What a keeper may say because it was asked, and how often: questions on this edge that it has not answered. What is
 * said beyond that ends the edge. */
struct box_asked {
    bool make, still, print, sweep;
    unsigned pauses, checks, uses, shows, changes, results, said, copies;
};

/* A template that is made of its files; @id "": none is. */
struct box_copy {
    struct asker to;                    /* ticket 0: nobody waits for it */
    char id[EDGE_ID + 1];
};

struct box {
    struct box *next;
    struct box *pool_next;              /* of those that are ahead, or were just taken (pool.c) */
    struct box *id_next;                /* of those whose ids begin alike (boxes_list.c) */
    struct warden *w;
    struct edge_box r;                  /* its texts are owned */
    struct watch edge;                  /* to its keeper; there may be none (yet) */
    struct packet_queue out;
    struct msg_gate gate;
    struct waiter *waiters;             /* the newest first */
    struct asker maker;                 /* whom it ends with if they go before they know of it; ticket 0: nobody */
    struct box_change change;
    struct box_copy copy;
    unsigned ops;                       /* that run */
    struct box_asked asked;
    unsigned browsers;                  /* starts of its browser after which no connection was asked for */
    uint64_t browsers_ms;               /* when the last of them was granted */
    bool again;                         /* when it is gone it is made anew (recovery) */
    bool once;                          /* it ends with the call that made it, whatever is known of it */
    bool probe;                         /* it is in no record: is there one like it already? (reattach.c) */
    bool ahead, parked;                 /* it is made ahead, and nobody's; its interpreter waits (pool.c) */
    uint64_t step_ms;                   /* of its making, until when its keeper waits for what is next; 0 not said */
    struct pool_key *kind;              /* NULL: none is wanted any more */
    uint64_t holds;                     /* bytes of memory; 0 not known */
    bool anew;                          /* it was, and what is made now is another one for the same record */
    uint64_t taken_ms;                  /* when its keeper was told whose it is, and has not answered; 0 */
    bool sweeps;                        /* it is no sandbox: its keeper removes the volume r.volume (volumes.c) */
    uint32_t keep_s;                    /* what its making said of its volume; EDGE_KEEP_SAME nothing */
    bool printed;                       /* its keeper has said what it would be */
    bool tries;                         /* its policy is read, and nothing else is done (trial.c): */
    struct trial *trial;                /* for that; owned */
    uint64_t recover_ms;                /* when the next recovery by itself is due; 0 none is */
    bool returns;                       /* it ends with the daemon, and is made anew with the next one */
    bool by_itself;                     /* the recovery at hand, or the last one, was nobody's (recovery.c) */
    bool waits;                         /* for that: it has no keeper, and is "recovering" */
    uint64_t check_ms;                  /* the next look, on the monotonic clock */
    uint64_t asked_ms;                  /* an unanswered look; 0 none */
    unsigned owes;                      /* looks in turn at which its keeper owed an answer */
    uint64_t stop_ms;                   /* when it was told to end; 0 not */
    struct buf not_made;                /* what its keeper said, if so: an error as it was sent */
    struct work work;                   /* that it was made for, */
    uint8_t span[EDGE_SPAN];            /* and the span of its making */
    uint64_t asked_for_us;              /* since when it is being made, on the monotonic clock; 0 it is not */
    uint64_t use_asked_ms;              /* an unanswered EDGE_USE; 0 none */
    uint64_t use_ms;                    /* when the last answer came */
    struct buf use;                     /* that, as it was sent; empty none */
    uint64_t net_minute;                /* the minute whose questions about connections are counted, */
    unsigned net_asked;                 /* and how many there were */
    bool grants_over;                   /* by a change of its policy, and that is not on record yet (gate_end.c) */
    /* another key of it, while this warden is there ("": none yet), and its hash; to be wiped (tokens.c) */
    char more_key[EDGE_CREDENTIAL_MAX + 1];
    uint8_t more_hash[SHA256_SIZE];
    bool more_lent;                     /* it was told to somebody who did not make the sandbox */
    struct masks masks;                 /* values that must not be in a record of it */
    struct call *call;                  /* of a tool, that it is made for (calls.c); NULL none */
    const char *why;                    /* it ends, or ended, when that is known; owned */
};

/* A port that was exposed: ports.c's. Editors' ways in: attach.c's. */
struct port;
struct attaches;

struct warden {
    struct state *state;
    struct timer rest;                  /* nothing happened for a moment: there is time for state_settle(); or what
                                         * waits for its record is tried again */
    struct err behind;                  /* why it waits; ERR_NONE: it does not */
    struct box *boxes;
    struct box *by_id[WARDEN_BY_ID];
    size_t n_boxes, n_sweepers, max_boxes, max_per_agent;
    uint64_t look_ms;                   /* the next look at who owes an answer */
    uint64_t boxes_ms;                  /* the last look at all sandboxes, */
    struct timer boxes_look;            /* and the next (health.c) */
    bool probes_printed;                /* a box of a probe may wait for its judgement (reattach.c) */
    struct loop loop;
    struct watch launcher;
    bool over;                          /* the launcher is gone */
    struct packet_queue to_launcher;
    struct msg_gate launcher_gate;
    struct front_edge fronts[WARDEN_FRONTS];
    struct token tokens[WARDEN_TOKENS];
    size_t n_tokens;
    struct console_ticket console[WARDEN_TICKETS];
    struct timer ends;                  /* the next of them may be over (ends.c) */
    struct port *ports;
    size_t n_ports;
    struct timer ports_look;            /* at whether they are over; set while there are some */
    struct attaches *attaches;          /* attach.c's */
    struct timer attach_look;           /* set while there are sessions */
    const struct frame *question;       /* at hand, but for what it is part of; NULL: nobody asks */
    struct asker asker;                 /* of it */
    struct work work;                   /* and what it is part of */
    struct epochs *epochs;              /* what fronts may remember (epoch.h); counted before what ends it is told */
    int epochs_fd;
    struct who who;                     /* and who asks it */
    struct proof proof;                 /* and by what */
    struct approvals *approvals;        /* what waits for somebody's (approvals.h) */
    uint64_t refused_ms;                /* the minute whose refusals are counted, and how many there were */
    unsigned refused;
    uint32_t default_idle_s, default_life_s;
    struct edge_recovery default_recovery;      /* of those that name none; the first three */
    bool settled;                       /* it has started */
    struct err bad_rules;               /* what is wrong with the gate's rules that were said last; ERR_NONE: nothing */
    bool refused_start;                 /* the launcher was told that it does not start */
    bool closing;                       /* no sandbox is made any more */
    uint32_t numbers;                   /* of questions to keepers */
    unsigned noted;                     /* events since the last pruning */
    int passed;                         /* the descriptor that came with the message at hand; -1 */
    struct asker stop_all;              /* who waits for all sandboxes to be gone */
    uint32_t stop_all_n;
    struct box *heard;                  /* whose message is at hand */
    struct record *record;              /* record.h */
    struct volumes *volumes;            /* volumes.c */
    struct pool pool;
    struct counts counts;
    struct latest latest;
    struct steady steady, wall;     /* of time that went by, and of the host's clock when it was looked at last */
    uint64_t steady_kept_ms;
    char boot[STEADY_BOOT + 1];
    struct process_stats self, above;   /* this process, and the launcher */
    struct signing *signing;            /* sign.h */
    struct call *calls[WARDEN_CALLS];   /* that were let through, and make a sandbox next; NULL: a free place */
    unsigned n_calls;
    struct watch hook;                  /* the edge to cloche-webhook (hook.c) */
    struct packet_queue to_hook;
    struct teller tell;                 /* cloche-otlp (spans.c) */
    struct event_follower *followers;
    struct timer follow;                /* all who follow are judged anew */
    struct usage_asked *usage_asked;
    struct timer usage_late;            /* the next of these is answered, whoever has not said what it uses */
    uint8_t in[EDGE_ROOM];
};

/* main.c */
/* What happened, to the record of events and to the audit record. @box may be NULL. */
void warden_note(struct warden *w, const struct box *box, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void warden_note_id(struct warden *w, const char *id, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));      /* of one that does not live */
void warden_refuse(struct warden *w, const struct err *err);      /* to the launcher: why it does not start */
/* Hear @edge, and while something waits in @out send that too. 0 or -1. */
int warden_watch(struct warden *w, struct watch *edge, const struct packet_queue *out);
/* What was put soon is on record now (state.h): before anybody is told, and before this process waits. */
void warden_flush(struct warden *w);
watch_fn warden_on_box, warden_on_front;

/* time.c: what ends at a time is over by this clock, which is never set back (latest.h). In milliseconds since 1970. */
uint64_t time_now(const struct warden *w);
/* When that is on the wall clock, as far as it is known; 0 stays 0. */
uint64_t time_on_wall(const struct warden *w, uint64_t until_ms);
/* What has gone by since any moment in the past, whatever the clocks were set to (base/steady.h). */
uint64_t time_steady(const struct warden *w);
int time_load(struct warden *w, struct err *err);
/* It is as late as that; now and then, or @at_once, put on record. */
void time_seen(struct warden *w, bool at_once);

/* calls.c: a call of a tool was let through, by the question at hand: in @b, or (NULL) it makes one. Such a one is
 * asked for; is ready, when its keeper is told; is no more. */
void call_let_through(struct warden *w, struct box *b, const char *tool, const char *params);
void call_asked_for(struct box *b);
void call_made(struct box *b);
void call_free(struct box *b);

/* health.c: limits, health */
void boxes_turn(struct warden *w);

/* boxes_list.c: which there are in memory. NULL: none; no memory. */
struct box *box_of_id(const struct warden *w, const char *id);
size_t box_count(const struct warden *w);           /* without those that remove volumes, or are made ahead */
struct box *box_new(struct warden *w, const struct edge_box *r);
void box_take_out(struct box *b);

/* boxes.c: what becomes of sandboxes */
/* A new record, in memory and on disk, and a keeper asked for. @to is answered when it is made; with its key if
 * BOX_KEYED. With BOX_PROBE it is in memory only, until box_record(); with BOX_FLEETING box_maker_gone() ends it,
 * and with BOX_ONCE, too, also when it is known, or its front is gone. */
#define BOX_KEYED    0x01
#define BOX_PROBE    0x02
#define BOX_FLEETING 0x04
#define BOX_TRIAL    0x08       /* a probe whose policy is read, and no more (trial.c) */
#define BOX_ONCE     0x10
int box_create(struct warden *w, const struct edge_box *r, struct asker to, unsigned how, struct err *err);
/* The same of one that was made ahead, whose id is r->id; where its keeper does not give it, it is made anew. */
int box_take(struct box *b, const struct edge_box *r, struct asker to, unsigned how, struct err *err);
/* One that is to wait. 0 or -1. */
int box_ahead(struct warden *w, struct pool_key *kind, const char *policy, uint8_t bounds);
int box_record(struct box *b, struct err *err);     /* a probe is to be made: 0 or -1 with @err */
/* A keeper that is to remove that volume. 0 or -1. */
int box_sweeper(struct warden *w, const char *volume);
bool box_same_key(const struct box *b, const struct edge_box *r);   /* the same caller's, of the same workspace */
/* The same for the record @r of one that has stopped. Its key stays. */
int box_revive(struct warden *w, const struct edge_box *r, struct asker to, struct err *err);
/* An agent may end its own sandboxes sooner than the daemon would, not later: seconds of what was @asked for (0:
 * nothing). */
uint32_t box_limit(const struct edge_box *r, uint32_t asked, uint32_t daemons);
/* From a record on disk, for a keeper that lived on; @fd is taken. */
void box_adopt(struct warden *w, const struct edge_box *r, int fd);
/* For boxes_ahead.c: out of the records; whether its caller may have one as @r. 0 or -1 with @err. */
void box_unrecord(struct warden *w, const char *id);
int box_may(const struct warden *w, const struct edge_box *r, struct err *err);
int box_edge(struct box *b, int fd);                                /* its keeper's. -1: @b is no more */
void box_state(struct box *b, enum box_state state, const char *detail);
void box_stop(struct box *b, const char *why);
void box_kill_all(struct warden *w);
void box_lost(struct box *b);                                       /* its keeper has ended */
void box_not_spawned(struct box *b, const struct err *why);
int box_put(struct box *b, struct err *err);    /* into the record of sandboxes. 0 or -1 with @err */
void box_store(struct box *b);                  /* the same, soon */
void box_used(struct box *b);                                       /* now; and store it */
void box_touched(struct box *b);                                    /* the same, where nothing else changed */
void box_text(const char **text, const char *new);                  /* owned; keeps the old one without memory */
/* To its keeper, by PROTO_SAY(); with @fd, which is taken: 0, or -1 and it ends. */
void box_say(struct box *b, uint8_t type, const struct shape *shape, const void *m);
int box_send(struct box *b, uint8_t type, const struct shape *shape, const void *m, int fd);
void box_say_short(struct box *b, uint8_t type);
void box_all_gone(struct warden *w);                                /* whoever waits for that is told, if so */
void box_find_lost(struct warden *w);                               /* after adoption: what nobody keeps any more */

void trial_free(struct box *b);             /* trial.c */

/* waiters.c: who waits for a sandbox */
/* @to is answered when that has come. -1 with @err: too many wait. */
int box_wait(struct box *b, enum wait_for what, struct asker to, struct err *err);
void box_forget_waiters(struct box *b, uint32_t front);             /* of that front */
void box_maker_gone(struct warden *w, struct asker maker);
/* Its keeper is gone, and it is made anew: who asked the keeper hears that, who waits for the sandbox waits on. */
void box_unheard_answers(struct box *b, const struct err *err);
void box_gone_answers(struct box *b);                               /* it is no more: whoever waits is told */

/* recovery.c: one that is made anew under its id */
/* By what its maker @asked for: its own, what that leaves open the daemon's; all 0: not by itself. */
struct edge_recovery recovery_asked(const struct warden *w, const struct edge_recovery *asked);
int box_recover(struct box *b, struct err *err);                    /* somebody wants it. 0 or -1 with @err */
void box_make_again(struct box *b);                                 /* its keeper is gone: another one */
/* Whether one that is heard to end, or has ended, is made anew by itself later; false: box.why may say why not. */
bool recovery_after_end(struct box *b);
bool recovery_life_is_over(const struct box *b);    /* its maximum lifetime */
bool recovery_waits(const struct box *b);                           /* for its time to be made anew */
void recovery_turn(struct box *b, uint64_t now);                    /* monotonic; @b may be no more then */

/* The fronts' questions (proto/question.h), each with a function that answers it: it finds who asks in warden.asker and
 * warden.who, the frame in warden.question. 0 or more; -1: the front said what it must not. */
#define ASKED(number, value, message, name, ...) int asked_##name(struct warden *w, const struct message *m);
EDGE_QUESTIONS(ASKED)
struct wire_in ask_in(const struct frame *f);       /* a question but for its ticket and who asks */
/* ask.c */
int new_id(char out[EDGE_ID + 1]);      /* -1 with errno */
/* The one that lives and that the caller (warden.who) reaches, by id or by name; "": its own default one, or a key's.
 * Names are the owner's: where several match the caller's own comes first. NULL: none does. */
struct box *living(struct warden *w, const char *id);
/* The same among records, for what is not in memory. 1, 0 or -1 with @err, as state_find. */
int find_record(struct warden *w, const char *id, state_box_fn *fn, void *ctx, struct err *err);
void record_is_there(void *ctx, const struct edge_box *r);          /* @fn of who wants to know no more than that */
int not_found(const char *id, struct err *err);
/* One that can be worked with. NULL with @err. */
struct box *usable(struct warden *w, const char *id, struct err *err);
/* The same; of one that is paused @err says so, and it is returned all the same. */
struct box *usable_now(struct warden *w, const char *id, struct err *err);
/* That operation for who asks, between the front and the keeper: granted, which is said. 0 or -1 with @err. */
int grant_op(struct warden *w, struct box *b, const struct edge_op *op, struct err *err);
/* answer.c. Whether too many answers wait for a front to hear more of it; and what its edge is watched for then. */
bool answers_wait(const struct front_edge *e);
void answers_watch(struct warden *w, struct front_edge *e);
/* Answers, each to whoever asked on the edge that it asked on; with @fd, which is taken. ANSWER() by number and fields,
 * and those that are usual. @key NULL: none is told. */
void answer(struct warden *w, struct asker to, uint8_t type, const struct shape *shape, const void *m, int fd);
#define ANSWER_WITH(fd, w, to, number, ...) \
    answer(w, to, number, number##_SHAPE(), &(const number##_IS){ .ticket = (to).ticket, __VA_ARGS__ }, fd)
#define ANSWER(w, to, number, ...) ANSWER_WITH(-1, w, to, number, __VA_ARGS__)
void answer_box(struct warden *w, struct asker to, const struct edge_box *r, const char *key);
void answer_no(struct warden *w, struct asker to, const struct err *err);
void answer_no_text(struct warden *w, struct asker to, const struct err *err);
void answer_end(struct warden *w, struct asker to, uint32_t count, bool more);
/* A socket between the front that asks and @b's keeper, which gets that message with it; that is the answer. Until
 * the keeper says OP_ENDED it is one of the sandbox's operations. 0 or -1 with @err. */
int box_grant(struct warden *w, struct box *b, uint8_t type, const struct shape *shape, const void *m, struct err *err);

/* who.c: who asks, and who may ask what: one table for all questions */
enum msg_verdict front_heard(struct warden *w, struct front_edge *e, const struct frame *f);
/* The same for a question without its trace, which is in warden.work. @by: of one that was put aside, by what it was
 * asked; NULL: its handle says so. */
enum msg_verdict front_asks(struct warden *w, struct front_edge *e, const struct frame *f, const struct proof *by);
/* Whether @who may see and use the sandbox of record @r. */
bool who_reaches(const struct who *who, const struct edge_box *r);
/* Whose records @who may list: NULL everybody's. */
const char *who_owner(const struct who *who);
/* "the owner", "agent NAME (ID)", "the key of ID": for records. */
void who_text(const struct warden *w, const struct who *who, char out[EDGE_WHO_MAX + 1]);
/* -1 with @err: @role may not do what was asked for. */
int who_may_not(enum edge_role role, struct err *err);
/* Whether who is behind @by on that front's edge may still ask @question. 0 or -1 with @err. */
int who_still(struct warden *w, uint32_t front, const struct proof *by, uint8_t question, struct who *out,
              struct err *err);
/* A caller was refused: on record, but not more often than is of use. */
void who_refused(struct warden *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* tokens.c: credentials. Only hashes of them are kept. The token of that id; NULL: there is none. */
const struct token *token_of(const struct warden *w, const char *id);
int tokens_load(struct warden *w, struct err *err);
/* Who the credential of that hash is for, now. 0 or -1 with @err (auth.unknown, auth.expired). @until: 0 for ever. */
int credential_who(struct warden *w, const uint8_t hash[SHA256_SIZE], struct who *who, uint64_t *until,
                   struct err *err);
/* A new key for the sandbox, stored; NULL with @err (or NULL) when there is none to be had: then the former one stays.
 * To be wiped by explicit_bzero. */
const char *box_new_key(struct box *b, char out[EDGE_CREDENTIAL_MAX + 1], struct err *err);

/* What nobody guesses, behind @begins: its text and its hash. -1 with errno. To be wiped as well. */
int secret_new(const char *begins, char out[EDGE_CREDENTIAL_MAX + 1], uint8_t hash[SHA256_SIZE]);
/* The same as a credential of @role. */
int credential_new(enum edge_role role, char out[EDGE_CREDENTIAL_MAX + 1], uint8_t hash[SHA256_SIZE]);

/* A new token of @t's role, name and times, put on record: answered with EDGE_TOKEN. @by: whose doing, for people. 0,
 * or -1 with @err, and nothing is answered. */
int token_make(struct warden *w, struct token *t, const char *by, struct err *err);

/* @owner: of a record: that token is good, or it is the daemon's owner; *until: when it is over, 0 never. */
bool owner_lives(const struct warden *w, const char *owner, uint64_t *until);
bool hash_of_text(const char *text, uint8_t out[SHA256_SIZE]);  /* of 64 hexadecimal digits */

/* ends.c: what goes on in the name of a credential that opens nothing any more ends: of a token, and of the keys of its
 * sandboxes; of @b's former key; and, as time passes, of tokens that are over. */
void ends_token(struct warden *w, const struct edge_token *gone);
void ends_key(struct box *b);
void lent_keys_end(struct warden *w);       /* tokens.c: second keys that others than who made the sandbox were told */
void ends_session(struct box *b, const char id[EDGE_ID + 1]);   /* of an editor */
void ends_next(struct warden *w);           /* there is another token: wait for the next end of one */

/* ports.c: ports of sandboxes that were exposed, and who comes by their capabilities. */
int ports_load(struct warden *w, struct err *err);
void ports_end(struct warden *w, const char *box);          /* all of that sandbox: it is going */

/* attach.c: people's ways into sandboxes: tickets, the sessions that they open, and their connections. */
int attach_begin(struct warden *w, struct err *err);
void attach_end(struct warden *w, const char *box);         /* all of that sandbox: it is going */
/* Whose session that credential is; false: nobody's, and nothing was changed. */
bool attach_who(struct warden *w, const uint8_t hash[SHA256_SIZE], struct who *who, uint64_t *until);
/* That operation of the sandbox's has ended; NULL: none runs any more, for @why. */
void attach_closed(struct warden *w, const char *box, const struct keep_op_said *m, const char *why);

/* life.c: the policy of one that lives: questions, and what keepers say. An adopted one is held to what is on record; a
 * change of one that ended fails. */
int life_on_shown(struct warden *w, const struct keep_shown *m);
int life_on_changed(struct warden *w, const struct keep_changed *m);
void life_adopted(struct box *b);
void life_gone(struct box *b, const struct err *why);
/* How long @b lives in all if it ends in @seconds, or when the daemon's limit says so for it. */
uint32_t life_with(const struct box *b, uint32_t seconds);

/* reattach.c: one that is made only unless its caller has one like it already. What is said is asked before it is made;
 * for all that wait for others: do they have to wait any longer? */
void reattach_ask(struct box *b);
int reattach_on_print(struct warden *w, const struct keep_print *m);
void reattach_turn(struct warden *w);
void reattach_changed(struct box *b);           /* it is held to another policy than was said */

/* volumes.c: durable workspaces */
int volumes_load(struct warden *w, struct err *err);
/* That caller's of that name: its id. Where there is none it is made (*made), with @keep_s, or as usual for
 * EDGE_KEEP_SAME; one that is there already is not changed. 0 or -1 with @err. */
int volume_take(struct warden *w, const char *owner, const char *name, uint32_t keep_s, char id[EDGE_ID + 1],
                bool *made, struct err *err);
void volume_not_taken(struct warden *w, const char *id);    /* one that was made for nothing */
void volume_taken(struct box *b);               /* its workspace from now on, kept as box.keep_s says */
/* Whether none but @b (NULL: none at all) has it. 0 or -1 with @err. */
int volume_is_free(const struct warden *w, const char *id, const struct box *b, struct err *err);
/* The name of one that warden.who may remove; NULL: there is none of that id, or it is another's. */
const char *volume_name(const struct warden *w, const char *id);
void volumes_turn(struct warden *w);            /* time has passed, or one is not used any more */
void volume_say_sweep(struct box *b);
int volume_on_swept(struct warden *w, const struct nothing *m);

/* templates.c: files that sandboxes begin with. base: r->base, and its policy where it has none, by the name or id of
 * one ("" none). is_there: whether that of a record is there still. 0 or -1 with @err. policy: NULL: there is none. */
int template_base(const struct warden *w, const char *name, struct edge_box *r, struct err *err);
int template_is_there(const struct warden *w, const char *id, struct err *err);
const char *template_policy(const struct warden *w, const char *name);
int template_on_copied(struct warden *w, const struct keep_copied *m);      /* the keepers' answers; */
int template_on_not_copied(struct warden *w, const struct edge_why *m);
void template_lost(struct box *b, const struct err *why);                   /* and none will come */

/* keep.c: the keepers' edge and the launcher's */
void keep_make(struct box *b);                                      /* tell its keeper what it is to be */
extern const struct msg_gate keep_gate;
extern const struct msg_gate launch_gate;
int launcher_say(struct warden *w, uint8_t type, const char *id);
int launcher_send(struct warden *w, uint8_t type, const struct shape *shape, const void *m);
/* settings.c: the launcher's words. */
int settings_on_no_language(struct warden *w, const struct nothing *m);
int settings_on_language(struct warden *w, const struct launch_language *m);
int settings_on_rules(struct warden *w, const struct launch_rules *m);
int settings_on_limits(struct warden *w, const struct launch_limits *m);
int settings_on_counts(struct warden *w, const struct nothing *m);
bool keep_answers(unsigned *asked);                                 /* one of @asked; false: nobody asked */
void keep_made(struct box *b);                                      /* it can be used, and whoever waits is told */
void keep_refused(struct box *b, const struct err *err);            /* it cannot: they are told that */
void keep_found(struct box *b, const struct edge_box *r);           /* they are told of another one */

/* record_ask.c: the id of the sandbox @name, of which something may have been said: that outlives its own record; then
 * only its id names it, and it is the operators' and auditors'. 0 or -1 with @err. */
int whose_record(struct warden *w, const char *name, char id[EDGE_ID + 1], struct err *err);

/* watch.c: numbers, usage, events */
int watch_on_used(struct warden *w, const struct edge_usage *u);         /* the keepers' answers */
int watch_on_op_result(struct warden *w, const struct edge_op_result *r);
/* To those who follow, may see it, and whose credential is still good. */
void watch_event(struct warden *w, const struct edge_event *event);
void watch_unfollow(struct warden *w);                      /* the one who asks follows no more */
void watch_front_lost(struct warden *w, uint32_t front);    /* who followed or asked there is gone */
void usage_turn(struct warden *w);

/* follow.c: who follows something (events, the record, approvals): how many may, and for how long. */
/* Of those who follow: count @one, then whether warden.who may too. 0 or -1 with @err, @code. */
struct follow_count { size_t all, agents, own; bool judged; };
void follow_counts(const struct warden *w, const struct who *one, const struct proof *by, struct follow_count *c);
int follow_may(const struct warden *w, const struct follow_count *c, const char *code, struct err *err);
/* A follower whose credential is none any more is told so and follows no more: looked at now and then, and at once
 * after follow_look(). */
void follow_look(struct warden *w);
/* Each kind's: end those that may not any more, and count all of them. */
void watch_judge(struct warden *w, struct follow_count *c);
void record_judge(struct warden *w, struct follow_count *c);
void approvals_judge(struct warden *w, struct follow_count *c);

/* confine.c: no file can be opened any more, no process started, no network. 0 or -1 with @err. */
int warden_confine(struct err *err);

#endif
