/* egress/dns_msg.c: see dns_msg.h (RFC 1035, 2181, 3596, 6891, 9619) */
#include "egress/dns_msg.h"

#include <string.h>

#define HEADER     12
#define CLASS_IN   1
#define OPT_SIZE   11           /* an OPT record without options */

#define FLAG_QR    0x8000
#define FLAG_TC    0x0200
#define FLAG_RD    0x0100
#define FLAG_RA    0x0080
#define FLAG_CD    0x0010

/* Reading: every take checks what is left, and one that fails leaves the cursor where it was. */
struct in {
    const uint8_t *p;
    size_t n;
    size_t at;
};

static bool
take(struct in *in, size_t count, const uint8_t **out)
{
    if (count > in->n - in->at)
        return false;
    *out = in->p + in->at;
    in->at += count;
    return true;
}

static bool
take_be16(struct in *in, uint16_t *out)
{
    const uint8_t *b;

    if (!take(in, 2, &b))
        return false;
    *out = (uint16_t)(b[0] << 8 | b[1]);
    return true;
}

/* Move past a name: labels up to the root, or up to a pointer where @pointer permits one (nothing is ever followed).
 * RFC 1035 §2.3.4: at most 255 bytes; the label types 01 and 10 exist no more (RFC 6891 §5). */
static bool
skip_name(struct in *in, bool pointer)
{
    size_t start = in->at;
    const uint8_t *b;

    for (;;) {
        if (!take(in, 1, &b))
            return false;
        if (*b > DNS_LABEL_MAX)
            return pointer && *b >= 0xc0 && take(in, 1, &b);
        if (*b == 0)
            return in->at - start <= DNS_NAME_WIRE;
        if (!take(in, *b, &b) || in->at - start > DNS_NAME_WIRE)
            return false;
    }
}

static bool
is_host_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The canonical text of the name in q->question, or no text at all: half a name is never kept. */
static void
read_host(struct dns_query *q)
{
    char text[DNS_NAME_MAX] = { 0 };
    size_t n = 0;

    for (size_t at = 0; q->question[at] != 0; at += (size_t)q->question[at] + 1) {
        const uint8_t *label = q->question + at + 1;
        size_t label_n = q->question[at], dot = n > 0;
        if (dot + label_n > sizeof(text) - n)
            return;
        if (dot)
            text[n++] = '.';
        for (size_t i = 0; i < label_n; i++) {
            if (!is_host_byte(label[i]))
                return;
            text[n++] = ascii_lower((char)label[i]);
        }
    }
    memcpy(q->name, text, n);
    q->name_n = n;
    q->is_host = n > 0;
}

/* The one question. Only a whole one is kept. */
static bool
read_question(struct in *in, struct dns_query *q)
{
    size_t start = in->at;
    uint16_t type, class;

    if (!skip_name(in, false) || !take_be16(in, &type) || !take_be16(in, &class))
        return false;
    q->question_n = in->at - start;
    memcpy(q->question, in->p + start, q->question_n);
    q->type = type;
    q->class = class;
    read_host(q);
    return true;
}

/* Options are not looked at, but they must add up (RFC 6891 §6.1.2). */
static bool
options_add_up(const uint8_t *data, size_t n)
{
    struct in in = { data, n, 0 };

    while (in.at < in.n) {
        uint16_t code, length;
        const uint8_t *value;
        if (!take_be16(&in, &code) || !take_be16(&in, &length) || !take(&in, length, &value))
            return false;
    }
    return true;
}

/* What the OPT record says; @version beyond 0 may lay out its data otherwise, so that is not judged. */
static bool
read_opt(struct dns_query *q, uint16_t size, uint8_t version, const uint8_t *data, size_t n)
{
    if (q->has_edns || (version == 0 && !options_add_up(data, n)))
        return false;
    q->has_edns = true;
    q->edns_size = size;
    if (version != 0)
        q->fault = DNS_BADVERS;
    return true;
}

/* One record of the additional section: OPT is read, any other (a signature, say) only has to be well-formed. */
static bool
read_additional(struct in *in, struct dns_query *q)
{
    const uint8_t *ttl, *data;
    size_t start = in->at;
    uint16_t type, class, length;
    bool root;

    if (!skip_name(in, true))
        return false;
    root = in->at - start == 1;
    if (!take_be16(in, &type) || !take_be16(in, &class) || !take(in, 4, &ttl) || !take_be16(in, &length) ||
        !take(in, length, &data))
        return false;
    if (type != DNS_TYPE_OPT)
        return true;
    return root && read_opt(q, class, ttl[1], data, length);
}

static size_t
udp_limit(const struct dns_query *q)
{
    if (!q->has_edns || q->edns_size < DNS_UDP_PLAIN)
        return DNS_UDP_PLAIN;
    return q->edns_size < DNS_UDP_MAX ? q->edns_size : DNS_UDP_MAX;
}

static enum dns_verdict
faulty(struct dns_query *q, enum dns_rcode rcode)
{
    q->fault = rcode;
    return DNS_FAULTY;
}

