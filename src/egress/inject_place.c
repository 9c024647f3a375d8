/* egress/inject_place.c: see inject_place.h */
#include "egress/inject_place.h"

#include <string.h>

#include <openssl/evp.h>

static const struct str none = { "", 0 };

/* --- text: never moves, so that what points into it stays good ---------------------------------------------------- */

static char *
room(struct buf *text, size_t n)
{
    char *at = text->p == NULL ? NULL : (char *)text->p + text->n;

    if (at == NULL || text->cap - text->n < n)
        return NULL;
    text->n += n;
    return at;
}

/* @v with each placeholder replaced; @v itself when there is none. .p is NULL when there is no room. */
static struct str
replace(struct buf *text, struct str v, const struct inject_pair *pair)
{
    char *at = v.n < pair->n ? NULL : memmem(v.p, v.n, pair->placeholder, pair->n), *copy;
    size_t offset;

    if (at == NULL)
        return v;
    offset = (size_t)(at - v.p);
    copy = room(text, v.n);
    if (copy == NULL)
        return (struct str){ NULL, 0 };
    memcpy(copy, v.p, v.n);
    while (v.n - offset >= pair->n && (at = memmem(copy + offset, v.n - offset, pair->placeholder, pair->n)) != NULL) {
        memcpy(at, pair->value, pair->n);
        offset = (size_t)(at - copy) + pair->n;
    }
    return (struct str){ copy, v.n };
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* "@scheme " in front of @v. */
static bool
has_scheme(struct str v, struct str scheme)
{
    return v.n > scheme.n && v.p[scheme.n] == ' ' && http1_equal((struct str){ v.p, scheme.n }, scheme);
}

/* Basic USER:PASSWORD in base64 (RFC 7617). */
static struct str
basic(struct buf *text, struct str v, const struct inject_pair *pair)
{
    static const char scheme[] = "Basic ";
    size_t skip = sizeof(scheme) - 1;
    struct str coded, plain, changed;
    char *decoded, *out;
    int n;

    while (skip < v.n && v.p[skip] == ' ')
        skip++;
    coded = (struct str){ v.p + skip, v.n - skip };
    if (coded.n == 0 || coded.n % 4 != 0)
        return v;
    decoded = room(text, coded.n / 4 * 3 + 1);
    if (decoded == NULL)
        return (struct str){ NULL, 0 };
    n = EVP_DecodeBlock((unsigned char *)decoded, (const unsigned char *)coded.p, (int)coded.n);
    if (n < 0)
        return v;
    n -= coded.p[coded.n - 1] != '=' ? 0 : coded.p[coded.n - 2] == '=' ? 2 : 1;
    plain = (struct str){ decoded, (size_t)n };
    changed = replace(text, plain, pair);
    if (changed.p == plain.p)
        return v;
    out = changed.p == NULL ? NULL : room(text, sizeof(scheme) + (changed.n + 2) / 3 * 4);
    if (out == NULL)
        return (struct str){ NULL, 0 };
    memcpy(out, scheme, sizeof(scheme) - 1);
    n = EVP_EncodeBlock((unsigned char *)out + sizeof(scheme) - 1, (const unsigned char *)changed.p, (int)changed.n);
    return (struct str){ out, sizeof(scheme) - 1 + (size_t)n };
}

/* The value of the one cookie (RFC 6265 §4.2). */
static struct str
cookie(struct buf *text, struct str v, const struct inject_pair *pair)
{
    struct str name = str_of(pair->binding->cookie);
    size_t at = 0;

    while (at < v.n) {
        const char *end = memchr(v.p + at, ';', v.n - at);
        size_t n = end == NULL ? v.n - at : (size_t)(end - v.p) - at, next = at + n + 1, blank = 0;
        struct str one, value, changed;
        char *copy;

        while (blank < n && v.p[at + blank] == ' ')
            blank++;
        one = (struct str){ v.p + at + blank, n - blank };
        at = next;
        if (one.n <= name.n || one.p[name.n] != '=' || memcmp(one.p, name.p, name.n) != 0)
            continue;
        value = (struct str){ one.p + name.n + 1, one.n - name.n - 1 };
        changed = replace(text, value, pair);
        if (changed.p == value.p)
            continue;
        copy = changed.p == NULL ? NULL : room(text, v.n);
        if (copy == NULL)
            return (struct str){ NULL, 0 };
        memcpy(copy, v.p, v.n);
        memcpy(copy + (value.p - v.p), changed.p, changed.n);
        v = (struct str){ copy, v.n };
    }
    return v;
}

static struct str
one_field(struct buf *text, const struct http1_field *field, struct str v, const struct inject_pair *pair)
{
    const struct binding *b = pair->binding;
    bool authorization = http1_equal(field->name, STR_LIT("Authorization"));

    if (pair->role == VAULT_ROLE_AWS_TOKEN)
        return http1_equal(field->name, STR_LIT("x-amz-security-token")) ? replace(text, v, pair) : v;
    if (authorization && (b->places & BINDING_BEARER) &&
        (has_scheme(v, STR_LIT("Bearer")) || has_scheme(v, STR_LIT("token"))))
        v = replace(text, v, pair);
    if (v.p != NULL && authorization && (b->places & BINDING_BASIC) && has_scheme(v, STR_LIT("Basic")))
        v = basic(text, v, pair);
    if (v.p != NULL && (b->places & BINDING_HEADER) && http1_equal(field->name, str_of(b->header)))
        v = replace(text, v, pair);
    if (v.p != NULL && (b->places & BINDING_COOKIE) && http1_equal(field->name, STR_LIT("Cookie")))
        v = cookie(text, v, pair);
    return v;
}

/* Among those from @first on. */
static bool
is_dropped(const struct exchange_edit *edit, size_t first, struct str name)
{
    for (size_t i = first; i < edit->n_drop; i++)
        if (http1_equal(edit->drop[i], name))
            return true;
    return false;
}

static int
fields(const struct http1_head *head, const struct inject_pair *pairs, size_t n, struct buf *text,
       struct exchange_edit *edit)
{
    struct str values[HTTP1_FIELDS_MAX];
    size_t before = edit->n_drop;

    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *field = &head->fields[i];
        values[i] = field->value;
        for (size_t k = 0; k < n && !field->hop; k++) {
            values[i] = one_field(text, field, values[i], &pairs[k]);
            if (values[i].p == NULL)
                return -1;
        }
        if (values[i].p == field->value.p || is_dropped(edit, before, field->name))
            continue;
        if (edit->n_drop == EXCHANGE_EDITS_MAX)
            return -1;
        edit->drop[edit->n_drop++] = field->name;
    }
    /* dropping takes every field of the name: those that did not change come back too */
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->hop || !is_dropped(edit, before, field->name))
            continue;
        if (edit->n_add == EXCHANGE_EDITS_MAX)
            return -1;
        edit->add[edit->n_add++] = (struct http1_add){ field->name, values[i] };
    }
    return 0;
}

