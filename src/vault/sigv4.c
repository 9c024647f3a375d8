/* vault/sigv4.c: see sigv4.h */
#include "vault/sigv4.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define N_LITERAL(s) (sizeof(s) - 1)

/* --- the client's Authorization ----------------------------------------------------------------------------------- */

/* Cut @rest at @c: what stands before it, @rest behind it. False when there is none. */
static bool
cut(struct str *rest, char c, struct str *before)
{
    const char *p = rest->n > 0 ? memchr(rest->p, c, rest->n) : NULL;

    if (p == NULL)
        return false;
    *before = (struct str){ rest->p, (size_t)(p - rest->p) };
    *rest = (struct str){ p + 1, rest->n - before->n - 1 };
    return true;
}

static struct str
skip_blanks(struct str s)
{
    while (s.n > 0 && s.p[0] == ' ')
        s = (struct str){ s.p + 1, s.n - 1 };
    return s;
}

static bool
signed_headers_valid(struct str list)
{
    struct str previous = { NULL, 0 }, name;
    bool host = false;
    size_t n = 0;

    for (bool last = false; !last; n++) {
        if (!cut(&list, ';', &name)) {
            name = list;
            last = true;
        }
        if (name.n == 0 || n == SIGV4_SIGNED_MAX)
            return false;
        for (size_t i = 0; i < name.n; i++)
            if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9') ||
                  name.p[i] == '-' || name.p[i] == '_' || name.p[i] == '.'))
                return false;
        if (previous.p != NULL) {
            size_t shorter = previous.n < name.n ? previous.n : name.n;
            int order = memcmp(previous.p, name.p, shorter);
            if (order > 0 || (order == 0 && previous.n >= name.n))
                return false;
        }
        host = host || str_eq_c(name, "host");
        previous = name;
    }
    return host;
}

bool
sigv4_parse(struct str text, struct sigv4_authorization *out)
{
    struct str credential, terminator, part;

    memset(out, 0, sizeof(*out));
    if (!str_starts(text, STR_LIT(ALGORITHM " ")))
        return false;
    text = (struct str){ text.p + N_LITERAL(ALGORITHM " "), text.n - N_LITERAL(ALGORITHM " ") };
    for (bool last = false; !last;) {
        if (!cut(&text, ',', &part)) {
            part = text;
            last = true;
        }
        part = skip_blanks(part);
        if (out->id.p == NULL && str_starts(part, STR_LIT("Credential="))) {
            credential = (struct str){ part.p + 11, part.n - 11 };
            if (!cut(&credential, '/', &out->id) || !cut(&credential, '/', &out->day) ||
                !cut(&credential, '/', &out->region) || !cut(&credential, '/', &out->service))
                return false;
            terminator = credential;
            if (!str_eq_c(terminator, "aws4_request") || out->id.n == 0 || out->day.n != 8 || out->region.n == 0 ||
                out->service.n == 0)
                return false;
        } else if (out->signed_headers.p == NULL && str_starts(part, STR_LIT("SignedHeaders="))) {
            out->signed_headers = (struct str){ part.p + 14, part.n - 14 };
        } else if (!str_starts(part, STR_LIT("Signature="))) {
            return false;
        }
    }
    return out->id.p != NULL && out->signed_headers.p != NULL && signed_headers_valid(out->signed_headers);
}

/* --- the canonical request ---------------------------------------------------------------------------------------- */

static bool
is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static void
encode(struct str s, bool keep_slash, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (is_unreserved(s.p[i]) || (keep_slash && c == '/')) {
            buf_put_u8(out, c);
        } else {
            buf_put_u8(out, '%');
            buf_put_u8(out, (uint8_t)digits[c >> 4]);
            buf_put_u8(out, (uint8_t)digits[c & 15]);
        }
    }
}

/* RFC 3986 §5.2.4 without the empty names; a slash at the end stays. */
static bool
put_normal_path(struct str path, struct buf *out)
{
    cleanup_buf struct buf normal = BUF_INIT(64 * 1024);
    struct str rest = path, name;
    bool last = false, slash = true;

    for (; !last;) {
        if (!cut(&rest, '/', &name)) {
            name = rest;
            last = true;
        }
        slash = name.n == 0 || str_eq_c(name, ".") || str_eq_c(name, "..");
        if (str_eq_c(name, "..")) {
            while (normal.n > 0 && normal.p[normal.n - 1] != '/')
                normal.n--;
            normal.n -= normal.n > 0;
        } else if (!slash) {
            buf_put_u8(&normal, '/');
            buf_append(&normal, name.p, name.n);
        }
    }
    if (slash || normal.n == 0)
        buf_put_u8(&normal, '/');
    if (!buf_ok(&normal))
        return false;
    encode((struct str){ (const char *)normal.p, normal.n }, true, out);
    return true;
}

