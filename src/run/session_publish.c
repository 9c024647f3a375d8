/* run/session_publish.c: ports of the sandbox that are reached from the host (--publish)
 *
 * We listen, on addresses of the host that the policy names and on nothing else. Each connection that comes is made
 * once more inside, by the guest, to that one port of the sandbox's loopback address, as those to exposed ports of the
 * daemon's sandboxes are; between the two go only bytes. So nothing inside begins a connection to us, chooses a port,
 * or gets a descriptor of the host's network, and who has taken the guest over can answer in the place of a server of
 * its own sandbox, and of no other. A connection that fails is its client's affair, never the run's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "match/publish.h"
#include "run/session_priv.h"
#include "wall/sockaddr.h"

#define BACKLOG     64
#define CONNECTIONS 32                  /* at once; further ones wait to be accepted */
#define WINDOW      (256U * 1024)       /* bytes from the server that the client did not take yet */
#define CHUNK       16384               /* and from the client that the server did not */
#define REST_MS     500                 /* for want of a descriptor or memory */

struct conn {
    struct watch edge;          /* to the client; none: it has gone */
    struct live *l;
    uint16_t channel;           /* the guest's; 0: it is over there */
    bool there;                 /* the server has accepted */
    bool in_end, in_told;       /* the client sends no more; the server knows */
    struct buf out;
    size_t in_n, in_at;
    uint8_t in[CHUNK];
};

struct published {
    struct watch doors[PUBLISH_MAX];
    uint16_t ports[PUBLISH_MAX];
    struct timer rest;          /* until then nobody is let in */
    struct conn conns[CONNECTIONS];
};

/* --- one connection ----------------------------------------------------------------------------------------------- */

static bool
is_free(const struct conn *c)
{
    return c->edge.fd < 0 && c->channel == 0;
}

/* The client is not there any more; the guest is told, and says when it is over. */
static void
let_go(struct conn *c)
{
    loop_drop(c->l->loop, &c->edge);
    buf_free(&c->out);
    c->in_n = c->in_at = 0;
    c->in_end = c->in_told = true;
    if (c->channel != 0)
        (void)guest_client_signal(c->l->client, c->channel, SIGKILL, SIGNAL_GROUP, NULL);
}

/* What the client said, as far as the server takes it. */
static void
feed(struct conn *c)
{
    while (c->channel != 0 && c->in_at < c->in_n) {
        size_t taken = 0;
        if (guest_client_stdin(c->l->client, c->channel, c->in + c->in_at, c->in_n - c->in_at, &taken, NULL) < 0)
            return let_go(c);
        if (taken == 0)
            return;
        c->in_at += taken;
    }
    if (c->channel != 0 && c->there && c->in_end && !c->in_told) {
        c->in_told = true;
        (void)guest_client_close_stdin(c->l->client, c->channel, NULL);
    }
}

static void
hear(struct conn *c)
{
    ssize_t n = read(c->edge.fd, c->in, sizeof(c->in));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        return let_go(c);
    c->in_at = 0;
    c->in_n = (size_t)n;
    c->in_end = n == 0;
    feed(c);
}

/* What the server said, as far as the client takes it; room for as much goes back to the guest. */
static void
flush(struct conn *c)
{
    size_t done = 0;

    while (done < c->out.n) {
        ssize_t n = send(c->edge.fd, c->out.p + done, c->out.n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return let_go(c);
        if (n < 0)
            break;
        done += (size_t)n;
    }
    buf_consume(&c->out, done);
    if (done > 0 && c->channel != 0)
        (void)guest_client_window(c->l->client, c->channel, MSG_STREAM_OUT, (uint32_t)done, NULL);
    if (c->channel == 0 && c->out.n == 0)
        let_go(c);
}

static void
on_client(struct watch *w, uint32_t events)
{
    struct conn *c = w->owner;

    if ((events & EPOLLOUT) != 0)
        flush(c);
    if (c->edge.fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && c->in_at == c->in_n && !c->in_end)
        hear(c);
    else if (c->edge.fd >= 0 && (events & (EPOLLHUP | EPOLLERR)) != 0)
        let_go(c);
}

bool
publish_event(struct live *l, const struct guest_event *ev)
{
    struct conn *c = NULL;

    for (size_t i = 0; l->published != NULL && ev->channel != 0 && i < CONNECTIONS; i++)
        if (l->published->conns[i].channel == ev->channel)
            c = &l->published->conns[i];
    if (c == NULL || ev->channel == l->channel || (ev->type >= GUEST_FILE_DATA && ev->type <= GUEST_FILE_FAILED))
        return false;
    switch (ev->type) {
    case GUEST_STARTED:
        c->there = true;
        break;
    case GUEST_STDOUT:
        if (c->edge.fd >= 0 && buf_append(&c->out, ev->data.p, ev->data.n) == 0)
            flush(c);
        else if (c->edge.fd >= 0)
            let_go(c);
        break;
    case GUEST_STDIN_READY:
        if (ev->stdin_gone)
            c->in_n = c->in_at = 0;
        break;
    case GUEST_EXEC_FAILED:
    case GUEST_EXIT:
        c->channel = 0;
        if (c->edge.fd >= 0 && c->out.n == 0)
            let_go(c);
        break;
    default:
        break;
    }
    return true;
}

/* --- the doors ---------------------------------------------------------------------------------------------------- */

static struct conn *
free_one(struct published *p)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (is_free(&p->conns[i]))
            return &p->conns[i];
    return NULL;
}

