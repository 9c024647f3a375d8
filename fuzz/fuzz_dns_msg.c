/* DNS queries: a name is host text or nothing, and every answer is one that the C library's parser reads the same way
 *
 * Input: a message as it came. */
#include "fuzz.h"

#include <arpa/nameser.h>
#include <stdbool.h>
#include <string.h>

#include "egress/dns_msg.h"
#include "match/host.h"

static void
check_name(const struct dns_query *q)
{
    char text[DNS_PRINT_MAX];
    size_t n = dns_name_print(q, text), label = 0;
    struct host host;

    FUZZ_ASSERT(n > 0 && n <= sizeof(text));
    for (size_t i = 0; i < n; i++)
        FUZZ_ASSERT(text[i] > 0x20 && text[i] < 0x7f);
    FUZZ_ASSERT(q->is_host == (q->name_n > 0) && q->name_n <= DNS_NAME_MAX);
    for (size_t i = 0; i < q->name_n; i++) {
        char c = q->name[i];
        FUZZ_ASSERT((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.');
        FUZZ_ASSERT(c != '.' || label > 0);
        label = c == '.' ? 0 : label + 1;
        FUZZ_ASSERT(label <= DNS_LABEL_MAX);
    }
    FUZZ_ASSERT(!q->is_host || label > 0);
    if (!q->is_host)
        return;
    FUZZ_ASSERT(n == q->name_n);        /* nothing to escape */
    if (host_canonical(dns_name(q), &host) == HOST_OK && !host.is_ip)
        FUZZ_ASSERT(host.n == q->name_n && memcmp(host.name, q->name, host.n) == 0);
}

/* What was kept says the same as the message: written as a query again, it is read as the same one. */
static void
check_again(const struct dns_query *q, const uint8_t *data)
{
    uint8_t again[12 + sizeof(q->question) + 11] = { 0 };
    size_t n = 12 + q->question_n;
    struct dns_query second;

    memcpy(again, data, 4);
    again[5] = 1;
    memcpy(again + 12, q->question, q->question_n);
    if (q->has_edns) {
        again[11] = 1;
        again[n + 2] = DNS_TYPE_OPT;
        again[n + 3] = (uint8_t)(q->edns_size >> 8);
        again[n + 4] = (uint8_t)q->edns_size;
        n += 11;
    }
    FUZZ_ASSERT(memcmp(data + 12, q->question, q->question_n) == 0);
    FUZZ_ASSERT(dns_parse_query(again, n, &second) == DNS_ASKED);
    FUZZ_ASSERT(second.id == q->id && second.rd == q->rd && second.cd == q->cd && second.opcode == q->opcode);
    FUZZ_ASSERT(second.type == q->type && second.class == q->class && second.is_host == q->is_host);
    FUZZ_ASSERT(str_eq(dns_name(&second), dns_name(q)) && second.question_n == q->question_n);
    FUZZ_ASSERT(second.has_edns == q->has_edns && second.edns_size == q->edns_size && second.limit == q->limit);
}

/* @n bytes of an answer with @answers records, unless they had to go. */
static void
check_answer(const struct dns_query *q, const uint8_t *p, size_t n, size_t size, unsigned rcode, unsigned answers)
{
    struct dns_query back;
    ns_msg m;
    ns_rr rr;

    if (n == 0)
        return;
    FUZZ_ASSERT(n <= size && n <= q->limit && n <= DNS_REPLY_MAX);
    FUZZ_ASSERT(dns_parse_query(p, n, &back) == DNS_DROP);
    FUZZ_ASSERT(ns_initparse(p, (int)n, &m) == 0);
    FUZZ_ASSERT(ns_msg_id(m) == q->id && ns_msg_getflag(m, ns_f_qr) == 1);
    FUZZ_ASSERT((unsigned)ns_msg_getflag(m, ns_f_rcode) == (rcode & 15));
    if (ns_msg_getflag(m, ns_f_tc))
        answers = 0;
    FUZZ_ASSERT(ns_msg_count(m, ns_s_qd) == (q->question_n > 0));
    FUZZ_ASSERT(ns_msg_count(m, ns_s_an) == answers);
    FUZZ_ASSERT(ns_msg_count(m, ns_s_ns) == 0);
    FUZZ_ASSERT(ns_msg_count(m, ns_s_ar) == q->has_edns);
    if (answers == 0)
        return;
    FUZZ_ASSERT(ns_parserr(&m, ns_s_an, 0, &rr) == 0);
    FUZZ_ASSERT(ns_rr_type(rr) == q->type && ns_rr_class(rr) == ns_c_in && ns_rr_ttl(rr) == 60);
}

static void
check_answers(struct dns_query *q, enum dns_verdict verdict, size_t size)
{
    static const struct ip v4 = { { 198, 18, 1, 0 }, 4 }, v6 = { { 0xfd, [15] = 1 }, 6 };
    uint8_t *out = malloc(size > 0 ? size : 1);     /* exactly @size: the sanitizer sees one byte more */
    size_t n;

    if (verdict == DNS_FAULTY) {
        FUZZ_ASSERT(q->fault != DNS_NOERROR);
        n = dns_build_empty(q, q->fault, out, size);
        FUZZ_ASSERT(n > 0 || size < DNS_REPLY_MAX);
        check_answer(q, out, n, size, q->fault, 0);
        free(out);
        return;
    }
    n = dns_build_empty(q, DNS_NXDOMAIN, out, size);
    FUZZ_ASSERT(n > 0 || size < DNS_REPLY_MAX);
    check_answer(q, out, n, size, DNS_NXDOMAIN, 0);
    n = dns_build_address(q, &v4, 60, out, size);
    FUZZ_ASSERT(q->type == DNS_TYPE_A ? n > 0 || size < DNS_REPLY_MAX : n == 0);
    check_answer(q, out, n, size, DNS_NOERROR, 1);
    n = dns_build_address(q, &v6, 60, out, size);
    FUZZ_ASSERT(q->type == DNS_TYPE_AAAA ? n > 0 || size < DNS_REPLY_MAX : n == 0);
    check_answer(q, out, n, size, DNS_NOERROR, 1);
    /* the name that was asked stands in for any target */
    n = dns_build_ptr(q, dns_name(q), 60, out, size);
    FUZZ_ASSERT(q->type == DNS_TYPE_PTR && q->is_host ? n > 0 || size < DNS_REPLY_MAX : n == 0);
    check_answer(q, out, n, size, DNS_NOERROR, 1);
    free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dns_query q;
    enum dns_verdict verdict = dns_parse_query(data, n, &q);
    struct ip ip;

    FUZZ_ASSERT(q.limit >= DNS_UDP_PLAIN && q.limit <= DNS_UDP_MAX && q.question_n <= sizeof(q.question));
    check_name(&q);
    FUZZ_ASSERT(!dns_ptr_address(&q, &ip) || ip.family == 4 || ip.family == 6);
    if (verdict == DNS_DROP) {
        FUZZ_ASSERT(n < 12 || data[2] & 0x80);
        return 0;
    }
    if (verdict == DNS_ASKED)
        check_again(&q, data);
    check_answers(&q, verdict, DNS_REPLY_MAX);
    check_answers(&q, verdict, n % DNS_REPLY_MAX);
    q.limit = DNS_TCP_MAX;
    check_answers(&q, verdict, DNS_REPLY_MAX);
    return 0;
}
