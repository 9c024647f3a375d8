/* match/ip.c: see ip.h */
#include "match/ip.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

const char *
ip_class_name(enum ip_class c)
{
    static const char *const names[] = {
        [IP_UNSPECIFIED] = "unspecified", [IP_THIS_NETWORK] = "this-network", [IP_LINK_LOCAL] = "link-local",
        [IP_METADATA] = "metadata",       [IP_LOOPBACK] = "loopback",         [IP_PRIVATE] = "private",
        [IP_SHARED] = "shared",           [IP_MULTICAST] = "multicast",       [IP_BROADCAST] = "broadcast",
        [IP_SPECIAL] = "special-purpose", [IP_PUBLIC] = "public",
    };
    return (size_t)c < ARRAY_LEN(names) ? names[c] : "unknown";
}

bool
ip_eq(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && memcmp(a->b, b->b, a->family == 4 ? 4 : 16) == 0;
}

static struct ip
ip4(const uint8_t *bytes)
{
    struct ip ip = { .family = 4 };

    memcpy(ip.b, bytes, 4);
    return ip;
}

static bool
parse_quad(struct str s, uint8_t out[4])
{
    size_t at = 0;

    for (size_t part = 0; part < 4; part++) {
        size_t start = at;
        uint64_t value;
        while (at < s.n && s.p[at] != '.')
            at++;
        if (at - start > 3 || (at - start > 1 && s.p[start] == '0'))
            return false;
        if (!str_parse_u64((struct str){ s.p + start, at - start }, 255, &value))
            return false;
        out[part] = (uint8_t)value;
        if (part < 3) {
            if (at >= s.n)
                return false;
            at++;
        }
    }
    return at == s.n;
}

/* One to four hexadecimal digits at *@at. */
static bool
parse_group(struct str s, size_t *at, uint16_t *out)
{
    unsigned value = 0;
    size_t digits = 0;

    while (*at < s.n && digits < 4 && str_hex_digit(s.p[*at]) >= 0) {
        value = value << 4 | (unsigned)str_hex_digit(s.p[*at]);
        (*at)++;
        digits++;
    }
    *out = (uint16_t)value;
    return digits > 0;
}

struct groups {
    uint8_t b[16];
    size_t n;           /* bytes filled */
    bool has_gap;       /* "::" was seen */
    size_t gap;         /* where, in bytes */
};

static bool
parse_groups(struct str s, struct groups *g)
{
    size_t at = 0;

    if (s.n >= 2 && s.p[0] == ':' && s.p[1] == ':') {
        g->has_gap = true;
        g->gap = 0;
        at = 2;
    }
    while (at < s.n) {
        size_t start = at;
        uint16_t value;
        if (g->n > 14 || !parse_group(s, &at, &value))
            return false;
        if (at < s.n && s.p[at] == '.') {   /* a dotted quad may end the address */
            if (g->n > 12 || !parse_quad((struct str){ s.p + start, s.n - start }, g->b + g->n))
                return false;
            g->n += 4;
            return true;
        }
        g->b[g->n++] = (uint8_t)(value >> 8);
        g->b[g->n++] = (uint8_t)value;
        if (at == s.n)
            return true;
        if (s.p[at++] != ':' || at == s.n)
            return false;
        if (s.p[at] == ':') {
            if (g->has_gap)
                return false;
            g->has_gap = true;
            g->gap = g->n;
            at++;
        }
    }
    return true;
}

static bool
parse_v6(struct str s, struct ip *out)
{
    struct groups g = { .n = 0 };
    size_t tail;

    if (s.n < 2 || !parse_groups(s, &g))
        return false;
    if (g.has_gap ? g.n > 14 : g.n != 16)
        return false;
    *out = (struct ip){ .family = 6 };
    tail = g.has_gap ? g.n - g.gap : 0;
    memcpy(out->b, g.b, g.n - tail);
    memcpy(out->b + 16 - tail, g.b + g.n - tail, tail);
    return true;
}

bool
ip_parse(struct str s, struct ip *out)
{
    uint8_t quad[4];

    if (s.n == 0 || s.n >= IP_TEXT_MAX)
        return false;
    if (memchr(s.p, ':', s.n) != NULL)
        return parse_v6(s, out);
    if (!parse_quad(s, quad))
        return false;
    *out = ip4(quad);
    return true;
}

