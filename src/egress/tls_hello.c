/* egress/tls_hello.c: see tls_hello.h (RFC 8446, 5246, 6066, 7301, 9849) */
#include "egress/tls_hello.h"

#include <string.h>

#include "base/array.h"

#define RECORD_HEADER 5
#define RECORD_HANDSHAKE 22
#define HANDSHAKE_HEADER 4
#define HANDSHAKE_CLIENT_HELLO 1
#define HANDSHAKE_SERVER_HELLO 2

enum {
    EXT_SERVER_NAME = 0,
    EXT_ALPN = 16,
    EXT_PRE_SHARED_KEY = 41,
    EXT_EARLY_DATA = 42,
    EXT_SUPPORTED_VERSIONS = 43,
    EXT_ECH = 0xfe0d,
    EXT_ECH_FIRST = 0xfe02,     /* ECH's drafts, the seventh to the twelfth of draft-ietf-tls-esni */
    EXT_ESNI = 0xffce,          /* the drafts before */
};

#define VERSION_SSL3  0x0300
#define VERSION_TLS12 0x0303
#define VERSION_TLS13 0x0304

const char *
tls_hello_word(enum tls_hello_status status)
{
    static const char *const words[] = {
        [TLS_HELLO_OK] = "ok",
        [TLS_HELLO_MORE] = "more",
        [TLS_HELLO_NOT_TLS] = "not-tls",
        [TLS_HELLO_TOO_LONG] = "tls-too-long",
        [TLS_HELLO_RECORD] = "tls-record",
        [TLS_HELLO_FRAGMENTS] = "tls-fragments",
        [TLS_HELLO_TYPE] = "tls-no-hello",
        [TLS_HELLO_TRAILING] = "tls-trailing",
        [TLS_HELLO_LENGTH] = "tls-length",
        [TLS_HELLO_VERSION] = "tls-version",
        [TLS_HELLO_DUPLICATE] = "tls-duplicate-extension",
        [TLS_HELLO_EXTENSION] = "tls-extension",
        [TLS_HELLO_SNI] = "tls-sni",
        [TLS_HELLO_SNI_NAME] = "tls-sni-name",
        [TLS_HELLO_ALPN] = "tls-alpn",
        [TLS_HELLO_ECH_INNER] = "tls-ech-inner",
    };
    return (size_t)status < ARRAY_LEN(words) ? words[status] : "tls-unknown";
}

/* --- records: is the whole message here? ---------------------------------------------------------------------- */

struct framing {
    size_t consumed;        /* bytes of the records up to the message's last byte */
    size_t message;         /* bytes of the message, its header included */
};

static size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The header at @p, of which @n > 0 bytes are here. The first record decides whether this is TLS at all. */
static enum tls_hello_status
check_record(const uint8_t *p, size_t n, bool first, size_t *length)
{
    if (p[0] != RECORD_HANDSHAKE)
        return first ? TLS_HELLO_NOT_TLS : TLS_HELLO_RECORD;
    if (n > 1 && p[1] != 3)
        return first ? TLS_HELLO_NOT_TLS : TLS_HELLO_RECORD;
    if (n > 2 && p[2] > 4)
        return TLS_HELLO_RECORD;
    if (n < RECORD_HEADER)
        return TLS_HELLO_MORE;
    *length = (size_t)p[3] << 8 | p[4];
    if (*length == 0 || *length > TLS_HELLO_RECORD_MAX)
        return TLS_HELLO_RECORD;
    return TLS_HELLO_OK;
}

