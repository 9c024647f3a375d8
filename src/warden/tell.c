/* warden/tell.c: see tell.h */
#include "warden/tell.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "warden/stats.h"

#define SAMPLES_MAX (1024UL * 1024)

void
teller_id(uint8_t *out, size_t n)
{
    uint8_t any = 0;

    (void)!getrandom(out, n, 0);        /* which a few bytes never fail for, once the machine runs */
    for (size_t i = 0; i < n; i++)
        any |= out[i];
    if (any == 0)
        out[n - 1] = 1;
}

static void
no_more(struct teller *t)
{
    loop_at(t->loop, &t->timer, 0);
    close_fd(&t->fd);
}

/* What became of a message: it was @taken, or the socket is full, or nobody is there any more. */
static void
told(struct teller *t, bool taken)
{
    if (taken)
        t->lost = 0;
    else if (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN)
        t->lost++;
    else
        no_more(t);         /* the launcher makes another one */
}

void
teller_span(struct teller *t, struct export_span *s)
{
    if (t->fd < 0)
        return;
    s->lost = t->lost;
    told(t, proto_send(t->fd, EDGE_SPAN_OVER, EDGE_SPAN_OVER_SHAPE(), s, -1) == 0);
}

static void
send_numbers(struct teller *t, const uint8_t *p, size_t n, bool last)
{
    const struct export_numbers m = { .last = last, .since_us = t->since_us, .lost = t->lost, .samples = p,
                                      .n_samples = n };

    if (t->fd >= 0)
        told(t, proto_send(t->fd, EDGE_NUMBERS, EDGE_NUMBERS_SHAPE(), &m, -1) == 0);
}

/* As many messages as it takes, of whole samples. */
static void
on_numbers(struct timer *timer)
{
    struct teller *t = timer->owner;
    cleanup_buf struct buf b = BUF_INIT(SAMPLES_MAX);
    struct wire_in in;
    const uint8_t *begin;

    loop_at(t->loop, timer, clock_ms() + (uint64_t)t->every_s * 1000);
    if (t->put(t->owner, &b) < 0)
        return;
    in = wire_in_of(b.p, b.n);
    begin = in.p;
    while (in.n > 0) {
        const uint8_t *before = in.p;
        struct stat_sample s;
        if (!stats_get(&in, &s))
            return;
        if ((size_t)(in.p - begin) > EXPORT_NUMBERS_MAX) {
            send_numbers(t, begin, (size_t)(before - begin), false);
            begin = before;
        }
    }
    send_numbers(t, begin, (size_t)(b.p + b.n - begin), true);
}

void
teller_init(struct teller *t, struct loop *loop, int (*put)(const void *owner, struct buf *b), const void *owner)
{
    *t = (struct teller){ .fd = -1, .loop = loop, .put = put, .owner = owner, .since_us = clock_wall_us() };
}

void
teller_open(struct teller *t, const struct launch_export *m, int fd)
{
    no_more(t);
    if (io_set_nonblock(fd, true) < 0) {
        close(fd);
        return;
    }
    t->fd = fd;
    t->every_s = m->every_s;
    t->commands = m->commands;
    t->timer = (struct timer){ .due = on_numbers, .owner = t };
    if (t->every_s > 0)         /* soon for the first time: the daemon is there */
        loop_at(t->loop, &t->timer, clock_ms() + 1000);
}
