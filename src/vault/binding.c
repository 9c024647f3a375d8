/* vault/binding.c: see binding.h */
#include "vault/binding.h"

#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "match/path.h"

#define N(a) ARRAY_LEN(a)

static const struct { const char *word; enum binding_place place; } places[] = {
    { "bearer", BINDING_BEARER }, { "basic", BINDING_BASIC }, { "header", BINDING_HEADER }, { "query", BINDING_QUERY },
    { "cookie", BINDING_COOKIE }, { "body", BINDING_BODY }, { "sigv4", BINDING_SIGV4 },
};

/* --- text to binding ---------------------------------------------------------------------------------------------- */

/* RFC 9110 token: methods, names of headers, cookies. */
static bool
is_token(struct str s)
{
    if (s.n == 0 || s.n > BINDING_WORD_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) &&
            (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return true;
}

static int
bad(struct err *err, const char *code, const char *key, struct str value, const char *rule)
{
    return err_set(err, ERR_POLICY, code, "%s \"%.*s\" %s", key, (int)(value.n > 100 ? 100 : value.n), value.p, rule);
}

static int
add_host(struct binding *b, struct str value, struct err *err)
{
    struct host_pattern *p = &b->hosts[b->n_hosts];
    enum host_fault fault;

    if (b->n_hosts == BINDING_HOSTS_MAX)
        return err_set(err, ERR_LIMIT, "vault.binding.hosts", "more than %d hosts", BINDING_HOSTS_MAX);
    fault = host_pattern_cloche(value, p);
    if (fault != HOST_OK)
        return bad(err, "vault.binding.host", "host", value, host_fault_text(fault));
    if (p->port != 0) {
        bad(err, "vault.binding.host", "host", value, "names a port");
        return err_hint(err, "give the port by itself: --port %u", p->port);
    }
    memcpy(b->host_text[b->n_hosts], value.p, value.n);
    b->host_text[b->n_hosts++][value.n] = '\0';
    return 0;
}

static int
add_word(struct binding_words *words, size_t max, const char *key, struct str value, struct err *err)
{
    if (words->n == max)
        return bad(err, "vault.binding.words", key, value, "is one too many");
    if (!is_token(value))
        return bad(err, "vault.binding.words", key, value, "is not a word of this kind");
    memcpy(words->v[words->n], value.p, value.n);
    words->v[words->n++][value.n] = '\0';
    return 0;
}

static int
add_path(struct binding *b, struct str value, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1];
    enum path_fault fault;
    size_t n;

    if (b->n_paths == BINDING_PATHS_MAX || value.n > BINDING_PATH_MAX)
        return bad(err, "vault.binding.path", "path", value, "is too long, or one too many");
    if (value.n == 0 || value.p[0] != '/')
        return bad(err, "vault.binding.path", "path", value, "does not begin with \"/\"");
    /* its syntax is what is judged; the text is kept, for a trailing slash means something in a request */
    fault = path_normalise(value, STR_LIT("/"), true, normal, sizeof(normal), &n);
    if (fault != PATH_OK)
        return bad(err, "vault.binding.path", "path", value, path_fault_text(fault));
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] <= ' ' || (unsigned char)value.p[i] >= 0x7f)
            return bad(err, "vault.binding.path", "path", value, "holds a blank, or a byte that a request cannot");
    memcpy(b->paths[b->n_paths], value.p, value.n);
    b->paths[b->n_paths++][value.n] = '\0';
    return 0;
}

static int
add_place(struct binding *b, struct str value, struct err *err)
{
    const char *blank = memchr(value.p, ' ', value.n);
    struct str word = { value.p, blank != NULL ? (size_t)(blank - value.p) : value.n }, name = { NULL, 0 };
    char *into = NULL;
    size_t i = 0;

    if (blank != NULL)
        name = (struct str){ blank + 1, value.n - word.n - 1 };
    while (i < N(places) && !str_eq_c(word, places[i].word))
        i++;
    if (i == N(places)) {
        bad(err, "vault.binding.place", "place", value, "is not one");
        return err_hint(err, "bearer, basic, header NAME, query NAME, cookie NAME, body, sigv4");
    }
    if (places[i].place == BINDING_HEADER)
        into = b->header;
    else if (places[i].place == BINDING_QUERY)
        into = b->query;
    else if (places[i].place == BINDING_COOKIE)
        into = b->cookie;
    if ((into != NULL) != (blank != NULL) || (into != NULL && !is_token(name)))
        return bad(err, "vault.binding.place", "place", value,
                   into != NULL ? "needs one name after it" : "takes no name");
    if (b->places & places[i].place)
        return bad(err, "vault.binding.place", "place", value, "is given twice");
    b->places |= places[i].place;
    if (into != NULL) {
        memcpy(into, name.p, name.n);
        into[name.n] = '\0';
    }
    return 0;
}

