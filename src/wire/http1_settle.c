/* wire/http1_settle.c: what a head's fields mean together: who is asked for, where the body ends, whether the
 * connection lives on (RFC 9110 §7, RFC 9112 §3.2, §6, §9; see http1.h) */
#include "wire/http1_priv.h"

#include <string.h>

#include "base/array.h"
#include "match/ip.h"

#define LENGTH_DIGITS 19    /* below 2^64 whatever they are */

/* Fields seen while walking, apart from what the head keeps. */
struct seen {
    bool any_host;              /* what it says is not ours to judge */
    bool host, length, coding, expect;
    struct str upgrade;
    bool close, keep_alive, names_upgrade;
    size_t n_options;
    struct str options[HTTP1_OPTIONS_MAX];
};

static enum http1_result
parse_port(struct str text, struct http1_authority *out)
{
    uint64_t port;

    /* str_parse_u64 takes leading zeros; "080" is not how a port is written */
    if (text.n == 0 || text.n > 5 || text.p[0] == '0' || !str_parse_u64(text, 65535, &port))
        return HTTP1_BAD_PORT;
    out->port = (uint16_t)port;
    out->port_stated = true;
    return HTTP1_OK;
}

/* "[v6]" and what follows; @rest is left at the port's colon, or empty. */
static enum http1_result
parse_brackets(struct str text, struct http1_authority *out, struct str *rest)
{
    const char *close = memchr(text.p, ']', text.n);
    struct ip ip;

    if (close == NULL)
        return HTTP1_BAD_HOST;
    out->host = (struct str){ text.p + 1, (size_t)(close - text.p) - 1 };
    out->kind = HTTP1_HOST_IPV6;
    if (!ip_parse(out->host, &ip) || ip.family != 6)    /* zone ids and IPvFuture too */
        return HTTP1_BAD_HOST;
    *rest = (struct str){ close + 1, text.n - out->host.n - 2 };
    return rest->n == 0 || rest->p[0] == ':' ? HTTP1_OK : HTTP1_BAD_HOST;
}

static enum http1_result
parse_name(struct str text, struct http1_authority *out, struct str *rest)
{
    struct ip ip;
    size_t n = 0;

    while (n < text.n && http1_is((uint8_t)text.p[n], C_HOST))
        n++;
    *rest = (struct str){ text.p + n, text.n - n };
    if (n == 0 || n > HTTP1_HOST_MAX || (rest->n > 0 && rest->p[0] != ':'))
        return HTTP1_BAD_HOST;
    out->host = (struct str){ text.p, n };
    out->kind = ip_parse(out->host, &ip) ? HTTP1_HOST_IPV4 : HTTP1_HOST_NAME;
    return HTTP1_OK;
}

enum http1_result
http1_authority_parse(struct str text, bool need_port, struct http1_authority *out)
{
    struct str rest;
    enum http1_result result;

    *out = (struct http1_authority){ .text = text };
    if (text.n == 0)
        return HTTP1_BAD_HOST;
    if (memchr(text.p, '@', text.n) != NULL)
        return HTTP1_USERINFO;
    result = text.p[0] == '[' ? parse_brackets(text, out, &rest) : parse_name(text, out, &rest);
    if (result != HTTP1_OK)
        return result;
    if (rest.n == 0)
        return need_port ? HTTP1_NO_PORT : HTTP1_OK;
    return parse_port((struct str){ rest.p + 1, rest.n - 1 }, out);
}

static enum http1_result
see_host(struct http1_head *head, struct seen *seen, struct str value)
{
    if (seen->host)
        return HTTP1_MANY_HOSTS;
    seen->host = true;
    if (!seen->any_host)
        return http1_authority_parse(value, false, &head->host);
    if (http1_authority_parse(value, false, &head->host) != HTTP1_OK)
        head->host = (struct http1_authority){ .kind = HTTP1_HOST_NONE };
    return HTTP1_OK;
}

/* A HTAB beside the value is a blank to the grammar, but part of the value to parsers in wide use (Node's llhttp: after
 * it): where a body ends must not hang on that. @value lies in a line, between its colon and its CR. */
static bool
has_tab_beside(struct str value)
{
    const char *p;

    for (p = value.p - 1; *p != ':'; p--)
        if (*p == '\t')
            return true;
    for (p = value.p + value.n; *p != '\r'; p++)
        if (*p == '\t')
            return true;
    return false;
}

static enum http1_result
see_length(struct http1_head *head, struct seen *seen, struct str value)
{
    if (seen->length)
        return HTTP1_MANY_LENGTHS;
    seen->length = true;
    if (value.n > LENGTH_DIGITS || has_tab_beside(value) || !str_parse_u64(value, UINT64_MAX, &head->stated_length))
        return HTTP1_BAD_LENGTH;
    head->length_stated = true;
    return HTTP1_OK;
}

static enum http1_result
see_coding(struct http1_head *head, struct seen *seen, struct str value)
{
    (void)head;
    if (seen->coding || has_tab_beside(value) || !http1_equal(value, STR_LIT("chunked")))
        return HTTP1_BAD_CODING;
    seen->coding = true;
    return HTTP1_OK;
}

