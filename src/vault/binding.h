/* vault/binding.h: where one secret may go, and in which place of a request
 *
 * A binding is written once, with the secret, and judged in two processes: cloche-egress asks which hosts concern it,
 * the vault alone decides what is handed out. Pure: text in, verdict out.
 *
 * As text it is lines of "KEY VALUE\n", one value a line, any order, keys repeated for lists:
 *
 *     scheme https|http            default https
 *     host PATTERN                 match/host.h, our dialect, without port; at least one
 *     port NUMBER                  default 443 for https, 80 for http
 *     method NAME                  default GET HEAD POST PUT PATCH DELETE
 *     path GLOB                    match/path.h over the path without query; default every path
 *     place bearer|basic|body|sigv4|header NAME|query NAME|cookie NAME      at least one
 *     add HEADER: TEXT             into every request that may have it; {} in TEXT is the value (once)
 *     region NAME, service NAME    of sigv4; default any
 */
#ifndef CLOCHE_VAULT_BINDING_H
#define CLOCHE_VAULT_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "match/host.h"

#define BINDING_HOSTS_MAX   16
#define BINDING_PORTS_MAX   8
#define BINDING_METHODS_MAX 16
#define BINDING_PATHS_MAX   16
#define BINDING_SCOPES_MAX  8           /* regions, services */
#define BINDING_WORD_MAX    64          /* bytes of a method, a header's name and the like */
#define BINDING_PATH_MAX    512
#define BINDING_ADD_MAX     256         /* bytes of the text of a header that is added */
#define BINDING_TEXT_MAX    (16 * 1024)

enum binding_scheme { BINDING_HTTPS = 1 << 0, BINDING_HTTP = 1 << 1 };

/* A placeholder is replaced where its binding says, and nowhere else: a request that carries it elsewhere to the right
 * host sends the placeholder. */
enum binding_place {
    BINDING_BEARER = 1 << 0,    /* Authorization: Bearer VALUE, or "token VALUE" */
    BINDING_BASIC  = 1 << 1,    /* Authorization: Basic base64(USER:PASSWORD), either of which holds it */
    BINDING_HEADER = 1 << 2,    /* in the value of the header @header */
    BINDING_QUERY  = 1 << 3,    /* the value of the query's parameter @query, percent-encoded or not */
    BINDING_COOKIE = 1 << 4,    /* the value of the cookie @cookie */
    BINDING_BODY   = 1 << 5,    /* in the body of the request */
    BINDING_SIGV4  = 1 << 6,    /* the request is signed anew (AWS Signature Version 4) */
    BINDING_ADD    = 1 << 7,    /* the header @added is put into every request that is permitted, in place of what the
                                 * client sent under that name: nothing inside has to know of it */
};

struct binding_words {
    char v[BINDING_METHODS_MAX][BINDING_WORD_MAX + 1];
    size_t n;
};

struct binding {
    unsigned schemes;                       /* enum binding_scheme bits */
    unsigned places;                        /* enum binding_place bits */
    char header[BINDING_WORD_MAX + 1];      /* as written; compared without case */
    char query[BINDING_WORD_MAX + 1];
    char cookie[BINDING_WORD_MAX + 1];
    char added[BINDING_WORD_MAX + 1];
    char added_text[BINDING_ADD_MAX + 1];   /* with "{}" in it, once */
    struct host_pattern hosts[BINDING_HOSTS_MAX];
    char host_text[BINDING_HOSTS_MAX][HOST_TEXT_MAX + 1];
    size_t n_hosts;
    uint16_t ports[BINDING_PORTS_MAX];
    size_t n_ports;
    struct binding_words methods, regions, services;
    char paths[BINDING_PATHS_MAX][BINDING_PATH_MAX + 1];
    size_t n_paths;
};

/* One request, as it would be sent. Strings are borrowed. */
struct binding_request {
    bool tls;
    struct host host;
    uint16_t port;
    struct str method;          /* as in the request line */
    struct str path;            /* of the request line, without query */
};

/* 0 with @out filled and its defaults set, or -1 with @err (vault.binding.*), which names the line's value. */
int binding_parse(struct str text, struct binding *out, struct err *err);
/* The whole binding as text that binding_parse reads back to the same. 0, or -1 when @out cannot take it. */
int binding_text(const struct binding *b, struct buf *out);

/* Whether a connection to @host at @port may carry the secret: it has to be inspected then. */
bool binding_concerns(const struct binding *b, bool tls, const struct host *host, uint16_t port);
/* Is @host one of its hosts, whatever the scheme and port? Then its answers may have the value in them. */
bool binding_knows(const struct binding *b, const struct host *host);
/* Whether the secret may go into @request. A path with `.` or `..` names, empty names or an encoded slash, dot or
 * backslash matches only "every path": servers differ in what they take it for. */
bool binding_permits(const struct binding *b, const struct binding_request *request);

/* binding_add.c. @line is "HEADER: TEXT". 0, or -1 with @err (vault.binding.add, .trace), which does not show it. */
int binding_add(struct binding *b, struct str line, struct err *err);
int binding_add_check(const struct binding *b, struct err *err);
/* Likewise for one run, in place of its own: only a header that @b names already, in one of its places. */
int binding_add_for_run(struct binding *b, struct str line, struct err *err);
/* What the header @b->added says with @value. @out holds the value then. 0, or -1 when it cannot take it. */
int binding_added_value(const struct binding *b, const uint8_t *value, size_t n, struct buf *out);
/* Whether a server may take one for the other: case, and "_" for "-" (CGI, WSGI). */
bool binding_same_header(struct str a, struct str b);

/* What is known of the common services. */
struct binding_builtin {
    const char *name;           /* "github" */
    const char *env;            /* the variable that their tools read */
    const char *text;           /* for binding_parse; "" lacks hosts: the user has to name them */
    const char *help;           /* one line */
};
extern const struct binding_builtin binding_builtins[];
extern const size_t binding_n_builtins;
const struct binding_builtin *binding_builtin(const char *name);    /* NULL: none of that name */

#endif
