/* warden/record_time.c: a scribe that does not answer, and the end */
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/record_priv.h"

#define END_PATIENCE_MS 2000

/* Whether the scribe has to say something. */
static bool
owes(const struct record *r)
{
    return r->scribe.fd >= 0 && (r->in_flight > 0 || !r->ready);
}

/* A scribe that does not answer is the launcher's to wake, and to end. It may have answered meanwhile. */
static void
on_late(struct timer *t)
{
    struct warden *w = t->owner;
    struct record *r = w->record;

    if (!owes(r))
        return;
    if (clock_since(clock_ms(), r->heard_ms) >= RECORD_LATE_MS) {
        r->heard_ms = clock_ms();
        (void)launcher_say(w, EDGE_SCRIBE_LATE, NULL);
    }
    loop_at(&w->loop, t, r->heard_ms + RECORD_LATE_MS);
}

void
record_expect(struct warden *w)
{
    struct record *r = w->record;

    r->heard_ms = clock_ms();
    r->late.due = on_late;
    r->late.owner = w;
    if (r->late.at_ms == 0)
        loop_at(&w->loop, &r->late, r->heard_ms + RECORD_LATE_MS);
}

void
record_end(struct warden *w)
{
    struct record *r = w->record;
    uint64_t end = clock_ms() + END_PATIENCE_MS;

    while (r->scribe.fd >= 0 && !r->down && (r->first != NULL || !r->ready) && clock_ms() < end) {
        struct pollfd p = { .fd = r->scribe.fd, .events = packet_queue_waits(&r->out) ? POLLIN | POLLOUT : POLLIN };
        if (poll(&p, 1, 100) > 0)
            (void)record_hear(w, ((p.revents & POLLOUT) != 0 ? EPOLLOUT : 0) |
                              ((p.revents & ~POLLOUT) != 0 ? EPOLLIN : 0));
    }
    for (const struct item *i = r->first; i != NULL; i = i->next)
        r->lost++;
    r->refused += r->said.refused;
    r->lost += r->said.lost;
    if (r->lost > 0)
        log_say(LEVEL_ERROR, "%llu entries could not be written to the audit record, and are lost [audit.lost]",
                (unsigned long long)r->lost);
    record_keep_gap(w, r->refused, r->lost);
}