/* Options that would make a proxy drop what says where the message goes or ends are attacks, not options. */
static enum http1_result
see_connection(struct http1_head *head, struct seen *seen, struct str value)
{
    struct str option;

    (void)head;
    while (http1_list_next(&value, &option)) {
        if (!http1_is_token(option) || seen->n_options == HTTP1_OPTIONS_MAX)
            return HTTP1_BAD_CONNECTION;
        if (http1_equal(option, STR_LIT("host")) || http1_equal(option, STR_LIT("content-length")) ||
            http1_equal(option, STR_LIT("transfer-encoding")))
            return HTTP1_BAD_CONNECTION;
        seen->close |= http1_equal(option, STR_LIT("close"));
        seen->keep_alive |= http1_equal(option, STR_LIT("keep-alive"));
        seen->names_upgrade |= http1_equal(option, STR_LIT("upgrade"));
        seen->options[seen->n_options++] = option;
    }
    return HTTP1_OK;
}

static enum http1_result
see_expect(struct http1_head *head, struct seen *seen, struct str value)
{
    (void)head;
    if (seen->expect || !http1_equal(value, STR_LIT("100-continue")))
        return HTTP1_BAD_EXPECT;
    seen->expect = true;
    return HTTP1_OK;
}

static enum http1_result
see_upgrade(struct http1_head *head, struct seen *seen, struct str value)
{
    (void)head;
    if (seen->upgrade.n > 0 || value.n == 0)    /* twice: which protocol a server takes would be its choice */
        return HTTP1_BAD_CONNECTION;
    seen->upgrade = value;
    return HTTP1_OK;
}

static const struct {
    struct str name;
    bool request_only;
    enum http1_result (*see)(struct http1_head *, struct seen *, struct str);
} meanings[] = {
    { { "host", 4 }, true, see_host },
    { { "content-length", 14 }, false, see_length },
    { { "transfer-encoding", 17 }, false, see_coding },
    { { "connection", 10 }, false, see_connection },
    { { "expect", 6 }, true, see_expect },
    { { "upgrade", 7 }, false, see_upgrade },
};

static bool
is_hop(const struct seen *seen, struct str name)
{
    if (http1_is_hop(name))
        return true;
    for (size_t i = 0; i < seen->n_options; i++)
        if (http1_equal(name, seen->options[i]))
            return true;
    return false;
}

static enum http1_result
walk(struct http1_head *head, struct seen *seen, bool request)
{
    for (size_t i = 0; i < head->n_fields; i++)
        for (size_t m = 0; m < ARRAY_LEN(meanings); m++) {
            enum http1_result result;
            if ((meanings[m].request_only && !request) || !http1_equal(head->fields[i].name, meanings[m].name))
                continue;
            result = meanings[m].see(head, seen, head->fields[i].value);
            if (result != HTTP1_OK)
                return result;
        }
    for (size_t i = 0; i < head->n_fields; i++)
        head->fields[i].hop = is_hop(seen, head->fields[i].name);
    if (seen->coding && seen->length)
        return HTTP1_CODING_AND_LENGTH;
    if (seen->coding && head->minor == 0)
        return HTTP1_CODING_IN_10;
    head->keep_alive = !seen->close && (head->minor == 1 || seen->keep_alive);
    if (head->minor == 1 && seen->names_upgrade)
        head->upgrade = seen->upgrade;
    return HTTP1_OK;
}

enum http1_result
http1_settle_request(struct http1_head *head, bool any_host)
{
    struct seen seen = { .any_host = any_host };
    enum http1_result result = walk(head, &seen, true);

    if (result != HTTP1_OK)
        return result;
    if (!seen.host && head->minor == 1)
        return HTTP1_NO_HOST;
    if (head->form == HTTP1_ORIGIN || head->form == HTTP1_ASTERISK)
        head->authority = head->host;
    if (seen.coding) {
        head->framing = HTTP1_BODY_CHUNKED;
    } else if (seen.length) {
        head->framing = HTTP1_BODY_LENGTH;
        head->body_length = head->stated_length;
    }
    /* CONNECT has no content (RFC 9110 §9.3.6): what follows it is the tunnel's, or an attempt to smuggle */
    if (head->form == HTTP1_AUTHORITY && (seen.coding || head->stated_length > 0))
        return HTTP1_UNEXPECTED_BODY;
    head->expect_continue = seen.expect && head->minor == 1 &&
                            (head->framing == HTTP1_BODY_CHUNKED || head->body_length > 0);
    return HTTP1_OK;
}

/* RFC 9112 §6.3, in its order. */
enum http1_result
http1_settle_response(struct http1_head *head, struct str method)
{
    struct seen seen = { .host = false };
    enum http1_result result = walk(head, &seen, false);
    bool empty = head->status < 200 || head->status == 204;     /* never has a body, and may not announce one */

    if (result != HTTP1_OK)
        return result;
    head->tunnel = head->status == 101 ||
                   (str_eq_c(method, "CONNECT") && head->status >= 200 && head->status < 300);
    if (head->tunnel)
        return HTTP1_OK;
    if (empty)
        return seen.coding || head->stated_length > 0 ? HTTP1_UNEXPECTED_BODY : HTTP1_OK;
    if (str_eq_c(method, "HEAD") || head->status == 304)
        return HTTP1_OK;
    if (seen.coding) {
        head->framing = HTTP1_BODY_CHUNKED;
    } else if (seen.length) {
        head->framing = HTTP1_BODY_LENGTH;
        head->body_length = head->stated_length;
    } else {
        head->framing = HTTP1_BODY_UNTIL_CLOSE;
        head->keep_alive = false;
    }
    return HTTP1_OK;
}
