/* match/host.c: see host.h */
#include "match/host.h"

#include <string.h>

#include "base/array.h"

static const struct { const char *code, *text; } faults[] = {
    [HOST_OK] = { "", "is a host" },
    [HOST_EMPTY] = { "policy.host.empty", "is empty" },
    [HOST_TOO_LONG] = { "policy.host.too-long", "is longer than 253 bytes" },
    [HOST_LABEL_TOO_LONG] = { "policy.host.label-too-long", "has a label longer than 63 bytes" },
    [HOST_EMPTY_LABEL] = { "policy.host.empty-label", "has an empty label (two dots in a row, or a leading dot)" },
    [HOST_CONTROL] = { "policy.host.control", "holds a blank, a NUL or another control byte" },
    [HOST_NOT_ASCII] = { "policy.host.not-ascii", "is not ASCII: write the xn-- form of an international name" },
    [HOST_BAD_BYTE] = { "policy.host.bad-byte", "holds a character that no host name has" },
    [HOST_HYPHEN] = { "policy.host.hyphen", "has a label that begins or ends with \"-\"" },
    [HOST_URL] = { "policy.host.url", "is a URL or part of one, not a host" },
    [HOST_ZONE] = { "policy.host.zone", "has an IPv6 zone id" },
    [HOST_BRACKETS] = { "policy.host.brackets", "has brackets around something that is no IPv6 address" },
    [HOST_COLONS] = { "policy.host.colons", "is an IPv6 address without brackets, or has two ports" },
    [HOST_BAD_PORT] = { "policy.host.port", "has a port that is not a number from 1 to 65535" },
    [HOST_BAD_NUMBER] = { "policy.host.number", "ends in a number, but is no IPv4 address" },
    [HOST_BARE_STAR] = { "policy.host.any", "would allow every host" },
    [HOST_TOO_WIDE] = { "policy.host.too-wide", "would allow a whole top-level domain" },
    [HOST_BAD_STAR] = { "policy.host.star", "has a star somewhere else than as the whole first label" },
    [HOST_STAR_IP] = { "policy.host.star-ip", "has a star in front of an address" },
};

const char *
host_fault_text(enum host_fault fault)
{
    return (size_t)fault < ARRAY_LEN(faults) ? faults[fault].text : "is not a host";
}

const char *
host_fault_code(enum host_fault fault)
{
    return (size_t)fault < ARRAY_LEN(faults) ? faults[fault].code : "policy.host";
}

/* Bytes that settle what is wrong, whatever the rest says. Stars, colons and brackets are their reader's matter. */
static enum host_fault
scan_bytes(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c <= 0x20 || c == 0x7f)
            return HOST_CONTROL;
        if (c >= 0x80)
            return HOST_NOT_ASCII;
        if (c == '/' || c == '\\' || c == '@' || c == '?' || c == '#')
            return HOST_URL;
        if (c == '%')
            return memchr(text.p, ':', text.n) != NULL ? HOST_ZONE : HOST_BAD_BYTE;
    }
    return HOST_OK;
}

static enum host_fault
check_label(struct str label)
{
    if (label.n == 0)
        return HOST_EMPTY_LABEL;
    if (label.n > 63)
        return HOST_LABEL_TOO_LONG;
    for (size_t i = 0; i < label.n; i++) {
        char c = label.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return c == '*' ? HOST_BAD_STAR : HOST_BAD_BYTE;
    }
    if (label.p[0] == '-' || label.p[label.n - 1] == '-')
        return HOST_HYPHEN;
    return HOST_OK;
}

/* Whether a resolver might try to read the name as an IPv4 address: its last label is a number. */
static bool
ends_in_number(struct str label)
{
    size_t i = 0;

    if (label.n >= 2 && label.p[0] == '0' && label.p[1] == 'x') {
        for (i = 2; i < label.n; i++)
            if (!((label.p[i] >= '0' && label.p[i] <= '9') || (label.p[i] >= 'a' && label.p[i] <= 'f')))
                return false;
        return true;
    }
    while (i < label.n && label.p[i] >= '0' && label.p[i] <= '9')
        i++;
    return i == label.n;
}

