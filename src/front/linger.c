/* front/linger.c: clients that were refused before they had sent everything
 *
 * What a socket still has to be read when it is closed makes the kernel reset the connection (RFC 9112, 9.6), and the
 * client, which is still sending, sees that instead of the answer. So such a connection is kept for a moment by a
 * descriptor of our own, on which nothing is said any more: what comes is thrown away, until the client has closed it,
 * or has sent as much, or waited as long, as nobody does who means to read.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/clock.h"
#include "front/front.h"

#define BYTES_MAX (16UL * 1024 * 1024)
#define ALL_MS    30000     /* for all of it, */
#define SILENT_MS 5000      /* and for the next piece, or client-timeout, where that is less */
#define AT_ONCE   4         /* reads, before others have their turn */

static void
linger_over(struct lingering *g)
{
    loop_at(&g->f->loop, &g->timer, 0);
    loop_drop(&g->f->loop, &g->watch);
    g->f = NULL;
}

static void
on_time(struct timer *t)
{
    linger_over(t->owner);
}

static void
wait_on(struct lingering *g)
{
    const uint64_t silent_ms = g->f->doors.client_ms < SILENT_MS ? g->f->doors.client_ms : SILENT_MS;
    const uint64_t end = g->begun_ms + ALL_MS, silent = clock_ms() + silent_ms;

    loop_at(&g->f->loop, &g->timer, silent < end ? silent : end);
}

static void
on_more(struct watch *w, uint32_t events)
{
    static uint8_t room[65536];
    struct lingering *g = w->owner;
    ssize_t n = 1;

    (void)events;
    for (int i = 0; i < AT_ONCE && n > 0 && g->left > 0; i++) {
        n = recv(w->fd, room, sizeof(room), MSG_DONTWAIT);
        if (n > 0)
            g->left -= (size_t)n < g->left ? (size_t)n : g->left;
    }
    if (n == 0 || g->left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        linger_over(g);
    else
        wait_on(g);
}

/* A free place, or that of who has been there longest. */
static struct lingering *
place(struct front *f)
{
    struct lingering *oldest = &f->lingering[0];

    for (size_t i = 0; i < ARRAY_LEN(f->lingering); i++) {
        struct lingering *g = &f->lingering[i];
        if (g->f == NULL)
            return g;
        if (g->begun_ms < oldest->begun_ms)
            oldest = g;
    }
    linger_over(oldest);
    return oldest;
}

void
linger_begin(struct front *f, int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct lingering *g;

    if (own < 0)
        return;
    g = place(f);
    *g = (struct lingering){ .f = f, .watch = { .fd = own, .ready = on_more, .owner = g },
                          .timer = { .due = on_time, .owner = g }, .begun_ms = clock_ms(), .left = BYTES_MAX };
    (void)shutdown(own, SHUT_WR);       /* of which the library is not always the first */
    if (loop_watch(&f->loop, &g->watch, EPOLLIN) < 0)
        linger_over(g);
    else
        wait_on(g);
}
