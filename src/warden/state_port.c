/* warden/state_port.c: the record of ports that were exposed (see state.h)
 *
 * Of a capability only its SHA-256 is here.
 */
#include <string.h>

#include "warden/state_priv.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS port (id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, port INTEGER NOT NULL, name TEXT "
    "NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID;";

static const char *const texts[PORT_Q_N] = {
    [PORT_Q_PUT] = ("INSERT INTO port (id, sandbox, port, name, created, expires, hash) VALUES (?1, ?2, ?3, ?4, ?5, "
                    "?6, ?7)"),
    [PORT_Q_FORGET] = "DELETE FROM port WHERE id = ?1",
    [PORT_Q_ALL] = "SELECT id, sandbox, port, name, created, expires, hash FROM port ORDER BY created, id",
};

int
state_port_prepare(struct state *s, struct err *err)
{
    return state_prepare(s, schema, texts, s->port, PORT_Q_N, err);
}

int
state_put_port(struct state *s, const struct edge_port *port, const char *hash, struct err *err)
{
    sqlite3_stmt *q = s->port[PORT_Q_PUT];

    bind_text(q, 1, port->id);
    bind_text(q, 2, port->box);
    bind_u64(q, 3, port->port);
    bind_text(q, 4, port->name);
    bind_u64(q, 5, port->created_ms);
    bind_u64(q, 6, port->expires_ms);
    bind_text(q, 7, hash);
    return state_change(s, q, err);
}

int
state_forget_port(struct state *s, const char *id, struct err *err)
{
    bind_text(s->port[PORT_Q_FORGET], 1, id);
    return state_change(s, s->port[PORT_Q_FORGET], err);
}

int
state_ports(struct state *s, state_port_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = s->port[PORT_Q_ALL];
    int r, n = 0;

    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_port port = { .created_ms = col_u64(q, 4), .expires_ms = col_u64(q, 5) };
        const char *id = col_text(q, 0), *box = col_text(q, 1), *name = col_text(q, 3);
        uint64_t number = col_u64(q, 2);
        /* the file is our own, but what does not fit is nobody's port */
        if (!edge_is_id(id) || !edge_is_id(box) || number == 0 || number > UINT16_MAX || strlen(name) > EDGE_NAME_MAX)
            continue;
        memcpy(port.id, id, EDGE_ID + 1);
        memcpy(port.box, box, EDGE_ID + 1);
        memcpy(port.name, name, strlen(name) + 1);
        port.port = (uint16_t)number;
        fn(ctx, &port, col_text(q, 6));
        n++;
    }
    return state_done(s, q, r, n, err);
}
