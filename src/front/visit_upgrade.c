/* front/visit_upgrade.c: a visit's connection that speaks HTTP no more (Docker's hijacked streams, docs/docker-api.md)
 *
 * What the adapter says goes to the client as it is. What the client says is read only when the adapter wants it
 * (EDGE_VISIT_READS) and has taken what came before: until then it stays in the client's socket. A client that only
 * says no more is heard to its end, and goes on listening; one that has gone ends its visit.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/array.h"
#include "front/live.h"
#include "front/visit_priv.h"

#define READ_ONCE 16384
#define READS_MAX (256UL * 1024)        /* of what the adapter did not take yet */

static bool
listens(const struct request *r)
{
    return r->visit->reads && !r->visit->said_all && upgrade_listens(r, READS_MAX, READ_ONCE);
}

void
visit_settle(struct request *r)
{
    if (r->up.fd < 0)
        return;         /* not yet, or no more */
    (void)upgrade_send(r);
    if (r->up.fd >= 0 && r->stream_end && (r->out.n == 0 || r->stream_broken)) {
        upgrade_end(r);
        return;
    }
    if (r->up.fd < 0)
        return;
    op_flow(r);
    /* that it has gone is told in any case (EPOLLHUP) */
    upgrade_watch(r, (listens(r) ? (uint32_t)EPOLLIN : 0) | (r->out.n > 0 ? (uint32_t)EPOLLOUT : 0));
}

/* False: it has gone. */
static bool
take(struct request *r)
{
    uint8_t p[READ_ONCE];
    ssize_t n = recv(r->up.fd, p, sizeof(p), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (n == 0) {
        r->visit->said_all = r->in_end = true;
        return true;
    }
    r->bytes_in += (uint64_t)n;
    return buf_append(&r->in, p, (size_t)n) == 0;
}

static void
hear(struct request *r, uint32_t events)
{
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLIN) != 0 && listens(r) && !take(r))) {
        upgrade_end(r);
        return;
    }
    visit_settle(r);
}

static void
begin_upgraded(struct request *r, const uint8_t *p, size_t n)
{
    r->bytes_in += n;
    if (n > 0 && buf_append(&r->in, p, n) < 0)
        upgrade_end(r);
    else
        visit_settle(r);
}

static void
on_time(struct request *r, uint64_t now)
{
    (void)now;
    visit_settle(r);
}

static const struct upgraded carries = { .begin = begin_upgraded, .hear = hear, .time = on_time };

void
visit_upgrade(struct request *r, const char *type)
{
    r->stream = true;           /* the adapter is heard by how much waits for the client */
    upgrade_reply_as(r, &carries, "tcp");
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}
