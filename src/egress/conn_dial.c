/* egress/conn_dial.c: from a name that was allowed to a connection: look it up once, judge the answers, dial what was
 * judged
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/conn.h"
#include "wall/sockaddr.h"

#define DIAL_MS 10000       /* for each address */

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

    if (c->parent == NULL && is_hosts_own(ip, &to, n)) {
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

/* is_hosts_own() said so; decide_address() could not know yet. */
static void
refuse_own(struct conn *c)
{
    const struct decide_request request = { .via = DECIDE_TCP, .host = { c->host.name, c->host.n }, .port = c->port };
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = "host-address",
                                            .detail = "the host's own address" };

    log_decision(c->e, &request, &verdict);
    conn_refuse(c, verdict.reason, verdict.detail, (struct str){ "", 0 });
}

void
conn_dial_next(struct conn *c, int saved_errno)
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
        refuse_own(c);
    else
        conn_unreachable(c, saved_errno != 0 ? saved_errno : EHOSTUNREACH, strerror(saved_errno));
}

void
conn_dial(struct conn *c)
{
    c->state = CONN_DIALLING;
    c->next_address = 0;
    conn_dial_next(c, 0);
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
    else if (!pool_take(c))
        conn_dial(c);
    else if (c->tls)
        tls_reused(c);
    else
        conn_established(c);
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

static void
find_way(struct conn *c, const struct ip *literal)
{
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
conn_go(struct conn *c, const struct ip *literal)
{
    if (c->e->over) {
        conn_end(c);
        return;
    }
    if (parent_refuses(c))
        return;
    find_way(c, literal);
    /* until the far end is there the client has to wait; its end is noticed then */
    if ((c->state == CONN_RESOLVING || c->state == CONN_DIALLING) && loop_watch(&c->e->loop, &c->client, 0) < 0)
        conn_end(c);
}
