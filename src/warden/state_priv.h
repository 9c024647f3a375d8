/* warden/state_priv.h: for state*.c only: the file, and its statements */
#ifndef CLOCHE_WARDEN_STATE_PRIV_H
#define CLOCHE_WARDEN_STATE_PRIV_H

#include <sqlite3.h>

#include "warden/state.h"

enum query { Q_PUT, Q_FORGET, Q_BY_ID, Q_BY_NAME, Q_NAMED, Q_BY_KEY, Q_DEFAULT, Q_LIST, Q_NOTE, Q_EVENTS, Q_PRUNE_BOXES,
             Q_PRUNE_EVENTS, Q_USED, Q_BEGIN, Q_COMMIT, Q_N };
enum token_query { TOKEN_Q_PUT, TOKEN_Q_FORGET, TOKEN_Q_ALL, TOKEN_Q_N };
enum volume_query { VOLUME_PUT, VOLUME_FORGET, VOLUME_ALL, VOLUME_SET_CLOCK, VOLUME_CLOCK, VOLUME_N };
enum port_query { PORT_Q_PUT, PORT_Q_FORGET, PORT_Q_ALL, PORT_Q_N };
enum latest_query { LATEST_PUT, LATEST_GET, LATEST_STEADY_PUT, LATEST_STEADY_GET, LATEST_N };
enum head_query { HEAD_PUT, HEAD_GET, HEAD_GAP_PUT, HEAD_GAP_GET, HEAD_N };
enum once_query { ONCE_PUT, ONCE_FIND, ONCE_FORGET, ONCE_MOVE, ONCE_PRUNE_OLD, ONCE_PRUNE_MANY, ONCE_N };

enum sign_query { SIGN_Q_PUT, SIGN_Q_FORGET, SIGN_Q_SEEN, SIGN_Q_SINCE, SIGN_Q_PRUNE, SIGN_Q_NONCE, SIGN_Q_NONCE_PUT,
                  SIGN_Q_NONCE_BACK, SIGN_Q_FREE_PUT, SIGN_Q_FREE_PRUNE, SIGN_Q_FREE_TAKE, SIGN_Q_FREE_BELOW,
                  SIGN_Q_FREE, SIGN_Q_ASKED_PUT, SIGN_Q_ASKED, SIGN_Q_ASKED_PRUNE, SIGN_Q_N };

#define STATE_FULL "serve.state.full"   /* an error's code: there is no room on the disk */

struct state {
    sqlite3 *db;
    sqlite3_stmt *q[Q_N];
    sqlite3_stmt *once[ONCE_N];
    sqlite3_stmt *token[TOKEN_Q_N];
    sqlite3_stmt *volume[VOLUME_N];
    sqlite3_stmt *port[PORT_Q_N];
    sqlite3_stmt *head[HEAD_N];
    sqlite3_stmt *latest[LATEST_N];
    sqlite3_stmt *sign[SIGN_Q_N];
    int room;       /* bytes that are given up when the disk is full (state_room.c) */
    int log_pages;  /* in SQLite's log, and not in the file yet */
    struct {
        struct state_soon *first, **end;
        size_t n, bytes, events;
    } soon;         /* what is put soon and not on record yet, in its order (state_soon.c) */
    bool open;      /* there is a transaction of it */
    bool behind;    /* it could not be written, */
    uint64_t again_ms;      /* and is tried again then, */
    struct err why;         /* because of that */
    uint64_t lost;          /* changes that were given up */
    uint64_t last_event;    /* the number of the last one */
};

/* What SQLite said last, as an error: -1. */
int state_broken(const struct state *s, struct err *err);
/* Run a statement that gives no rows, and make it ready for the next time. 0 or -1 with @err. */
int state_change(struct state *s, sqlite3_stmt *q, struct err *err);
void state_ready(sqlite3_stmt *q);      /* that alone */

/* state_soon.c. The same, at the next state_flush(), in place of what was put soon under that key ("": of nothing). */
#define STATE_KEY (EDGE_ID + 2)
int state_change_soon(struct state *s, sqlite3_stmt *q, const char *key, struct err *err);
void state_soon_forget(struct state *s, const char *key);
/* Run @q with what is put soon. False: neither is on record; @q may be run anew, by itself. */
bool state_change_with_soon(struct state *s, sqlite3_stmt *q);
/* Before something is read: so that what is put soon is seen. */
void state_show(struct state *s);
/* Before what is a transaction of its own. */
void state_end_open(struct state *s);
/* After the last row: @n, or -1 with @err where @r, which the last step returned, is a failure. Makes @q ready too. */
int state_done(struct state *s, sqlite3_stmt *q, int r, int n, struct err *err);
/* The tables of @schema (NULL: they are there), then @n @statements, into @q. 0 or -1 with @err; those that were
 * prepared by then are in @q. */
int state_prepare(struct state *s, const char *schema, const char *const *statements, sqlite3_stmt **q, size_t n,
                  struct err *err);

/* A parameter; the text is borrowed until the statement has run. What SQLite has no number for is its largest. */
void bind_text(sqlite3_stmt *q, int at, const char *text);
void bind_u64(sqlite3_stmt *q, int at, uint64_t v);
/* A column: "" and 0 where there is nothing, or a number below 0. The text is SQLite's until the next step. */
const char *col_text(sqlite3_stmt *q, int column);
uint64_t col_u64(sqlite3_stmt *q, int column);

/* state_room.c: room for when the disk is full. Make some, between two transactions: what failed for want of it can be
 * tried once more. Afterwards, and after the start, keep again what can be had. */
void state_room_open(struct state *s, const char *dir);
void state_keep_log(struct state *s);       /* from now on; at its end, if it grows too long */
int state_begin_log(struct state *s);       /* state.c: a first page of a new one. As SQLite says */
void state_make_room(struct state *s);
void state_keep_room(struct state *s);

/* state_once.c: its table and statements; forget what is too old, or too much. */
int state_once_prepare(struct state *s, struct err *err);
int state_once_prune(struct state *s, uint64_t now_ms, struct err *err);

/* state_volume.c: its statements. */
int state_volume_prepare(struct state *s, struct err *err);

/* state_head.c: its table and statements. */
int state_head_prepare(struct state *s, struct err *err);

/* state_latest.c: its table and statements. */
int state_latest_prepare(struct state *s, struct err *err);
int state_sign_prepare(struct state *s, struct err *err);      /* state_sign.c */

/* state_token.c: its table and statements. */
int state_token_prepare(struct state *s, struct err *err);

/* state_port.c: its table and statements. */
int state_port_prepare(struct state *s, struct err *err);

#endif
