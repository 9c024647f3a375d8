/* egress/dns_msg: what a sandbox asks is read whole or refused, and what it is told is what other readers of DNS read
 * (R13, R14). The C library's parser (ns_initparse) is the oracle for answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/nameser.h>
#include <resolv.h>

#include "base/array.h"
#include "egress/dns_msg.h"

/* A message under construction. */
struct msg {
    uint8_t p[70000];
    size_t n;
};

static void
add(struct msg *m, const void *bytes, size_t n)
{
    assert_true(n <= sizeof(m->p) - m->n);
    memcpy(m->p + m->n, bytes, n);
    m->n += n;
}

#define PUT(m, literal) add(m, literal, sizeof(literal) - 1)

/* id 0x1234, RD; one question; @additional records */
static struct msg *
start(uint8_t additional)
{
    static struct msg m;

    m.n = 0;
    PUT(&m, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00");
    add(&m, &additional, 1);
    return &m;
}

#define WWW "\3www\7eXample\3ORG\0"
#define IN_A "\0\1\0\1"
#define IN_AAAA "\0\34\0\1"
#define IN_PTR "\0\14\0\1"
#define OPT_1232 "\0\0\51\4\320\0\0\0\0\0\0"        /* 41, 1232 bytes, version 0, no options */

static struct dns_query q;      /* every test starts with a parse, which sets all of it */

static enum dns_verdict
parse(const struct msg *m)
{
    /* on the heap, exactly as long as it is: a sanitizer or valgrind sees the first byte too many */
    uint8_t *exact = malloc(m->n > 0 ? m->n : 1);
    enum dns_verdict verdict;

    assert_non_null(exact);
    memcpy(exact, m->p, m->n);
    memset(&q, 0xaa, sizeof(q));
    verdict = dns_parse_query(exact, m->n, &q);
    free(exact);
    return verdict;
}

/* What every outcome must hold. */
static void
check_query(void)
{
    assert_true(q.name_n <= sizeof(q.name) && q.question_n <= sizeof(q.question));
    assert_int_equal(q.is_host, q.name_n > 0);
    for (size_t i = 0; i < q.name_n; i++) {
        char c = q.name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'))
            fail_msg("byte %d in a name", c);
        assert_false(c == '.' && (i == 0 || i + 1 == q.name_n || q.name[i - 1] == '.'));
    }
    assert_true(q.limit >= DNS_UDP_PLAIN && q.limit <= DNS_UDP_MAX);
}

static void
assert_name(const char *want)
{
    check_query();
    assert_int_equal(q.name_n, strlen(want));
    assert_memory_equal(q.name, want, q.name_n);
}

static struct msg *
question(const void *wire, size_t n, const char *type_class)
{
    struct msg *m = start(0);

    add(m, wire, n);
    add(m, type_class, 4);
    return m;
}

#define ASK(wire, type_class) question(wire, sizeof(wire) - 1, type_class)

/* Every answer of @n bytes, read by the C library. */
static ns_msg
oracle(const uint8_t *p, size_t n)
{
    ns_msg m;
    ns_rr rr;

    assert_true(n > 0 && ns_initparse(p, (int)n, &m) == 0);
    assert_int_equal(ns_msg_id(m), q.id);
    assert_int_equal(ns_msg_getflag(m, ns_f_qr), 1);
    assert_int_equal(ns_msg_getflag(m, ns_f_ra), 1);
    assert_int_equal(ns_msg_getflag(m, ns_f_aa), 0);
    assert_int_equal(ns_msg_getflag(m, ns_f_ad), 0);
    assert_int_equal(ns_msg_getflag(m, ns_f_rd), q.rd);
    assert_int_equal(ns_msg_getflag(m, ns_f_cd), q.cd);
    assert_int_equal(ns_msg_getflag(m, ns_f_opcode), q.opcode);
    assert_int_equal(ns_msg_count(m, ns_s_ns), 0);
    assert_int_equal(ns_msg_count(m, ns_s_qd), q.question_n > 0);
    assert_int_equal(ns_msg_count(m, ns_s_ar), q.has_edns);
    for (ns_sect section = ns_s_qd; section <= ns_s_ar; section++)
        for (int i = 0; i < ns_msg_count(m, section); i++)
            assert_int_equal(ns_parserr(&m, section, i, &rr), 0);
    if (q.has_edns) {
        assert_int_equal(ns_parserr(&m, ns_s_ar, 0, &rr), 0);
        assert_int_equal(ns_rr_type(rr), ns_t_opt);
        assert_int_equal(ns_rr_class(rr), DNS_UDP_MAX);
        assert_int_equal(ns_rr_rdlen(rr), 0);
        assert_int_equal(ns_rr_ttl(rr) & 0xffffff, 0);      /* version 0, no DO */
    }
    return m;
}

static void
assert_empty_answer(enum dns_rcode rcode)
{
    uint8_t out[DNS_REPLY_MAX];
    size_t n = dns_build_empty(&q, rcode, out, sizeof(out));
    ns_msg m = oracle(out, n);

    assert_int_equal(ns_msg_getflag(m, ns_f_rcode), rcode & 15);
    assert_int_equal(ns_msg_getflag(m, ns_f_tc), 0);
    assert_int_equal(ns_msg_count(m, ns_s_an), 0);
}

static void
a_query_by_the_book(void **state)
{
    struct msg *m = ASK(WWW, IN_A);

    (void)state;
    assert_int_equal(parse(m), DNS_ASKED);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.opcode, 0);
    assert_true(q.rd && !q.cd && !q.has_edns);
    assert_int_equal(q.type, DNS_TYPE_A);
    assert_int_equal(q.class, 1);
    assert_int_equal(q.limit, DNS_UDP_PLAIN);
    assert_name("www.example.org");
    assert_int_equal(q.question_n, 21);
    assert_memory_equal(q.question, WWW IN_A, 21);
    m->p[2] = 0;
    m->p[3] = 0x10;
    assert_int_equal(parse(m), DNS_ASKED);
    assert_true(!q.rd && q.cd);
    m->p[2] = 0x87 & ~0x80;     /* AA, TC, RD and, below, AD, Z, an rcode: not for a query to say, and not looked at */
    m->p[3] = 0x6f;
    assert_int_equal(parse(m), DNS_ASKED);
    assert_empty_answer(DNS_NOERROR);
}

