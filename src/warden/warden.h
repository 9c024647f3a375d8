/* warden/warden.h: cloche-warden: which sandboxes there are, and what becomes of them
 *
 * One thread, one epoll. The record of a sandbox is in the state file (state.h) before anything is made and after
 * every step; in memory are only those that live, each with its keeper's socket. Nothing of a sandbox's own bytes comes
 * here: an operation is judged, granted, and then spoken between the front and the keeper.
 */
#ifndef CLOCHE_WARDEN_WARDEN_H
#define CLOCHE_WARDEN_WARDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "warden/edge.h"
#include "warden/state.h"
#include "wire/packet.h"
#include "wire/table.h"

#define WARDEN_CHECK_MS 2000    /* between two looks at a sandbox's health */
#define WARDEN_LATE_MS  20000   /* a keeper that does not answer is not healthy */
#define WARDEN_STOP_MS  10000   /* for a keeper to end when told; then it is killed */
#define WARDEN_WAITERS  1024    /* questions that wait for one sandbox */
#define WARDEN_BOXES    256     /* sandboxes at once, unless the settings say otherwise */

/* Who waits for what comes of a sandbox. */
enum wait_for { WAIT_MADE, WAIT_PAUSED, WAIT_GONE, WAIT_ALL_GONE };
struct waiter {
    struct waiter *next;
    uint32_t ticket;
    enum wait_for what;
};

struct box {
    struct box *next;
    struct warden *w;
    struct edge_box r;                  /* its texts are owned */
    int fd;                             /* the keeper's edge; -1: there is none (yet) */
    struct packet_queue out;
    struct msg_gate gate;
    struct waiter *waiters;
    unsigned ops;                       /* that run */
    bool again;                         /* when it is gone it is made anew (recovery) */
    uint64_t begun_ms, used_ms;         /* as in its record, but on the monotonic clock: limits are kept by it */
    uint64_t check_ms;                  /* the next look, on the monotonic clock */
    uint64_t asked_ms;                  /* an unanswered look; 0 none */
    uint64_t stop_ms;                   /* when it was told to end; 0 not */
    struct buf not_made;                /* what its keeper said, if so: an error as it was sent */
    const char *why;                    /* it ends, or ended, when that is known; owned */
};

struct warden {
    struct state *state;
    struct box *boxes;
    size_t n_boxes, max_boxes;
    int epoll, launcher, front;         /* front -1: none */
    struct packet_queue to_launcher, to_front;
    struct msg_gate launcher_gate, front_gate;
    uint32_t default_idle_s, default_life_s;
    bool closing;                       /* no sandbox is made any more */
    unsigned noted;                     /* events since the last pruning */
    int passed;                         /* the descriptor that came with the message at hand; -1 */
    uint32_t stop_all_ticket;           /* who waits for all to be gone; 0 nobody */
    uint32_t stop_all_n;
    struct box *heard;                  /* whose message is at hand */
    uint8_t in[EDGE_ROOM];
};

/* main.c */
/* What happened, to the record of events. The audit's chain begins here when there is one. @box may be NULL. */
void warden_note(struct warden *w, const struct box *box, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int warden_watch(struct warden *w, int fd, void *who, bool writing, bool add);

/* boxes.c: what becomes of sandboxes */
struct box *box_of_id(struct warden *w, const char *id);
/* A new record, in memory and on disk, and a keeper asked for. @ticket is answered when it is made. */
int box_create(struct warden *w, const struct edge_box *r, uint32_t ticket, struct err *err);
/* The same for the record @r of one that has stopped. */
int box_revive(struct warden *w, const struct edge_box *r, uint32_t ticket, struct err *err);
/* From a record on disk, for a keeper that lived on; @fd is taken. */
void box_adopt(struct warden *w, const struct edge_box *r, int fd);
int box_edge(struct box *b, int fd);                                /* its keeper's. -1: @b is no more */
void box_state(struct box *b, enum box_state state, const char *detail);
/* @ticket is answered when that has come. -1 with @err: too many wait. */
int box_wait(struct box *b, enum wait_for what, uint32_t ticket, struct err *err);
void box_forget_waiters(struct box *b);
void box_stop(struct box *b, const char *why);
int box_recover(struct box *b, struct err *err);
void box_lost(struct box *b);                                       /* its keeper has ended */
void box_not_spawned(struct box *b, const struct packet_err *why);
void box_store(struct box *b);
void box_used(struct box *b);                                       /* now; and store it */
void box_text(const char **text, const char *new);                  /* owned; keeps the old one without memory */
void box_time(struct warden *w);                                    /* limits, health */
int box_timeout(const struct warden *w);                            /* for epoll_wait */
int box_say(struct box *b, struct buf *frame, int fd);              /* to its keeper; ends it when that fails */
void box_say_short(struct box *b, uint8_t type);
void box_all_gone(struct warden *w);                                /* whoever waits for that is told, if so */
void box_find_lost(struct warden *w);                               /* after adoption: what nobody keeps any more */

/* ask.c: the front's edge */
extern const struct msg_rule ask_rules[];
extern const size_t ask_n_rules;
int new_id(char out[EDGE_ID + 1]);      /* -1 with errno */
/* The one that lives, by id or by name ("": the default one). NULL: none does. */
struct box *living(struct warden *w, const char *id);
void answer_box(struct warden *w, uint32_t ticket, const struct edge_box *r);
void answer_no(struct warden *w, uint32_t ticket, const struct err *err);
void answer_no_text(struct warden *w, uint32_t ticket, const struct packet_err *err);
void answer_end(struct warden *w, uint32_t ticket, uint32_t count, bool more);

/* keep.c: the keepers' edge and the launcher's */
extern const struct msg_rule keep_rules[];
extern const size_t keep_n_rules;
extern const struct msg_rule launch_rules[];
extern const size_t launch_n_rules;
int launcher_say(struct warden *w, uint8_t type, const char *id);

/* confine.c: no file can be opened any more, no process started, no network. 0 or -1 with @err. */
int warden_confine(struct err *err);

#endif
