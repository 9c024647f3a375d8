/* warden/state_volume.c: the record of durable workspaces (see state.h) */
#include <string.h>

#include "warden/state_priv.h"

static const char *const texts[VOLUME_N] = {
    [VOLUME_PUT] = ("INSERT OR REPLACE INTO volume (id, owner, name, created, unused, keep, removed, kind, policy, "
                    "bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
    [VOLUME_FORGET] = "DELETE FROM volume WHERE id = ?1",
    [VOLUME_ALL] = "SELECT id, owner, name, created, unused, keep, removed, kind, policy, bytes FROM volume "
                   "ORDER BY created, id",
    [VOLUME_SET_CLOCK] = "INSERT OR REPLACE INTO volume_clock (one, at) VALUES (1, ?1)",
    [VOLUME_CLOCK] = "SELECT at FROM volume_clock",
};

int
state_volume_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, NULL, texts, s->volume, VOLUME_N, err);
}

int
state_put_volume(struct state *s, const struct edge_volume *v, const char *policy, bool removed, struct err *err)
{
    sqlite3_stmt *q = s->volume[VOLUME_PUT];

    bind_text(q, 1, v->id);
    bind_text(q, 2, v->owner);
    bind_text(q, 3, v->name);
    bind_u64(q, 4, v->created_ms);
    bind_u64(q, 5, v->unused_ms);
    bind_u64(q, 6, v->keep_s);
    bind_u64(q, 7, removed);
    bind_u64(q, 8, v->kind);
    bind_text(q, 9, policy);
    bind_u64(q, 10, v->bytes);
    return state_change(s, q, err);
}

int
state_forget_volume(struct state *s, const char *id, struct err *err)
{
    bind_text(s->volume[VOLUME_FORGET], 1, id);
    return state_change(s, s->volume[VOLUME_FORGET], err);
}

int
state_volumes(struct state *s, state_volume_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = s->volume[VOLUME_ALL];
    int r, n = 0;

    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_volume v = { .name = col_text(q, 2), .created_ms = col_u64(q, 3), .unused_ms = col_u64(q, 4),
                                 .keep_s = (uint32_t)col_u64(q, 5), .kind = (enum volume_kind)col_u64(q, 7),
                                 .bytes = col_u64(q, 9) };
        const char *id = col_text(q, 0), *owner = col_text(q, 1);
        if (!edge_is_id(id) || (owner[0] != '\0' && !edge_is_id(owner)) || v.name[0] == '\0' ||
            !edge_workspace_well(v.name) || col_u64(q, 7) >= VOLUME_KINDS)
            continue;
        memcpy(v.id, id, EDGE_ID + 1);
        memcpy(v.owner, owner, strlen(owner) + 1);
        fn(ctx, &v, col_text(q, 8), col_u64(q, 6) != 0);
        n++;
    }
    return state_done(s, q, r, n, err);
}

int
state_volume_clock_set(struct state *s, uint64_t at_ms, struct err *err)
{
    bind_u64(s->volume[VOLUME_SET_CLOCK], 1, at_ms);
    return state_change(s, s->volume[VOLUME_SET_CLOCK], err);
}

int
state_volume_clock(struct state *s, uint64_t *at_ms, struct err *err)
{
    sqlite3_stmt *q = s->volume[VOLUME_CLOCK];
    int r = sqlite3_step(q);

    *at_ms = r == SQLITE_ROW ? col_u64(q, 0) : 0;
    return state_done(s, q, r, 0, err);
}
