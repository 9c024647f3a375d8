/* warden/state.h: the record of every sandbox and of what happened, in SQLite
 *
 * One file, state.db, in a folder of the daemon's own. Each call is a transaction of its own in the write-ahead log:
 * what has returned survives the end of the process, however it comes (not that of the machine: no sandbox survives
 * that either). But what is put soon (state_put_soon, state_note, state_head_put) is one transaction until
 * state_flush(), or until something else is put: so each page is written once for all of it. Where that cannot be
 * written it waits in memory until it can (state_soon.c), and is read as if it were. The file is held
 * exclusively, so that there is one daemon for one folder, and no second file is opened after state_open: the warden
 * has given up opening files by then.
 */
#ifndef CLOCHE_WARDEN_STATE_H
#define CLOCHE_WARDEN_STATE_H

#include "audit/chain.h"
#include "base/err.h"
#include "base/steady.h"
#include "proto/edge.h"

#define STATE_STOPPED_MAX 1000      /* records of ended sandboxes that are kept, the newest of each caller */
#define STATE_EVENTS_MAX  10000     /* events, likewise */
#define STATE_ONCE_MAX    1000      /* idempotency keys of one caller, the newest */
#define STATE_ONCE_S      86400     /* and for so long */

struct state;

/* state.db in the folder @dir, made where it is missing. NULL with @err: another daemon has it (serve.state.busy), it
 * is damaged or of a later version. */
struct state *state_open(const char *dir, struct err *err);

/* What is changed waits in SQLite's log. When that is long: put it into the file, which takes a while. */
bool state_log_is_long(const struct state *s);
void state_settle(struct state *s);

/* Insert or replace. 0 or -1 with @err. */
int state_put(struct state *s, const struct edge_box *box, struct err *err);
int state_forget(struct state *s, const char *id, struct err *err);
/* The same, with what else is put soon. */
int state_put_soon(struct state *s, const struct edge_box *box, struct err *err);
/* When it was used last (on the wall clock, and steady), and nothing else of it: the same. */
int state_used_soon(struct state *s, const char *id, uint64_t used_ms, uint64_t used_at, struct err *err);
/* Whether something waits for state_flush(). */
bool state_waits(const struct state *s);
/* What was put soon is on record now. -1 with @err: it is not yet; it is tried again at its time. */
int state_flush(struct state *s, struct err *err);
uint64_t state_again_ms(const struct state *s);     /* when that is, on the monotonic clock; 0: it does not wait */
void state_at_once(struct state *s);                /* it is now */
/* How many changes were given up since the last time: too many waited, or they were wrong. */
uint64_t state_lost(struct state *s);

/* What is found is the callback's for the time of the call. */
typedef void state_box_fn(void *ctx, const struct edge_box *box);
typedef void state_event_fn(void *ctx, const struct edge_event *event);

/* By id, or by name among those that are not stopped; "": the newest that was made as the default one of the owner ""
 * (the daemon's). 1 found, 0 not, -1 with @err. */
int state_find(struct state *s, const char *id_or_name, state_box_fn *fn, void *ctx, struct err *err);
/* Whether there is a record of that name that is @owner's, a stopped one too; true when that cannot be known. */
bool state_named(struct state *s, const char *owner, const char *name);
/* The newest that @owner had as its default one. */
int state_find_default(struct state *s, const char *owner, state_box_fn *fn, void *ctx, struct err *err);
/* By the hash of its key (edge_box.key). */
int state_find_key(struct state *s, const char *key, state_box_fn *fn, void *ctx, struct err *err);

struct state_query {
    const char *prefix;     /* of the name */
    const char *label;      /* "\nNAME=VALUE\n", or "" */
    const char *after;      /* the id after which to go on, or "" */
    uint64_t after_ms;      /* when that one was made, in case that its record is gone */
    const char *owner;      /* of this token only; NULL: of everybody */
    const char *workspace;  /* of that key only; "": of any */
    bool all;               /* the stopped ones too */
    unsigned limit;
};
/* Oldest first. How many, and in @more whether there are others; -1 with @err. */
int state_list(struct state *s, const struct state_query *q, state_box_fn *fn, void *ctx, bool *more, struct err *err);

int state_note(struct state *s, const struct edge_event *event, struct err *err);
uint64_t state_last_event(struct state *s);     /* the number of the one that was noted last */
/* The newest @limit, oldest of them first; of the sandbox @id, or of all (""); of those only whose sandbox @owner made,
 * as far as its record is still there, unless NULL. How many or -1. */
int state_events(struct state *s, const char *id, const char *owner, unsigned limit, state_event_fn *fn, void *ctx,
                 struct err *err);
/* The caller @who made the sandbox @id at @now_ms by its idempotency key; @key and @body are hashes (EDGE_HASH). */
int state_once_put(struct state *s, const char *who, const uint8_t *key, const uint8_t *body, const char *id,
                   uint64_t now_ms, struct err *err);
/* 1 with the sandbox's @id and whether the body was the @same; 0 when the key is new (or old enough), -1 with @err. */
int state_once_find(struct state *s, const char *who, const uint8_t *key, const uint8_t *body, uint64_t now_ms,
                    char id[EDGE_ID + 1], bool *same, struct err *err);
/* The sandbox that @id was to be is @to. */
int state_once_move(struct state *s, const char *id, const char *to, struct err *err);
/* It was not made after all. */
int state_once_forget(struct state *s, const char *id, struct err *err);