static int
add_line(struct binding *b, struct str key, struct str value, struct err *err)
{
    uint64_t port;

    if (str_eq_c(key, "scheme")) {
        if (!str_eq_c(value, "https") && !str_eq_c(value, "http"))
            return bad(err, "vault.binding.scheme", "scheme", value, "is neither https nor http");
        b->schemes |= value.n == 5 ? BINDING_HTTPS : BINDING_HTTP;
        return 0;
    }
    if (str_eq_c(key, "host"))
        return add_host(b, value, err);
    if (str_eq_c(key, "port")) {
        if (b->n_ports == BINDING_PORTS_MAX || !str_parse_u64(value, 65535, &port) || port == 0)
            return bad(err, "vault.binding.port", "port", value, "is not a port, or one too many");
        b->ports[b->n_ports++] = (uint16_t)port;
        return 0;
    }
    if (str_eq_c(key, "method"))
        return add_word(&b->methods, BINDING_METHODS_MAX, "method", value, err);
    if (str_eq_c(key, "region"))
        return add_word(&b->regions, BINDING_SCOPES_MAX, "region", value, err);
    if (str_eq_c(key, "service"))
        return add_word(&b->services, BINDING_SCOPES_MAX, "service", value, err);
    if (str_eq_c(key, "path"))
        return add_path(b, value, err);
    if (str_eq_c(key, "place"))
        return add_place(b, value, err);
    if (str_eq_c(key, "add"))
        return binding_add(b, value, err);
    return bad(err, "vault.binding.key", "key", key, "is unknown");
}

static int
settle(struct binding *b, struct err *err)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };

    if (b->n_hosts == 0) {
        err_set(err, ERR_POLICY, "vault.binding.no-host", "a binding without a host would send the secret anywhere");
        return err_hint(err, "--host NAME says where it may go");
    }
    if (b->places == 0) {
        err_set(err, ERR_POLICY, "vault.binding.no-place", "a binding without a place would never be used");
        return err_hint(err, "--place bearer|basic|body|sigv4|\"header NAME\"|\"query NAME\"|\"cookie NAME\", or "
                        "--add");
    }
    if ((b->places & BINDING_SIGV4) && b->places != BINDING_SIGV4)
        return err_set(err, ERR_POLICY, "vault.binding.place", "sigv4 stands alone: what is signed is sent nowhere");
    if (b->schemes == 0)
        b->schemes = BINDING_HTTPS;
    if (b->n_ports == 0) {
        if (b->schemes & BINDING_HTTPS)
            b->ports[b->n_ports++] = 443;
        if (b->schemes & BINDING_HTTP)
            b->ports[b->n_ports++] = 80;
    }
    if (b->methods.n == 0) {
        for (size_t i = 0; i < N(methods); i++)
            memcpy(b->methods.v[i], methods[i], strlen(methods[i]) + 1);
        b->methods.n = N(methods);
    }
    return binding_add_check(b, err);
}

int
binding_parse(struct str text, struct binding *out, struct err *err)
{
    memset(out, 0, sizeof(*out));
    if (text.n > BINDING_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "vault.binding.long", "a binding of more than %d bytes", BINDING_TEXT_MAX);
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n), *blank;
        struct str line = { text.p, end != NULL ? (size_t)(end - text.p) : 0 };
        if (end == NULL)
            return err_set(err, ERR_POLICY, "vault.binding.syntax", "a line of a binding has no end");
        blank = memchr(line.p, ' ', line.n);
        if (blank == NULL || memchr(line.p, '\0', line.n) != NULL)
            return bad(err, "vault.binding.syntax", "line", line, "is not \"KEY VALUE\"");
        if (add_line(out, (struct str){ line.p, (size_t)(blank - line.p) },
                     (struct str){ blank + 1, line.n - (size_t)(blank - line.p) - 1 }, err) < 0)
            return -1;
        text = (struct str){ end + 1, text.n - line.n - 1 };
    }
    return settle(out, err);
}