/* One part of an inet_aton form: decimal, 0octal or 0xhex. */
static bool
parse_part(struct str s, uint64_t max, uint64_t *out)
{
    unsigned base = 10;
    size_t at = 0;
    uint64_t value = 0;

    if (s.n > 1 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X')) {
        base = 16;
        at = 2;     /* "0x" alone is zero to inet_aton */
    } else if (s.n > 1 && s.p[0] == '0') {
        base = 8;
        at = 1;
    } else if (s.n == 0) {
        return false;
    }
    for (; at < s.n; at++) {
        int digit = str_hex_digit(s.p[at]);
        if (digit < 0 || (unsigned)digit >= base)
            return false;
        value = value * base + (unsigned)digit;
        if (value > max)
            return false;
    }
    *out = value;
    return true;
}

static bool
parse_aton(struct str s, uint8_t out[4])
{
    static const uint64_t last_max[] = { 0xffffffff, 0xffffff, 0xffff, 0xff };
    uint64_t value = 0;
    size_t at = 0;

    for (size_t part = 0; part < 4; part++) {
        size_t start = at;
        struct str text;
        uint64_t v;
        while (at < s.n && s.p[at] != '.')
            at++;
        text = (struct str){ s.p + start, at - start };
        if (at == s.n) {
            if (!parse_part(text, last_max[part], &v))
                return false;
            value |= v;
            for (size_t i = 0; i < 4; i++)
                out[i] = (uint8_t)(value >> (24 - 8 * i));
            return true;
        }
        if (!parse_part(text, 255, &v))
            return false;
        value |= v << (24 - 8 * part);
        at++;
    }
    return false;
}

bool
ip_parse_loose(struct str s, struct ip *out)
{
    uint8_t quad[4];

    if (s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']') {
        s = (struct str){ s.p + 1, s.n - 2 };
        return memchr(s.p, ':', s.n) != NULL && ip_parse(s, out);
    }
    if (ip_parse(s, out))
        return true;
    if (s.n == 0 || s.n > 64 || !parse_aton(s, quad))
        return false;
    *out = ip4(quad);
    return true;
}

enum embedding { EMBED_NONE, EMBED_PLAIN, EMBED_TUNNEL, EMBED_HINT };

static bool
is_prefix(const struct ip *ip, const uint8_t *prefix, size_t bytes)
{
    return memcmp(ip->b, prefix, bytes) == 0;
}

/* Which IPv4 address @ip carries. PLAIN: the packet goes to it. TUNNEL: it goes to a relay, or to a local translator
 * whose mapping we do not know. HINT: it may, where ISATAP is configured; the address is one of its own as well. */
static enum embedding
embedded(const struct ip *ip, struct ip *out)
{
    static const uint8_t zero[16];
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t siit[12] = { [8] = 0xff, [9] = 0xff };
    static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    static const uint8_t nat64_local[6] = { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 };
    static const uint8_t six_to_four[2] = { 0x20, 0x02 };
    static const uint8_t teredo[4] = { 0x20, 0x01, 0x00, 0x00 };
    static const uint8_t isatap[4] = { 0x00, 0x00, 0x5e, 0xfe };

    if (ip->family != 6)
        return EMBED_NONE;
    if (is_prefix(ip, mapped, 12) || is_prefix(ip, siit, 12) || is_prefix(ip, nat64, 12)) {
        *out = ip4(ip->b + 12);
        return EMBED_PLAIN;
    }
    if (is_prefix(ip, zero, 12) && !(is_prefix(ip, zero, 15) && ip->b[15] <= 1)) {     /* not :: and ::1 */
        *out = ip4(ip->b + 12);
        return EMBED_PLAIN;
    }
    if (is_prefix(ip, nat64_local, 6)) {
        *out = ip4(ip->b + 12);
        return EMBED_TUNNEL;
    }
    if (is_prefix(ip, six_to_four, 2)) {
        *out = ip4(ip->b + 2);
        return EMBED_TUNNEL;
    }
    if (is_prefix(ip, teredo, 4)) {
        uint8_t client[4];
        for (size_t i = 0; i < 4; i++)
            client[i] = (uint8_t)~ip->b[12 + i];
        *out = ip4(client);
        return EMBED_TUNNEL;
    }
    if ((ip->b[8] & 0xfd) == 0 && memcmp(ip->b + 9, isatap + 1, 3) == 0) {
        *out = ip4(ip->b + 12);
        return EMBED_HINT;
    }
    return EMBED_NONE;
}

