/* warden/state_latest.c: the latest time that was seen (see state.h, latest.h) */
#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS latest (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL);";

static const char *const texts[LATEST_N] = {
    [LATEST_PUT] = "INSERT OR REPLACE INTO latest (one, at) VALUES (1, ?1)",
    [LATEST_GET] = "SELECT at FROM latest",
};

int
state_latest_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->latest, LATEST_N, err);
}

int
state_latest_put(struct state *s, uint64_t at_ms, struct err *err)
{
    bind_u64(s->latest[LATEST_PUT], 1, at_ms);
    return state_change(s, s->latest[LATEST_PUT], err);
}

int
state_latest(struct state *s, uint64_t *at_ms, struct err *err)
{
    sqlite3_stmt *q = s->latest[LATEST_GET];
    int r = sqlite3_step(q);

    *at_ms = r == SQLITE_ROW ? col_u64(q, 0) : 0;
    return state_done(s, q, r, 0, err);
}
