/* warden/state_token.c: the record of tokens (see state.h)
 *
 * Of a token itself only its SHA-256 is here.
 */
#include <string.h>

#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS token (id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL, created INTEGER "
    "NOT NULL, expires INTEGER NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID;";

static const char *const texts[TOKEN_Q_N] = {
    [TOKEN_Q_PUT] = "INSERT INTO token (id, role, name, created, expires, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [TOKEN_Q_FORGET] = "DELETE FROM token WHERE id = ?1",
    [TOKEN_Q_ALL] = "SELECT id, role, name, created, expires, hash FROM token ORDER BY created, id",
};

int
state_token_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->token, TOKEN_Q_N, err);
}

int
state_put_token(struct state *s, const struct edge_token *token, const char *hash, struct err *err)
{
    sqlite3_stmt *q = s->token[TOKEN_Q_PUT];

    sqlite3_bind_text(q, 1, token->id, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, edge_role_name(token->role), -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, token->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)token->created_ms);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)token->expires_ms);
    sqlite3_bind_text(q, 6, hash, -1, SQLITE_STATIC);
    return state_change(s, q, err);
}

int
state_forget_token(struct state *s, const char *id, struct err *err)
{
    sqlite3_bind_text(s->token[TOKEN_Q_FORGET], 1, id, -1, SQLITE_STATIC);
    return state_change(s, s->token[TOKEN_Q_FORGET], err);
}

int
state_tokens(struct state *s, state_token_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = s->token[TOKEN_Q_ALL];
    int r, n = 0;

    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_token token = { .created_ms = (uint64_t)sqlite3_column_int64(q, 3),
                                    .expires_ms = (uint64_t)sqlite3_column_int64(q, 4) };
        const char *id = col_text(q, 0), *name = col_text(q, 2);
        /* the file is our own, but what does not fit is nobody's token */
        if (!edge_is_id(id) || !edge_role_parse(col_text(q, 1), &token.role) || token.role >= EDGE_KEY ||
            strlen(name) > EDGE_NAME_MAX)
            continue;
        memcpy(token.id, id, EDGE_ID + 1);
        memcpy(token.name, name, strlen(name) + 1);
        fn(ctx, &token, col_text(q, 5));
        n++;
    }
    return state_done(s, q, r, n, err);
}
