/* wall/sockmem.c: see sockmem.h */
#include "wall/sockmem.h"

#include <errno.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/array.h"
#include "base/cleanup.h"

#define ANSWER_MAX 32768

/* Messages and attributes begin at multiples of this. */
#define ALIGNED(n) (((n) + 3) & ~(size_t)3)

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* The attribute @type among the @n bytes at @p, with at least @least bytes of data. */
static const void *
attribute(const uint8_t *p, size_t n, unsigned type, size_t least)
{
    struct nlattr a;

    while (n >= sizeof(a)) {
        memcpy(&a, p, sizeof(a));
        if (a.nla_len < sizeof(a) || a.nla_len > n)
            return NULL;
        if ((a.nla_type & NLA_TYPE_MASK) == type)
            return a.nla_len - sizeof(a) >= least ? p + sizeof(a) : NULL;
        size_t step = ALIGNED(a.nla_len);
        p += step < n ? step : n;
        n -= step < n ? step : n;
    }
    return NULL;
}

static uint32_t
number(const void *numbers, size_t i)
{
    uint32_t v;

    memcpy(&v, (const uint8_t *)numbers + i * sizeof(v), sizeof(v));
    return v;
}

/* A message is charged to its sender. Where that one is gone nobody says how much it is, but no more than a socket may
 * send: one byte can cost a page's fraction. */
static uint64_t
of_unix(const uint8_t *p, size_t n)
{
    const void *memory, *queue, *peer;
    struct unix_diag_msg m;
    uint64_t held = 0, waits;

    if (n < sizeof(m))
        return 0;
    memcpy(&m, p, sizeof(m));
    if (n <= ALIGNED(sizeof(m)))
        return 0;
    p += ALIGNED(sizeof(m));
    n -= ALIGNED(sizeof(m));
    memory = attribute(p, n, UNIX_DIAG_MEMINFO, (SK_MEMINFO_SNDBUF + 1) * sizeof(uint32_t));
    queue = attribute(p, n, UNIX_DIAG_RQLEN, sizeof(struct unix_diag_rqlen));
    peer = attribute(p, n, UNIX_DIAG_PEER, sizeof(uint32_t));
    if (memory != NULL)
        held = number(memory, SK_MEMINFO_WMEM_ALLOC);
    /* of a listener it is the connections that wait */
    if (queue == NULL || memory == NULL || m.udiag_state == TCP_LISTEN || (peer != NULL && number(peer, 0) != 0))
        return held;
    waits = number(queue, 0);
    if (waits == 0)
        return held;
    return held + (waits > number(memory, SK_MEMINFO_SNDBUF) ? waits : number(memory, SK_MEMINFO_SNDBUF));
}

static uint64_t
of_inet(const uint8_t *p, size_t n)
{
    const size_t head = ALIGNED(sizeof(struct inet_diag_msg));
    const void *memory =
        n < head ? NULL : attribute(p + head, n - head, INET_DIAG_SKMEMINFO, (SK_MEMINFO_WMEM_QUEUED + 1) * 4);
    uint64_t wrote, queued;

    if (memory == NULL)
        return 0;
    wrote = number(memory, SK_MEMINFO_WMEM_ALLOC);
    queued = number(memory, SK_MEMINFO_WMEM_QUEUED);
    return number(memory, SK_MEMINFO_RMEM_ALLOC) + (wrote > queued ? wrote : queued);
}

int
sockmem_add(const void *p, size_t n, uint64_t *bytes)
{
    const uint8_t *at = p;
    struct nlmsghdr h;

    while (n >= sizeof(h)) {
        const uint8_t *body = at + NLMSG_HDRLEN;
        memcpy(&h, at, sizeof(h));
        if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > n)
            break;
        size_t length = h.nlmsg_len - NLMSG_HDRLEN, step = ALIGNED(h.nlmsg_len);
        if (h.nlmsg_type == NLMSG_DONE)
            return 0;
        if (h.nlmsg_type == NLMSG_ERROR) {
            struct nlmsgerr e;
            if (length < sizeof(e.error))
                break;
            memcpy(&e.error, body, sizeof(e.error));
            errno = e.error < 0 && e.error > INT_MIN ? -e.error : EPROTO;
            return -1;
        }
        /* both begin with the family */
        if (h.nlmsg_type == SOCK_DIAG_BY_FAMILY && length > 0)
            *bytes += body[0] == AF_UNIX ? of_unix(body, length) : of_inet(body, length);
        at += step < n ? step : n;
        n -= step < n ? step : n;
    }
    if (n == 0)
        return 1;
    errno = EPROTO;
    return -1;
}

/* --- the question ------------------------------------------------------------------------------------------------- */

int
sockmem_open(struct err *err)
{
    const struct timeval patience = { .tv_sec = 1 };
    cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return err_sys(err, errno, "wall.sockmem", "sock_diag");
    return take_fd(&fd);
}

static int
ask(int fd, const void *request, size_t size, uint64_t *bytes)
{
    uint8_t answer[ANSWER_MAX] __attribute__((aligned(8)));
    struct iovec room = { answer, sizeof(answer) };
    struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1 };
    ssize_t n;
    int more;

    if (send(fd, request, size, 0) != (ssize_t)size)
        return -1;
    do {
        do
            n = recvmsg(fd, &message, 0);      /* a call that keepers have anyway (keeper/keeper_confine.c) */
        while (n < 0 && errno == EINTR);
        more = n < 0 ? -1 : sockmem_add(answer, (size_t)n, bytes);
    } while (more > 0);
    return more;
}

static int
ask_unix(int fd, uint64_t *bytes, struct err *err)
{
    struct {
        struct nlmsghdr h;
        struct unix_diag_req r;
    } local = { .h = { .nlmsg_len = sizeof(local), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
                .r = { .sdiag_family = AF_UNIX, .udiag_states = ~0U,
                       .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN | UDIAG_SHOW_MEMINFO } };

    return ask(fd, &local, sizeof(local), bytes) < 0 ? err_sys(err, errno, "wall.sockmem", "sock_diag") : 0;
}

int
sockmem_unix(int fd, uint64_t *bytes, struct err *err)
{
    *bytes = 0;
    return ask_unix(fd, bytes, err);
}

int
sockmem_total(int fd, uint64_t *bytes, struct err *err)
{
    static const struct { uint8_t family, protocol; } kinds[] = {
        { AF_INET, IPPROTO_TCP }, { AF_INET6, IPPROTO_TCP }, { AF_INET, IPPROTO_UDP }, { AF_INET6, IPPROTO_UDP } };

    *bytes = 0;
    if (ask_unix(fd, bytes, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct {
            struct nlmsghdr h;
            struct inet_diag_req_v2 r;
        } net = { .h = { .nlmsg_len = sizeof(net), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
                  .r = { .sdiag_family = kinds[i].family, .sdiag_protocol = kinds[i].protocol,
                         .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1), .idiag_states = ~0U } };
        /* a kernel without IPv6, or without UDP's, has none of these sockets */
        if (ask(fd, &net, sizeof(net), bytes) < 0 && errno != ENOENT && errno != EAFNOSUPPORT)
            return err_sys(err, errno, "wall.sockmem", "sock_diag");
    }
    return 0;
}
