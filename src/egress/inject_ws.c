/* egress/inject_ws.c: secrets in what follows a WebSocket handshake (ws.h)
 *
 * Frames are looked at where a secret is concerned: what the client's messages hold is treated as a body is, what the
 * server's hold as an answer is. For that no extension may be agreed on (a compressed message cannot be searched). The
 * values stay in memory for as long as the connection lasts; the end of a secret is its end (conn_revoked()).
 */
#include <stdlib.h>

#include "egress/inject_priv.h"
#include "egress/swap.h"
#include "wire/ws.h"

struct inject_ws {
    struct ws_way up, down;
    struct swap *up_control, *down_control;     /* messages have j->up and j->down; control frames come in between */
};

void
inject_ws_free(struct inject *j)
{
    struct inject_ws *w = j->ws;

    j->ws = NULL;
    if (w == NULL)
        return;
    ws_free(&w->up);
    ws_free(&w->down);
    swap_free(w->up_control);
    swap_free(w->down_control);
    free(w);
}

int
inject_ws_prepare(struct inject *j)
{
    struct inject_ws *w = j->ws = calloc(1, sizeof(*w));

    if (w == NULL)
        return -1;
    ws_init(&w->up, true);
    ws_init(&w->down, false);
    if (inject_make_up(j, &j->up) < 0 || inject_make_up(j, &w->up_control) < 0)
        return -1;
    return j->lease != NULL ? inject_make_down(j, &w->down_control) : 0;
}

bool
inject_ws_begins(const struct inject *j, const struct http1_head *head)
{
    return j->ws != NULL && http1_find(head, STR_LIT("Sec-WebSocket-Extensions"), NULL) == NULL;
}

/* What of the client's bytes is sent. */
static int
up_bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct inject *j = ctx;
    struct swap *s = control ? j->ws->up_control : j->up;
    int r = swap_feed(s, p, n, end, out);

    return inject_forbidden(j, swap_seen(s)) ? -1 : r;
}

static int
down_bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct inject *j = ctx;
    struct swap *s = control ? j->ws->down_control : j->down;
    int r = swap_feed(s, p, n, end, out);

    inject_scrubbed(j, swap_seen(s));
    return r;
}

/* Not as RFC 6455 has it, or no room: the connection ends, and that is said. */
static int
ended(struct inject *j, enum ws_result r)
{
    if (r != WS_OK && r != WS_REFUSED)
        j->owner->note(j->ctx, r == WS_ROOM ? "secret-search" : "websocket-frame", "", false);
    return r == WS_OK ? 0 : -1;
}

int
inject_ws_up(void *ctx, struct str data, struct buf *out)
{
    struct inject *j = ctx;

    return ended(j, ws_feed(&j->ws->up, (const uint8_t *)data.p, data.n, up_bytes, j, out));
}

int
inject_ws_down(void *ctx, struct str data, struct buf *out)
{
    struct inject *j = ctx;

    if (j->down == NULL)        /* no value was given out: there is none to find */
        return buf_append(out, data.p, data.n);
    return ended(j, ws_feed(&j->ws->down, (const uint8_t *)data.p, data.n, down_bytes, j, out));
}
