/* warden/state_once.c: idempotency keys (see state.h)
 *
 * A row says that a caller's key made a sandbox. It is written before the sandbox's own record, so that whatever
 * happens to the daemon between the two, a repeated request never makes a second one.
 */
#include <string.h>

#include "base/clock.h"
#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS once (who TEXT NOT NULL, key BLOB NOT NULL, body BLOB NOT NULL, id TEXT NOT NULL, at "
    "INTEGER NOT NULL, PRIMARY KEY (who, key)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS once_at ON once (at);"
    "CREATE INDEX IF NOT EXISTS once_id ON once (id);";

static const char *const texts[ONCE_N] = {
    [ONCE_PUT] = "INSERT OR REPLACE INTO once (who, key, body, id, at) VALUES (?1, ?2, ?3, ?4, ?5)",
    [ONCE_FIND] = "SELECT body, id FROM once WHERE who = ?1 AND key = ?2 AND at > ?3",
    [ONCE_MOVE] = "UPDATE once SET id = ?2 WHERE id = ?1",
    [ONCE_FORGET] = "DELETE FROM once WHERE id = ?1",
    [ONCE_PRUNE_OLD] = "DELETE FROM once WHERE at <= ?1",
    [ONCE_PRUNE_MANY] = ("DELETE FROM once WHERE (who, key) IN (SELECT who, key FROM (SELECT who, key, row_number() "
                         "OVER (PARTITION BY who ORDER BY at DESC) AS n FROM once) WHERE n > ?1)"),
};

static uint64_t
oldest(uint64_t now_ms)
{
    return clock_since(now_ms, STATE_ONCE_S * 1000UL);
}

int
state_once_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->once, ONCE_N, err);
}

int
state_once_prune(struct state *s, uint64_t now_ms, struct err *err)
{
    bind_u64(s->once[ONCE_PRUNE_OLD], 1, oldest(now_ms));
    sqlite3_bind_int(s->once[ONCE_PRUNE_MANY], 1, STATE_ONCE_MAX);
    return state_change(s, s->once[ONCE_PRUNE_OLD], err) < 0 || state_change(s, s->once[ONCE_PRUNE_MANY], err) < 0
               ? -1 : 0;
}

int
state_once_put(struct state *s, const char *who, const uint8_t *key, const uint8_t *body, const char *id,
               uint64_t now_ms, struct err *err)
{
    sqlite3_stmt *q = s->once[ONCE_PUT];

    sqlite3_bind_text(q, 1, who, -1, SQLITE_STATIC);
    sqlite3_bind_blob(q, 2, key, EDGE_HASH, SQLITE_STATIC);
    sqlite3_bind_blob(q, 3, body, EDGE_HASH, SQLITE_STATIC);
    sqlite3_bind_text(q, 4, id, -1, SQLITE_STATIC);
    bind_u64(q, 5, now_ms);
    return state_change(s, q, err);
}

int
state_once_find(struct state *s, const char *who, const uint8_t *key, const uint8_t *body, uint64_t now_ms,
                char id[EDGE_ID + 1], bool *same, struct err *err)
{
    sqlite3_stmt *q = s->once[ONCE_FIND];
    int r, found = 0;

    sqlite3_bind_text(q, 1, who, -1, SQLITE_STATIC);
    sqlite3_bind_blob(q, 2, key, EDGE_HASH, SQLITE_STATIC);
    bind_u64(q, 3, oldest(now_ms));
    r = sqlite3_step(q);
    if (r == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 1);
        const void *was = sqlite3_column_blob(q, 0);
        found = text != NULL && edge_is_id(text);
        *same = was != NULL && sqlite3_column_bytes(q, 0) == EDGE_HASH && memcmp(was, body, EDGE_HASH) == 0;
        if (found != 0)
            memcpy(id, text, EDGE_ID + 1);
    }
    return state_done(s, q, r, found, err);
}

int
state_once_forget(struct state *s, const char *id, struct err *err)
{
    sqlite3_bind_text(s->once[ONCE_FORGET], 1, id, -1, SQLITE_STATIC);
    return state_change(s, s->once[ONCE_FORGET], err);
}

int
state_once_move(struct state *s, const char *id, const char *to, struct err *err)
{
    bind_text(s->once[ONCE_MOVE], 1, id);
    bind_text(s->once[ONCE_MOVE], 2, to);
    return state_change(s, s->once[ONCE_MOVE], err);
}