/* A new token, and @hash, the SHA-256 of what it is, in hexadecimal. 0 or -1 with @err. */
int state_put_token(struct state *s, const struct edge_token *token, const char *hash, struct err *err);
int state_forget_token(struct state *s, const char *id, struct err *err);
typedef void state_token_fn(void *ctx, const struct edge_token *token, const char *hash);
/* All, oldest first. How many or -1. */
int state_tokens(struct state *s, state_token_fn *fn, void *ctx, struct err *err);
/* A durable workspace, or a template of sandboxes with @policy, inserted or replaced; @removed: nothing of it is to be
 * left. 0 or -1 with @err. */
int state_put_volume(struct state *s, const struct edge_volume *v, const char *policy, bool removed, struct err *err);
int state_forget_volume(struct state *s, const char *id, struct err *err);
typedef void state_volume_fn(void *ctx, const struct edge_volume *v, const char *policy, bool removed);
/* All, oldest first. How many or -1. */
int state_volumes(struct state *s, state_volume_fn *fn, void *ctx, struct err *err);
/* As of when what is on record about them is, in milliseconds since 1970; 0 nothing is. -1 with @err. */
int state_volume_clock_set(struct state *s, uint64_t at_ms, struct err *err);
int state_volume_clock(struct state *s, uint64_t *at_ms, struct err *err);
/* A port that was exposed, and @hash, the SHA-256 of its capability, in hexadecimal. 0 or -1 with @err. */
int state_put_port(struct state *s, const struct edge_port *port, const char *hash, struct err *err);
int state_forget_port(struct state *s, const char *id, struct err *err);
typedef void state_port_fn(void *ctx, const struct edge_port *port, const char *hash);
/* All, oldest first. How many or -1. */
int state_ports(struct state *s, state_port_fn *fn, void *ctx, struct err *err);
/* The last entry of the audit record that is known to be written, and the machine's boot id then. 0 or -1 with @err. */
int state_head_put(struct state *s, const struct audit_head *head, const char *boot, struct err *err);
/* ... seq 0: none is; *rebooted: the id was another than @boot. */
int state_head(struct state *s, const char *boot, struct audit_head *out, bool *rebooted, struct err *err);
/* What a former warden could not have written by its end, which the record is to say: questions that were refused for
 * it, and entries; 0 and 0: nothing. 0 or -1 with @err. */
int state_gap_put(struct state *s, uint64_t refused, uint64_t lost, struct err *err);
int state_gap(struct state *s, uint64_t *refused, uint64_t *lost, struct err *err);
/* The latest time that was seen, in milliseconds since 1970; 0 none is on record. 0 or -1 with @err. */
int state_latest_put(struct state *s, uint64_t at_ms, struct err *err);
int state_latest(struct state *s, uint64_t *at_ms, struct err *err);
/* The steady time; .at_ms 0: none is on record. 0 or -1 with @err. */
int state_steady_put(struct state *s, const struct steady_kept *k, struct err *err);
int state_steady(struct state *s, struct steady_kept *out, struct err *err);
/* A request to sign that is done with: at @at_ms (steady) it had @spent (STATE_SPENT bytes: an amount, the highest
 * first) signed for; or a person refused it, and that is NULL. It is on the disk when this returns; what is older than
 * a day, and not among the newest STATE_SIGN_MAX, is forgotten. 0 or -1 with @err: also where that request is there. */
#define STATE_SPENT    32
#define STATE_SIGN_MAX 10000
#define STATE_SIGN_MS  (25 * 3600000ULL)
int state_sign_put(struct state *s, const char *request, uint64_t at_ms, const uint8_t *spent, struct err *err);
int state_sign_forget(struct state *s, const char *request, struct err *err);      /* there is no signature */
int state_sign_seen(struct state *s, const char *request, struct err *err);        /* 1, 0 or -1 with @err */
typedef void state_signed_fn(void *ctx, uint64_t at_ms, const uint8_t spent[STATE_SPENT]);
/* Those that were signed after that. How many or -1. */
int state_sign_since(struct state *s, uint64_t since_ms, state_signed_fn *fn, void *ctx, struct err *err);
/* A person is asked about @request at @at_ms, and about just that: @what is who asks, and the digest. As long on record
 * as what is signed. _other: 1 if it was about something else before, 0 if not, -1 with @err. */
int state_sign_asked_put(struct state *s, const char *request, uint64_t at_ms, const char *what, struct err *err);
int state_sign_asked_other(struct state *s, const char *request, const char *what, struct err *err);
/* The nonce behind the highest of that account that was used for a signature, as far as is known. _put: or @next, if
 * that is higher; _back: it is @next. 0 or -1 with @err. */
#define STATE_ACCOUNT 20
int state_sign_nonce(struct state *s, const uint8_t *account, uint64_t chain, uint64_t *next, struct err *err);
int state_sign_nonce_put(struct state *s, const uint8_t *account, uint64_t chain, uint64_t next, struct err *err);
int state_sign_nonce_back(struct state *s, const uint8_t *account, uint64_t chain, uint64_t next, struct err *err);
/* Nonces that were given to somebody, or used, and then no signature was made of: the first that is @from or more, 1; 0
 * there is none; -1 with @err. _put: @nonce is one, and above STATE_SIGN_FREE the oldest goes of the account and chain
 * with most. _take: it is none any more; 1: it was one. _below: nor are those below it. */
#define STATE_SIGN_FREE 4096
int state_sign_free(struct state *s, const uint8_t *account, uint64_t chain, uint64_t from, uint64_t *nonce,
                    struct err *err);
int state_sign_free_put(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err);
int state_sign_free_take(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err);
int state_sign_free_below(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err);
/* Forget what is above the ceilings. */
int state_prune(struct state *s, uint64_t now_ms, struct err *err);

#endif
