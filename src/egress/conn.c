/* egress/conn.c: see conn.h */
#include "egress/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/tls_end.h"
#include "egress/way.h"
#include "wall/sockaddr.h"

#define LINGER_MS  2000
#define READ_CHUNK 16384

void
conn_patience(struct conn *c, uint64_t ms)
{
    c->deadline_ms = c->e->loop.now_ms + ms;
}

/* The last stage first: it stands on those before. */
static void
free_stages(struct conn *c)
{
    for (size_t i = CONN_STATES; i-- > 0;)
        if (conn_stages[i]->free != NULL)
            conn_stages[i]->free(c);
    buf_free(&c->in);
}

void
conn_end(struct conn *c)
{
    struct egress *e = c->e;

    if (c->state == CONN_ENDED)
        return;
    if (conn_stages[c->state]->left != NULL)
        conn_stages[c->state]->left(c);
    c->state = CONN_ENDED;
    loop_drop(&e->loop, &c->client);
    loop_drop(&e->loop, &c->server);
    free_stages(c);
    if (c->held)
        fake_release(e->fakes, &c->meant);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        e->conns = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->next = e->ended;
    e->ended = c;
    e->n_conns--;
}

void
conn_free_ended(struct egress *e)
{
    while (e->ended != NULL) {
        struct conn *c = e->ended;
        e->ended = c->next;
        free(c);
    }
}

bool
conn_has_tail(const struct egress *e)
{
    for (const struct conn *c = e->conns; c != NULL; c = c->next)
        if (c->state == CONN_RELAY && !c->up_broken && relay_wants_output(&c->up))
            return true;
    return false;
}

void
conn_close_known(struct egress *e)
{
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_RELAY && c->up.done && !c->up_broken)
            conn_part(c->server.fd, false);     /* all that was said is on its way */
        if (c->state != CONN_FIRST)
            conn_end(c);
    }
    pool_clear(e);
    conn_free_ended(e);
}

void
conn_close_all(struct egress *e)
{
    while (e->conns != NULL)
        conn_end(e->conns);
    pool_clear(e);
    conn_free_ended(e);
}

void
conn_revoked(struct egress *e, uint32_t mask)
{
    pool_revoked(e, mask);
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        next = c->next;
        if ((c->inject.used | c->h2_used | c->lent_secrets) & mask)
            conn_end(c);
    }
}

/* --- its end, in order ------------------------------------------------------------------------------------------- */

void
conn_part(int fd, bool part)
{
    const struct linger linger = { .l_onoff = part, .l_linger = 0 };

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void
conn_linger(struct conn *c)
{
    conn_part(c->client.fd, false);
    c->state = CONN_LINGER;
    c->http = false;
    loop_drop(&c->e->loop, &c->server);
    if (c->client_tls != NULL)
        (void)tls_finish(c->client_tls);        /* the end of the socket alone would look cut off */
    free_stages(c);
    conn_patience(c, LINGER_MS);
    if (c->client_eof || shutdown(c->client.fd, SHUT_WR) < 0 || loop_watch(&c->e->loop, &c->client, EPOLLIN) < 0)
        conn_end(c);
}

static void
read_away(struct conn *c, uint32_t events)
{
    char away[READ_CHUNK];
    ssize_t n = recv(c->client.fd, away, sizeof(away), MSG_DONTWAIT);

    (void)events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        conn_end(c);
}

const struct conn_stage stage_linger = { .client = read_away };
const struct conn_stage stage_ended = { .free = NULL };

/* --- bytes ------------------------------------------------------------------------------------------------------- */

int
conn_say(struct conn *c, const void *p, size_t n)
{
    /* a fresh socket takes this; one that does not belongs to a client that reads nothing */
    return send(c->client.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -1;
}

ssize_t
conn_read(struct conn *c)
{
    char chunk[READ_CHUNK];
    ssize_t n = recv(c->client.fd, chunk, sizeof(chunk), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        c->client_eof = true;
    return buf_append(&c->in, chunk, (size_t)n) < 0 ? -1 : n;
}

void
conn_drop_server(struct conn *c)
{
    tls_end_free(c->server_tls);
    c->server_tls = NULL;
    c->rested_ms = 0;
    loop_drop(&c->e->loop, &c->server);
}

/* --- arrival ----------------------------------------------------------------------------------------------------- */

static void
arrive(struct egress *e, enum capture_listener came, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));
    const int on = 1;

    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct conn){ .e = e, .came = came, .in = BUF_INIT(CONN_FIRST_MAX), .up = RELAY_INIT, .down = RELAY_INIT,
                        .client = { .fd = fd, .ready = conn_on_client, .owner = c }, .server = WATCH_INIT,
                        .next = e->conns };
    if (e->conns != NULL)
        e->conns->prev = c;
    e->conns = c;
    e->n_conns++;
    conn_share_buffers(e);
    conn_patience(c, CONN_FIRST_MS);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn_limit_buffers(e, fd);
    if (!sockaddr_local(fd, &c->meant, NULL) || loop_watch(&e->loop, &c->client, EPOLLIN) < 0) {
        conn_end(c);
        return;
    }
    c->held = fake_hold(e->fakes, &c->meant, &c->host);
    c->port = came == CAPTURE_TLS ? 443 : 80;
    c->speech = came == CAPTURE_TLS ? SPEECH_TLS : came == CAPTURE_HTTP ? SPEECH_HTTP : SPEECH_NONE;
    way_arrived(c);
}

void
conn_on_listener(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    size_t at = (size_t)(w - e->listeners);
    enum capture_listener came = at < CAPTURE_PORT ? (enum capture_listener)at : CAPTURE_PORT;

    (void)events;
    for (int i = 0; i < 64; i++) {
        int fd = e->n_conns < e->conns_max ? accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0 && (e->n_conns >= e->conns_max || errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS)) {
            /* what waits in the queue would wake us for nothing: it waits until there is room */
            e->full_at = e->n_conns;
            e->full_ms = e->loop.now_ms;
            loop_watch(&e->loop, w, 0);
        }
        if (fd < 0)
            return;
        arrive(e, came, fd);
    }
}

void
conn_make_room(struct egress *e)
{
    /* some have ended, or (for want of something else than room) a while has passed */
    if (e->full_ms == 0 || (e->n_conns + e->full_at / 16 >= e->full_at && e->loop.now_ms - e->full_ms < 1000))
        return;
    e->full_ms = 0;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        if (e->listeners[i].fd >= 0)
            loop_watch(&e->loop, &e->listeners[i], EPOLLIN);
}
