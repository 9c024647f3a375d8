/* client/api_client.h: what the verbs ask of cloche serve
 *
 * Its HTTP API (docs/openapi.yaml) over its unix socket: one request a connection, JSON or events back. Whoever runs
 * the verb is the daemon's owner there, unless $CLOCHE_TOKEN holds a token, which is then presented. Calls block until
 * the daemon answers. What it says is text from elsewhere: it is printed by cli_fail or with care for a terminal.
 */
#ifndef CLOCHE_CLIENT_API_CLIENT_H
#define CLOCHE_CLIENT_API_CLIENT_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "client/sse.h"
#include "program/say.h"

#define API_ANSWER_MAX (40UL * 1024 * 1024)     /* bytes of a JSON answer */
#define API_PATH_MAX   8192
#define API_FLAG_HELP  "the daemon's socket ($CLOCHE_SOCKET, or api.sock in its usual folder)"

struct api {
    char socket[PATH_MAX];      /* absolute, or from the working directory */
    char token[128];            /* "" none */
    bool named;                 /* by --socket or $CLOCHE_SOCKET: it is that one, or none */
};

/* A request with any body, and what is done with the answer's body. All of it is borrowed. */
typedef int api_bytes_fn(void *ctx, const void *p, size_t n);
struct api_call {
    const char *method, *path, *accept;
    const char *type;           /* of the body */
    struct str body;            /* p NULL none */
    api_bytes_fn *fn;           /* each piece, as it comes; something else than 0 ends the call */
    void *ctx;
    uint64_t until_ms;          /* of clock_ms(): nothing is waited for after that (api.time); 0 as long as it takes */
};

/* Where it usually is: $CLOCHE_SOCKET, else api.sock in the state folder; and $CLOCHE_TOKEN. 0 or -1 with @err. */
int api_init(struct api *api, struct err *err);
/* The same, but for what is not NULL. */
int api_open(struct api *api, const char *socket, const char *token, struct err *err);
/* The value of "--socket", PATH or unix:PATH, into the struct api at @at. 0, or -1 with @err. */
int api_flag_socket(void *at, const char *value, struct err *err);

/* Append @text to the path or query in @path, percent-encoded but for letters, digits and "-._~". 0 or -1. */
int api_escape(struct buf *path, const char *text);

/* Ask: @method, @path ("/v1/tokens?limit=5"), @body or NULL (borrowed). 0 with the answer in @out, which the caller
 * releases (an object or array, or NULL where the answer has no content), when its status is 2xx. Otherwise -1 with
 * @err: of the daemon's own words where it answered, with its code (which lasts until the next call), else api.down
 * (nobody answers there), api.cut, api.answer. @out may be NULL. */
int api_ask(const struct api *api, const char *method, const char *path, const json_t *body, json_t **out,
            struct err *err);

/* Ask so; a status of 2xx is a success, whatever is in the body. 0, what @fn returned, or -1 with @err as above.
 * Nothing is printed, and nobody need read standard output. */
int api_call(const struct api *api, const struct api_call *call, struct err *err);
/* The same of an answer of events, each of which goes to this @fn in place of the call's. */
int api_call_events(const struct api *api, const struct api_call *call, sse_fn *fn, void *ctx, struct err *err);

/* What the daemon says of a failure (docs/openapi.yaml, Error) in @err: its words, its code (which lasts until the next
 * call), its detail as the hint. Returns -1. */
int api_error(const json_t *said, enum err_kind kind, struct err *err);

/* A connection to it, and all of p[0..n) on it. A descriptor, or -1 with @err; 0, or -1 with errno. */
int api_reach(const struct api *api, struct err *err);
int api_send(int fd, const uint8_t *p, size_t n);

/* GET @path as a WebSocket (RFC 6455): a descriptor when the daemon takes it, with what it said behind its head in @in,
 * which is empty before; or -1 with @err as above. */
int api_upgrade(const struct api *api, const char *path, struct buf *in, struct err *err);

/* GET @path as events (text/event-stream); each goes to @fn, which prints it, until the stream ends or it returns
 * something else than 0. 0 at the stream's end; what @fn returned (one of the others); API_UNREAD when nobody reads
 * standard output any more; or -1 with @err. */
enum { API_NO_EVENT = 1, API_UNREAD, API_ENDED };
int api_events(const struct api *api, const char *path, sse_fn *fn, void *ctx, struct err *err);

/* Whether the other end of standard output is closed. */
bool api_nobody_reads(void);

/* GET @path, whatever it is, in pieces as they come. The same. */
int api_bytes(const struct api *api, const char *path, api_bytes_fn *fn, void *ctx, struct err *err);

#endif