static void
on_door(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;
    struct conn *c = free_one(l->published);
    int fd = c != NULL ? accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    const int on = 1;

    (void)events;
    /* who waits stays readable: without a rest we would turn for nothing */
    if (fd < 0 && c != NULL && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        loop_at(l->loop, &l->published->rest, l->loop->now_ms + REST_MS);
    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->there = c->in_end = c->in_told = false;
    c->in_n = c->in_at = 0;
    c->out = (struct buf)BUF_INIT(WINDOW);
    if (guest_client_connect(l->client, l->published->ports[w - l->published->doors], WINDOW, &c->channel, NULL) < 0) {
        c->channel = 0;
        close(fd);
        return;
    }
    c->edge = (struct watch){ .fd = fd, .ready = on_client, .owner = c };
    l->r->connections++;
}

void
publish_look(struct live *l)
{
    struct published *p = l->published;
    bool room;

    if (p == NULL)
        return;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct conn *c = &p->conns[i];
        bool more;
        if (c->edge.fd < 0)
            continue;
        feed(c);
        more = c->there && c->channel != 0 && !c->in_end && c->in_at == c->in_n &&
               guest_client_stdin_room(l->client, c->channel) > 0;
        if (c->edge.fd >= 0 && loop_watch(l->loop, &c->edge, (more ? (uint32_t)EPOLLIN : 0) |
                                                                 (c->out.n > 0 ? (uint32_t)EPOLLOUT : 0)) < 0)
            let_go(c);
    }
    room = free_one(p) != NULL && p->rest.at_ms == 0;
    for (size_t i = 0; i < l->r->n_published; i++)
        (void)loop_watch(l->loop, &p->doors[i], room ? EPOLLIN : 0);
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

static int
refused(const struct publish *v, const char *at, struct err *err)
{
    int why = errno;

    if (why == EADDRINUSE) {
        err_set(err, ERR_SYSTEM, "publish.taken", "--publish: another program has port %u of %s",
                (unsigned)v->host_port, at);
        return err_hint(err, "--publish 0:%u takes a free one, and says which", (unsigned)v->port);
    }
    if (why == EADDRNOTAVAIL) {
        err_set(err, ERR_SYSTEM, "publish.address", "--publish: %s is no address of this host", at);
        return err_hint(err, "leave it out for 127.0.0.1");
    }
    return err_sys(err, why, "publish.listen", "--publish: listen on port %u of %s", (unsigned)v->host_port, at);
}

/* A listener, which says its port where any was asked for. */
static int
listen_at(struct publish *v, struct err *err)
{
    union address at;
    socklen_t n = sockaddr_of(&v->ip, v->host_port, &at);
    cleanup_close int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[IP_TEXT_MAX];
    const int on = 1;
    struct ip own;

    ip_format(&v->ip, text);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (v->ip.family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, &at.any, n) < 0 || listen(fd, BACKLOG) < 0 || !sockaddr_local(fd, &own, &v->host_port))
        return refused(v, text, err);
    return take_fd(&fd);
}

int
publish_open(struct live *l, struct err *err)
{
    const struct policy_list *list = &l->s->policy->publish;
    struct session_result *r = l->r;

    r->n_published = 0;
    if (list->n == 0)
        return 0;
    l->published = calloc(1, sizeof(*l->published));
    if (l->published == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = 0; i < CONNECTIONS; i++)
        l->published->conns[i] = (struct conn){ .edge = WATCH_INIT, .l = l };
    for (size_t i = 0; i < list->n && i < PUBLISH_MAX; i++) {
        struct publish v;
        int fd;
        if (publish_parse(str_of(list->v[i].value), &v) != NULL)
            return err_set(err, ERR_POLICY, "policy.publish", "%s", list->v[i].written);
        fd = listen_at(&v, err);
        if (fd < 0)
            return -1;
        l->published->doors[i] = (struct watch){ .fd = fd, .ready = on_door, .owner = l };
        l->published->ports[i] = v.port;
        publish_format(&v, r->published[i]);
        r->n_published++;
        if (!publish_is_local(&v))
            session_warn(r, true, "port %u of the sandbox is open to others than this host (--publish %s)",
                         (unsigned)v.port, list->v[i].written);
    }
    return 0;
}

void
publish_say(const struct live *l)
{
    for (size_t i = 0; i < l->r->n_published && !l->s->quiet; i++) {
        const char *at = l->r->published[i], *colon = strrchr(at, ':');
        fprintf(stderr, "cloche: %.*s is port %s of the sandbox\n", (int)(colon - at), at, colon + 1);
    }
}

void
publish_stop(struct live *l)
{
    struct published *p = l->published;

    if (p == NULL)
        return;
    loop_at(l->loop, &p->rest, 0);
    for (size_t i = 0; i < l->r->n_published; i++)
        loop_drop(l->loop, &p->doors[i]);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (p->conns[i].edge.fd >= 0 && l->client != NULL)
            flush(&p->conns[i]);        /* as much as can be had without waiting */
        loop_drop(l->loop, &p->conns[i].edge);
        buf_free(&p->conns[i].out);
    }
    free(p);
    l->published = NULL;
}