static enum host_fault
check_labels(const struct host *host)
{
    size_t start = 0;

    for (size_t i = 0; i <= host->n; i++) {
        struct str label;
        enum host_fault fault;
        if (i < host->n && host->name[i] != '.')
            continue;
        label = (struct str){ host->name + start, i - start };
        fault = check_label(label);
        if (fault != HOST_OK)
            return fault;
        if (i == host->n && ends_in_number(label))
            return HOST_BAD_NUMBER;
        start = i + 1;
    }
    return HOST_OK;
}

static void
set_ip(struct host *out, struct ip ip)
{
    out->is_ip = true;
    out->ip = ip_unwrap(ip);
    out->n = ip_format(&out->ip, out->name);
}

enum host_fault
host_canonical(struct str text, struct host *out)
{
    enum host_fault fault;
    struct ip ip;

    *out = (struct host){ .n = 0 };
    if (text.n == 0)
        return HOST_EMPTY;
    fault = scan_bytes(text);
    if (fault != HOST_OK)
        return fault;
    if (text.p[0] == '[' || memchr(text.p, ':', text.n) != NULL) {
        if (!ip_parse_loose(text, &ip))
            return text.p[0] == '[' ? HOST_BRACKETS : HOST_COLONS;
        set_ip(out, ip);
        return HOST_OK;
    }
    if (text.p[text.n - 1] == '.')
        text.n--;
    if (text.n == 0)
        return HOST_EMPTY_LABEL;
    if (text.n > HOST_NAME_MAX_LEN)
        return HOST_TOO_LONG;
    if (ip_parse_loose(text, &ip)) {
        set_ip(out, ip);
        return HOST_OK;
    }
    for (size_t i = 0; i < text.n; i++)
        out->name[i] = ascii_lower(text.p[i]);
    out->n = text.n;
    out->name[text.n] = '\0';
    return check_labels(out);
}

enum host_fault
host_split_port(struct str text, struct str *host, uint16_t *port)
{
    const char *colon, *close;
    enum host_fault fault;
    struct str digits;
    uint64_t value;

    *host = text;
    *port = 0;
    if (text.n == 0)
        return HOST_EMPTY;
    fault = scan_bytes(text);
    if (fault != HOST_OK)
        return fault;
    colon = memrchr(text.p, ':', text.n);
    close = memrchr(text.p, ']', text.n);
    if (text.p[0] == '[') {
        if (close == NULL)
            return HOST_BRACKETS;
        if (close == text.p + text.n - 1)
            return HOST_OK;
        if (close[1] != ':')
            return HOST_BRACKETS;
        colon = close + 1;
    } else {
        if (colon == NULL)
            return HOST_OK;
        if (memchr(text.p, ':', (size_t)(colon - text.p)) != NULL)
            return HOST_COLONS;
    }
    digits = (struct str){ colon + 1, text.n - (size_t)(colon + 1 - text.p) };
    if (digits.n == 0 || digits.p[0] == '0' || !str_parse_u64(digits, 65535, &value))
        return HOST_BAD_PORT;
    *port = (uint16_t)value;
    *host = (struct str){ text.p, (size_t)(colon - text.p) };
    return host->n == 0 ? HOST_EMPTY : HOST_OK;
}

/* What both dialects share: bytes, length, the port. */
static enum host_fault
pattern_start(struct str text, struct str *host, struct host_pattern *out)
{
    *out = (struct host_pattern){ .kind = HOST_EXACT };
    if (text.n > HOST_TEXT_MAX)
        return HOST_TOO_LONG;
    return host_split_port(text, host, &out->port);
}

