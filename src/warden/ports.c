/* warden/ports.c: ports of sandboxes that were exposed, and who comes by their capabilities (docs/daemon.md)
 *
 * A capability is 160 random bits, told once, in the answer to its making; only its SHA-256 is kept. It opens
 * connections to one port of one sandbox and nothing else, for whoever has it, until it is taken back, its time is
 * over, or its sandbox or the token that made that ends. In the audit record are that a port was exposed, how often it
 * was connected to (by the minute), and its end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "proto/edge_gate.h"
#include "warden/record.h"

#define PORTS_EACH  32          /* of one sandbox */
#define PORTS_MAX   4096
#define LOOK_MS     1000
#define MINUTE_MS   60000

struct port {
    struct port *next;
    struct edge_port r;
    uint8_t hash[SHA256_SIZE];          /* of its capability */
    uint64_t told_ms, told;             /* when its connections were noted last, and how many */
};

/* --- keeping ------------------------------------------------------------------------------------------------------ */

static timer_fn on_look;

static void
look_soon(struct warden *w)
{
    w->ports_look.due = on_look;
    w->ports_look.owner = w;
    loop_at(&w->loop, &w->ports_look, clock_ms() + LOOK_MS);
}

static struct port *
keep(struct warden *w, const struct edge_port *r, const uint8_t hash[SHA256_SIZE])
{
    struct port *p = calloc(1, sizeof(*p)), **at = &w->ports;

    if (p == NULL)
        return NULL;
    p->r = *r;
    memcpy(p->hash, hash, SHA256_SIZE);
    while (*at != NULL)
        at = &(*at)->next;
    *at = p;
    w->n_ports++;
    if (w->ports_look.at_ms == 0)
        look_soon(w);
    return p;
}

static void
loaded(void *ctx, const struct edge_port *r, const char *hash)
{
    struct warden *w = ctx;
    uint8_t bytes[SHA256_SIZE];

    if (w->n_ports < PORTS_MAX && hash_of_text(hash, bytes))
        (void)keep(w, r, bytes);
}

int
ports_load(struct warden *w, struct err *err)
{
    return state_ports(w->state, loaded, w, err) < 0 ? -1 : 0;
}

static void
tell_connections(struct warden *w, struct port *p)
{
    if (p->told == p->r.connections)
        return;
    warden_note_id(w, p->r.box, "preview", "port %u, %s: %llu connections", (unsigned)p->r.port, p->r.id,
                   (unsigned long long)(p->r.connections - p->told));
    p->told = p->r.connections;
    p->told_ms = clock_ms();
}

/* No new connection from here on, and those that there are end. */
static void
end_at(struct warden *w, struct port **at, const char *why)
{
    struct port *p = *at;
    struct edge_only_id closed;
    struct box *b = box_of_id(w, p->r.box);

    *at = p->next;
    w->n_ports--;
    tell_connections(w, p);
    warden_note_id(w, p->r.box, "port_closed", "port %u, %s: %s", (unsigned)p->r.port, p->r.id, why);
    (void)state_forget_port(w->state, p->r.id, NULL);
    memcpy(closed.id, p->r.id, sizeof(closed.id));
    if (b != NULL && b->r.state != BOX_STOPPED)
        box_say(b, EDGE_PORT_CLOSED, EDGE_PORT_CLOSED_SHAPE(), &closed);
    free(p);
}

void
ports_end(struct warden *w, const char *box)
{
    for (struct port **at = &w->ports; *at != NULL;) {
        if (strcmp((*at)->r.box, box) == 0)
            end_at(w, at, "the sandbox ended");
        else
            at = &(*at)->next;
    }
}

/* Like a key, it opens no more than the token that its sandbox was made by. */
static bool
is_orphaned(const struct warden *w, const struct port *p)
{
    const struct box *b = box_of_id(w, p->r.box);
    uint64_t until;

    return b == NULL || !owner_lives(w, b->r.owner, &until);
}

static bool
is_over(const struct warden *w, const struct port *p)
{
    return p->r.expires_ms > 0 && time_now(w) >= p->r.expires_ms;
}