/* What follows a header that may be answered. */
static enum dns_verdict
read_body(struct in *in, const uint16_t counts[4], struct dns_query *q)
{
    if (q->opcode != 0)
        return faulty(q, DNS_NOTIMP);   /* what its sections hold is another matter: not read */
    if (counts[0] != 1 || !read_question(in, q))
        return faulty(q, DNS_FORMERR);
    if (counts[1] != 0 || counts[2] != 0)
        return faulty(q, DNS_FORMERR);
    for (size_t i = 0; i < counts[3]; i++)      /* a record has 11 bytes at least: the message bounds the loop */
        if (!read_additional(in, q))
            return faulty(q, DNS_FORMERR);
    if (in->at != in->n)
        return faulty(q, DNS_FORMERR);
    if (q->fault != DNS_NOERROR)
        return DNS_FAULTY;
    if (q->class != CLASS_IN)
        return faulty(q, DNS_REFUSED);
    return DNS_ASKED;
}

enum dns_verdict
dns_parse_query(const uint8_t *p, size_t n, struct dns_query *out)
{
    struct in in = { p, n, 0 };
    uint16_t flags, counts[4];
    enum dns_verdict verdict;

    *out = (struct dns_query){ .fault = DNS_NOERROR, .limit = DNS_UDP_PLAIN };
    if (n < HEADER || !take_be16(&in, &out->id) || !take_be16(&in, &flags))
        return DNS_DROP;
    for (size_t i = 0; i < 4; i++)
        if (!take_be16(&in, &counts[i]))
            return DNS_DROP;
    if (flags & FLAG_QR)
        return DNS_DROP;
    out->opcode = flags >> 11 & 0xf;
    out->rd = flags & FLAG_RD;
    out->cd = flags & FLAG_CD;
    verdict = read_body(&in, counts, out);
    out->limit = udp_limit(out);
    return verdict;
}

struct str
dns_name(const struct dns_query *q)
{
    return (struct str){ q->name, q->name_n };
}

size_t
dns_name_print(const struct dns_query *q, char out[DNS_PRINT_MAX])
{
    size_t n = 0;

    /* 255 bytes of name, each at most four of text: it fits, and the question was checked when it was read */
    if (q->question_n > 0)
        for (size_t at = 0; q->question[at] != 0; at += (size_t)q->question[at] + 1) {
            if (n > 0)
                out[n++] = '.';
            for (size_t i = 1; i <= q->question[at]; i++) {
                uint8_t c = q->question[at + i];
                if (is_host_byte(c)) {
                    out[n++] = (char)c;
                    continue;
                }
                out[n++] = '\\';
                out[n++] = (char)('0' + c / 100);
                out[n++] = (char)('0' + c / 10 % 10);
                out[n++] = (char)('0' + c % 10);
            }
        }
    if (n == 0)
        out[n++] = '.';
    return n;
}

/* Cut the last label off @rest into @label. */
static bool
last_label(struct str *rest, struct str *label)
{
    const char *dot;

    if (rest->n == 0)
        return false;
    dot = memrchr(rest->p, '.', rest->n);
    if (dot == NULL) {
        *label = *rest;
        rest->n = 0;
        return true;
    }
    *label = (struct str){ dot + 1, rest->n - (size_t)(dot + 1 - rest->p) };
    rest->n = (size_t)(dot - rest->p);
    return true;
}

/* RFC 1035 §3.5: one octet a label, the last of the address first; without leading zeros, so that an address has one
 * name. */
static bool
ptr_v4(struct str rest, struct ip *out)
{
    struct ip ip = { .family = 4 };

    for (size_t i = 0; i < 4; i++) {
        struct str label;
        uint64_t value;
        if (!last_label(&rest, &label) || (label.n > 1 && label.p[0] == '0') || !str_parse_u64(label, 255, &value))
            return false;
        ip.b[i] = (uint8_t)value;
    }
    if (rest.n != 0)
        return false;
    *out = ip;
    return true;
}

/* RFC 3596 §2.5: one hexadecimal digit a label. */
static bool
ptr_v6(struct str rest, struct ip *out)
{
    struct ip ip = { .family = 6 };

    for (size_t i = 0; i < 32; i++) {
        struct str label;
        uint64_t value;
        if (!last_label(&rest, &label) || label.n != 1 || !str_parse_hex(label, 15, &value))
            return false;
        ip.b[i / 2] = (uint8_t)((unsigned)ip.b[i / 2] << 4 | (unsigned)value);
    }
    if (rest.n != 0)
        return false;
    *out = ip;
    return true;
}

bool
dns_ptr_address(const struct dns_query *q, struct ip *out)
{
    static const struct str v4 = { ".in-addr.arpa", 13 }, v6 = { ".ip6.arpa", 9 };
    struct str name = dns_name(q);

    if (!q->is_host)
        return false;
    if (str_ends(name, v4))
        return ptr_v4((struct str){ name.p, name.n - v4.n }, out);
    if (str_ends(name, v6))
        return ptr_v6((struct str){ name.p, name.n - v6.n }, out);
    return false;
}