static void
answers_byte_for_byte(void **state)
{
    static const uint8_t a[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" WWW IN_A "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\0";
    static const uint8_t aaaa[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\1" WWW IN_AAAA
        "\xc0\x0c\0\34\0\1\0\0\0\x3c\0\x10\xfd\x63loch\0\0\0\0\0\0\0\0\1\0" OPT_1232;
    static const uint8_t ptr[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0\0010\0011\00218\003198\7in-addr\4arpa\0" IN_PTR
        "\xc0\x0c\0\14\0\1\0\0\0\x3c\0\x0b\3www\1x\3org\0";
    static const uint8_t nx[] = "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" WWW IN_A;
    struct ip v4 = { { 198, 18, 1, 0 }, 4 }, v6 = { { 0xfd, 0x63, 'l', 'o', 'c', 'h', [14] = 1 }, 6 }, got;
    uint8_t out[DNS_REPLY_MAX];
    struct msg *m;

    (void)state;
    assert_int_equal(parse(ASK(WWW, IN_A)), DNS_ASKED);
    assert_int_equal(dns_build_address(&q, &v4, 60, out, sizeof(out)), sizeof(a) - 1);
    assert_memory_equal(out, a, sizeof(a) - 1);
    assert_int_equal(dns_build_empty(&q, DNS_NXDOMAIN, out, sizeof(out)), sizeof(nx) - 1);
    assert_memory_equal(out, nx, sizeof(nx) - 1);

    m = start(1);
    PUT(m, WWW IN_AAAA OPT_1232);
    assert_int_equal(parse(m), DNS_ASKED);
    assert_int_equal(dns_build_address(&q, &v6, 60, out, sizeof(out)), sizeof(aaaa) - 1);
    assert_memory_equal(out, aaaa, sizeof(aaaa) - 1);

    assert_int_equal(parse(ASK("\0010\0011\00218\003198\7in-addr\4arpa\0", IN_PTR)), DNS_ASKED);
    assert_true(dns_ptr_address(&q, &got) && ip_eq(&got, &v4));
    assert_int_equal(dns_build_ptr(&q, STR_LIT("www.x.org"), 60, out, sizeof(out)), sizeof(ptr) - 1);
    assert_memory_equal(out, ptr, sizeof(ptr) - 1);
}

static void
names(void **state)
{
    /* text NULL: not a host */
#define ROW(wire, text) { wire, sizeof(wire) - 1, text }
    static const struct { const char *wire; size_t n; const char *text; } rows[] = {
        ROW("\1a\0", "a"),
        ROW("\3A-_\0011\0", "a-_.1"),
        ROW("\0", NULL),
        ROW("\3a\0b\3com\0", NULL),
        ROW("\7a.b.com\0", NULL),
        ROW("\4evil\3c.m\0", NULL),
        ROW("\1*\3com\0", NULL),
        ROW("\2a \3com\0", NULL),
        ROW("\2a\n\3com\0", NULL),
        ROW("\2a\\\3com\0", NULL),
        ROW("\4b\xc3\xbc" "c\3com\0", NULL),
        ROW("\3\xe2\x84\xaa\3com\0", NULL),         /* the Kelvin sign is no k */
        ROW("\1/\0", NULL),
        ROW("\1@\0", NULL),
        ROW("\1[\0", NULL),
        ROW("\1`\0", NULL),
        ROW("\1{\0", NULL),
        ROW("\1\xff\0", NULL),
        ROW("\3com\1.\0", NULL),
    };
#undef ROW

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (parse(question(rows[i].wire, rows[i].n, IN_A)) != DNS_ASKED || q.is_host != (rows[i].text != NULL))
            fail_msg("row %zu", i);
        assert_name(rows[i].text != NULL ? rows[i].text : "");
        assert_empty_answer(DNS_NXDOMAIN);
    }
    /* every octet there is */
    for (unsigned c = 0; c < 256; c++) {
        char wire[4] = { 1, (char)c, 0, 0 };
        bool host = c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        assert_int_equal(parse(question(wire, 3, IN_A)), DNS_ASKED);
        assert_int_equal(q.is_host, host);
        check_query();
    }
}

/* Labels of @lengths bytes each, up to a zero; then the root. */
static enum dns_verdict
parse_labels(const uint8_t *lengths)
{
    struct msg *m = start(0);

    for (; *lengths > 0; lengths++) {
        add(m, lengths, 1);
        for (unsigned i = 0; i < *lengths; i++)
            PUT(m, "x");
    }
    PUT(m, "\0" IN_A);
    return parse(m);
}

static void
lengths(void **state)
{
    static const uint8_t longest[] = { 63, 63, 63, 61, 0 }, too_long[] = { 63, 63, 63, 62, 0 };
    static const uint8_t label[] = { 63, 0 }, label_too_long[] = { 64, 0 };
    uint8_t many[129] = { 0 };

    (void)state;
    assert_int_equal(parse_labels(longest), DNS_ASKED);
    assert_int_equal(q.name_n, DNS_NAME_MAX);
    assert_int_equal(q.question_n, DNS_NAME_WIRE + 4);
    assert_true(q.is_host);
    check_query();
    assert_empty_answer(DNS_NXDOMAIN);
    assert_int_equal(parse_labels(too_long), DNS_FAULTY);
    assert_int_equal(q.fault, DNS_FORMERR);
    assert_int_equal(q.question_n, 0);
    assert_empty_answer(DNS_FORMERR);
    assert_int_equal(parse_labels(label), DNS_ASKED);
    assert_int_equal(parse_labels(label_too_long), DNS_FAULTY);
    memset(many, 1, 127);
    assert_int_equal(parse_labels(many), DNS_ASKED);
    assert_int_equal(q.name_n, DNS_NAME_MAX);
    many[127] = 1;
    assert_int_equal(parse_labels(many), DNS_FAULTY);
}

static void
faults(void **state)
{
#define ROW(bytes, verdict, fault, questions) { bytes, sizeof(bytes) - 1, verdict, fault, questions }
#define H(flags, counts) "\x12\x34" flags counts
#define ONE "\0\1\0\0\0\0\0\0"
#define ONE_AR "\0\1\0\0\0\0\0\1"
    static const struct { const char *p; size_t n; enum dns_verdict verdict; enum dns_rcode fault; bool question; } rows[] = {
        ROW("", DNS_DROP, 0, false),
        ROW("\x12\x34\1\0\0\1\0\0\0\0\0", DNS_DROP, 0, false),
        ROW(H("\x81\x80", ONE) WWW IN_A, DNS_DROP, 0, false),               /* a response */
        ROW(H("\x80\0", "\0\0\0\0\0\0\0\0"), DNS_DROP, 0, false),
        ROW(H("\1\0", "\0\0\0\0\0\0\0\0"), DNS_FAULTY, DNS_FORMERR, false), /* asks nothing */
        ROW(H("\1\0", "\0\2\0\0\0\0\0\0") WWW IN_A WWW IN_A, DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", "\1\1\0\0\0\0\0\0") WWW IN_A, DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) "\300\14" IN_A, DNS_FAULTY, DNS_FORMERR, false),  /* compressed: at itself */
        ROW(H("\1\0", ONE) "\300\0" IN_A, DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) "\3www\300\14" IN_A, DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) "\100a\0" IN_A, DNS_FAULTY, DNS_FORMERR, false),  /* the two dead label types */
        ROW(H("\1\0", ONE) "\200a\0" IN_A, DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) "\3www", DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) WWW "\0\1\0", DNS_FAULTY, DNS_FORMERR, false),
        ROW(H("\1\0", ONE) WWW IN_A "x", DNS_FAULTY, DNS_FORMERR, true),    /* trailing garbage */
        ROW(H("\1\0", ONE) WWW IN_A OPT_1232, DNS_FAULTY, DNS_FORMERR, true),   /* uncounted */
        ROW(H("\1\0", "\0\1\0\1\0\0\0\0") WWW IN_A WWW IN_A "\0\0\0\0\0\0", DNS_FAULTY, DNS_FORMERR, true),
        ROW(H("\1\0", "\0\1\0\0\0\1\0\0") WWW IN_A WWW IN_A "\0\0\0\0\0\0", DNS_FAULTY, DNS_FORMERR, true),
        ROW(H("\1\0", "\0\1\0\1\0\0\0\0") WWW IN_A, DNS_FAULTY, DNS_FORMERR, true),     /* the count alone is enough */
        ROW(H("\1\0", "\0\1\0\0\0\1\0\0") WWW IN_A, DNS_FAULTY, DNS_FORMERR, true),
        ROW(H("\1\0", ONE_AR) WWW IN_A, DNS_FAULTY, DNS_FORMERR, true),     /* counted, not there */
        ROW(H("\1\0", "\0\1\0\0\0\0\377\377") WWW IN_A OPT_1232, DNS_FAULTY, DNS_FORMERR, true),
        ROW(H("\1\0", ONE) WWW "\0\1\0\3", DNS_FAULTY, DNS_REFUSED, true),  /* class CH */
        ROW(H("\1\0", ONE) WWW "\0\1\0\377", DNS_FAULTY, DNS_REFUSED, true),    /* class ANY */
        ROW(H("\1\0", ONE) WWW "\0\1\1\1", DNS_FAULTY, DNS_REFUSED, true),
        ROW(H("\101\0", ONE) WWW IN_A, DNS_FAULTY, DNS_NOTIMP, false),      /* opcode 8: no bit of it is lost */
        ROW(H("\11\0", ONE) WWW IN_A, DNS_FAULTY, DNS_NOTIMP, false),       /* IQUERY, STATUS, NOTIFY, UPDATE, 15 */
        ROW(H("\21\0", ONE) WWW IN_A, DNS_FAULTY, DNS_NOTIMP, false),
        ROW(H("\41\0", ONE) WWW IN_A, DNS_FAULTY, DNS_NOTIMP, false),
        ROW(H("\51\0", ONE) WWW IN_A, DNS_FAULTY, DNS_NOTIMP, false),
        ROW(H("\171\0", "\0\0\0\0\0\0\0\0"), DNS_FAULTY, DNS_NOTIMP, false),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg m = { .n = 0 };
        enum dns_verdict got;
        add(&m, rows[i].p, rows[i].n);
        got = parse(&m);
        check_query();
        if (got != rows[i].verdict || q.fault != rows[i].fault || (q.question_n > 0) != rows[i].question)
            fail_msg("row %zu: %d, fault %d, question %zu", i, got, q.fault, q.question_n);
        if (got == DNS_FAULTY)
            assert_empty_answer(q.fault);
    }
}