struct ip
ip_unwrap(struct ip ip)
{
    struct ip inner;
    enum embedding how = embedded(&ip, &inner);

    return how == EMBED_PLAIN || how == EMBED_TUNNEL ? inner : ip;
}

struct ip_range {
    uint8_t prefix[16];
    uint8_t bits;
    enum ip_class class;
};

static bool
in_range(const struct ip *ip, const struct ip_range *range)
{
    size_t whole = range->bits / 8;
    unsigned rest = range->bits % 8;

    if (memcmp(ip->b, range->prefix, whole) != 0)
        return false;
    return rest == 0 || (ip->b[whole] ^ range->prefix[whole]) >> (8 - rest) == 0;
}

static enum ip_class
lookup(const struct ip *ip, const struct ip_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (in_range(ip, &ranges[i]))
            return ranges[i].class;
    return IP_PUBLIC;
}

/* First match decides. */
static const struct ip_range v4_ranges[] = {
    { { 0, 0, 0, 0 }, 32, IP_UNSPECIFIED },
    { { 0 }, 8, IP_THIS_NETWORK },
    { { 169, 254 }, 16, IP_LINK_LOCAL },
    { { 168, 63, 129, 16 }, 32, IP_METADATA },
    { { 100, 100, 100, 200 }, 32, IP_METADATA },
    { { 192, 0, 0, 192 }, 32, IP_METADATA },
    { { 127 }, 8, IP_LOOPBACK },
    { { 10 }, 8, IP_PRIVATE },
    { { 172, 16 }, 12, IP_PRIVATE },
    { { 192, 168 }, 16, IP_PRIVATE },
    { { 100, 64 }, 10, IP_SHARED },
    { { 255, 255, 255, 255 }, 32, IP_BROADCAST },
    { { 224 }, 4, IP_MULTICAST },
    { { 192, 0, 0 }, 24, IP_SPECIAL },      /* protocol assignments */
    { { 192, 0, 2 }, 24, IP_SPECIAL },      /* documentation */
    { { 192, 88, 99 }, 24, IP_SPECIAL },    /* 6to4 relays */
    { { 198, 18 }, 15, IP_SPECIAL },        /* benchmarking */
    { { 198, 51, 100 }, 24, IP_SPECIAL },   /* documentation */
    { { 203, 0, 113 }, 24, IP_SPECIAL },    /* documentation */
    { { 240 }, 4, IP_SPECIAL },             /* reserved */
};

static const struct ip_range v6_ranges[] = {
    { { 0 }, 128, IP_UNSPECIFIED },
    { { [15] = 1 }, 128, IP_LOOPBACK },
    { { 0xfe, 0x80 }, 10, IP_LINK_LOCAL },
    { { 0xfd, 0x00, 0x0e, 0xc2 }, 32, IP_METADATA },
    { { 0xfd, 0x20, 0x00, 0xce, [15] = 0x54, [14] = 0x02 }, 128, IP_METADATA },
    { { 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, [13] = 0xfe, [14] = 0xa9, [15] = 0xfe }, 128, IP_METADATA },
    { { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 }, 128, IP_METADATA },
    { { 0xfc }, 7, IP_PRIVATE },
    { { 0xfe, 0xc0 }, 10, IP_PRIVATE },     /* site-local, deprecated */
    { { 0xff }, 8, IP_MULTICAST },
    { { 0x01, 0x00 }, 64, IP_SPECIAL },     /* discard */
    { { 0x00, 0x64, 0xff, 0x9b }, 32, IP_SPECIAL },     /* translation prefixes whose address was not plain */
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, IP_SPECIAL },     /* documentation */
    { { 0x20, 0x01, 0x00 }, 23, IP_SPECIAL },           /* protocol assignments, Teredo */
    { { 0x20, 0x02 }, 16, IP_SPECIAL },     /* 6to4 */
    { { 0x3f, 0xff }, 20, IP_SPECIAL },     /* documentation */
    { { 0x5f, 0x00 }, 16, IP_SPECIAL },     /* segment routing */
};

