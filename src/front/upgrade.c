/* front/upgrade.c: connections that speak HTTP no more (RFC 9110 §7.8), from the 101 to their end
 *
 * libmicrohttpd lends us the socket (or, under TLS, one end of a pair) and counts the connection among its own until it
 * is given back.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/sha1.h"
#include "front/live.h"

#define PONGS_LEAST 4096        /* of a caller whose share of all that waits is used up */
#define PONGS_MAX (2 * FRONT_STREAM_MAX)    /* a stream that stands at its own ceiling lets them through */

/* --- the handshake of a WebSocket (RFC 6455 §4.2) ----------------------------------------------------------------- */

/* Whether the header's list of words has @word, in any case. */
bool
upgrade_has_word(const struct request *r, const char *header, const char *word)
{
    const char *at = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, header);

    while (at != NULL && *at != '\0') {
        size_t n;
        at += strspn(at, ", \t");
        n = strcspn(at, ", \t");
        if (n == strlen(word) && strncasecmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

/* 16 bytes as base64 */
static bool
key_well(const char *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return key != NULL && strlen(key) == 24 && strspn(key, digits) == 22 && strcmp(key + 22, "==") == 0;
}

bool
upgrade_asked(struct request *r)
{
    const char *version = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Sec-WebSocket-Version");
    const char *key = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Sec-WebSocket-Key");

    if (!upgrade_has_word(r, MHD_HTTP_HEADER_UPGRADE, "websocket") ||
        !upgrade_has_word(r, MHD_HTTP_HEADER_CONNECTION, "upgrade") || version == NULL || strcmp(version, "13") != 0) {
        reply_error(r, MHD_HTTP_UPGRADE_REQUIRED, "http.websocket", "RFC 6455",
                    "this route is for a WebSocket, version 13");
        if (r->response != NULL) {
            (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_UPGRADE, "websocket");
            (void)MHD_add_response_header(r->response, "Sec-WebSocket-Version", "13");
        }
        return false;
    }
    if (key_well(key))
        return true;
    reply_error(r, MHD_HTTP_BAD_REQUEST, "http.websocket", "RFC 6455", "Sec-WebSocket-Key is not 16 bytes in base64");
    return false;
}

/* --- handing over ------------------------------------------------------------------------------------------------- */

static void
on_upgraded(struct watch *w, uint32_t events)
{
    struct request *r = w->owner;

    if (!r->dead)
        r->upgraded->hear(r, events);
}

static void
on_upgrade(void *ctx, struct MHD_Connection *c, void *slot, const char *extra, size_t n, MHD_socket fd,
           struct MHD_UpgradeResponseHandle *handle)
{
    struct request *r = ctx;

    (void)c;
    (void)slot;
    http_unwatch_peer(r);       /* it is looked at otherwise from here on */
    r->up_handle = handle;
    r->up = (struct watch){ .fd = fd, .ready = on_upgraded, .owner = r };
    if (loop_watch(&r->f->loop, &r->up, EPOLLIN) < 0)
        upgrade_end(r);
    else
        r->upgraded->begin(r, (const uint8_t *)extra, n);
    if (r->f->tls && r->up.fd >= 0)
        http_watch_peer(r, true);       /* the library does not say at its end of the pair that the client has gone */
}

void
upgrade_reply(struct request *r, const struct upgraded *upgraded)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const char *key = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Sec-WebSocket-Key");
    uint8_t digest[SHA1_SIZE];
    json_t *accept = NULL;
    struct sha1 s;

    sha1_begin(&s);
    sha1_add(&s, key, strlen(key));
    sha1_add(&s, guid, strlen(guid));
    sha1_end(&s, digest);
    r->upgraded = upgraded;
    r->async = false;           /* there is no later answer to come back for */
    r->status = MHD_HTTP_SWITCHING_PROTOCOLS;
    r->response = MHD_create_response_for_upgrade(on_upgrade, r);
    accept = json_of_base64(digest, sizeof(digest));
    if (r->response == NULL || accept == NULL)
        r->f->ended = true;     /* no memory: it comes anew */
    else {
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_UPGRADE, "websocket");
        (void)MHD_add_response_header(r->response, "Sec-WebSocket-Accept", json_string_value(accept));
        (void)MHD_add_response_header(r->response, "X-Request-Id", r->number);
    }
    json_decref(accept);
}

void
upgrade_watch(struct request *r, uint32_t events)
{
    (void)loop_watch(&r->f->loop, &r->up, events);
}

size_t
upgrade_send(struct request *r)
{
    size_t sent = 0;

    while (r->up.fd >= 0 && r->out.n > 0) {
        ssize_t n = send(r->up.fd, r->out.p, r->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            upgrade_end(r);
            break;
        }
        buf_consume(&r->out, (size_t)n);
        sent += (size_t)n;
        r->bytes_out += (uint64_t)n;
    }
    return sent;
}

void
upgrade_end(struct request *r)
{
    if (r->up.fd < 0)
        return;
    http_unwatch_peer(r);
    (void)loop_forget(&r->f->loop, &r->up);
    ask_drop(r);
    op_drop(r);
    r->f->given_back = true;
    (void)MHD_upgrade_action(r->up_handle, MHD_UPGRADE_ACTION_CLOSE);
}

ssize_t
upgrade_read(struct request *r, uint8_t *room, size_t size)
{
    ssize_t n = recv(r->up.fd, room, size, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        upgrade_end(r);
        return -1;
    }
    if (n < 0)
        return 0;
    r->bytes_in += (uint64_t)n;
    return n;
}

bool
upgrade_listens(const struct request *r, size_t most, size_t piece)
{
    return r->in.n < most && (r->in.n == 0 || waits_room(r, piece));
}

bool
upgrade_role(struct request *r)
{
    if (r->role != EDGE_AUDITOR)        /* who may look at records, and neither run anything nor watch somebody */
        return true;
    reply_error(r, MHD_HTTP_FORBIDDEN, "auth.role", "docs/daemon.md says what each role may",
                "the role \"%s\" may not do this", edge_role_name(r->role));
    return false;
}

bool
upgrade_state(struct request *r, const struct edge_box *box)
{
    if (box->state == BOX_READY || box->state == BOX_DEGRADED)
        return true;
    reply_error(r, MHD_HTTP_CONFLICT, "sandbox.state", "GET /v1/sandboxes/{id} says why", "the sandbox is %s",
                box_state_name(box->state));
    return false;
}

bool
upgrade_answers(const struct request *r)
{
    return r->out.n < PONGS_LEAST || (r->out.n < PONGS_MAX && waits_room(r, PONGS_LEAST));
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void
upgrade_time(struct front *f)
{
    uint64_t now = clock_ms();

    for (struct request *r = f->requests; r != NULL; r = r->next)
        if (r->up.fd >= 0 && !r->dead)
            r->upgraded->time(r, now);
}