static void
edns_rows(void **state)
{
    static const struct { const char *p; size_t n; enum dns_verdict verdict; enum dns_rcode fault; bool edns; size_t limit; }
    rows[] = {
#define AR(bytes, ...) { bytes, sizeof(bytes) - 1, __VA_ARGS__ }
        AR(OPT_1232, DNS_ASKED, 0, true, 1232),
        AR("\0\0\51\2\0\0\0\0\0\0\0", DNS_ASKED, 0, true, 512),
        AR("\0\0\51\0\0\0\0\0\0\0\0", DNS_ASKED, 0, true, 512),             /* below 512 means 512 */
        AR("\0\0\51\1\377\0\0\0\0\0\0", DNS_ASKED, 0, true, 512),
        AR("\0\0\51\2\1\0\0\0\0\0\0", DNS_ASKED, 0, true, 513),
        AR("\0\0\51\377\377\0\0\0\0\0\0", DNS_ASKED, 0, true, 1232),        /* ours is the lower */
        AR("\0\0\51\4\320\0\0\200\0\0\0", DNS_ASKED, 0, true, 1232),        /* DO */
        AR("\0\0\51\4\320\377\0\177\377\0\0", DNS_ASKED, 0, true, 1232),    /* bits that mean nothing in a query */
        AR("\0\0\51\4\320\0\0\0\0\0\14\0\12\0\010cookie!!", DNS_ASKED, 0, true, 1232),
        AR("\0\0\51\4\320\0\0\0\0\0\10\0\12\0\0\0\12\0\0", DNS_ASKED, 0, true, 1232),
        AR("\0\0\51\4\320\0\0\0\0\0\14\0\12\0\011cookie!!", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\0\0\51\4\320\0\0\0\0\0\3\0\12\0", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\0\0\51\4\320\0\0\0\0\0\1", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\1x\0\0\51\4\320\0\0\0\0\0\0", DNS_FAULTY, DNS_FORMERR, false, 512),    /* its owner is the root */
        AR("\300\14\0\51\4\320\0\0\0\0\0\0", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\0\0\51\4\320\0\1\0\0\0\0", DNS_FAULTY, DNS_BADVERS, true, 1232),
        AR("\0\0\51\4\320\0\377\200\0\0\2no", DNS_FAULTY, DNS_BADVERS, true, 1232),
        AR("\0\0\51\4\320\0\1\0\0\0\0x", DNS_FAULTY, DNS_FORMERR, true, 1232),
        /* other records are ignored, whatever their owner */
        AR("\300\14\0\1\0\1\0\0\0\0\0\4\1\2\3\4", DNS_ASKED, 0, false, 512),
        AR("\300\14\0\1\0\1\0\0\0\0\0\4\1\2\3", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\300", DNS_FAULTY, DNS_FORMERR, false, 512),
        AR("\3key\0\0\372\0\377\0\0\0\0\0\3sig", DNS_ASKED, 0, false, 512),     /* TSIG */
        AR("\100\14\0\1\0\1\0\0\0\0\0\0", DNS_FAULTY, DNS_FORMERR, false, 512),
#undef AR
    };
    struct msg *m;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum dns_verdict got;
        m = start(1);
        PUT(m, WWW IN_A);
        add(m, rows[i].p, rows[i].n);
        got = parse(m);
        if (got != rows[i].verdict || q.fault != rows[i].fault || q.has_edns != rows[i].edns || q.limit != rows[i].limit)
            fail_msg("row %zu: %d, fault %d, edns %d, limit %zu", i, got, q.fault, q.has_edns, q.limit);
        assert_name("www.example.org");
        assert_empty_answer(q.fault);
    }
    m = start(2);
    PUT(m, WWW IN_A OPT_1232 OPT_1232);     /* two of them */
    assert_int_equal(parse(m), DNS_FAULTY);
    assert_int_equal(q.fault, DNS_FORMERR);
    m = start(3);
    PUT(m, WWW IN_A "\1x\0\0\1\0\1\0\0\0\0\0\4abcd" OPT_1232 "\300\14\0\20\0\1\0\0\0\0\0\1\0");
    assert_int_equal(parse(m), DNS_ASKED);
    assert_true(q.has_edns);
}

static void
badvers_is_said_in_the_opt_record(void **state)
{
    static const uint8_t want[] = "\x12\x34\x81\x80\0\1\0\0\0\0\0\1" WWW IN_A "\0\0\51\4\320\1\0\0\0\0\0";
    uint8_t out[DNS_REPLY_MAX];
    struct msg *m = start(1);

    (void)state;
    PUT(m, WWW IN_A "\0\0\51\4\320\0\1\0\0\0\0");
    assert_int_equal(parse(m), DNS_FAULTY);
    assert_int_equal(q.fault, DNS_BADVERS);
    assert_int_equal(dns_build_empty(&q, DNS_BADVERS, out, sizeof(out)), sizeof(want) - 1);
    assert_memory_equal(out, want, sizeof(want) - 1);
    /* without EDNS it would read as NOERROR */
    assert_int_equal(parse(ASK(WWW, IN_A)), DNS_ASKED);
    assert_int_equal(dns_build_empty(&q, DNS_BADVERS, out, sizeof(out)), 0);
}

static void
truncations_at_every_length(void **state)
{
    struct msg whole, m;

    (void)state;
    whole = *start(1);
    PUT(&whole, WWW IN_A "\0\0\51\4\320\0\0\0\0\0\14\0\12\0\010cookie!!");
    for (size_t n = 0; n <= whole.n; n++) {
        enum dns_verdict got;
        m.n = 0;
        add(&m, whole.p, n);
        got = parse(&m);
        check_query();
        assert_int_equal(got, n < 12 ? DNS_DROP : n < whole.n ? DNS_FAULTY : DNS_ASKED);
        assert_int_equal(q.question_n > 0, n >= 12 + 21);
        if (got == DNS_FAULTY) {
            assert_int_equal(q.fault, DNS_FORMERR);
            assert_empty_answer(DNS_FORMERR);
        }
    }
}

static void
every_mutation_of_every_byte(void **state)
{
    unsigned asked = 0, hosts = 0, dropped = 0;
    struct msg whole, m;

    (void)state;
    whole = *start(1);
    PUT(&whole, WWW IN_AAAA "\0\0\51\4\320\0\0\0\0\0\14\0\12\0\010cookie!!");
    for (size_t at = 0; at < whole.n; at++)
        for (unsigned value = 0; value < 256; value++) {
            char text[DNS_PRINT_MAX];
            enum dns_verdict got;
            m.n = 0;
            add(&m, whole.p, whole.n);
            m.p[at] = (uint8_t)value;
            got = parse(&m);
            check_query();
            assert_true(dns_name_print(&q, text) <= sizeof(text));
            asked += got == DNS_ASKED;
            hosts += got == DNS_ASKED && q.is_host;
            dropped += got == DNS_DROP;
            if (got != DNS_DROP)
                assert_empty_answer(got == DNS_FAULTY ? q.fault : DNS_NXDOMAIN);
        }
    assert_int_equal(dropped, 128);             /* QR, and nothing else */
    assert_true(hosts > 1000 && asked > hosts + 1000);
}

static void
ptr_rows(void **state)
{
#define V6 "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.6.3.6.f.6.c.6.3.6.D.f"
    static const struct { const char *name, *address; } rows[] = {
        { "4.3.2.1.in-addr.arpa", "1.2.3.4" },      { "255.255.255.0.In-Addr.ARPA", "0.255.255.255" },
        { "3.2.1.in-addr.arpa", NULL },             { "5.4.3.2.1.in-addr.arpa", NULL },
        { "in-addr.arpa", NULL },                   { "256.3.2.1.in-addr.arpa", NULL },
        { "04.3.2.1.in-addr.arpa", NULL },          { "00.3.2.1.in-addr.arpa", NULL },
        { "0x4.3.2.1.in-addr.arpa", NULL },         { "-1.3.2.1.in-addr.arpa", NULL },
        { "4.3.2.1.in-addr.arpa.org", NULL },       { "4.3.2.1.xin-addr.arpa", NULL },
        { "4.3.2.1.ip6.arpa", NULL },               { "4.3.2.a.in-addr.arpa", NULL },
        { "99999999999999999999.3.2.1.in-addr.arpa", NULL }, { "www.example.org", NULL },
        { V6 ".ip6.arpa", "fd63:6c6f:6368::1" },    { V6 ".IP6.arpa", "fd63:6c6f:6368::1" },
        { "0." V6 ".ip6.arpa", NULL },              { "g" V6 ".ip6.arpa", NULL },
        { V6 ".in-addr.arpa", NULL },               { V6 ".ip6.int", NULL },
        { "0" V6 ".ip6.arpa", NULL },
        { "1.0.ip6.arpa", NULL },                   { "ip6.arpa", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg m = { .n = 0 };
        uint8_t wire[300];
        int n = res_mkquery(ns_o_query, rows[i].name, ns_c_in, ns_t_ptr, NULL, 0, NULL, wire, sizeof(wire));
        struct ip got, want;
        bool ok;
        assert_true(n > 0);
        add(&m, wire, (size_t)n);
        assert_int_equal(parse(&m), DNS_ASKED);
        assert_int_equal(q.type, DNS_TYPE_PTR);
        ok = dns_ptr_address(&q, &got);
        if (ok != (rows[i].address != NULL))
            fail_msg("%s", rows[i].name);
        if (ok)
            assert_true(ip_parse(str_of(rows[i].address), &want) && ip_eq(&got, &want));
    }
    assert_int_equal(parse(ASK("\1\0\0013\0012\0011\7in-addr\4arpa\0", IN_PTR)), DNS_ASKED);
    assert_false(dns_ptr_address(&q, &(struct ip){ .family = 0 }));
}

/* What the C library's stub asks, we read; what we answer, it reads back. */
static void
round_trips_with_the_c_library(void **state)
{
    static const char *const texts[] = { "a", "example.org", "_srv._tcp.X-y.example.org", "1.2.3.4", "xn--bcher-kva.example" };
    struct ip ips[2] = { { { 198, 18, 1, 2 }, 4 }, { { 0xfd, 0x63, [15] = 9 }, 6 } };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(texts); i++) {
        const char *text = texts[i / 2];
        const struct ip *ip = &ips[i % 2];
        struct msg m = { .n = 0 };
        uint8_t wire[512], out[DNS_REPLY_MAX];
        int n = res_mkquery(ns_o_query, text, ns_c_in, i % 2 ? ns_t_aaaa : ns_t_a, NULL, 0, NULL, wire, sizeof(wire));
        ns_msg answer;
        ns_rr rr;
        add(&m, wire, (size_t)n);
        assert_int_equal(parse(&m), DNS_ASKED);
        assert_int_equal(q.name_n, strlen(text));
        for (size_t at = 0; at < q.name_n; at++)
            assert_int_equal(q.name[at] | 0x20, text[at] | 0x20);
        answer = oracle(out, dns_build_address(&q, ip, 0xffffffff, out, sizeof(out)));
        assert_int_equal(ns_msg_count(answer, ns_s_an), 1);
        assert_int_equal(ns_parserr(&answer, ns_s_an, 0, &rr), 0);
        assert_string_equal(ns_rr_name(rr), text);      /* the case that was asked */
        assert_int_equal(ns_rr_class(rr), ns_c_in);
        assert_int_equal(ns_rr_type(rr), q.type);
        assert_int_equal(ns_rr_ttl(rr), DNS_TTL_MAX);   /* RFC 2181: 31 bits */
        assert_int_equal(ns_rr_rdlen(rr), i % 2 ? 16 : 4);
        assert_memory_equal(ns_rr_rdata(rr), ip->b, ns_rr_rdlen(rr));
        memcpy(m.p, out, sizeof(out));
        m.n = sizeof(out);
        assert_int_equal(parse(&m), DNS_DROP);          /* an answer is not a question */
    }
}

static void
ptr_targets(void **state)
{
    static const struct { const char *p; size_t n; bool ok; } rows[] = {
        { "a", 1, true },           { "www.example.org", 15, true },    { "", 0, false },       { ".", 1, false },
        { "a.", 2, false },         { ".a", 2, false },                 { "a..b", 4, false },   { "a\0b", 3, false },
        { "a b", 3, false },        { "a\xff", 2, false },
    };
    char text[DNS_NAME_MAX + 1];
    uint8_t out[DNS_REPLY_MAX];

    (void)state;
    assert_int_equal(parse(ASK("\0014\0013\0012\0011\7in-addr\4arpa\0", IN_PTR)), DNS_ASKED);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str name = { rows[i].p, rows[i].n };
        char back[300];
        ns_msg m;
        ns_rr rr;
        size_t n = dns_build_ptr(&q, name, 1, out, sizeof(out));
        if ((n > 0) != rows[i].ok)
            fail_msg("row %zu", i);
        if (n == 0)
            continue;
        m = oracle(out, n);
        assert_int_equal(ns_parserr(&m, ns_s_an, 0, &rr), 0);
        assert_int_equal(dn_expand(out, out + n, ns_rr_rdata(rr), back, sizeof(back)), ns_rr_rdlen(rr));
        assert_true(str_eq_c(name, back));
    }
    memset(text, 'a', sizeof(text));
    assert_int_equal(dns_build_ptr(&q, (struct str){ text, DNS_LABEL_MAX + 1 }, 1, out, sizeof(out)), 0);
    assert_true(dns_build_ptr(&q, (struct str){ text, DNS_LABEL_MAX }, 1, out, sizeof(out)) > 0);
    text[63] = text[127] = text[191] = '.';
    assert_int_equal(dns_build_ptr(&q, (struct str){ text, DNS_NAME_MAX + 1 }, 1, out, sizeof(out)), 0);
    assert_true(dns_build_ptr(&q, (struct str){ text, DNS_NAME_MAX }, 1, out, sizeof(out)) > 0);
}

/* The longest there is: a PTR question of 255 bytes and a target of 255. */
static void
what_does_not_fit_is_marked(void **state)
{
    struct msg plain = *start(0), edns = *start(1);
    char target[DNS_NAME_MAX];
    uint8_t out[DNS_REPLY_MAX];
    struct str name = { target, sizeof(target) };
    ns_msg m;
    size_t n;

    (void)state;
    memset(target, 'a', sizeof(target));
    target[63] = target[127] = target[191] = '.';
    for (unsigned i = 0; i < 127; i++) {
        PUT(&plain, "\1x");
        PUT(&edns, "\1x");
    }
    PUT(&plain, "\0" IN_PTR);
    PUT(&edns, "\0" IN_PTR OPT_1232);

    assert_int_equal(parse(&plain), DNS_ASKED);
    n = dns_build_ptr(&q, name, 1, out, sizeof(out));
    m = oracle(out, n);
    assert_int_equal(n, 12 + 259);
    assert_int_equal(ns_msg_getflag(m, ns_f_tc), 1);
    assert_int_equal(ns_msg_count(m, ns_s_an), 0);
    q.limit = DNS_TCP_MAX;                      /* by TCP there is room */
    n = dns_build_ptr(&q, name, 1, out, sizeof(out));
    m = oracle(out, n);
    assert_int_equal(n, 12 + 259 + 12 + 255);
    assert_int_equal(ns_msg_getflag(m, ns_f_tc), 0);
    assert_int_equal(ns_msg_count(m, ns_s_an), 1);

    assert_int_equal(parse(&edns), DNS_ASKED);  /* and by EDNS */
    n = dns_build_ptr(&q, name, 1, out, sizeof(out));
    m = oracle(out, n);
    assert_int_equal(n, 12 + 259 + 12 + 255 + 11);
    assert_int_equal(ns_msg_getflag(m, ns_f_tc), 0);
    assert_true(n <= DNS_REPLY_MAX);

    /* a buffer of any other size: the same, or less and marked, or nothing; never past its end */
    for (size_t size = 0; size <= sizeof(out); size++) {
        uint8_t *exact = malloc(size > 0 ? size : 1);
        size_t got = dns_build_ptr(&q, name, 1, exact, size);
        assert_int_equal(got, size >= n ? n : size >= 12 + 259 + 11 ? 12 + 259 + 11 : 0);
        if (got > 0) {
            m = oracle(exact, got);
            assert_int_equal(ns_msg_getflag(m, ns_f_tc), got < n);
        }
        got = dns_build_empty(&q, DNS_SERVFAIL, exact, size);
        assert_int_equal(got, size >= 12 + 259 + 11 ? 12 + 259 + 11 : 0);
        free(exact);
    }
}

static void
only_what_was_asked_is_answered(void **state)
{
    struct ip v4 = { { 198, 18, 1, 0 }, 4 }, v6 = { { 0xfd }, 6 }, none = { { 0 }, 0 };
    uint8_t out[DNS_REPLY_MAX];

    (void)state;
    assert_int_equal(parse(ASK(WWW, IN_A)), DNS_ASKED);
    assert_true(dns_build_address(&q, &v4, 1, out, sizeof(out)) > 0);
    assert_int_equal(dns_build_address(&q, &v6, 1, out, sizeof(out)), 0);
    assert_int_equal(dns_build_address(&q, &none, 1, out, sizeof(out)), 0);
    assert_int_equal(dns_build_ptr(&q, STR_LIT("a"), 1, out, sizeof(out)), 0);
    assert_int_equal(parse(ASK(WWW, IN_AAAA)), DNS_ASKED);
    assert_true(dns_build_address(&q, &v6, 1, out, sizeof(out)) > 0);
    assert_int_equal(dns_build_address(&q, &v4, 1, out, sizeof(out)), 0);
    for (unsigned type = 0; type < 65536; type++) {         /* HTTPS and SVCB among them: no data, ever */
        char type_class[4] = { (char)(type >> 8), (char)type, 0, 1 };
        assert_int_equal(parse(ASK("\1a\0", type_class)), DNS_ASKED);
        assert_int_equal(q.type, type);
        assert_int_equal(dns_build_address(&q, &v4, 1, out, sizeof(out)) > 0, type == DNS_TYPE_A);
        assert_int_equal(dns_build_address(&q, &v6, 1, out, sizeof(out)) > 0, type == DNS_TYPE_AAAA);
        assert_int_equal(dns_build_ptr(&q, STR_LIT("a"), 1, out, sizeof(out)) > 0, type == DNS_TYPE_PTR);
    }
    assert_int_equal(parse(ASK("\1a\0", "\0\101\0\1")), DNS_ASKED);
    assert_int_equal(q.type, DNS_TYPE_HTTPS);
    assert_empty_answer(DNS_NOERROR);
    assert_int_equal(parse(ASK(WWW, "\0\1\0\3")), DNS_FAULTY);      /* not IN */
    assert_int_equal(dns_build_address(&q, &v4, 1, out, sizeof(out)), 0);
    assert_int_equal(parse(start(0)), DNS_FAULTY);                  /* no question */
    assert_int_equal(dns_build_address(&q, &v4, 1, out, sizeof(out)), 0);
    assert_int_equal(dns_build_ptr(&q, STR_LIT("a"), 1, out, sizeof(out)), 0);
}

static void
names_for_people(void **state)
{
    char out[DNS_PRINT_MAX];
    struct msg *m;

    (void)state;
#define PRINTS(wire, text)                                                  \
    do {                                                                    \
        parse(ASK(wire, IN_A));                                             \
        assert_int_equal(dns_name_print(&q, out), sizeof(text) - 1);        \
        assert_memory_equal(out, text, sizeof(text) - 1);                   \
    } while (0)
    PRINTS(WWW, "www.eXample.ORG");
    PRINTS("\0", ".");
    PRINTS("\5a\0.\x1b\xff\3com\0", "a\\000\\046\\027\\255.com");
    PRINTS("\300\14", ".");                     /* no name was read */
#undef PRINTS
    m = start(0);
    for (unsigned i = 0; i < 3; i++) {
        PUT(m, "\77");
        for (unsigned c = 0; c < 63; c++)
            PUT(m, "\xff");
    }
    PUT(m, "\75");
    for (unsigned c = 0; c < 61; c++)
        PUT(m, "\xff");
    PUT(m, "\0" IN_A);
    assert_int_equal(parse(m), DNS_ASKED);
    assert_int_equal(dns_name_print(&q, out), 250 * 4 + 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_by_the_book),
        cmocka_unit_test(answers_byte_for_byte),
        cmocka_unit_test(names),
        cmocka_unit_test(lengths),
        cmocka_unit_test(faults),
        cmocka_unit_test(edns_rows),
        cmocka_unit_test(badvers_is_said_in_the_opt_record),
        cmocka_unit_test(truncations_at_every_length),
        cmocka_unit_test(every_mutation_of_every_byte),
        cmocka_unit_test(ptr_rows),
        cmocka_unit_test(round_trips_with_the_c_library),
        cmocka_unit_test(ptr_targets),
        cmocka_unit_test(what_does_not_fit_is_marked),
        cmocka_unit_test(only_what_was_asked_is_answered),
        cmocka_unit_test(names_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
