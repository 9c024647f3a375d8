/* adapters/host_feed.c: what a client sends after its upgrade, to the stdin of a command in the background
 *
 * A question about the command (RUN_INPUT) that goes on for as long as both have something to say, beside the
 * operation by which its output comes. What the command does not take waits here up to a ceiling, and then in the
 * client's socket.
 */
#include <errno.h>
#include <string.h>

#include "adapters/host.h"
#include "base/cleanup.h"
#include "base/io.h"

#define FED_MAX (HOST_STREAM_MAX / 2)

bool
host_feed_full(const struct hosted *h)
{
    return h->feed.fd >= 0 && h->fed.n >= FED_MAX;
}

void
host_feed_drop(struct hosted *h)
{
    loop_drop(&hosting.loop, &h->feed);
    buf_free(&h->fed);
    h->feed_over = true;
}

static void
give(struct hosted *h)
{
    while (h->fed.n > 0) {
        struct edge_bytes m = { .bytes = h->fed.p, .n_bytes = h->fed.n < EDGE_CHUNK ? h->fed.n : EDGE_CHUNK };
        if (proto_send(h->feed.fd, EDGE_IN, EDGE_IN_SHAPE(), &m, -1) < 0)
            break;
        buf_consume(&h->fed, m.n_bytes);
    }
    if (h->fed.n == 0 && h->fed_end && proto_send(h->feed.fd, EDGE_IN_END, EDGE_IN_END_SHAPE(), NULL, -1) == 0)
        h->fed_end = false;
    (void)loop_watch(&hosting.loop, &h->feed, EPOLLIN | (h->fed.n > 0 || h->fed_end ? EPOLLOUT : 0));
}

/* All that is said there is that it is over: DONE, or why it is not taken. */
static void
on_feed(struct watch *w, uint32_t events)
{
    struct hosted *h = w->owner;
    struct frame f;

    if ((events & ~(uint32_t)EPOLLOUT) == 0 ||
        (packet_receive(w->fd, hosting.in, sizeof(hosting.in), &f, NULL, MSG_DONTWAIT) < 0 && errno == EAGAIN))
        give(h);
    else
        host_feed_drop(h);
    host_flow(h);
}

void
host_feed_take(struct hosted *h, int fd)
{
    h->feed = (struct watch){ .fd = fd, .ready = on_feed, .owner = h };
    if (io_set_nonblock(fd, true) < 0 || loop_watch(&hosting.loop, &h->feed, EPOLLIN) < 0) {
        hosting.ended = true;
        return;
    }
    h->feeds = true;
    PROTO_SAY(host_say, h, EDGE_VISIT_READS, .none = 0);
}

int
host_fed(struct hosted *h, const uint8_t *p, size_t n)
{
    if (h->feed_over)
        return 0;       /* nobody reads it any more */
    if (buf_append(&h->fed, p, n) < 0)
        return -1;
    give(h);
    return 0;
}

void
host_fed_end(struct hosted *h)
{
    if (h->feed_over)
        return;
    h->fed_end = true;
    give(h);
}
