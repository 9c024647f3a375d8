/* warden/state_latest.c: the latest time that was seen, and the steady one (see state.h, latest.h, steady.h) */
#include <stdio.h>

#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS latest (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS steady (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL, boot_at INTEGER "
    "NOT NULL, wall INTEGER NOT NULL, boot TEXT NOT NULL);";

static const char *const texts[LATEST_N] = {
    [LATEST_PUT] = "INSERT OR REPLACE INTO latest (one, at) VALUES (1, ?1)",
    [LATEST_GET] = "SELECT at FROM latest",
    [LATEST_STEADY_PUT] = "INSERT OR REPLACE INTO steady (one, at, boot_at, wall, boot) VALUES (1, ?1, ?2, ?3, ?4)",
    [LATEST_STEADY_GET] = "SELECT at, boot_at, wall, boot FROM steady",
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

int
state_steady_put(struct state *s, const struct steady_kept *k, struct err *err)
{
    sqlite3_stmt *q = s->latest[LATEST_STEADY_PUT];

    bind_u64(q, 1, k->at_ms);
    bind_u64(q, 2, k->boot_ms);
    bind_u64(q, 3, k->wall_ms);
    bind_text(q, 4, k->boot);
    return state_change(s, q, err);
}

int
state_steady(struct state *s, struct steady_kept *out, struct err *err)
{
    sqlite3_stmt *q = s->latest[LATEST_STEADY_GET];
    int r = sqlite3_step(q);

    *out = (struct steady_kept){ .at_ms = 0 };
    if (r == SQLITE_ROW) {
        *out = (struct steady_kept){ .at_ms = col_u64(q, 0), .boot_ms = col_u64(q, 1), .wall_ms = col_u64(q, 2) };
        snprintf(out->boot, sizeof(out->boot), "%s", col_text(q, 3));
    }
    return state_done(s, q, r, 0, err);
}
