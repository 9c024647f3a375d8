/* warden/record.h: the daemon's audit record, as the warden keeps it (docs/audit.md)
 *
 * What happens becomes an entry, in its final form, and waits in memory until cloche-scribe has written it. Where the
 * record is required, what the entry is about waits too: the question that asked for it is put aside as it came, and
 * is heard when its entry is on the disk. So nothing privileged is done that is not in the record, and the warden never
 * waits for a disk. When the record cannot be written such questions are refused (audit.unavailable), until it can.
 *
 * One writer: keepers' entries come over the warden, which says whose they are; the front writes none.
 */
#ifndef CLOCHE_WARDEN_RECORD_H
#define CLOCHE_WARDEN_RECORD_H

#include "audit/filter.h"
#include "warden/warden.h"

#define RECORD_QUEUE_MAX  AUDIT_QUEUE_MAX   /* bytes of entries that are not written; of more only the number is kept */
#define RECORD_WINDOW     (256 * 1024)      /* bytes with the scribe at a time */
#define RECORD_HELD_MAX   (8 * 1024 * 1024) /* bytes of questions that wait; more are refused */
#define RECORD_RETRY_MS   500
#define RECORD_LATE_MS    4000      /* without a word of the scribe about what it was sent */

enum record_mode { RECORD_IS_OFF, RECORD_IS_TRIED, RECORD_IS_REQUIRED };

/* record.c. "off", "try" or "required". -1: no memory, or another word. */
int record_open(struct warden *w, const char *mode);
/* How far it was written, as the state file says; it is open. 0 or -1 with @err. */
int record_load(struct warden *w, struct err *err);
void record_scribe(struct warden *w, int fd);           /* the edge to a new scribe; taken */
int record_hear(struct warden *w, uint32_t events);     /* the scribe's edge. -1: it is gone, and closed */
void record_front_gone(struct warden *w, uint32_t front);       /* its questions need no answer any more */
void record_end(struct warden *w);                      /* give the scribe what it has not got yet */
void record_keep_head(struct warden *w);                /* how far it is written is put with what is put soon */

/* Whether entries about @b (NULL: about no sandbox) must be written first: the daemon's mode or the policy's. */
bool record_required(const struct warden *w, const struct box *b);
/* Whether something privileged that nobody asks for may be done with @b now: as far as is known its entry, which does
 * not wait for the disk, can be written, or need not be. */
bool record_can(const struct warden *w, const struct box *b);

/* One entry, of which nobody waits; time, sandbox (of @b unless NULL) and who said it are put in. */
void record_say(struct warden *w, struct box *b, struct audit_entry *e);
/* The same for what a keeper said. */
void record_said(struct warden *w, struct box *b, const struct audit_entry *e);
/* What warden_note() notes, as an entry. */
void record_note(struct warden *w, const char *id, const char *type, const char *detail);

/* The question at hand (warden.question) is privileged: @e says so. True: it has been put aside, or answered with a
 * refusal, and its handler returns; it is called again with the same frame when the entry is written, and then this
 * returns false. */
enum record_way {
    RECORD_WAIT,
    RECORD_INSIST,      /* when it cannot be written, go on without: what ends sandboxes */
    RECORD_ONLY,        /* go on at once: what changes nothing */
};
bool record_first(struct warden *w, struct box *b, struct audit_entry *e);     /* in its way (proto/question.h) */
bool record_first_as(struct warden *w, struct box *b, struct audit_entry *e, enum record_way way);
/* An entry about the question at hand, by the name that it has in the record. */
void record_begin(struct warden *w, struct audit_entry *e, const char *summary);
/* who.c: that name, and its way. NULL: its handler knows. */
const char *question_recorded(uint8_t type, enum record_way *way);
/* Whether the question at hand is one that was put aside like that, and is heard again. */
bool record_again(const struct warden *w);
/* From now on that is so, or not; what it was. For who has another question heard while one is. */
bool record_heard_again(struct warden *w, bool again);
/* The number of the operation at hand, which its entries and its result share. */
uint64_t record_operation(const struct warden *w);
/* The sandbox is made: it is used when that is in the record. True as above. */
bool record_made(struct warden *w, struct box *b);

/* record_note.c: the questions that are privileged, as record_first(): a sandbox is to be made as @r says, of which the
 * policy is recorded by its digest, for it holds values of variables; something, @what unless NULL, is asked of the
 * sandbox @id (@b where it lives); an operation. */
bool record_create(struct warden *w, const struct edge_box *r);
bool record_asked(struct warden *w, struct box *b, const char *id, const char *what);
bool record_expose(struct warden *w, struct box *b, uint16_t port, const char *name);
/* It is made in that mode; which is another one than in its former life. */
void record_mode(struct warden *w, struct box *b, struct str mode);
bool record_op(struct warden *w, struct box *b, const struct edge_op *op);

/* record_keep.c: the operation at hand, @op, is under way in @b: its span is told when it is over. */
void record_traced(struct warden *w, const struct box *b, const struct edge_op *op);
/* What a thing that happens in @b is part of: the one operation that is under way, if there is one alone, or else the
 * sandbox's making. */
struct work record_under_way(const struct warden *w, const struct box *b);
void record_box_gone(struct warden *w, const struct box *b);    /* nothing is under way there any more */

/* record_ask.c: questions of the front about the record, and transcripts. */
void record_line(struct warden *w, struct str line);    /* a new one: to those who follow */
/* record_keep.c: what keepers say for it. */
int record_on_masks(struct warden *w, const struct keep_masks *m);
int record_on_noted(struct warden *w, const struct keep_noted *m);
int record_on_op_said(struct warden *w, const struct keep_op_said *m);

#endif
