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

/* A scribe that does not answer is the launcher's to wake, and to end. */
void
record_look(struct warden *w)
{
    struct record *r = w->record;

    if (!owes(r)) {
        r->heard_ms = clock_ms();
    } else if (clock_since(clock_ms(), r->heard_ms) >= RECORD_LATE_MS) {
        r->heard_ms = clock_ms();
        (void)launcher_say(w, EDGE_SCRIBE_LATE, NULL);
    }
}

int
record_timeout(const struct warden *w, int ms)
{
    const struct record *r = w->record;
    int own = r->down ? RECORD_RETRY_MS : owes(r) ? RECORD_LATE_MS : -1;

    return own >= 0 && (ms < 0 || ms > own) ? own : ms;
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
