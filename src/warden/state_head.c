/* warden/state_head.c: how far the audit record was written (see state.h) */
#include <string.h>

#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB "
    "NOT NULL, boot TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS audit_gap (one INTEGER PRIMARY KEY CHECK (one = 1), refused INTEGER NOT NULL, lost "
    "INTEGER NOT NULL);";

static const char *const texts[HEAD_N] = {
    [HEAD_PUT] = "INSERT OR REPLACE INTO audit_head (one, seq, hash, boot) VALUES (1, ?1, ?2, ?3)",
    [HEAD_GET] = "SELECT seq, hash, boot FROM audit_head",
    [HEAD_GAP_PUT] = "INSERT OR REPLACE INTO audit_gap (one, refused, lost) VALUES (1, ?1, ?2)",
    [HEAD_GAP_GET] = "SELECT refused, lost FROM audit_gap",
};

int
state_head_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->head, HEAD_N, err);
}

int
state_head_put(struct state *s, const struct audit_head *head, const char *boot, struct err *err)
{
    sqlite3_stmt *q = s->head[HEAD_PUT];

    bind_u64(q, 1, head->seq);
    sqlite3_bind_blob(q, 2, head->hash, AUDIT_HASH, SQLITE_STATIC);
    bind_text(q, 3, boot);
    return state_change_soon(s, q, "head", err);
}

int
state_head(struct state *s, const char *boot, struct audit_head *out, bool *rebooted, struct err *err)
{
    sqlite3_stmt *q = s->head[HEAD_GET];
    int r = sqlite3_step(q);

    *out = (struct audit_head){ .seq = 0 };
    *rebooted = false;
    if (r == SQLITE_ROW && sqlite3_column_bytes(q, 1) == AUDIT_HASH) {
        out->seq = col_u64(q, 0);
        memcpy(out->hash, sqlite3_column_blob(q, 1), AUDIT_HASH);
        *rebooted = strcmp(col_text(q, 2), boot) != 0;
    }
    return state_done(s, q, r, 0, err);
}

int
state_gap_put(struct state *s, uint64_t refused, uint64_t lost, struct err *err)
{
    sqlite3_stmt *q = s->head[HEAD_GAP_PUT];

    bind_u64(q, 1, refused);
    bind_u64(q, 2, lost);
    return state_change(s, q, err);
}

int
state_gap(struct state *s, uint64_t *refused, uint64_t *lost, struct err *err)
{
    sqlite3_stmt *q = s->head[HEAD_GAP_GET];
    int r = sqlite3_step(q);

    *refused = r == SQLITE_ROW ? col_u64(q, 0) : 0;
    *lost = r == SQLITE_ROW ? col_u64(q, 1) : 0;
    return state_done(s, q, r, 0, err);
}