/* --- binding to text ---------------------------------------------------------------------------------------------- */

static void
put_words(struct buf *out, const char *key, const struct binding_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        buf_printf(out, "%s %s\n", key, words->v[i]);
}

int
binding_text(const struct binding *b, struct buf *out)
{
    if (b->schemes & BINDING_HTTPS)
        buf_puts(out, "scheme https\n");
    if (b->schemes & BINDING_HTTP)
        buf_puts(out, "scheme http\n");
    for (size_t i = 0; i < b->n_hosts; i++)
        buf_printf(out, "host %s\n", b->host_text[i]);
    for (size_t i = 0; i < b->n_ports; i++)
        buf_printf(out, "port %u\n", b->ports[i]);
    put_words(out, "method", &b->methods);
    for (size_t i = 0; i < b->n_paths; i++)
        buf_printf(out, "path %s\n", b->paths[i]);
    for (size_t i = 0; i < N(places); i++) {
        const char *name = places[i].place == BINDING_HEADER   ? b->header
                           : places[i].place == BINDING_QUERY  ? b->query
                           : places[i].place == BINDING_COOKIE ? b->cookie
                                                               : NULL;
        if (b->places & places[i].place)
            buf_printf(out, "place %s%s%s\n", places[i].word, name != NULL ? " " : "", name != NULL ? name : "");
    }
    if (b->places & BINDING_ADD)
        buf_printf(out, "add %s: %s\n", b->added, b->added_text);
    put_words(out, "region", &b->regions);
    put_words(out, "service", &b->services);
    return buf_ok(out) ? 0 : -1;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

bool
binding_concerns(const struct binding *b, bool tls, const struct host *host, uint16_t port)
{
    bool right_port = false;

    if ((b->schemes & (tls ? BINDING_HTTPS : BINDING_HTTP)) == 0)
        return false;
    for (size_t i = 0; i < b->n_ports; i++)
        right_port = right_port || b->ports[i] == port;
    for (size_t i = 0; right_port && i < b->n_hosts; i++)
        if (host_match(&b->hosts[i], host, port))
            return true;
    return false;
}

bool
binding_knows(const struct binding *b, const struct host *host)
{
    for (size_t i = 0; i < b->n_hosts; i++) {
        struct host_pattern anywhere = b->hosts[i];
        anywhere.port = 0;
        if (host_match(&anywhere, host, 0))
            return true;
    }
    return false;
}

static bool
has_word(const struct binding_words *words, struct str word)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq_c(word, words->v[i]))
            return true;
    return false;
}

/* A path that one server reads as another path than we would. */
static bool
is_ambiguous(struct str path)
{
    size_t name = 1;    /* where the current name begins */

    for (size_t i = 1; i <= path.n; i++) {
        if (i < path.n && path.p[i] == '%' && path.n - i > 2 && path.p[i + 1] == '2' &&
            (path.p[i + 2] | 0x20) >= 'e' && (path.p[i + 2] | 0x20) <= 'f')
            return true;
        if (i < path.n && path.p[i] == '%' && path.n - i > 2 &&
            (strncasecmp(path.p + i, "%5c", 3) == 0 || strncasecmp(path.p + i, "%00", 3) == 0 ||
             strncasecmp(path.p + i, "%25", 3) == 0))
            return true;
        if (i < path.n && path.p[i] == '\\')
            return true;
        if (i < path.n && path.p[i] != '/')
            continue;
        if ((i == name && i < path.n) || (i - name == 1 && path.p[name] == '.') ||
            (i - name == 2 && path.p[name] == '.' && path.p[name + 1] == '.'))
            return true;
        name = i + 1;
    }
    return memchr(path.p, ';', path.n) != NULL;
}

bool
binding_permits(const struct binding *b, const struct binding_request *request)
{
    struct str path = request->path;

    if (!binding_concerns(b, request->tls, &request->host, request->port) || !has_word(&b->methods, request->method))
        return false;
    if (b->n_paths == 0)
        return true;
    if (path.n == 0 || path.p[0] != '/' || path.n > PATH_TEXT_MAX || is_ambiguous(path))
        return false;
    for (size_t i = 0; i < b->n_paths; i++)
        if (path_glob_match(str_of(b->paths[i]), path))
            return true;
    return false;
}
