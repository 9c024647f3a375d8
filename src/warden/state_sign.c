/* warden/state_sign.c: what was signed (see state.h)
 *
 * A row is written before its signature is made, and is on the disk then: neither the end of this process nor that of
 * the machine makes room in a spending limit.
 */
#include <string.h>

#include "base/clock.h"
#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS signed (request TEXT PRIMARY KEY, at INTEGER NOT NULL, counts INTEGER NOT NULL, spent "
    "BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS signed_at ON signed (at);"
    "CREATE TABLE IF NOT EXISTS sign_asked (request TEXT PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL) WITHOUT "
    "ROWID;"
    "CREATE INDEX IF NOT EXISTS sign_asked_at ON sign_asked (at);"
    "CREATE TABLE IF NOT EXISTS signed_nonce (account BLOB NOT NULL, chain INTEGER NOT NULL, next INTEGER NOT NULL, "
    "PRIMARY KEY (account, chain)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS signed_free (account BLOB NOT NULL, chain INTEGER NOT NULL, nonce INTEGER NOT NULL, "
    "UNIQUE (account, chain, nonce));";

static const char *const texts[SIGN_Q_N] = {
    [SIGN_Q_PUT] = "INSERT INTO signed (request, at, counts, spent) VALUES (?1, ?2, ?3, ?4)",
    [SIGN_Q_FORGET] = "DELETE FROM signed WHERE request = ?1",
    [SIGN_Q_SEEN] = "SELECT 1 FROM signed WHERE request = ?1",
    [SIGN_Q_SINCE] = "SELECT at, spent FROM signed WHERE counts = 1 AND at > ?1 ORDER BY at DESC LIMIT ?2",
    [SIGN_Q_PRUNE] = ("DELETE FROM signed WHERE at <= ?1 AND request NOT IN "
                      "(SELECT request FROM signed ORDER BY at DESC LIMIT ?2)"),
    [SIGN_Q_ASKED_PUT] = "INSERT OR IGNORE INTO sign_asked (request, at, what) VALUES (?1, ?2, ?3)",
    [SIGN_Q_ASKED] = "SELECT 1 FROM sign_asked WHERE request = ?1 AND what <> ?2",
    [SIGN_Q_ASKED_PRUNE] = ("DELETE FROM sign_asked WHERE at <= ?1 AND request NOT IN "
                            "(SELECT request FROM sign_asked ORDER BY at DESC LIMIT ?2)"),
    [SIGN_Q_NONCE] = "SELECT next FROM signed_nonce WHERE account = ?1 AND chain = ?2",
    [SIGN_Q_NONCE_PUT] = ("INSERT INTO signed_nonce (account, chain, next) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE "
                          "SET next = max(next, excluded.next)"),
    [SIGN_Q_NONCE_BACK] = "UPDATE signed_nonce SET next = ?3 WHERE account = ?1 AND chain = ?2",
    [SIGN_Q_FREE_PUT] = "INSERT OR IGNORE INTO signed_free (account, chain, nonce) VALUES (?1, ?2, ?3)",
    /* of the chain that has most the oldest: none moves another's out */
    [SIGN_Q_FREE_PRUNE] = ("DELETE FROM signed_free WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, row_number() "
                           "OVER (PARTITION BY account, chain ORDER BY rowid DESC) AS n FROM signed_free) ORDER BY n, "
                           "id DESC LIMIT -1 OFFSET ?1)"),
    [SIGN_Q_FREE_TAKE] = "DELETE FROM signed_free WHERE account = ?1 AND chain = ?2 AND nonce = ?3",
    [SIGN_Q_FREE_BELOW] = "DELETE FROM signed_free WHERE account = ?1 AND chain = ?2 AND nonce < ?3",
    [SIGN_Q_FREE] = ("SELECT nonce FROM signed_free WHERE account = ?1 AND chain = ?2 AND nonce >= ?3 ORDER BY nonce "
                     "LIMIT 1"),
};

int
state_sign_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->sign, SIGN_Q_N, err);
}