/* --- the query ---------------------------------------------------------------------------------------------------- */

static int
digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)((at - digits) % 16) : -1;
}

static struct str
percent_decode(struct buf *text, struct str v, bool plus)
{
    char *out = room(text, v.n);
    size_t n = 0;

    if (out == NULL)
        return (struct str){ NULL, 0 };
    for (size_t i = 0; i < v.n; i++) {
        bool coded = v.p[i] == '%' && v.n - i > 2 && digit(v.p[i + 1]) >= 0 && digit(v.p[i + 2]) >= 0;
        if (coded)
            out[n++] = (char)((unsigned)digit(v.p[i + 1]) << 4 | (unsigned)digit(v.p[i + 2]));
        else
            out[n++] = plus && v.p[i] == '+' ? ' ' : v.p[i];
        i += coded ? 2 : 0;
    }
    return (struct str){ out, n };
}

static struct str
percent_encode(struct buf *text, struct str v)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = room(text, 3 * v.n);
    size_t n = 0;

    if (out == NULL)
        return (struct str){ NULL, 0 };
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~';
        if (plain) {
            out[n++] = v.p[i];
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    return (struct str){ out, n };
}

/* The value of one parameter, as it goes out. */
static struct str
parameter(struct buf *text, struct str value, const struct inject_pair *pair)
{
    /* forms write a blank as "+" */
    size_t ways = memchr(pair->placeholder, ' ', pair->n) != NULL ? 2 : 1;

    for (size_t i = 0; i < ways; i++) {
        struct str plain = percent_decode(text, value, i == 1), changed;
        if (plain.p == NULL)
            return plain;
        changed = replace(text, plain, pair);
        if (changed.p == NULL)
            return changed;
        if (changed.p != plain.p)
            return percent_encode(text, changed);
    }
    return value;
}

/* @query (with its "?") where the parameter of @pair's binding has its value. */
static struct str
one_query(struct buf *text, struct str query, const struct inject_pair *pair)
{
    struct str name = str_of(pair->binding->query);
    size_t at = 1;

    while (at < query.n) {
        const char *end = memchr(query.p + at, '&', query.n - at);
        size_t n = end == NULL ? query.n - at : (size_t)(end - query.p) - at, front;
        struct str value, changed;
        char *copy;

        if (n <= name.n || query.p[at + name.n] != '=' || memcmp(query.p + at, name.p, name.n) != 0) {
            at += n + 1;
            continue;
        }
        front = at + name.n + 1;
        value = (struct str){ query.p + front, n - name.n - 1 };
        changed = parameter(text, value, pair);
        at += n + 1;
        if (changed.p == value.p)
            continue;
        copy = changed.p == NULL ? NULL : room(text, query.n - value.n + changed.n);
        if (copy == NULL)
            return (struct str){ NULL, 0 };
        memcpy(copy, query.p, front);
        memcpy(copy + front, changed.p, changed.n);
        memcpy(copy + front + changed.n, query.p + front + value.n, query.n - front - value.n);
        at = at - value.n + changed.n;
        query = (struct str){ copy, query.n - value.n + changed.n };
    }
    return query;
}

int
inject_place(const struct http1_head *head, const struct inject_pair *pairs, size_t n, struct buf *text,
             struct exchange_edit *edit)
{
    struct str query = head->query;

    if (n == 0)
        return 0;
    if (buf_reserve(text, text->max) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if ((pairs[i].binding->places & BINDING_QUERY) == 0 || pairs[i].role != VAULT_ROLE_VALUE)
            continue;
        query = one_query(text, query.n > 0 ? query : none, &pairs[i]);
        if (query.p == NULL)
            return -1;
    }
    if (query.p != head->query.p && query.n > 0) {
        edit->new_target = true;
        edit->path = head->path;
        edit->query = query;
    }
    return fields(head, pairs, n, text, edit);
}