static void
on_look(struct timer *t)
{
    struct warden *w = t->owner;
    uint64_t now = clock_ms();

    if (w->ports != NULL)
        look_soon(w);
    for (struct port **at = &w->ports; w->settled && *at != NULL;) {
        struct port *p = *at;
        if (is_over(w, p)) {
            end_at(w, at, "its time is over");
        } else if (is_orphaned(w, p)) {
            end_at(w, at, "its sandbox or that one's token is gone");
        } else {
            if (clock_since(now, p->told_ms) >= MINUTE_MS)
                tell_connections(w, p);
            at = &p->next;
        }
    }
}

/* --- exposing ----------------------------------------------------------------------------------------------------- */

static void
answer_port(struct warden *w, const struct edge_port *r, const char *capability)
{
    ANSWER(w, w->asker, EDGE_PORT, .port = *r, .capability = capability);
}

static int
new_capability(char out[EDGE_CAPABILITY + 1], uint8_t hash[SHA256_SIZE])
{
    uint8_t raw[EDGE_CAPABILITY / 2];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return -1;
    str_hex(raw, sizeof(raw), out);
    explicit_bzero(raw, sizeof(raw));
    sha256_of(out, EDGE_CAPABILITY, hash);
    return 0;
}

/* What its keeper says of ports ("all", "none", "except 53 80"): it refuses the others again when they are connected
 * to, so this is only to say it sooner. */
static int
can_be_exposed(const struct box *b, uint16_t port, struct err *err)
{
    struct str says = edge_line(b->r.facts, "ports");
    const char *fact = says.p;
    uint64_t v;

    if (fact == NULL || str_eq_c(says, "none")) {
        err_set(err, ERR_UNSUPPORTED, "ports.network", "this sandbox has no network of its own");
        return err_hint(err, "what listens there is reached as any program of the host's; modes but light, and "
                        "networks but host, have one");
    }
    for (fact += strcspn(fact, " \n"); *fact == ' '; fact += strcspn(fact, " \n")) {
        fact++;
        if (str_parse_u64((struct str){ fact, strcspn(fact, " \n") }, UINT16_MAX, &v) && v == port) {
            err_set(err, ERR_DENIED, "ports.reserved", "port %u of this sandbox leads to the network", (unsigned)port);
            return err_hint(err, "let the program listen at another one");
        }
    }
    return 0;
}

static int
room_for_one(const struct warden *w, const struct box *b, struct err *err)
{
    size_t n = 0;

    for (const struct port *p = w->ports; p != NULL; p = p->next)
        n += strcmp(p->r.box, b->r.id) == 0;
    if (n < PORTS_EACH && w->n_ports < PORTS_MAX)
        return 0;
    err_set(err, ERR_LIMIT, "ports.too-many", "%zu ports of this sandbox are exposed (of all %zu); the limit is %d",
            n, w->n_ports, n < PORTS_EACH ? PORTS_MAX : PORTS_EACH);
    return err_hint(err, "DELETE /v1/sandboxes/%s/ports/{port} ends one", b->r.id);
}

int
asked_expose(struct warden *w, const struct ask_expose *m)
{
    struct edge_port r = { .port = m->port, .created_ms = time_now(w) };
    char capability[EDGE_CAPABILITY + 1], text[SHA256_TEXT + 1];
    uint8_t hash[SHA256_SIZE];
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    if (b == NULL || can_be_exposed(b, r.port, &err) < 0 || room_for_one(w, b, &err) < 0) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (record_expose(w, b, r.port, m->name))
        return 0;
    memcpy(r.box, b->r.id, sizeof(r.box));
    memcpy(r.name, m->name, strlen(m->name) + 1);
    r.expires_ms = m->seconds > 0 ? r.created_ms + m->seconds * 1000UL : 0;
    if (new_id(r.id) < 0 || new_capability(capability, hash) < 0) {
        err_sys(&err, errno, "serve.random", "getrandom");
        answer_no(w, w->asker, &err);
        return 0;
    }
    sha256_text(hash, text);
    if (state_put_port(w->state, &r, text, &err) < 0) {
        answer_no(w, w->asker, &err);
    } else if (keep(w, &r, hash) == NULL) {
        (void)state_forget_port(w->state, r.id, NULL);
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
        answer_no(w, w->asker, &err);
    } else {
        warden_note(w, b, "port_exposed", "port %u, %s", (unsigned)r.port, r.id);
        answer_port(w, &r, capability);
    }
    explicit_bzero(capability, sizeof(capability));
    return 0;
}