/* Writing: past the end of the room nothing is written and @full stays set. */
struct out {
    uint8_t *p;
    size_t room;
    size_t n;
    bool full;
};

static void
dns_msg_put(struct out *o, const void *data, size_t n)
{
    if (o->full || n > o->room - o->n) {
        o->full = true;
        return;
    }
    if (n > 0)
        memcpy(o->p + o->n, data, n);
    o->n += n;
}

static void
put_be16(struct out *o, unsigned v)
{
    uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

    dns_msg_put(o, b, sizeof(b));
}

/* The one record of an answer; no data: none. */
struct record {
    uint16_t type;
    uint32_t ttl;
    const uint8_t *data;
    size_t n;
};

static void
put_record(struct out *o, const struct record *r)
{
    uint32_t ttl = r->ttl < DNS_TTL_MAX ? r->ttl : DNS_TTL_MAX;

    put_be16(o, 0xc000 | HEADER);       /* the owner: the question's name */
    put_be16(o, r->type);
    put_be16(o, CLASS_IN);
    put_be16(o, ttl >> 16);
    put_be16(o, ttl & 0xffff);
    put_be16(o, (unsigned)r->n);
    dns_msg_put(o, r->data, r->n);
}

static void
put_opt(struct out *o, enum dns_rcode rcode)
{
    uint8_t opt[OPT_SIZE] = { 0, 0, DNS_TYPE_OPT, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 0xff, (uint8_t)(rcode >> 4) };

    dns_msg_put(o, opt, sizeof(opt));
}

static size_t
build(const struct dns_query *q, enum dns_rcode rcode, const struct record *r, bool truncated, struct out *o)
{
    unsigned flags = FLAG_QR | FLAG_RA | (unsigned)q->opcode << 11 | ((unsigned)rcode & 0xf);

    flags |= q->rd ? FLAG_RD : 0;
    flags |= q->cd ? FLAG_CD : 0;
    flags |= truncated ? FLAG_TC : 0;
    put_be16(o, q->id);
    put_be16(o, flags);
    put_be16(o, q->question_n > 0);
    put_be16(o, r != NULL && !truncated);
    put_be16(o, 0);
    put_be16(o, q->has_edns);
    dns_msg_put(o, q->question, q->question_n);
    if (r != NULL && !truncated)
        put_record(o, r);
    if (q->has_edns)
        put_opt(o, rcode);
    return o->full ? 0 : o->n;
}

/* Whole if it fits, else without the record and marked so. */
static size_t
build_fitting(const struct dns_query *q, enum dns_rcode rcode, const struct record *r, uint8_t *p, size_t size)
{
    size_t room = size < q->limit ? size : q->limit;
    struct out o = { .p = p, .room = room };
    size_t n;

    if (rcode > 15 && !q->has_edns)
        return 0;       /* its upper bits have nowhere to go: it would read as another code */
    n = build(q, rcode, r, false, &o);
    if (n > 0 || r == NULL)
        return n;
    o = (struct out){ .p = p, .room = room };
    return build(q, rcode, r, true, &o);
}

size_t
dns_build_address(const struct dns_query *q, const struct ip *ip, uint32_t ttl, uint8_t *out, size_t size)
{
    struct record r = { .type = q->type, .ttl = ttl, .data = ip->b, .n = ip->family == 4 ? 4 : 16 };

    if (q->question_n == 0 || q->class != CLASS_IN)
        return 0;
    if (!(q->type == DNS_TYPE_A && ip->family == 4) && !(q->type == DNS_TYPE_AAAA && ip->family == 6))
        return 0;
    return build_fitting(q, DNS_NOERROR, &r, out, size);
}

/* Labels of @name to the wire; its length, or 0. */
static size_t
encode_name(struct str name, uint8_t out[DNS_NAME_WIRE])
{
    size_t start = 0;

    if (name.n == 0 || name.n > DNS_NAME_MAX)
        return 0;
    for (size_t i = 0; i <= name.n; i++) {
        if (i < name.n && name.p[i] != '.') {
            if (!is_host_byte((uint8_t)name.p[i]))
                return 0;
            out[i + 1] = (uint8_t)name.p[i];
            continue;
        }
        if (i == start || i - start > DNS_LABEL_MAX)
            return 0;
        out[start] = (uint8_t)(i - start);      /* the length stands where the dot before the label would */
        start = i + 1;
    }
    out[name.n + 1] = 0;
    return name.n + 2;
}

size_t
dns_build_ptr(const struct dns_query *q, struct str name, uint32_t ttl, uint8_t *out, size_t size)
{
    uint8_t target[DNS_NAME_WIRE];
    struct record r = { .type = DNS_TYPE_PTR, .ttl = ttl, .data = target, .n = encode_name(name, target) };

    if (r.n == 0 || q->question_n == 0 || q->class != CLASS_IN || q->type != DNS_TYPE_PTR)
        return 0;
    return build_fitting(q, DNS_NOERROR, &r, out, size);
}

size_t
dns_build_empty(const struct dns_query *q, enum dns_rcode rcode, uint8_t *out, size_t size)
{
    return build_fitting(q, rcode, NULL, out, size);
}
