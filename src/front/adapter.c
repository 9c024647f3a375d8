/* front/adapter.c: the socket by which cloche-adapter is handed its requests (visit.c); a new one when it ends */
#include "base/loop.h"
#include "front/front.h"

/* Nothing is said there but where it came from; each visit has its own. */
static void
on_adapter(struct watch *w, uint32_t events)
{
    struct front *f = w->owner;

    if ((events & EPOLLOUT) != 0) {
        (void)packet_queue_flush(&f->to_adapter, w->fd);
        if (!packet_queue_waits(&f->to_adapter))
            (void)loop_watch(&f->loop, w, EPOLLIN);
    }
    if ((events & ~(uint32_t)EPOLLOUT) == 0)
        return;
    loop_drop(&f->loop, w);
    packet_queue_clear(&f->to_adapter);
}

void
visit_adapter(struct front *f, int fd)
{
    loop_drop(&f->loop, &f->adapter);
    packet_queue_clear(&f->to_adapter);
    f->to_adapter = (struct packet_queue)PACKET_QUEUE_INIT(EDGE_QUEUE_MAX);
    f->adapter = (struct watch){ .fd = fd, .ready = on_adapter, .owner = f };
    if (loop_watch(&f->loop, &f->adapter, EPOLLIN) < 0)
        loop_drop(&f->loop, &f->adapter);
}