/* The statement @q, on the disk when this returns. */
static int
change_synced(struct state *s, sqlite3_stmt *q, struct err *err)
{
    int r;

    state_end_open(s);      /* what is put soon is not in this transaction */
    if (sqlite3_exec(s->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK) {
        (void)sqlite3_reset(q);
        return state_broken(s, err);
    }
    r = state_change(s, q, err);
    (void)sqlite3_exec(s->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
    return r;
}

static int
forget_old(struct state *s, sqlite3_stmt *q, uint64_t at_ms, struct err *err)
{
    bind_u64(q, 1, clock_since(at_ms, STATE_SIGN_MS));
    bind_u64(q, 2, STATE_SIGN_MAX);
    return state_change(s, q, err);
}

int
state_sign_put(struct state *s, const char *request, uint64_t at_ms, const uint8_t *spent, struct err *err)
{
    static const uint8_t nothing[STATE_SPENT];
    sqlite3_stmt *q = s->sign[SIGN_Q_PUT];

    if (forget_old(s, s->sign[SIGN_Q_PRUNE], at_ms, err) < 0)
        return -1;
    bind_text(q, 1, request);
    bind_u64(q, 2, at_ms);
    sqlite3_bind_int(q, 3, spent != NULL);
    sqlite3_bind_blob(q, 4, spent != NULL ? spent : nothing, STATE_SPENT, SQLITE_STATIC);
    return change_synced(s, q, err);
}

int
state_sign_forget(struct state *s, const char *request, struct err *err)
{
    bind_text(s->sign[SIGN_Q_FORGET], 1, request);
    return state_change(s, s->sign[SIGN_Q_FORGET], err);
}

int
state_sign_seen(struct state *s, const char *request, struct err *err)
{
    sqlite3_stmt *q = s->sign[SIGN_Q_SEEN];
    int r;

    bind_text(q, 1, request);
    r = sqlite3_step(q);
    return state_done(s, q, r, r == SQLITE_ROW ? 1 : 0, err);
}

int
state_sign_since(struct state *s, uint64_t since_ms, state_signed_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = s->sign[SIGN_Q_SINCE];
    int r, n = 0;

    bind_u64(q, 1, since_ms);
    bind_u64(q, 2, STATE_SIGN_MAX);
    for (; (r = sqlite3_step(q)) == SQLITE_ROW; n++) {
        uint8_t spent[STATE_SPENT];
        const void *blob = sqlite3_column_blob(q, 1);

        /* what does not fit was not written by us: as much as can be */
        memset(spent, 0xff, sizeof(spent));
        if (blob != NULL && sqlite3_column_bytes(q, 1) == STATE_SPENT)
            memcpy(spent, blob, sizeof(spent));
        fn(ctx, col_u64(q, 0), spent);
    }
    return state_done(s, q, r, n, err);
}

int
state_sign_asked_put(struct state *s, const char *request, uint64_t at_ms, const char *what, struct err *err)
{
    sqlite3_stmt *q = s->sign[SIGN_Q_ASKED_PUT];

    if (forget_old(s, s->sign[SIGN_Q_ASKED_PRUNE], at_ms, err) < 0)
        return -1;
    bind_text(q, 1, request);
    bind_u64(q, 2, at_ms);
    bind_text(q, 3, what);
    return state_change(s, q, err);
}

int
state_sign_asked_other(struct state *s, const char *request, const char *what, struct err *err)
{
    sqlite3_stmt *q = s->sign[SIGN_Q_ASKED];
    int r;

    bind_text(q, 1, request);
    bind_text(q, 2, what);
    r = sqlite3_step(q);
    return state_done(s, q, r, r == SQLITE_ROW ? 1 : 0, err);
}

/* --- nonces ------------------------------------------------------------------------------------------------------- */

static sqlite3_stmt *
bind_nonce(struct state *s, enum sign_query which, const uint8_t *account, uint64_t chain, uint64_t nonce)
{
    sqlite3_stmt *q = s->sign[which];

    sqlite3_bind_blob(q, 1, account, STATE_ACCOUNT, SQLITE_STATIC);
    bind_u64(q, 2, chain);
    bind_u64(q, 3, nonce);
    return q;
}

int
state_sign_nonce(struct state *s, const uint8_t *account, uint64_t chain, uint64_t *next, struct err *err)
{
    sqlite3_stmt *q = s->sign[SIGN_Q_NONCE];
    int r;

    sqlite3_bind_blob(q, 1, account, STATE_ACCOUNT, SQLITE_STATIC);
    bind_u64(q, 2, chain);
    r = sqlite3_step(q);
    *next = r == SQLITE_ROW ? col_u64(q, 0) : 0;
    return state_done(s, q, r, 0, err);
}

int
state_sign_nonce_put(struct state *s, const uint8_t *account, uint64_t chain, uint64_t next, struct err *err)
{
    return state_change(s, bind_nonce(s, SIGN_Q_NONCE_PUT, account, chain, next), err);
}

int
state_sign_nonce_back(struct state *s, const uint8_t *account, uint64_t chain, uint64_t next, struct err *err)
{
    return state_change(s, bind_nonce(s, SIGN_Q_NONCE_BACK, account, chain, next), err);
}

int
state_sign_free(struct state *s, const uint8_t *account, uint64_t chain, uint64_t from, uint64_t *nonce,
                struct err *err)
{
    sqlite3_stmt *q = bind_nonce(s, SIGN_Q_FREE, account, chain, from);
    const int r = sqlite3_step(q);

    *nonce = r == SQLITE_ROW ? col_u64(q, 0) : 0;
    return state_done(s, q, r, r == SQLITE_ROW ? 1 : 0, err);
}

int
state_sign_free_put(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err)
{
    sqlite3_stmt *prune = s->sign[SIGN_Q_FREE_PRUNE];

    if (state_change(s, bind_nonce(s, SIGN_Q_FREE_PUT, account, chain, nonce), err) < 0)
        return -1;
    bind_u64(prune, 1, STATE_SIGN_FREE);
    return state_change(s, prune, err);
}

int
state_sign_free_take(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err)
{
    uint64_t found;
    const int r = state_sign_free(s, account, chain, nonce, &found, err);

    if (r <= 0 || found != nonce)
        return r < 0 ? -1 : 0;
    return state_change(s, bind_nonce(s, SIGN_Q_FREE_TAKE, account, chain, nonce), err) < 0 ? -1 : 1;
}

int
state_sign_free_below(struct state *s, const uint8_t *account, uint64_t chain, uint64_t nonce, struct err *err)
{
    return state_change(s, bind_nonce(s, SIGN_Q_FREE_BELOW, account, chain, nonce), err);
}