/* Collect the message's own header, which may itself be split over records. */
static enum tls_hello_status
collect_header(const uint8_t *p, size_t n, uint8_t head[HANDSHAKE_HEADER], size_t *have, struct framing *out)
{
    for (size_t i = 0; i < n && *have < HANDSHAKE_HEADER; i++)
        head[(*have)++] = p[i];
    if (*have > 0 && head[0] != HANDSHAKE_CLIENT_HELLO)
        return TLS_HELLO_TYPE;
    if (*have < HANDSHAKE_HEADER)
        return TLS_HELLO_MORE;
    out->message = HANDSHAKE_HEADER + ((size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
    return out->message > TLS_HELLO_MAX - RECORD_HEADER ? TLS_HELLO_TOO_LONG : TLS_HELLO_OK;
}

static enum tls_hello_status
walk_records(const uint8_t *p, size_t n, struct framing *out)
{
    uint8_t head[HANDSHAKE_HEADER];
    size_t have = 0, seen = 0, at = 0;
    size_t limit = smaller(n, TLS_HELLO_MAX);

    *out = (struct framing){ 0, 0 };
    for (size_t records = 0; at < limit; records++) {
        size_t length, here;
        enum tls_hello_status status;
        if (records == TLS_HELLO_RECORDS_MAX)
            return TLS_HELLO_FRAGMENTS;
        status = check_record(p + at, limit - at, records == 0, &length);
        if (status == TLS_HELLO_MORE)
            break;
        if (status != TLS_HELLO_OK)
            return status;
        at += RECORD_HEADER;
        here = smaller(length, limit - at);
        status = collect_header(p + at, here, head, &have, out);
        if (status != TLS_HELLO_OK && status != TLS_HELLO_MORE)
            return status;
        at += here;
        seen += length;
        if (out->message > 0 && seen > out->message)
            return TLS_HELLO_TRAILING;
        if (here < length)
            break;
        if (out->message > 0 && seen == out->message) {
            out->consumed = at;
            return TLS_HELLO_OK;
        }
    }
    return n >= TLS_HELLO_MAX ? TLS_HELLO_TOO_LONG : TLS_HELLO_MORE;
}

/* --- the message, read across record boundaries --------------------------------------------------------------- */

struct reader {
    const uint8_t *p;       /* the next byte */
    size_t record;          /* bytes left in this record */
    size_t left;            /* bytes left in the innermost vector */
};

/* Make reader->record at least 1. The framing was checked: while left > 0 there is a record that has it. */
static void
next_record(struct reader *r)
{
    if (r->record > 0)
        return;
    r->record = (size_t)r->p[3] << 8 | r->p[4];
    r->p += RECORD_HEADER;
}

/* @n bytes into @to, or past them where that is NULL. */
static bool
take(struct reader *r, void *to, size_t n)
{
    uint8_t *out = to;

    if (n > r->left)
        return false;
    r->left -= n;
    while (n > 0) {
        size_t step;
        next_record(r);
        step = smaller(n, r->record);
        if (out != NULL) {
            memcpy(out, r->p, step);
            out += step;
        }
        r->p += step;
        r->record -= step;
        n -= step;
    }
    return true;
}

static bool
take_u8(struct reader *r, size_t *out)
{
    uint8_t b;

    if (!take(r, &b, 1))
        return false;
    *out = b;
    return true;
}

static bool
take_u16(struct reader *r, size_t *out)
{
    uint8_t b[2];

    if (!take(r, b, 2))
        return false;
    *out = (size_t)b[0] << 8 | b[1];
    return true;
}

/* Read inside a vector of @n bytes until leave(), which holds only when all of it was read. */
static bool
enter(struct reader *r, size_t n, size_t *outer)
{
    if (n > r->left)
        return false;
    *outer = r->left - n;
    r->left = n;
    return true;
}

static bool
leave(struct reader *r, size_t outer)
{
    if (r->left != 0)
        return false;
    r->left = outer;
    return true;
}

static bool
skip_vector8(struct reader *r, size_t min, size_t max)
{
    size_t n;

    return take_u8(r, &n) && n >= min && n <= max && take(r, NULL, n);
}

static bool
skip_vector16(struct reader *r, size_t min)
{
    size_t n;

    return take_u16(r, &n) && n >= min && take(r, NULL, n);
}

/* --- extensions ------------------------------------------------------------------------------------------------ */

/* host_canonical says what a name is; SNI is narrower still: no final dot, no brackets, no address in any spelling. */
static bool
sni_name_ok(struct str name, struct host *host)
{
    if (name.p[name.n - 1] == '.')
        return false;
    return host_canonical(name, host) == HOST_OK && !host->is_ip;
}

static enum tls_hello_status
on_server_name(struct reader *r, struct tls_hello *out)
{
    char text[HOST_NAME_MAX_LEN];
    size_t list, type, n;
    struct host host;

    if (!take_u16(r, &list) || list != r->left)
        return TLS_HELLO_LENGTH;
    if (list == 0)
        return TLS_HELLO_SNI;
    if (!take_u8(r, &type))
        return TLS_HELLO_LENGTH;
    if (type != 0)
        return TLS_HELLO_SNI;
    if (!take_u16(r, &n) || n > r->left)
        return TLS_HELLO_LENGTH;
    if (n < r->left)
        return TLS_HELLO_SNI;       /* a second entry, of whatever type */
    if (n == 0 || n > sizeof(text) || !take(r, text, n))
        return TLS_HELLO_SNI_NAME;
    if (!sni_name_ok((struct str){ text, n }, &host))
        return TLS_HELLO_SNI_NAME;
    out->has_sni = true;
    out->sni_n = host.n;
    memcpy(out->sni, host.name, host.n);
    return TLS_HELLO_OK;
}

static enum tls_hello_status
on_alpn(struct reader *r, struct tls_hello *out)
{
    size_t list;

    if (!take_u16(r, &list) || list != r->left)
        return TLS_HELLO_LENGTH;
    if (list < 2 || list > sizeof(out->alpn))
        return TLS_HELLO_ALPN;
    out->has_alpn = true;
    while (r->left > 0) {
        uint8_t *name = out->alpn + out->alpn_bytes;
        size_t n;
        if (!take_u8(r, &n) || n > r->left)
            return TLS_HELLO_LENGTH;
        if (n == 0 || out->n_alpn == TLS_HELLO_ALPN_MAX)
            return TLS_HELLO_ALPN;
        name[0] = (uint8_t)n;
        if (!take(r, name + 1, n))
            return TLS_HELLO_LENGTH;
        out->alpn_h2 = out->alpn_h2 || (n == 2 && memcmp(name + 1, "h2", 2) == 0);
        out->alpn_http11 = out->alpn_http11 || (n == 8 && memcmp(name + 1, "http/1.1", 8) == 0);
        out->alpn_bytes += n + 1;
        out->n_alpn++;
    }
    return TLS_HELLO_OK;
}

/* The highest version that we know; grease (RFC 8701), drafts and DTLS numbers are nobody's offer. */
static enum tls_hello_status
on_supported_versions(struct reader *r, struct tls_hello *out)
{
    size_t list, version;

    if (!take_u8(r, &list) || list != r->left || list < 2 || list % 2 != 0)
        return TLS_HELLO_LENGTH;
    out->version_max = 0;
    while (r->left > 0) {
        if (!take_u16(r, &version))
            return TLS_HELLO_LENGTH;
        if (version >= VERSION_SSL3 && version <= VERSION_TLS13 && version > out->version_max)
            out->version_max = (uint16_t)version;
    }
    return out->version_max != 0 ? TLS_HELLO_OK : TLS_HELLO_VERSION;
}

/* RFC 9849 section 5. The outer form says type, HPKE suite, config id, encapsulated key and payload. */
static enum tls_hello_status
on_ech(struct reader *r, struct tls_hello *out)
{
    size_t type;

    if (!take_u8(r, &type))
        return TLS_HELLO_LENGTH;
    if (type == 1)
        return TLS_HELLO_ECH_INNER;
    if (type != 0)
        return TLS_HELLO_EXTENSION;
    if (!take(r, NULL, 5) || !skip_vector16(r, 0) || !skip_vector16(r, 1))
        return TLS_HELLO_LENGTH;
    out->has_ech = true;
    return TLS_HELLO_OK;
}

static enum tls_hello_status
on_extension(struct reader *r, size_t type, struct tls_hello *out)
{
    switch (type) {
    case EXT_SERVER_NAME:
        return on_server_name(r, out);
    case EXT_ALPN:
        return on_alpn(r, out);
    case EXT_SUPPORTED_VERSIONS:
        return on_supported_versions(r, out);
    case EXT_EARLY_DATA:
        out->early_data = true;
        return TLS_HELLO_OK;            /* empty: leave() sees to it */
    case EXT_ECH:
        return on_ech(r, out);
    case EXT_ESNI:
        out->has_ech = true;
        break;
    default:
        out->has_ech |= type >= EXT_ECH_FIRST && type < EXT_ECH;
        break;
    }
    return take(r, NULL, r->left) ? TLS_HELLO_OK : TLS_HELLO_LENGTH;
}

static enum tls_hello_status
parse_extensions(struct reader *r, struct tls_hello *out)
{
    uint8_t seen[65536 / 8] = { 0 };

    while (r->left > 0) {
        size_t type, n, outer;
        uint8_t bit;
        enum tls_hello_status status;
        if (!take_u16(r, &type) || !take_u16(r, &n) || !enter(r, n, &outer))
            return TLS_HELLO_LENGTH;
        bit = (uint8_t)(1u << (type % 8));
        if ((seen[type / 8] & bit) != 0)
            return TLS_HELLO_DUPLICATE;
        seen[type / 8] |= bit;
        status = on_extension(r, type, out);
        if (status != TLS_HELLO_OK)
            return status;
        if (!leave(r, outer))
            return TLS_HELLO_LENGTH;
        if (type == EXT_PRE_SHARED_KEY && r->left > 0)
            return TLS_HELLO_EXTENSION;         /* RFC 8446 4.2.11: it is the last one */
    }
    return TLS_HELLO_OK;
}

static enum tls_hello_status
parse_body(struct reader *r, struct tls_hello *out)
{
    size_t version, n, outer;
    enum tls_hello_status status;

    if (!take_u16(r, &version))
        return TLS_HELLO_LENGTH;
    if (version < VERSION_SSL3 || version > VERSION_TLS13)
        return TLS_HELLO_VERSION;
    out->legacy_version = (uint16_t)version;
    out->version_max = (uint16_t)smaller(version, VERSION_TLS12);   /* 1.3 exists only in its extension */
    if (!take(r, NULL, 32) || !skip_vector8(r, 0, 32))
        return TLS_HELLO_LENGTH;
    if (!take_u16(r, &n) || n < 2 || n % 2 != 0 || !take(r, NULL, n) || !skip_vector8(r, 1, 255))
        return TLS_HELLO_LENGTH;
    if (r->left == 0)
        return TLS_HELLO_OK;                    /* RFC 5246 7.4.1.2: extensions may be absent */
    if (!take_u16(r, &n) || !enter(r, n, &outer) || outer != 0)
        return TLS_HELLO_LENGTH;
    status = parse_extensions(r, out);
    if (status != TLS_HELLO_OK)
        return status;
    return leave(r, outer) ? TLS_HELLO_OK : TLS_HELLO_LENGTH;
}

enum tls_hello_status
tls_hello_parse(const uint8_t *p, size_t n, struct tls_hello *out)
{
    struct framing framing;
    struct reader r = { .p = p };
    enum tls_hello_status status;

    memset(out, 0, sizeof(*out));
    status = walk_records(p, n, &framing);
    if (status != TLS_HELLO_OK)
        return status;
    r.left = framing.message;
    if (!take(&r, NULL, HANDSHAKE_HEADER))
        return TLS_HELLO_LENGTH;
    status = parse_body(&r, out);
    if (status != TLS_HELLO_OK) {
        memset(out, 0, sizeof(*out));
        return status;
    }
    out->consumed = framing.consumed;
    return TLS_HELLO_OK;
}

enum tls_retry
tls_retry(const uint8_t *p, size_t n)
{
    /* SHA-256 of "HelloRetryRequest", in the place of a ServerHello's random number */
    static const uint8_t mark[] = {
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
        0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    };
    const size_t random = RECORD_HEADER + HANDSHAKE_HEADER + 2;

    if (n > 0 && p[0] != RECORD_HANDSHAKE)
        return TLS_RETRY_NO;
    if (n < RECORD_HEADER)
        return TLS_RETRY_MORE;
    if (((size_t)p[3] << 8 | p[4]) < random + sizeof(mark) - RECORD_HEADER)
        return TLS_RETRY_YES;           /* in pieces */
    if (n < random + sizeof(mark))
        return TLS_RETRY_MORE;
    return p[RECORD_HEADER] == HANDSHAKE_SERVER_HELLO && memcmp(p + random, mark, sizeof(mark)) == 0 ? TLS_RETRY_YES
                                                                                                      : TLS_RETRY_NO;
}
