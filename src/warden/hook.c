/* warden/hook.c: approvals, to the process that tells a server of them (src/webhook)
 *
 * Nothing here waits for it, and it has nothing to say. What it does not take is dropped when too much waits.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "warden/approvals.h"

static void
lose(struct warden *w)
{
    loop_drop(&w->loop, &w->hook);
    packet_queue_clear(&w->to_hook);
}

static void
on_hook(struct watch *hook, uint32_t events)
{
    struct warden *w = hook->owner;

    if ((events & ~(uint32_t)EPOLLOUT) != 0 || packet_queue_flush(&w->to_hook, hook->fd) < 0)
        lose(w);        /* its end, or a word, which it has not; the launcher sends another one */
    else
        (void)warden_watch(w, hook, &w->to_hook);
}

int
hook_on_edge(struct warden *w, const struct nothing *m)
{
    (void)m;
    if (w->passed < 0)
        return -1;
    lose(w);
    w->hook = (struct watch){ .fd = take_fd(&w->passed), .ready = on_hook, .owner = w };
    if (io_set_nonblock(w->hook.fd, true) < 0 || warden_watch(w, &w->hook, &w->to_hook) < 0)
        loop_drop(&w->loop, &w->hook);
    return 0;
}

void
hook_tell(struct warden *w, const struct edge_approval *a)
{
    struct edge_hook m = { .decided = a->state != APPROVAL_PENDING, .approval = *a };

    if (w->hook.fd < 0)
        return;
    warden_flush(w);
    m.approval.params = "";
    if (strcmp(a->tool, APPROVAL_NETWORK) == 0)
        m.approval.rule = "";   /* the host, as the sandbox's code said it: a parameter too */
    if (proto_queue(&w->to_hook, w->hook.fd, EDGE_HOOK, EDGE_HOOK_SHAPE(), &m, -1) < 0)
        log_say(LEVEL_WARN, "the webhook is not told of approval %s: too much waits for it", a->id);
    else
        (void)warden_watch(w, &w->hook, &w->to_hook);
}
