/* front/preview_rules.c: see preview_rules.h */
#include "front/preview_rules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

#define LABEL     ".preview."
#define FORWARDED "x-forwarded-"       /* there are more of them than one would list: -port, -server, -ssl ... */
#define PARTS     "multipart/x-mixed-replace"
#define SOCKET    "webSocketDebuggerUrl"
#define FRONTEND  "devtoolsFrontendUrl"
#define ID_MAX    128                  /* of a browser or a page, in bytes */
#define ID_CHARS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

static bool
named(struct str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == name.n && strncasecmp(names[i], name.p, name.n) == 0)
            return true;
    return false;
}

static bool
begins(struct str name, const char *const *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name.n >= strlen(heads[i]) && strncasecmp(heads[i], name.p, strlen(heads[i])) == 0)
            return true;
    return false;
}

bool
preview_host(struct str host, char capability[EDGE_CAPABILITY + 1], struct str *rest)
{
    static const char digits[] = "0123456789abcdef";
    const size_t label = sizeof(LABEL) - 1;

    if (host.n <= EDGE_CAPABILITY + label || strncasecmp(host.p + EDGE_CAPABILITY, LABEL, label) != 0)
        return false;
    for (size_t i = 0; i < EDGE_CAPABILITY; i++) {
        char c = host.p[i];
        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        if (memchr(digits, c, sizeof(digits) - 1) == NULL)
            return false;
        capability[i] = c;
    }
    capability[EDGE_CAPABILITY] = '\0';
    *rest = (struct str){ host.p + EDGE_CAPABILITY + label, host.n - EDGE_CAPABILITY - label };
    return true;
}

static bool
is_root(struct str uri)
{
    char capability[EDGE_CAPABILITY + 1];

    if (uri.n < PREVIEW_ROOT || memcmp(uri.p, PREVIEW_PATH, PREVIEW_PATH_N) != 0)
        return false;
    memcpy(capability, uri.p + PREVIEW_PATH_N, EDGE_CAPABILITY);
    capability[EDGE_CAPABILITY] = '\0';
    return edge_is_capability(capability);
}

bool
preview_target(struct str uri, bool host_form, struct preview_target *out)
{
    const char *query;

    if (!host_form) {
        if (!is_root(uri))
            return false;
        uri = (struct str){ uri.p + PREVIEW_ROOT, uri.n - PREVIEW_ROOT };
    }
    query = uri.n > 0 ? memchr(uri.p, '?', uri.n) : NULL;
    out->path = (struct str){ uri.p, query != NULL ? (size_t)(query - uri.p) : uri.n };
    out->query = query != NULL ? (struct str){ query, uri.n - out->path.n } : (struct str){ "", 0 };
    out->bare = out->path.n == 0;
    return out->bare ? !host_form : out->path.p[0] == '/';
}

bool
preview_goes_in(struct str name, struct str value)
{
    /* what a client holds for us; what says where it came by, which is written anew or not the sandbox's business; what
     * was for this connection */
    static const char *const not[] = {
        "authorization", "cookie", "cookie2", "x-sandbox-key", "proxy-authorization", "idempotency-key", "referer",
        "e2b-traffic-access-token", "x-access-token",
        "forwarded", "x-real-ip", "host", "content-length", "expect", "origin", "via",
        /* and what proxies that let people in say of who asks: some of it opens other servers to whoever has it */
        "client-cert", "client-cert-chain", "teleport-jwt-assertion", "x-ms-client-principal", "x-client-ip",
        "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "fastly-client-ip",
    };
    /* a program's own, unless it is one of ours: E2B's clients send a token so (docs/e2b.md) */
    static const char *const keys[] = { "x-api-key" }, *const ours[] = { "cloche_" };
    static const char *const no_heads[] = {
        FORWARDED, "cf-access-", "oidc_", "ssl-client-", "tailscale-user-", "remote-", "x-amzn-mtls-", "x-amzn-oidc-",
        "x-auth-request-", "x-authentik-", "x-client-cert", "x-goog-authenticated-user-", "x-goog-iap-",
        "x-ms-client-principal-", "x-ms-token-", "x-pomerium-", "x-remote-", "x-ssl-client-", "x-vouch-", "x-webauth-",
    };

    return !named(name, not, ARRAY_LEN(not)) && !begins(name, no_heads, ARRAY_LEN(no_heads)) &&
           !(named(name, keys, ARRAY_LEN(keys)) && begins(value, ours, ARRAY_LEN(ours)));
}

