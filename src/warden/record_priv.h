/* warden/record_priv.h: for record*.c only */
#ifndef CLOCHE_WARDEN_RECORD_PRIV_H
#define CLOCHE_WARDEN_RECORD_PRIV_H

#include "audit/feed.h"
#include "proto/edge_scribe.h"
#include "warden/record.h"

#define RECORD_FOLLOWERS FOLLOW_MAX

/* An entry that is not written yet. */
struct item {
    struct item *next;
    uint64_t number;
    bool durable, sent;
    char by[EDGE_ID + 1];           /* the sandbox whose keeper said it; "" it is ours */
    size_t n;
    char body[];
};

#define RECORD_TRACED 256

/* What waits for its entry. */
struct held {
    struct held *next;
    uint64_t number, operation;     /* the entry; what record_operation() is for it */
    enum record_way way;
    bool made;                      /* no question, but that the sandbox @id is ready */
    char id[EDGE_ID + 1];
    struct work work;
    uint8_t type;
    struct asker to;
    struct proof proof;             /* of who asked */
    size_t n;
    uint8_t payload[];
};

/* Who is told each new entry. */
struct follower {
    struct asker to;                /* ticket 0: nobody */
    struct proof proof;             /* of who follows, judged anew for each entry */
    struct who who;                 /* as they were when they began */
    struct audit_filter filter;
    char id[EDGE_ID + 1], by[EDGE_WHO_MAX + 1];     /* the filter's */
    char until[AUDIT_TIME_TEXT + 1];
};

struct record {
    enum record_mode mode;
    struct watch scribe;            /* its edge; there may be none (yet) */
    bool ready;                     /* it has said what there was */
    struct packet_queue out;
    struct msg_gate gate;
    struct item *first, *last;
    size_t bytes, in_flight;
    uint64_t number;                /* of the last entry that was queued */
    uint64_t last_us;               /* its time: no two have the same */
    uint64_t heard_ms;              /* the scribe said something, or was not owed anything until then */
    bool down;                      /* the last try failed */
    struct timer retry, late;       /* the next one; it is late then if it has owed something all the time */
    uint64_t refused, lost;         /* questions, entries; since it is down, or before this process */
    struct { uint64_t refused, lost, by; } said;    /* of these so many, by the entry of that number, not written yet */
    bool gap_kept;                  /* they are in the state file */
    char why[256];
    struct traced {
        uint64_t operation;
        struct work work;
        uint8_t span[EDGE_SPAN];    /* its own */
        char box[EDGE_ID + 1];      /* where it is under way; "": it is over, or is no command or file request */
        char *command;              /* NULL: nobody asked for it */
    } traced[RECORD_TRACED];        /* the newest operations, whose results come later */
    size_t n_traced;
    struct held *held;              /* oldest first */
    size_t held_bytes;
    uint64_t operation;             /* the one at hand */
    bool again;                     /* the question at hand has been in the record already */
    bool had_past;                  /* the feed has what was written before this process */
    struct audit_head head;         /* the last one that is known to be written; seq 0: none is */
    bool head_new;                  /* it is not on record yet, */
    struct timer keep;              /* and is by then */
    bool rebooted;                  /* the machine was started anew since it was */
    char boot[STEADY_BOOT + 1];     /* by which that is known */
    struct audit_feed *feed;
    struct follower followers[RECORD_FOLLOWERS];
};

/* record.c: ask the scribe for a page onto @fd, which is taken. -1: there is no scribe. */
int record_read(struct warden *w, const char *id, uint64_t offset, int fd);

/* record_head.c: what the next warden is to say of a gap; 0 and 0: nothing. */
void record_keep_gap(struct warden *w, uint64_t refused, uint64_t lost);
/* The head that the scribe's message says, written down. What it did not find. -1: it broke the
 * dialogue. */
int record_got_head(struct warden *w, const struct audit_head *head);
int record_on_missed(struct warden *w, const struct scribe_missed *m);

/* record_time.c: whether the scribe answers. */
void record_expect(struct warden *w);   /* it owes something from here on */
/* record_keep.c: what the operation at hand is part of. */
void record_remember_trace(const struct warden *w);

#endif
