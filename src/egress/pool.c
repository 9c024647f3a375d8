/* egress/pool.c: see pool.h */
#include "egress/pool.h"

#include <sys/epoll.h>

#include "egress/conn.h"
#include "egress/tls_end.h"

static void
drop(struct pooled *p)
{
    tls_end_free(p->tls);
    p->tls = NULL;
    loop_drop(&p->e->loop, &p->server);
}

/* It has ended, or says something that nobody asked for. */
static void
on_idle(struct watch *w, uint32_t events)
{
    (void)events;
    drop(w->owner);
}

static bool
leads_to(const struct pooled *p, const struct conn *c)
{
    return p->tls != NULL && conn_same_place(c, &p->host, p->port);
}

static void
older_of(struct pooled *p, struct pooled **oldest)
{
    if (*oldest == NULL || p->since_ms < (*oldest)->since_ms)
        *oldest = p;
}

/* A free place for one more to where @c leads. */
static struct pooled *
make_room(struct egress *e, const struct conn *c)
{
    struct pooled *unused = NULL, *oldest = NULL, *oldest_there = NULL;
    size_t there = 0;

    for (size_t i = 0; i < POOL_MAX; i++) {
        struct pooled *p = &e->pool.places[i];
        if (p->tls == NULL) {
            unused = p;
            continue;
        }
        older_of(p, &oldest);
        if (leads_to(p, c)) {
            older_of(p, &oldest_there);
            there++;
        }
    }
    if (there >= POOL_PLACE_MAX)
        unused = oldest_there;
    else if (unused == NULL)
        unused = oldest;
    if (unused->tls != NULL)
        drop(unused);
    return unused;
}

void
pool_keep(struct conn *c)
{
    struct egress *e = c->e;
    struct pooled *p;

    if (e->over || c->parent != NULL || c->server_tls == NULL || c->next_address == 0 ||
        e->loop.now_ms - c->x.ended_ms >= POOL_IDLE_MS || e->loop.now_ms - c->dialled_ms >= POOL_AGE_MS ||
        !tls_is_quiet(c->server_tls))
        return;
    p = make_room(e, c);
    *p = (struct pooled){ .e = e, .tls = c->server_tls, .host = c->host, .port = c->port,
                          .address = c->addresses[c->next_address - 1], .offered = c->offered,
                          .secrets = c->inject.used | c->lent_secrets, .dialled_ms = c->dialled_ms,
                          .since_ms = c->x.ended_ms, .server = { .fd = -1, .ready = on_idle, .owner = p } };
    c->server_tls = NULL;
    c->x.server = (struct stream){ .fd = -1 };
    if (loop_move(&e->loop, &c->server, &p->server, EPOLLIN | EPOLLRDHUP) < 0)
        drop(p);
}

/* Whether @c may have one that was kept: where TLS is opened, or (in a tunnel) certainly will be. */
static bool
may_have(const struct conn *c)
{
    bool tunnel = c->speech == SPEECH_CONNECT || c->speech == SPEECH_SOCKS;

    return c->tls || (tunnel && c->port == 443 && !c->http && tls_wanted(c));
}

static bool
fits(const struct pooled *p, const struct conn *c)
{
    /* what a tunnel's client offers is known later */
    if (!leads_to(p, c) || (c->tls && !c->http && p->offered != tls_offered(c)))
        return false;
    for (size_t i = 0; i < c->n_addresses; i++)
        if (ip_eq(&p->address, &c->addresses[i]))
            return true;
    return false;
}

/* The one that was used last: the others may end. */
static struct pooled *
find(const struct conn *c)
{
    struct egress *e = c->e;
    struct pooled *best = NULL;

    for (size_t i = 0; i < POOL_MAX; i++) {
        struct pooled *p = &e->pool.places[i];
        if (fits(p, c) && e->loop.now_ms - p->since_ms < POOL_IDLE_MS && (best == NULL || p->since_ms > best->since_ms))
            best = p;
    }
    return best;
}

bool
pool_take(struct conn *c)
{
    struct pooled *best;
    bool fresh = c->fresh;

    c->fresh = false;
    if (fresh || !may_have(c))
        return false;
    while ((best = find(c)) != NULL && !tls_is_quiet(best->tls))
        drop(best);
    if (best == NULL)
        return false;
    c->server = (struct watch){ .fd = -1, .ready = conn_on_server, .owner = c };
    (void)loop_move(&c->e->loop, &best->server, &c->server, 0);     /* to watch for nothing does not fail */
    c->server_tls = best->tls;
    c->addresses[0] = best->address;
    c->n_addresses = c->next_address = 1;
    c->offered = best->offered;
    c->lent_secrets = best->secrets;
    c->dialled_ms = best->dialled_ms;
    c->rested_ms = best->since_ms;
    best->tls = NULL;
    return true;
}

void
pool_tick(struct egress *e)
{
    for (size_t i = 0; i < POOL_MAX; i++)
        if (e->pool.places[i].tls != NULL && e->loop.now_ms - e->pool.places[i].since_ms >= POOL_IDLE_MS)
            drop(&e->pool.places[i]);
}

void
pool_revoked(struct egress *e, uint32_t mask)
{
    for (size_t i = 0; i < POOL_MAX; i++)
        if (e->pool.places[i].tls != NULL && (e->pool.places[i].secrets & mask))
            drop(&e->pool.places[i]);
}

void
pool_clear(struct egress *e)
{
    for (size_t i = 0; i < POOL_MAX; i++)
        if (e->pool.places[i].tls != NULL)
            drop(&e->pool.places[i]);
}