/* Decode and encode again, so that every spelling of a parameter comes out as the one that is signed. */
static void
put_again(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && s.n - i > 2 && str_hex_digit(s.p[i + 1]) >= 0 && str_hex_digit(s.p[i + 2]) >= 0) {
            c = (char)(str_hex_digit(s.p[i + 1]) << 4 | str_hex_digit(s.p[i + 2]));
            i += 2;
        }
        encode((struct str){ &c, 1 }, false, out);
    }
}

/* A parameter, encoded: name and value lie in one buffer. */
struct param { size_t name, name_n, value, value_n; };

struct params {
    struct param v[SIGV4_PARAMS_MAX];
    size_t n;
    struct buf text;
};

static int
piece_order(const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n)
{
    int r = memcmp(a, b, a_n < b_n ? a_n : b_n);

    return r != 0 ? r : a_n < b_n ? -1 : a_n > b_n;
}

static bool
param_before(const struct params *p, const struct param *a, const struct param *b)
{
    int r = piece_order(p->text.p + a->name, a->name_n, p->text.p + b->name, b->name_n);

    return r != 0 ? r < 0 : piece_order(p->text.p + a->value, a->value_n, p->text.p + b->value, b->value_n) < 0;
}

static bool
read_params(struct str query, struct params *p)
{
    struct str pair, name;

    for (bool last = query.n == 0; !last;) {
        struct param *v = &p->v[p->n];
        if (!cut(&query, '&', &pair)) {
            pair = query;
            last = true;
        }
        if (pair.n == 0)
            continue;
        if (p->n == SIGV4_PARAMS_MAX)
            return false;
        if (!cut(&pair, '=', &name)) {
            name = pair;
            pair = (struct str){ "", 0 };
        }
        v->name = p->text.n;
        put_again(name, &p->text);
        v->name_n = p->text.n - v->name;
        v->value = p->text.n;
        put_again(pair, &p->text);
        v->value_n = p->text.n - v->value;
        p->n++;
    }
    return buf_ok(&p->text);
}