int
asked_ports(struct warden *w, const struct ask_box *m)
{
    struct err err = ERR_INIT;
    const struct box *b;
    uint32_t n = 0;

    b = living(w, m->id);
    if (b == NULL && find_record(w, m->id, record_is_there, NULL, &err) <= 0) {
        if (err.kind == ERR_NONE)
            not_found(m->id, &err);
        answer_no(w, w->asker, &err);
        return 0;
    }
    for (const struct port *p = w->ports; p != NULL; p = p->next) {
        if (b == NULL || strcmp(p->r.box, b->r.id) != 0 || is_over(w, p))
            continue;
        answer_port(w, &p->r, "");
        n++;
    }
    answer_end(w, w->asker, n, false);
    return 0;
}

int
asked_unexpose(struct warden *w, const struct ask_unexpose *m)
{
    struct port **at = &w->ports;
    struct err err = ERR_INIT;
    struct edge_port r;
    struct box *b = usable(w, m->id, &err);

    while (*at != NULL && strcmp((*at)->r.id, m->which) != 0)
        at = &(*at)->next;
    if (b != NULL && (*at == NULL || strcmp((*at)->r.box, b->r.id) != 0)) {
        err_set(&err, ERR_NOT_FOUND, "ports.none", "no port of this sandbox is exposed by that id");
        err_hint(&err, "GET /v1/sandboxes/%s/ports lists them", b->r.id);
    }
    if (err.kind != ERR_NONE) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (record_asked(w, b, b->r.id, NULL))
        return 0;
    r = (*at)->r;
    if (state_forget_port(w->state, r.id, &err) < 0) {      /* it would be open again by the next warden */
        answer_no(w, w->asker, &err);
        return 0;
    }
    end_at(w, at, "taken back");
    answer_port(w, &r, "");
    return 0;
}

/* --- coming by a capability --------------------------------------------------------------------------------------- */

static struct port *
of_capability(const struct warden *w, const char *capability)
{
    uint8_t hash[SHA256_SIZE];
    struct port *found = NULL;

    sha256_of(capability, EDGE_CAPABILITY, hash);
    for (struct port *p = w->ports; p != NULL; p = p->next)
        if (mem_same(p->hash, hash, SHA256_SIZE))
            found = p;
    return found != NULL && !is_over(w, found) && !is_orphaned(w, found) ? found : NULL;
}

static int
connection(struct warden *w, struct port *p, struct err *err)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    cleanup_buf struct buf said = BUF_INIT(512);
    struct keep_op m = { .number = 0 };     /* it is not in the record by itself, nor in the transcript, and it ends
                                             * with the port */
    struct box *b = box_of_id(w, p->r.box);

    if (b == NULL || (b->r.state != BOX_READY && b->r.state != BOX_DEGRADED))
        return err_set(err, ERR_DENIED, "sandbox.state", "the sandbox is not there");
    if (b->r.paused)
        return err_set(err, ERR_DENIED, "sandbox.paused", "the sandbox is paused");
    op = (struct edge_op){ .kind = OP_CONNECT, .offset = p->r.port, .path = p->r.id };
    if (edge_op_put(&said, &op) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    answer_port(w, &p->r, "");
    m.op = said.p;
    m.n_op = said.n;
    if (box_grant(w, b, EDGE_OP, EDGE_OP_SHAPE(), &m, err) < 0)
        return -1;
    b->asked.results++;
    p->r.connections++;
    if (p->told == 0)
        tell_connections(w, p);
    return 0;
}

int
asked_preview(struct warden *w, const struct ask_preview *m)
{
    struct port *p = of_capability(w, m->capability);
    struct err err = ERR_INIT;

    if (p == NULL) {
        who_refused(w, "an invalid address of a preview");
        err_set(&err, ERR_NOT_FOUND, "preview.none", "there is nothing at this address (any more)");
    }
    if (p == NULL || connection(w, p, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}