/* What follows a star: a name of at least two labels. */
static enum host_fault
pattern_suffix(struct str suffix, enum host_pattern_kind kind, struct host_pattern *out)
{
    enum host_fault fault = host_canonical(suffix, &out->host);

    if (fault != HOST_OK)
        return fault == HOST_EMPTY ? HOST_EMPTY_LABEL : fault;
    if (out->host.is_ip)
        return HOST_STAR_IP;
    if (memchr(out->host.name, '.', out->host.n) == NULL)
        return HOST_TOO_WIDE;
    out->kind = kind;
    return HOST_OK;
}

enum host_fault
host_pattern_cloche(struct str text, struct host_pattern *out)
{
    struct str host;
    enum host_fault fault = pattern_start(text, &host, out);

    if (fault != HOST_OK)
        return fault;
    if (str_eq(host, STR_LIT("*")) || str_eq(host, STR_LIT("**")))
        return HOST_BARE_STAR;
    if (str_starts(host, STR_LIT("**.")))
        return pattern_suffix((struct str){ host.p + 3, host.n - 3 }, HOST_ANY_DEPTH, out);
    if (str_starts(host, STR_LIT("*.")))
        return pattern_suffix((struct str){ host.p + 2, host.n - 2 }, HOST_ONE_LABEL, out);
    return host_canonical(host, &out->host);
}

enum host_fault
host_pattern_srt(struct str text, bool deny_list, struct host_pattern *out)
{
    struct str host;
    enum host_fault fault = pattern_start(text, &host, out);

    if (fault != HOST_OK)
        return fault;
    if (str_eq(host, STR_LIT("*"))) {
        if (!deny_list)
            return HOST_BARE_STAR;
        out->kind = HOST_ANY;
        return HOST_OK;
    }
    if (str_starts(host, STR_LIT("*.")))
        return pattern_suffix((struct str){ host.p + 2, host.n - 2 }, HOST_ANY_DEPTH, out);
    return host_canonical(host, &out->host);
}

bool
host_match(const struct host_pattern *pattern, const struct host *host, uint16_t port)
{
    struct str name = { host->name, host->n };
    struct str want = { pattern->host.name, pattern->host.n };
    size_t lead;

    if (pattern->port != 0 && pattern->port != port)
        return false;
    if (pattern->kind == HOST_ANY)
        return true;
    if (pattern->kind == HOST_EXACT) {
        if (pattern->host.is_ip || host->is_ip)
            return pattern->host.is_ip && host->is_ip && ip_eq(&pattern->host.ip, &host->ip);
        return str_eq(name, want);
    }
    if (host->is_ip || name.n < want.n + 2 || !str_ends(name, want))
        return false;
    lead = name.n - want.n - 1;     /* the labels that the star stands for */
    if (name.p[lead] != '.')
        return false;
    return pattern->kind == HOST_ANY_DEPTH || memchr(name.p, '.', lead) == NULL;
}

bool
host_pattern_within(const struct host_pattern *inner, const struct host_pattern *outer)
{
    struct host_pattern any_port = *outer;
    bool same = inner->host.n == outer->host.n && memcmp(inner->host.name, outer->host.name, outer->host.n) == 0;

    any_port.port = 0;
    if (inner->kind == HOST_EXACT || outer->kind == HOST_ANY)
        return host_match(&any_port, &inner->host, 0);
    if (inner->kind == HOST_ONE_LABEL && outer->kind == HOST_ONE_LABEL)
        return same;
    return inner->kind != HOST_ANY && outer->kind == HOST_ANY_DEPTH &&
           (same || host_match(&any_port, &inner->host, 0));
}

static bool
is_among(struct str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(name, names[i]))
            return true;
    return false;
}

bool
host_is_metadata(struct str name)
{
    static const char *const names[] = { "metadata", "metadata.google.internal", "metadata.goog", "instance-data",
                                         "instance-data.ec2.internal" };

    return is_among(name, names, ARRAY_LEN(names));
}

bool
host_is_own_name(struct str name)
{
    static const char *const names[] = { HOST_OWN_NAMES };

    return is_among(name, names, ARRAY_LEN(names));
}
