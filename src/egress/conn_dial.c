/* egress/conn_dial.c: from a name that was allowed to a connection: look it up once, judge the answers, dial what was
 * judged
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/stages.h"
#include "wall/sockaddr.h"

#define DIAL_MS   10000     /* for each address */
#define PARENT_MS 30000     /* the parent proxy's name */

/* Addresses of the host's that came after our start (DHCP, a VPN), and whatever else it routes to itself: to those it
 * would speak from the address itself. No packet is sent for this. */
static bool
is_hosts_own(const struct ip *ip, const union address *to, socklen_t n)
{
    cleanup_close int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ip from;

    if (fd < 0 || connect(fd, &to->any, n) < 0)
        return false;       /* then connect(2) has something to say about it too */
    return sockaddr_local(fd, &from, NULL) && ip_eq(&from, ip);
}

static int
dial(struct conn *c, const struct ip *ip)
{
    union address to;
    socklen_t n = sockaddr_of(ip, c->parent != NULL ? c->parent->port : c->port, &to);
    const int on = 1;

    if (c->parent == NULL && !c->host_port && is_hosts_own(ip, &to, n)) {
        errno = EACCES;
        return -1;
    }

    c->rested_ms = 0;
    c->lent_secrets = 0;
    c->server = (struct watch){ .fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                                .ready = conn_on_server, .owner = c };
    if (c->server.fd < 0)
        return -1;
    (void)setsockopt(c->server.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn_limit_buffers(c->e, c->server.fd);
    if (connect(c->server.fd, &to.any, n) < 0 && errno != EINPROGRESS)
        return -1;
    return loop_watch(&c->e->loop, &c->server, EPOLLOUT);
}

/* The next one, for the last did not answer. */
static void
dial_next(struct conn *c, int saved_errno)
{
    while (c->next_address < c->n_addresses) {
        loop_drop(&c->e->loop, &c->server);
        conn_patience(c, DIAL_MS);
        if (dial(c, &c->addresses[c->next_address++]) == 0)
            return;
        saved_errno = errno;
    }
    loop_drop(&c->e->loop, &c->server);
    if (saved_errno == EACCES)
        conn_deny(c, DECIDE_TCP, "host-address", "the host's own address");   /* is_hosts_own() said so */
    else
        conn_unreachable(c, saved_errno != 0 ? saved_errno : EHOSTUNREACH, strerror(saved_errno));
}

/* Dial c->addresses, one after the other. */
static void
dial_all(struct conn *c)
{
    c->state = CONN_DIALLING;
    c->next_address = 0;
    dial_next(c, 0);
}

/* One of c->addresses is a parent's: @verdict becomes a denial. */
static void
parent_judge(struct conn *c, struct decide_verdict *verdict)
{
    for (size_t i = 0; i < c->n_addresses && verdict->kind == DECIDE_ALLOW; i++)
        if (parents_at(&c->e->parents, &c->addresses[i], c->port)) {
            verdict->kind = DECIDE_DENY;
            verdict->reason = "parent-proxy";
            verdict->detail = "its address is that of the proxy that everything goes through";
        }
}

static void
on_parent_resolved(void *ctx, const struct ip *addresses, size_t n, const char *why)
{
    struct conn *c = ctx;
    size_t keep = n < PARENT_ADDRESSES_MAX ? n : PARENT_ADDRESSES_MAX;

    c->state = CONN_DIALLING;
    if (n == 0) {
        conn_unreachable(c, 0, why);
        return;
    }
    memcpy(c->addresses, addresses, n * sizeof(*addresses));
    c->n_addresses = n;
    memcpy(c->parent->known, addresses, keep * sizeof(*addresses));
    c->parent->n_known = keep;
    dial_all(c);
}

/* Its address is the user's word: nothing is judged. */
static void
parent_find(struct conn *c)
{
    const struct host *host = &c->parent->host;

    if (host->is_ip) {
        on_parent_resolved(c, &host->ip, 1, "");
        return;
    }
    c->state = CONN_RESOLVING;
    conn_patience(c, PARENT_MS);
    resolver_ask(c->e->resolver, host->name, on_parent_resolved, c);
}

static void
judge_and_dial(struct conn *c)
{
    const struct decide_request request = { .via = DECIDE_TCP, .host = { c->host.name, c->host.n }, .port = c->port };
    struct decide_verdict verdict;

    decide_address(c->e->rules, c->addresses, c->n_addresses, c->port, &verdict);
    parent_judge(c, &verdict);
    /* an address that somebody was asked about by itself needs no rule that is it */
    if (verdict.kind != DECIDE_ALLOW &&
        !(conn_approved(c, &c->host, c->port) && c->host.is_ip && strcmp(verdict.reason, "address-no-rule") == 0)) {
        log_decision(c->e, &request, &verdict);
        conn_refuse(c, verdict.reason, verdict.detail, verdict.rule);
        return;
    }
    if (c->parent != NULL)
        parent_find(c);
    else if (pool_take(c))
        way_kept(c);
    else
        dial_all(c);
}

static void
on_resolved(void *ctx, const struct ip *addresses, size_t n, const char *why)
{
    struct conn *c = ctx;

    c->state = CONN_DIALLING;       /* nothing is asked any more */
    if (n == 0) {
        conn_unreachable(c, 0, why);
        return;
    }
    memcpy(c->addresses, addresses, n * sizeof(*addresses));
    c->n_addresses = n;
    judge_and_dial(c);
}

/* A port of this host's that a rule has opened: nothing is looked up or judged, and no parent knows the way. */
static void
dial_host_port(struct conn *c)
{
    c->addresses[0] = (struct ip){ .family = 4, .b = { 127, 0, 0, 1 } };
    c->addresses[1] = (struct ip){ .family = 6, .b = { [15] = 1 } };
    c->n_addresses = 2;
    c->parent = NULL;
    if (pool_take(c))
        way_kept(c);
    else
        dial_all(c);
}

static void
find_way(struct conn *c, const struct ip *literal)
{
    if (c->host_port) {
        dial_host_port(c);
        return;
    }
    c->parent = parents_for(&c->e->parents, c->http && !c->tls, &c->host, c->port);
    if (literal != NULL || c->host.is_ip) {
        c->addresses[0] = literal != NULL ? *literal : c->host.ip;
        c->n_addresses = 1;
        judge_and_dial(c);
        return;
    }
    if (c->parent != NULL) {
        parent_find(c);
        return;
    }
    c->state = CONN_RESOLVING;
    conn_patience(c, CONN_FIRST_MS);
    resolver_ask(c->e->resolver, c->host.name, on_resolved, c);
}

void
conn_dial(struct conn *c, const struct ip *literal)
{
    if (c->e->over) {
        conn_end(c);
        return;
    }
    c->host_port = literal == NULL && decide_is_host_port(c->e->rules, &c->host, c->port);
    if (parents_named(&c->e->parents, &c->host, c->port) ||
        (c->host_port && parents_port(&c->e->parents, c->port))) {
        conn_deny(c, DECIDE_TCP, "parent-proxy", "it is the proxy that everything goes through");
        return;
    }
    find_way(c, literal);
    /* until the far end is there the client has to wait; its end is noticed then */
    if ((c->state == CONN_RESOLVING || c->state == CONN_DIALLING) && loop_watch(&c->e->loop, &c->client, 0) < 0)
        conn_end(c);
}

/* --- the stages --------------------------------------------------------------------------------------------------- */

static void
forget(struct conn *c)
{
    resolver_forget(c->e->resolver, c);
}

static void
unanswered(struct conn *c)
{
    forget(c);
    conn_unreachable(c, ETIMEDOUT, "the name was not answered for");
}

static void
writable(struct conn *c, uint32_t events)
{
    int saved_errno = 0;
    socklen_t n = sizeof(saved_errno);

    (void)events;
    if (getsockopt(c->server.fd, SOL_SOCKET, SO_ERROR, &saved_errno, &n) < 0 || saved_errno != 0)
        dial_next(c, saved_errno);
    else
        way_connected(c);
}

static void
too_slow(struct conn *c)
{
    dial_next(c, ETIMEDOUT);
}

const struct conn_stage stage_resolving = { .late = unanswered, .leads_out = stage_leads_out, .left = forget };
const struct conn_stage stage_dialling = { .server = writable, .late = too_slow, .leads_out = stage_leads_out };