static bool
put_query(struct str query, struct buf *out)
{
    struct params p = { .text = BUF_INIT(256 * 1024) };
    bool ok = read_params(query, &p);

    /* few and mostly in order: by insertion */
    for (size_t i = 1; ok && i < p.n; i++) {
        struct param v = p.v[i];
        size_t k = i;
        for (; k > 0 && param_before(&p, &v, &p.v[k - 1]); k--)
            p.v[k] = p.v[k - 1];
        p.v[k] = v;
    }
    for (size_t i = 0; ok && i < p.n; i++) {
        if (i > 0)
            buf_put_u8(out, '&');
        buf_append(out, p.text.p + p.v[i].name, p.v[i].name_n);
        buf_put_u8(out, '=');
        buf_append(out, p.text.p + p.v[i].value, p.v[i].value_n);
    }
    buf_free(&p.text);
    return ok;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Without blanks at its ends, runs of them as one. */
static void
put_trimmed(struct str v, struct buf *out)
{
    bool blank = false;

    for (size_t i = 0, put = 0; i < v.n; i++) {
        if (is_blank(v.p[i])) {
            blank = put > 0;
            continue;
        }
        if (blank)
            buf_put_u8(out, ' ');
        blank = false;
        buf_put_u8(out, (uint8_t)v.p[i]);
        put++;
    }
}

static bool
put_headers(const struct sigv4_request *r, struct buf *out)
{
    struct str list = r->signed_headers, name;

    for (bool last = false; !last;) {
        size_t found = 0;
        if (!cut(&list, ';', &name)) {
            name = list;
            last = true;
        }
        buf_append(out, name.p, name.n);
        for (size_t i = 0; i < r->n_headers; i++) {
            const struct sigv4_header *h = &r->headers[i];
            if (h->name.n != name.n || strncasecmp(h->name.p, name.p, name.n) != 0)
                continue;
            buf_put_u8(out, found++ == 0 ? ':' : ',');
            put_trimmed(h->value, out);
        }
        buf_put_u8(out, '\n');
        if (found == 0)
            return false;
    }
    return true;
}

bool
sigv4_canonical(const struct sigv4_request *r, struct buf *out)
{
    struct str path = r->target, query = { "", 0 }, before;

    if (cut(&path, '?', &before)) {
        query = path;
        path = before;
    }
    if (path.n == 0 || path.p[0] != '/' || !signed_headers_valid(r->signed_headers))
        return false;
    buf_append(out, r->method.p, r->method.n);
    buf_put_u8(out, '\n');
    if (r->s3)
        buf_append(out, path.p, path.n);
    else if (!put_normal_path((struct str){ path.p + 1, path.n - 1 }, out))
        return false;
    buf_put_u8(out, '\n');
    if (!put_query(query, out))
        return false;
    buf_put_u8(out, '\n');
    if (!put_headers(r, out))
        return false;
    buf_put_u8(out, '\n');
    buf_append(out, r->signed_headers.p, r->signed_headers.n);
    buf_put_u8(out, '\n');
    buf_append(out, r->payload.p, r->payload.n);
    return buf_ok(out);
}

bool
sigv4_hash(const void *p, size_t n, uint8_t out[SIGV4_HASH])
{
    return EVP_Digest(p, n, out, NULL, EVP_sha256(), NULL) > 0;
}

/* --- signing ------------------------------------------------------------------------------------------------------ */

bool
sigv4_date_near(struct str date, uint64_t now, uint64_t slack_s)
{
    static const struct { size_t at, n; } fields[] = { { 0, 4 }, { 4, 2 }, { 6, 2 }, { 9, 2 }, { 11, 2 }, { 13, 2 } };
    uint64_t v[6];
    struct tm t = { 0 };
    time_t when;

    if (date.n != SIGV4_DATE || date.p[8] != 'T' || date.p[15] != 'Z')
        return false;
    for (size_t i = 0; i < 6; i++)
        if (!str_parse_u64((struct str){ date.p + fields[i].at, fields[i].n }, 9999, &v[i]))
            return false;
    if (v[0] < 1970 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 || v[3] > 23 || v[4] > 59 || v[5] > 60)
        return false;
    t.tm_year = (int)v[0] - 1900;
    t.tm_mon = (int)v[1] - 1;
    t.tm_mday = (int)v[2];
    t.tm_hour = (int)v[3];
    t.tm_min = (int)v[4];
    t.tm_sec = (int)v[5];
    when = timegm(&t);
    return when >= 0 && ((uint64_t)when > now ? (uint64_t)when - now : now - (uint64_t)when) <= slack_s;
}

static bool
hmac(const uint8_t *key, size_t key_n, struct str text, uint8_t out[SIGV4_HASH])
{
    unsigned n = SIGV4_HASH;

    return HMAC(EVP_sha256(), key, (int)key_n, (const unsigned char *)text.p, text.n, out, &n) != NULL;
}

/* HMAC(HMAC(HMAC(HMAC("AWS4" key, day), region), service), "aws4_request"), in locked memory. */
static bool
signing_key(const struct secret *key, struct str day, struct str region, struct str service, struct secret *out)
{
    cleanup_secret struct secret first = { NULL, 0 }, a = { NULL, 0 };

    if (secret_alloc(&first, key->n + 4, NULL) < 0 || secret_alloc(&a, SIGV4_HASH, NULL) < 0 ||
        secret_alloc(out, SIGV4_HASH, NULL) < 0)
        return false;
    memcpy(first.p, "AWS4", 4);
    memcpy(first.p + 4, key->p, key->n);
    return hmac(first.p, first.n, day, out->p) && hmac(out->p, SIGV4_HASH, region, a.p) &&
           hmac(a.p, SIGV4_HASH, service, out->p) && hmac(out->p, SIGV4_HASH, STR_LIT("aws4_request"), a.p) &&
           memcpy(out->p, a.p, SIGV4_HASH) != NULL;
}

bool
sigv4_sign(const struct secret *id, const struct secret *key, struct str date, struct str region,
           struct str service, struct str signed_headers, const uint8_t canonical[SIGV4_HASH], struct buf *out)
{
    cleanup_secret struct secret derived = { NULL, 0 };
    cleanup_buf struct buf text = BUF_INIT(4096);
    uint8_t signature[SIGV4_HASH];
    char hex[SIGV4_HEX + 1];
    struct str day = { date.p, 8 };
    int r;

    if (date.n != SIGV4_DATE || region.n > 64 || service.n > 64)
        return false;
    sha256_text(canonical, hex);
    buf_printf(&text, ALGORITHM "\n%.*s\n%.8s/%.*s/%.*s/aws4_request\n%s", SIGV4_DATE, date.p, date.p, (int)region.n,
               region.p, (int)service.n, service.p, hex);
    if (!buf_ok(&text) || !signing_key(key, day, region, service, &derived) ||
        !hmac(derived.p, derived.n, (struct str){ (const char *)text.p, text.n }, signature))
        return false;
    sha256_text(signature, hex);
    buf_puts(out, ALGORITHM " Credential=");
    buf_append(out, id->p, id->n);
    r = buf_printf(out, "/%.8s/%.*s/%.*s/aws4_request, SignedHeaders=%.*s, Signature=%s", date.p, (int)region.n,
                   region.p, (int)service.n, service.p, (int)signed_headers.n, signed_headers.p, hex);
    return r == 0 && buf_nul(out) == 0;
}
