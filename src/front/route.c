/* front/route.c: from a request line to a route */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/str.h"
#include "front/console.h"
#include "front/front.h"
#include "front/live.h"
#include "front/preview.h"

const char *
query_get(const struct request *r, const char *key, char *room, size_t size, bool *bad)
{
    return form_get(r->query, key, room, size, bad);
}

bool
query_true(const struct request *r, const char *key, bool *bad)
{
    char room[8];
    const char *value = query_get(r, key, room, sizeof(room), bad);

    if (value == NULL || strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
        return false;
    *bad = *bad || (value[0] != '\0' && strcmp(value, "true") != 0 && strcmp(value, "1") != 0);
    return !*bad;
}

/* Whether the decoded path is @pattern; its variable parts into @r. */
static bool
matches(struct request *r, const char *pattern)
{
    const char *at = r->path;

    r->rest = NULL;
    for (; *pattern != '\0'; pattern++) {
        if (strncmp(pattern, "{#}", 3) == 0) {
            size_t n = strspn(at, "0123456789");
            if (!str_parse_u64((struct str){ at, n }, INT64_MAX, &r->exec) || r->exec == 0)
                return false;
            at += n;
            pattern += 2;
        } else if (strcmp(pattern, "{*}") == 0) {
            r->rest = at;
            return *at != '\0' && strchr(at, '/') == NULL;
        } else if (*pattern == '{') {
            size_t n = strcspn(at, "/");
            if (n == 0 || n > EDGE_NAME_MAX)
                return false;
            memcpy(r->id, at, n);
            r->id[n] = '\0';
            at += n;
            pattern++;      /* the brace */
        } else if (*pattern == '~') {
            r->rest = at[0] == '\0' ? "." : at;
            return true;
        } else if (*pattern == '/' && pattern[1] == '~' && *at == '\0') {
            r->rest = ".";
            return true;
        } else if (*at++ != *pattern) {
            return false;
        }
    }
    return *at == '\0';
}

/* "GET, PUT": the methods of this path (RFC 9110, 10.2.1). */
void
route_allow(struct request *r, const char *method)
{
    size_t n = strlen(r->allowed);

    if (strstr(r->allowed, method) != NULL)
        return;
    snprintf(r->allowed + n, sizeof(r->allowed) - n, "%s%s", n > 0 ? ", " : "", method);
}

/* What is asked by GET is asked by HEAD too, and answered without its body, which the library leaves away (RFC 9110,
 * 9.3.2). Under /api another method is another project's "Unknown sandbox route". */
static bool
has_head(const struct request *r, const struct route *route)
{
    return strcmp(route->method, MHD_HTTP_METHOD_GET) == 0 && !route->upload && !r->api;
}

static const struct route *
find_in(struct request *r, const struct route *routes, size_t n)
{
    bool head, endless = false;

    for (size_t i = 0; i < n; i++) {
        if (!matches(r, routes[i].path))
            continue;
        r->unshared = r->unshared || routes[i].foreign || routes[i].ours;
        endless = endless || routes[i].endless;         /* ".../stream" is no "{}" either */
        head = !endless && has_head(r, &routes[i]);
        if (strcmp(routes[i].method, r->method) == 0 || (head && strcmp(r->method, MHD_HTTP_METHOD_HEAD) == 0))
            return &routes[i];
        route_allow(r, routes[i].method);
        if (head)
            route_allow(r, MHD_HTTP_METHOD_HEAD);
    }
    return NULL;
}

static const struct { const struct route *routes; const size_t *n; } tables[] = {
    { v1_routes, &v1_n_routes },
    { execute_routes, &execute_n_routes },
    { context_routes, &context_n_routes },
    { files_routes, &files_n_routes },
    { change_routes, &change_n_routes },
    { token_routes, &token_n_routes },
    { volume_routes, &volume_n_routes },
    { template_routes, &template_n_routes },
    { audit_routes, &audit_n_routes },
    { gate_routes, &gate_n_routes },
    { page_routes, &page_n_routes },
    { live_routes, &live_n_routes },
    { run_routes, &run_n_routes },
    { life_routes, &life_n_routes },
    { adapter_routes, &adapter_n_routes },
    { watch_routes, &watch_n_routes },
    { port_routes, &port_n_routes },
    { attach_routes, &attach_n_routes },
    { desktop_routes, &desktop_n_routes },
    { console_routes, &console_n_routes },
    { preview_routes, &preview_n_routes },
    { browser_routes, &browser_n_routes },
};

/* A target with a scheme and an authority means what is behind them (RFC 9112, 3.2.2): where that is what Host says,
 * which is judged by itself. What says two things is for nobody to choose from. */
static bool
is_path(struct request *r)
{
    const char *scheme = r->f->tls ? "https://" : "http://", *at;
    struct header host = header_of(r, MHD_HTTP_HEADER_HOST);
    struct door_origin said, own;
    size_t n, left, all = strlen(r->uri);

    if (r->uri[0] == '/')
        return true;
    if (strncasecmp(r->uri, scheme, strlen(scheme)) != 0)
        return false;
    at = r->uri + strlen(scheme);
    n = strcspn(at, "/?#");
    if (host.n != 1 || !door_origin_of_host((struct str){ at, n }, r->f->tls, &said) ||
        !door_origin_of_host((struct str){ host.value, host.size }, r->f->tls, &own) || !door_origin_eq(&said, &own))
        return false;
    left = strlen(at + n);
    r->uri[0] = '/';
    memmove(r->uri + (at[n] != '/'), at + n, left + 1);
    left += at[n] != '/';       /* behind it is what it was, perhaps a credential */
    explicit_bzero(r->uri + left, all - left);
    return true;
}

/* Where the first encoded slash is in the decoded path of @n bytes as written; @n: there is none. */
static size_t
encoded_slash(const char *uri, size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++, at++) {
        if (uri[i] == '%' && strncasecmp(uri + i, "%2f", 3) == 0)
            return at;
        i += uri[i] == '%' ? 2 : 0;
    }
    return n;
}

