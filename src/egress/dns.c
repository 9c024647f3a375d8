/* egress/dns.c: the sandbox's name server
 *
 * An allowed name gets its fake addresses, a denied one NXDOMAIN, and nothing is ever asked of a real server for it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/dns_msg.h"
#include "egress/egress.h"

#define QUERY_MAX 1500
#define BATCH     32        /* queries answered before connections get their turn */

static size_t
answer_address(struct egress *e, const struct dns_query *q, const struct host *host, uint8_t *out, size_t size)
{
    struct fake_pair pair;

    if (q->type != DNS_TYPE_A && q->type != DNS_TYPE_AAAA)
        return dns_build_empty(q, DNS_NOERROR, out, size);
    if (fake_assign(e->fakes, host, e->loop.now_ms, &pair, NULL) < 0)
        return dns_build_empty(q, DNS_SERVFAIL, out, size);
    return dns_build_address(q, q->type == DNS_TYPE_A ? &pair.v4 : &pair.v6, FAKE_TTL_S, out, size);
}

static size_t
answer_ptr(struct egress *e, const struct dns_query *q, uint8_t *out, size_t size)
{
    struct host host;
    struct ip ip;

    if (!dns_ptr_address(q, &ip) || !fake_find(e->fakes, &ip, &host))
        return dns_build_empty(q, DNS_NXDOMAIN, out, size);
    return dns_build_ptr(q, (struct str){ host.name, host.n }, FAKE_TTL_S, out, size);
}

size_t
dns_answer(struct egress *e, const uint8_t *query, size_t n, bool tcp, uint8_t *out, size_t size)
{
    struct decide_request request = { .via = DECIDE_DNS };
    struct decide_verdict verdict;
    struct dns_query q;
    enum dns_verdict what = dns_parse_query(query, n, &q);

    if (what == DNS_DROP)
        return 0;
    if (tcp)
        q.limit = DNS_TCP_MAX;
    if (what == DNS_FAULTY)
        return dns_build_empty(&q, q.fault, out, size);
    if (q.type == DNS_TYPE_PTR)
        return answer_ptr(e, &q, out, size);
    if (!q.is_host)
        return dns_build_empty(&q, DNS_NXDOMAIN, out, size);
    request.host = dns_name(&q);
    decide(e->rules, &request, &verdict);
    if (verdict.kind != DECIDE_DENY)
        return answer_address(e, &q, &verdict.host, out, size);
    if (q.type == DNS_TYPE_A)           /* its twin for AAAA would only say the same again */
        log_decision(e, &request, &verdict);
    return dns_build_empty(&q, DNS_NXDOMAIN, out, size);
}

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

/* The answer must come from the address that was asked: the packet information of the query is used for it, without
 * the interface. */
static size_t
turn_around(const struct msghdr *query, union control *out)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(query); c != NULL; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)query, c)) {
        struct cmsghdr *o = &out->align;

        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof(info));
            info.ipi6_ifindex = 0;
            *o = (struct cmsghdr){ CMSG_LEN(sizeof(info)), IPPROTO_IPV6, IPV6_PKTINFO };
            memcpy(CMSG_DATA(o), &info, sizeof(info));
            return CMSG_SPACE(sizeof(info));
        }
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof(info));
            info.ipi_spec_dst = info.ipi_addr;
            info.ipi_ifindex = 0;
            *o = (struct cmsghdr){ CMSG_LEN(sizeof(info)), IPPROTO_IP, IP_PKTINFO };
            memcpy(CMSG_DATA(o), &info, sizeof(info));
            return CMSG_SPACE(sizeof(info));
        }
    }
    return 0;
}

/* One query; false when there is none. */
static bool
serve_one(struct egress *e, int fd)
{
    uint8_t query[QUERY_MAX], answer[DNS_REPLY_MAX];
    struct sockaddr_storage from;
    union control in, out;
    struct iovec iov = { query, sizeof(query) };
    struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
                        .msg_control = in.bytes, .msg_controllen = sizeof(in.bytes) };
    ssize_t n = recvmsg(fd, &m, 0);
    size_t size;

    if (n < 0)
        return errno == EINTR;
    if (m.msg_flags & MSG_TRUNC)
        return true;
    memset(&out, 0, sizeof(out));
    m.msg_controllen = turn_around(&m, &out);
    m.msg_control = m.msg_controllen > 0 ? out.bytes : NULL;
    size = dns_answer(e, query, (size_t)n, false, answer, sizeof(answer));
    iov = (struct iovec){ answer, size };
    m.msg_flags = 0;
    if (size > 0)
        (void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    return true;
}

void
dns_on_udp(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;

    (void)events;
    for (int i = 0; i < BATCH && serve_one(e, w->fd); i++)
        ;
}
