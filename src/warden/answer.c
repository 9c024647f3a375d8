/* warden/answer.c: answers to the fronts, each to whoever asked on the edge that it asked on */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/warden.h"

#define OPS_UNDER_WAY (3 * EDGE_OPS_MAX)    /* of one sandbox; ends of some may not have been heard yet */
#define FRONT_BEHIND  (4UL * 1024 * 1024)   /* bytes of answers that a front did not take: no question of it is heard */

/* Who makes the answers long has to wait until they are taken: above the queue's ceiling the front would end, with what
 * everybody else asks by it. */
bool
answers_wait(const struct front_edge *e)
{
    return e->out.bytes > FRONT_BEHIND;
}

void
answers_watch(struct warden *w, struct front_edge *e)
{
    (void)loop_watch(&w->loop, &e->edge, (answers_wait(e) ? 0 : (uint32_t)EPOLLIN) |
                                             (packet_queue_waits(&e->out) ? (uint32_t)EPOLLOUT : 0));
}

void
answer(struct warden *w, struct asker to, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    struct front_edge *e = &w->fronts[to.front];
    uint8_t room[PROTO_ROOM];
    cleanup_buf struct buf b = PROTO_BUF(room, shape);

    if (proto_frame(&b, type, shape, m) < 0 || e->edge.fd < 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    warden_flush(w);
    if (packet_queue_send(&e->out, e->edge.fd, &b, fd) < 0 && errno == ENOBUFS)
        shutdown(e->edge.fd, SHUT_RDWR);     /* it does not read: it is ended and comes anew */
    answers_watch(w, e);
    /* it may hold a credential */
    if (type == EDGE_BOX || type == EDGE_TOKEN || type == EDGE_PORT || type == EDGE_ATTACHED)
        explicit_bzero(b.p, b.n);
}

void
answer_box(struct warden *w, struct asker to, const struct edge_box *r, const char *key)
{
    ANSWER(w, to, EDGE_BOX, .box = *r, .key = key);
}

void
answer_no(struct warden *w, struct asker to, const struct err *err)
{
    ANSWER(w, to, EDGE_NO, .why = *err);
}

void
answer_no_text(struct warden *w, struct asker to, const struct err *said)
{
    struct err err = ERR_INIT;

    err_set(&err, said->kind, said->code, "%s", said->msg);
    err_hint(&err, "%s", said->hint);
    err.sys_errno = said->sys_errno;
    answer_no(w, to, &err);
}

void
answer_end(struct warden *w, struct asker to, uint32_t count, bool more)
{
    ANSWER(w, to, EDGE_END, .count = count, .more = more);
}

int
box_grant(struct warden *w, struct box *b, uint8_t type, const struct shape *shape, const void *m, struct err *err)
{
    int pair[2];

    /* its keeper turns away what is too much; one that does not read would have us hold a descriptor for each */
    if (b->ops >= OPS_UNDER_WAY)
        return err_set(err, ERR_LIMIT, "sandbox.busy", "%u operations wait for this sandbox", b->ops);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_sys(err, errno, "serve.op", "socketpair");
    if (box_send(b, type, shape, m, pair[0]) < 0) {
        close(pair[1]);
        return err_set(err, ERR_SYSTEM, "sandbox.gone", "the sandbox is ending");
    }
    ANSWER_WITH(pair[1], w, w->asker, EDGE_GRANTED);
    if (!b->once)
        b->maker.ticket = 0;    /* it is known */
    b->ops++;
    box_touched(b);
    return 0;
}