bool
preview_goes_out(struct str name, bool host_form)
{
    /* cookies and prompts for passwords would be our origin's, or that of our neighbours; what is said of this name's
     * other ports and later connections is ours to say */
    static const char *const not[] = {
        "set-cookie", "set-cookie2", "www-authenticate", "authentication-info", "proxy-authenticate", "clear-site-data",
        "strict-transport-security", "public-key-pins", "public-key-pins-report-only", "alt-svc", "expect-ct",
        "nel", "report-to", "reporting-endpoints", "origin-agent-cluster", "x-request-id", "traceparent",
        "content-length", "transfer-encoding", "referrer-policy", "x-content-type-options", "date",
    };
    /* nor does it speak there for the whole origin */
    static const char *const not_at_ours[] = {
        "service-worker-allowed", "access-control-allow-credentials", "x-dns-prefetch-control", "accept-ch",
        "critical-ch", "set-login", "use-as-dictionary", "speculation-rules", "activate-storage-access",
        "observe-browsing-topics",
    };
    /* an order to a proxy in front: send a file, or ask another address of yours, in place of this answer */
    static const char *const no_heads[] = {
        "x-accel-", "x-envoy-", "x-lighttpd-", "x-litespeed-", "x-reproxy-", "x-sendfile",
    };
    static const char *const no_heads_at_ours[] = {
        "sec-", "secure-session-", "attribution-reporting-", "shared-storage-", "ad-auction-",
    };

    return !named(name, not, ARRAY_LEN(not)) && !begins(name, no_heads, ARRAY_LEN(no_heads)) &&
           (host_form || (!named(name, not_at_ours, ARRAY_LEN(not_at_ours)) &&
                          !begins(name, no_heads_at_ours, ARRAY_LEN(no_heads_at_ours))));
}

/* Anywhere in it: of several types it is the browser that chooses one. */
bool
preview_has_parts(struct str type)
{
    for (size_t i = 0; i + sizeof(PARTS) - 1 <= type.n; i++)
        if (strncasecmp(type.p + i, PARTS, sizeof(PARTS) - 1) == 0)
            return true;
    return false;
}

/* Without "http://localhost:PORT" or the like at its beginning, where that is this server. */
static struct str
of_same_server(struct str value, uint16_t port)
{
    static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]" };
    char own[40];

    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t n = (size_t)snprintf(own, sizeof(own), "http://%s:%u", hosts[i], (unsigned)port);
        if (value.n >= n && strncasecmp(value.p, own, n) == 0 &&
            (value.n == n || strchr("/?#", value.p[n]) != NULL))
            return (struct str){ value.p + n, value.n - n };
    }
    return value;
}

int
preview_location(struct str value, const char *root, uint16_t port, struct buf *out)
{
    struct str rest = of_same_server(value, port);
    bool same = rest.p != value.p;

    /* "//host" is another server */
    if (same || (rest.n > 0 && rest.p[0] == '/' && (rest.n == 1 || rest.p[1] != '/'))) {
        buf_puts(out, root);
        if (rest.n == 0 || rest.p[0] != '/')
            buf_put_u8(out, '/');
        /* behind our own name it must not become another one */
        while (root[0] == '\0' && rest.n > 1 && rest.p[0] == '/' && (rest.p[1] == '/' || rest.p[1] == '\\'))
            rest = (struct str){ rest.p + 1, rest.n - 1 };
    }
    buf_append(out, rest.p, rest.n);
    return buf_nul(out);
}

/* --- a browser's DevTools ----------------------------------------------------------------------------------------- */

bool
preview_devtools_path(struct str path)
{
    return str_eq_c(path, "/json") || str_starts(path, STR_LIT("/json/")) || str_starts(path, STR_LIT("/devtools/"));
}

/* "ws://localhost:PORT/devtools/KIND/ID" with @base in place of "ws://localhost:PORT/"; NULL: it is none. */
static json_t *
socket_of(const json_t *value, uint16_t port, struct str base)
{
    static const char *const kinds[] = { "devtools/browser/", "devtools/page/" };
    char own[40];
    size_t n = (size_t)snprintf(own, sizeof(own), "ws://localhost:%u/", (unsigned)port);
    struct str at = { json_string_value(value), json_string_length(value) };

    if (at.p == NULL || at.n <= n || memcmp(at.p, own, n) != 0)
        return NULL;
    at = (struct str){ at.p + n, at.n - n };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t kind = strlen(kinds[i]);
        if (at.n > kind && at.n <= kind + ID_MAX && memcmp(at.p, kinds[i], kind) == 0 &&
            strspn(at.p + kind, ID_CHARS) == at.n - kind)
            return json_sprintf("%.*s%.*s", (int)base.n, base.p, (int)at.n, at.p);
    }
    return NULL;
}

/* Some readers of JSON take a member whatever the case of its name, also that of letters which fold to one of ASCII. */
static bool
is_like(const char *name, const char *want)
{
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            return true;
    return strcasecmp(name, want) == 0;
}

static bool
make_ours(json_t *object, uint16_t port, struct str base)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, name, value) {
        if (strncasecmp(name, FRONTEND, strlen(FRONTEND)) == 0)
            (void)json_object_del(object, name);
        else if (strcmp(name, SOCKET) != 0 && is_like(name, SOCKET))
            return false;
    }
    value = json_object_get(object, SOCKET);
    return value == NULL || json_object_set_new(object, SOCKET, socket_of(value, port, base)) == 0;
}

json_t *
preview_devtools(struct str body, uint16_t port, struct str base)
{
    json_t *said = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *one;
    bool ours = !json_is_object(said) || make_ours(said, port, base);
    size_t i;

    json_array_foreach(said, i, one)
        ours = ours && (!json_is_object(one) || make_ours(one, port, base));
    if (!ours) {
        json_decref(said);
        return NULL;
    }
    return said;
}

bool
preview_devtools_plain(struct str body)
{
    return body.n == 0 || memchr(body.p, '{', body.n) == NULL;
}
