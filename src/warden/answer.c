/* warden/answer.c: answers to the fronts, each to whoever asked on the edge that it asked on */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/warden.h"

#define OPS_UNDER_WAY (3 * EDGE_OPS_MAX)    /* of one sandbox; ends of some may not have been heard yet */
#define FRONT_BEHIND  (4UL * 1024 * 1024)   /* bytes of answers that a front did not take: no question of it is heard */
#define FRAME_MAX     (EDGE_POLICY_MAX + EDGE_LABELS_MAX + EDGE_FACTS_MAX + 8192)

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
    struct epoll_event event = { .data.ptr = e };

    event.events = (answers_wait(e) ? 0 : (uint32_t)EPOLLIN) |
                   (packet_queue_waits(&e->out) ? (uint32_t)EPOLLOUT : 0);
    (void)epoll_ctl(w->epoll, EPOLL_CTL_MOD, e->fd, &event);
}

void
answer_send(struct warden *w, struct asker to, struct buf *frame, size_t at, int fd)
{
    struct front_edge *e = &w->fronts[to.front];

    if (frame_end(frame, at) < 0 || e->fd < 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (packet_queue_send(&e->out, e->fd, frame, fd) < 0 && errno == ENOBUFS)
        shutdown(e->fd, SHUT_RDWR);     /* it does not read: it is ended and comes anew */
    if (packet_queue_waits(&e->out))
        answers_watch(w, e);
}

size_t
answer_begin(struct buf *b, uint8_t type, struct asker to)
{
    size_t at = frame_begin(b, type, 0, 0);

    buf_put_be32(b, to.ticket);
    return at;
}

void
answer_item(struct warden *w, uint8_t type, struct asker to, const struct edge_box *r, const char *key)
{
    cleanup_buf struct buf b = BUF_INIT(FRAME_MAX);
    size_t at = answer_begin(&b, type, to);

    edge_box_put(&b, r);
    if (type == EDGE_BOX)
        wire_put_cstr(&b, key != NULL ? key : "", EDGE_CREDENTIAL_MAX);
    answer_send(w, to, &b, at, -1);
    if (key != NULL && b.p != NULL)
        explicit_bzero(b.p, b.cap);
}

void
answer_box(struct warden *w, struct asker to, const struct edge_box *r, const char *key)
{
    answer_item(w, EDGE_BOX, to, r, key);
}

void
answer_no(struct warden *w, struct asker to, const struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(FRAME_MAX);
    size_t at = answer_begin(&b, EDGE_NO, to);

    packet_put_err(&b, err);
    answer_send(w, to, &b, at, -1);
}

void
answer_no_text(struct warden *w, struct asker to, const struct err *said)
{
    struct err err = ERR_INIT;

    err_set(&err, said->kind, said->code, "%s", said->msg);
    err_hint(&err, "%s", said->hint);
    answer_no(w, to, &err);
}

void
answer_end(struct warden *w, struct asker to, uint32_t count, bool more)
{
    cleanup_buf struct buf b = BUF_INIT(64);
    size_t at = answer_begin(&b, EDGE_END, to);

    buf_put_be32(&b, count);
    buf_put_u8(&b, more);
    answer_send(w, to, &b, at, -1);
}

int
box_grant(struct warden *w, struct box *b, struct buf *frame, struct err *err)
{
    cleanup_buf struct buf answer = BUF_INIT(64);
    int pair[2];
    size_t at;

    /* its keeper turns away what is too much; one that does not read would have us hold a descriptor for each */
    if (b->ops >= OPS_UNDER_WAY)
        return err_set(err, ERR_LIMIT, "sandbox.busy", "%u operations wait for this sandbox", b->ops);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_sys(err, errno, "serve.op", "socketpair");
    if (box_say(b, frame, pair[0]) < 0) {
        close(pair[1]);
        return err_set(err, ERR_SYSTEM, "sandbox.gone", "the sandbox is ending");
    }
    at = answer_begin(&answer, EDGE_GRANTED, w->asker);
    answer_send(w, w->asker, &answer, at, pair[1]);
    b->maker.ticket = 0;        /* it is known */
    b->ops++;
    box_used(b);
    return 0;
}
