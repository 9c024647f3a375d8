/* vault/binding_add.c: the header that a binding adds (binding.h) */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/base64.h"
#include "vault/binding.h"
#include "wire/http1.h"

static const char hole[] = "{}";

/* What says how the message is framed or passed on, and what is asked for so that answers can be searched. */
static bool
is_reserved(struct str name)
{
    static const char *const names[] = { "host", "content-length", "expect", "accept-encoding", "range", "if-range",
                                         "grpc-accept-encoding" };
    static const struct str fronts[] = { { "sec-websocket-", 14 }, { "proxy-", 6 } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (binding_same_header(name, str_of(names[i])))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(fronts); i++)
        if (name.n >= fronts[i].n && binding_same_header((struct str){ name.p, fronts[i].n }, fronts[i]))
            return true;
    return http1_is_hop(name);
}

bool
binding_same_header(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        struct str one = { a.p[i] == '_' ? "-" : a.p + i, 1 }, other = { b.p[i] == '_' ? "-" : b.p + i, 1 };
        if (!http1_equal(one, other))
            return false;
    }
    return true;
}

static int
bad(struct err *err, const char *rule)
{
    /* not shown: somebody may have written the value itself */
    err_set(err, ERR_POLICY, "vault.binding.add", "the header to be added %s", rule);
    return err_hint(err, "such as \"Authorization: Bearer {}\" or \"X-Api-Key: {}\": {} is where the value goes");
}

int
binding_add(struct binding *b, struct str line, struct err *err)
{
    const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL, *at;
    struct str name = { line.p, colon != NULL ? (size_t)(colon - line.p) : 0 }, text = { NULL, 0 };

    if (b->places & BINDING_ADD)
        return bad(err, "is given twice");
    if (colon != NULL)
        text = (struct str){ colon + 1, line.n - name.n - 1 };
    while (text.n > 0 && text.p[0] == ' ')
        text = (struct str){ text.p + 1, text.n - 1 };
    if (!http1_is_token(name) || name.n > BINDING_WORD_MAX || text.n == 0)
        return bad(err, "is not \"NAME: TEXT\"");
    if (is_reserved(name))
        return bad(err, "is one that cloche itself says or takes away");
    at = memmem(text.p, text.n, hole, 2);
    if (at == NULL || memmem(at + 2, text.n - (size_t)(at + 2 - text.p), hole, 2) != NULL)
        return bad(err, "needs {} in its text, once");
    if (text.n > BINDING_ADD_MAX || text.p[text.n - 1] == ' ')
        return bad(err, "is too long, or ends with a blank");
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return bad(err, "holds a byte that is not printable ASCII");
    memcpy(b->added, name.p, name.n);
    b->added[name.n] = '\0';
    memcpy(b->added_text, text.p, text.n);
    b->added_text[text.n] = '\0';
    b->places |= BINDING_ADD;
    return binding_add_check(b, err);
}

int
binding_add_check(const struct binding *b, struct err *err)
{
    if ((b->places & BINDING_ADD) == 0)
        return 0;
    for (size_t i = 0; i < b->methods.n; i++)
        if (strcasecmp(b->methods.v[i], "TRACE") == 0) {
            err_set(err, ERR_POLICY, "vault.binding.trace", "TRACE has the server send back what was added");
            return err_hint(err, "leave --method %s out, or --add", b->methods.v[i]);
        }
    return 0;
}

/* Whether one of its places is in the header @name. */
static bool
may_be_in(const struct binding *b, struct str name)
{
    return ((b->places & (BINDING_BEARER | BINDING_BASIC)) && http1_equal(name, STR_LIT("Authorization"))) ||
           ((b->places & BINDING_COOKIE) && http1_equal(name, STR_LIT("Cookie"))) ||
           ((b->places & BINDING_HEADER) && http1_equal(name, str_of(b->header))) ||
           ((b->places & BINDING_ADD) && http1_equal(name, str_of(b->added)));
}

int
binding_add_for_run(struct binding *b, struct str line, struct err *err)
{
    struct binding was = *b;

    b->places &= ~(unsigned)BINDING_ADD;
    if (binding_add(b, line, err) < 0)
        return -1;
    if (may_be_in(&was, str_of(b->added)))
        return 0;
    err_set(err, ERR_POLICY, "vault.binding.add-other", "the binding does not say that the secret may be in %s",
            b->added);
    return err_hint(err, "`cloche secret set NAME --add \"%s: {}\"` with its hosts says so", b->added);
}

int
binding_added_value(const struct binding *b, const uint8_t *value, size_t n, struct buf *out)
{
    static const struct str basic = { "Basic ", 6 };
    const char *at = strstr(b->added_text, hole);
    size_t front = (size_t)(at - b->added_text), skip;
    cleanup_buf struct buf plain = BUF_INIT(BINDING_ADD_MAX + n);
    int r;

    buf_append(&plain, b->added_text, front);
    buf_append(&plain, value, n);
    buf_puts(&plain, at + 2);
    /* a user and a password (RFC 7617); base64 has no colon, so what has none is encoded already */
    skip = plain.n > basic.n && strncasecmp((const char *)plain.p, basic.p, basic.n) == 0 &&
           memchr(plain.p + basic.n, ':', plain.n - basic.n) != NULL ? basic.n : 0;
    buf_append(out, skip > 0 ? basic.p : "", skip);
    r = !buf_ok(&plain) ? -1
        : skip > 0      ? base64_put(out, plain.p + skip, plain.n - skip)
                        : buf_append(out, plain.p, plain.n);
    if (plain.p != NULL)
        explicit_bzero(plain.p, plain.cap);
    return r;
}
