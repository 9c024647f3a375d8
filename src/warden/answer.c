/* warden/answer.c: answers to the fronts, each to whoever asked on the edge that it asked on */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/warden.h"

#define FRAME_MAX (EDGE_POLICY_MAX + EDGE_LABELS_MAX + EDGE_FACTS_MAX + 8192)

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
        (void)warden_watch(w, e->fd, e, true, false);
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

    edge_put_box(&b, r);
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
answer_no_text(struct warden *w, struct asker to, const struct packet_err *said)
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
