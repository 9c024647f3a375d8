/* egress/conn_relay.c: bytes that pass, first those that were read already
 *
 * Nothing of them is understood, but for what conn_look.c still looks at.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "egress/stages.h"

#define IDLE_MS 600000          /* neither direction moves */

/* The server takes no more: what was on its way to it is dropped. */
static void
up_broken(struct conn *c)
{
    c->up_broken = true;
    c->up.done = true;
    buf_reset(&c->in);
}

/* What was read here, as far as it may pass. 1: all of that is out; 0: the server takes no more now. */
static int
flush_in(struct conn *c)
{
    while (c->in.n > 0 && (c->look == LOOK_NONE || c->may > 0)) {
        size_t some = c->look == LOOK_NONE ? c->in.n : c->may;
        ssize_t n = send(c->server.fd, c->in.p, some, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n < 0) {
            up_broken(c);
        } else {
            buf_consume(&c->in, (size_t)n);
            c->may -= c->may > 0 ? (size_t)n : 0;
        }
    }
    if (c->look == LOOK_NONE)
        buf_free(&c->in);
    return 1;
}

/* What is still looked at. False: the connection is relayed no more. */
static bool
look(struct conn *c, bool up, bool down)
{
    if (up && c->look != LOOK_NONE)
        conn_look_up(c);
    if (down && c->state == CONN_RELAY && c->look == LOOK_ANSWER && conn_look_down(c) < 0)
        conn_end(c);
    return c->state == CONN_RELAY;
}

/* @up, @down: that direction may have something to do. */
static void
relay_step(struct conn *c, bool up, bool down)
{
    uint64_t moved = c->up.moved + c->down.moved;
    uint32_t client = 0, server = 0;
    bool flushed;

    if (!look(c, up, down))
        return;
    flushed = flush_in(c) == 1;
    /* an early answer reaches the client although the server takes no more of what it said */
    if (up && flushed && !c->up_broken && c->look == LOOK_NONE && relay_pump(&c->up, c->client.fd, c->server.fd) < 0)
        up_broken(c);
    if (down && c->look != LOOK_ANSWER && relay_pump(&c->down, c->server.fd, c->client.fd) < 0) {
        conn_end(c);
        return;
    }
    if (c->down.done && c->up.done) {
        conn_part(c->server.fd, c->up_broken);      /* who was reset had not said all of it */
        conn_linger(c);
        return;
    }
    if (c->up.moved + c->down.moved != moved || c->in.n > 0)
        conn_patience(c, IDLE_MS);
    if (flushed && !c->up_broken && (c->look == LOOK_NONE ? relay_wants_input(&c->up) : conn_look_wants(c)))
        client |= EPOLLIN;
    if (relay_wants_output(&c->down))
        client |= EPOLLOUT;
    if (relay_wants_input(&c->down))
        server |= EPOLLIN;
    if (!flushed || (!c->up_broken && relay_wants_output(&c->up)))
        server |= EPOLLOUT;
    if (loop_watch(&c->e->loop, &c->client, client) < 0 || loop_watch(&c->e->loop, &c->server, server) < 0)
        conn_end(c);
}

void
relay_begin(struct conn *c)
{
    c->state = CONN_RELAY;
    c->speech = SPEECH_NONE;
    conn_part(c->client.fd, true);
    conn_part(c->server.fd, true);
    conn_patience(c, IDLE_MS);
    if (c->look == LOOK_NONE)
        conn_look_answer(c);
    relay_step(c, true, true);
}

/* Errors concern both directions. */
static void
client(struct conn *c, uint32_t events)
{
    relay_step(c, events & ~(uint32_t)EPOLLOUT, events & ~(uint32_t)EPOLLIN);
}

static void
server(struct conn *c, uint32_t events)
{
    relay_step(c, events & ~(uint32_t)EPOLLIN, events & ~(uint32_t)EPOLLOUT);
}

static void
conn_relay_free(struct conn *c)
{
    relay_close(&c->up);
    relay_close(&c->down);
}

const struct conn_stage stage_relay = { .client = client, .server = server, .leads_out = stage_leads_out,
                                        .free = conn_relay_free };