/* An encoded slash is a part of what stands between slashes (RFC 3986, 2.2): a route that is found with it is another
 * one for whoever judges paths in front of us. In a path in a sandbox, which ends a route, it is a slash. */
static bool
hides_slash(const struct request *r, size_t n)
{
    size_t slash = encoded_slash(r->uri, n);
    bool has_rest = r->rest != NULL && r->rest >= r->path && r->rest < r->path + sizeof(r->path);

    return slash < n && (!has_rest || slash < (size_t)(r->rest - r->path));
}

/* A body that is packed (RFC 9110, 8.4), of which nothing here is ever unpacked: not a preview's, whose server may. */
static bool
is_packed(const struct request *r)
{
    struct header coding = header_of(r, MHD_HTTP_HEADER_CONTENT_ENCODING);

    return coding.n > 1 || (coding.n == 1 && coding.size > 0 && (coding.size != strlen("identity") ||
                            strncasecmp(coding.value, "identity", coding.size) != 0));
}

const struct route *
route_find(struct request *r)
{
    const char *query;
    const struct route *route = NULL;
    size_t n;
    bool well;

    r->early = MHD_HTTP_BAD_REQUEST;
    r->early_code = "http.uri";
    r->early_why = "the request's path is malformed";
    if (!is_path(r))
        return NULL;
    query = strchr(r->uri, '?');
    n = query != NULL ? (size_t)(query - r->uri) : strlen(r->uri);
    well = url_decode(r->uri, n, false, r->path, sizeof(r->path));
    if ((!well && n >= sizeof(r->path)) || (query != NULL && strlen(query) >= sizeof(r->query))) {
        r->early = MHD_HTTP_URI_TOO_LONG;
        r->early_code = "http.uri-too-long";
        r->early_why = "the request's path or query is longer than 8191 bytes";
        return NULL;
    }
    if (!well)
        return NULL;
    if (query != NULL)
        memcpy(r->query, query + 1, strlen(query));
    r->early = 0;
    route = preview_route(r);
    if (r->host_form)
        return route;
    r->api = strncmp(r->path, "/api/", 5) == 0;
    for (size_t i = 0; i < ARRAY_LEN(tables) && route == NULL; i++)
        route = find_in(r, tables[i].routes, *tables[i].n);
    if (route == NULL && strncmp(r->path, "/e2b/", 5) == 0) {   /* one of the many that E2B has */
        r->early = MHD_HTTP_NOT_IMPLEMENTED;
        r->early_code = "e2b.not-offered";
        r->early_why = "cloche does not offer this call of E2B's";
        return NULL;
    }
    if ((route == NULL && r->allowed[0] == '\0') || hides_slash(r, n)) {
        r->early = MHD_HTTP_NOT_FOUND;
        r->early_code = "http.route";
        r->early_why = "there is no such route";
        return NULL;
    }
    if (route == NULL && r->allowed[0] != '\0' && !r->api) {
        r->early = MHD_HTTP_METHOD_NOT_ALLOWED;
        r->early_code = "http.method";
        r->early_why = "this route has other methods";
    }
    if (route != NULL && !route->foreign && is_packed(r)) {
        r->early = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        r->early_code = "http.encoding";
        r->early_why = "the body has a Content-Encoding";
    }
    return route;
}

void
route_wipe(struct request *r)
{
    if (r->uri != NULL)
        explicit_bzero(r->uri, strlen(r->uri));
    free(r->uri);
    r->uri = NULL;
    explicit_bzero(r->path, strnlen(r->path, sizeof(r->path)));
    explicit_bzero(r->query, strnlen(r->query, sizeof(r->query)));
}