enum ip_class
ip_classify(struct ip ip)
{
    struct ip inner;
    enum ip_class own, carried = IP_PUBLIC;

    if (ip.family == 4)
        return lookup(&ip, v4_ranges, ARRAY_LEN(v4_ranges));
    switch (embedded(&ip, &inner)) {
    case EMBED_PLAIN:
        return ip_classify(inner);
    case EMBED_TUNNEL:
    case EMBED_HINT:
        carried = ip_classify(inner);
        break;
    case EMBED_NONE:
        break;
    }
    own = lookup(&ip, v6_ranges, ARRAY_LEN(v6_ranges));
    return own < carried ? own : carried;
}

size_t
ip_format(const struct ip *ip, char out[IP_TEXT_MAX])
{
    size_t best = 8, best_n = 1, n = 0;

    if (ip->family == 4)
        return (size_t)snprintf(out, IP_TEXT_MAX, "%u.%u.%u.%u", ip->b[0], ip->b[1], ip->b[2], ip->b[3]);
    /* the longest run of two or more zero groups becomes "::" (RFC 5952) */
    for (size_t i = 0; i < 8; i++) {
        size_t run = 0;
        while (i + run < 8 && ip->b[2 * (i + run)] == 0 && ip->b[2 * (i + run) + 1] == 0)
            run++;
        if (run > best_n) {
            best = i;
            best_n = run;
        }
        i += run > 0 ? run - 1 : 0;
    }
    for (size_t i = 0; i < 8;) {
        if (i == best) {
            n += (size_t)snprintf(out + n, IP_TEXT_MAX - n, "::");
            i += best_n;
            continue;
        }
        if (i > 0 && i != best + best_n)
            n += (size_t)snprintf(out + n, IP_TEXT_MAX - n, ":");
        n += (size_t)snprintf(out + n, IP_TEXT_MAX - n, "%x", (unsigned)ip->b[2 * i] << 8 | ip->b[2 * i + 1]);
        i++;
    }
    return n;
}

bool
ip_is_always_blocked(struct ip ip)
{
    switch (ip_classify(ip)) {
    case IP_UNSPECIFIED:
    case IP_THIS_NETWORK:
    case IP_LINK_LOCAL:
        return true;
    case IP_LOOPBACK:
        return ip_unwrap(ip).family == 6;   /* 127/8 is in the source's private list */
    default:
        return false;
    }
}

bool
ip_is_blocked_private_or_link_local(struct str text)
{
    struct ip ip;

    if (!ip_parse_loose(text, &ip) || ip_is_always_blocked(ip))
        return true;
    switch (ip_classify(ip)) {
    case IP_LOOPBACK:
    case IP_PRIVATE:
        return true;
    case IP_METADATA:
        return ip_unwrap(ip).family == 6;   /* those lie within fc00::/7 */
    default:
        return false;
    }
}

static bool
equals_nocase(struct str s, struct str lit)
{
    if (s.n != lit.n)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (ascii_lower(s.p[i]) != lit.p[i])
            return false;
    return true;
}

bool
ip_is_loopback_host(struct str host)
{
    static const struct str names[] = {
        { "localhost", 9 }, { "localhost.localdomain", 21 }, { "localhost6.localdomain6", 23 }, { "localhost6", 10 },
        { "ip6-localhost", 13 }, { "ip6-loopback", 12 },
    };
    struct ip ip;

    if (host.n > 0 && host.p[host.n - 1] == '.')
        host.n--;
    if (ip_parse_loose(host, &ip))
        return ip_classify(ip) == IP_LOOPBACK;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (equals_nocase(host, names[i]))
            return true;
    return host.n > 10 && equals_nocase((struct str){ host.p + host.n - 10, 10 }, STR_LIT(".localhost"));
}

bool
ip_normalise_for_policy(struct str text, char out[IP_TEXT_MAX])
{
    struct ip ip;

    if (!ip_parse_loose(text, &ip))
        return false;
    ip = ip_unwrap(ip);
    ip_format(&ip, out);
    return true;
}
