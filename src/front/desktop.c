/* front/desktop.c: a sandbox's display for a viewer, by RFB over a WebSocket, and a page of ours that is one
 * (docs/desktop.md)
 *
 * Binary messages are the bytes of RFB, in both directions, in any pieces: that is what noVNC speaks. Here only the
 * WebSocket is read; what a viewer may say is judged by the sandbox's keeper (keeper_desktop.c). Programs come with
 * their credential to the sandbox's own route. People come from a browser, whose WebSockets carry no credential but in
 * their address: only a session's is good there (docs/attach.md), which opens this one desktop in one mode until its
 * time is over. The 101 comes when the display has said something: what stands in the way is an answer of HTTP.
 *
 * The page is ours and has nothing of the sandbox's in it but pixels: nothing that a sandbox serves is ever at this
 * origin. Its session is behind the "#" of its address, which browsers send to nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "front/desktop_page.h"
#include "front/live.h"
#include "wire/ws.h"

#define IN_MAX    (128UL * 1024)        /* bytes for the display that it did not take */
#define READ_ONCE 16384
#define LATE_MAX  (256UL * 1024)        /* of what comes behind the last word */
#define PING_MS   30000                 /* of silence, then it is asked whether it is there */
#define GONE_MS   90000                 /* of silence: it is not */
#define DEAF_MS   5000                  /* of what is not read: an end behind it shows when something is sent */
#define MUTE_MS   30000                 /* for a display to say something first */
#define LAST_MS   10000                 /* for the client to take the last words */
#define WHY_MAX   (WS_CONTROL_MAX - 2)

enum { CLOSE_DONE = 1000, CLOSE_PROTOCOL = 1002, CLOSE_KIND = 1003, CLOSE_POLICY = 1008 };

struct desk {
    enum { DESK_ASKED, DESK_GRANTED, DESK_SEEN, DESK_OVER } state;
    bool control, named;                /* @control is what was asked for by name */
    struct ws_way in;
    struct buf nothing;                 /* what ws_feed() would pass on */
    size_t late;
    uint64_t heard_ms, pinged_ms, over_ms;
};

/* --- to the client ------------------------------------------------------------------------------------------------ */

static void
desk_put(struct request *r, uint8_t opcode, const void *p, size_t n)
{
    if (ws_write_head(&r->out, true, opcode, n, NULL) < 0 || (n > 0 && buf_append(&r->out, p, n) < 0))
        upgrade_end(r);         /* it would be half a message */
}

/* Nothing comes after it. */
static void
put_close(struct request *r, unsigned code, const char *why)
{
    uint8_t p[WS_CONTROL_MAX] = { (uint8_t)(code >> 8), (uint8_t)code };
    size_t n = 0;

    if (r->desk->state == DESK_OVER)
        return;
    for (; why[n] != '\0' && n < WHY_MAX; n++)         /* a reason is UTF-8 */
        p[2 + n] = why[n] >= 0x20 && why[n] < 0x7f ? (uint8_t)why[n] : '?';
    desk_put(r, WS_CLOSE, p, 2 + n);
    r->desk->state = DESK_OVER;
    r->desk->over_ms = clock_ms();
    buf_reset(&r->in);
    ask_drop(r);
    op_drop(r);
}

static bool
listens(const struct request *r)
{
    return upgrade_listens(r, IN_MAX, READ_ONCE);
}

static void
settle(struct request *r)
{
    if (upgrade_send(r) > 0 && r->desk->state == DESK_OVER)
        r->desk->over_ms = clock_ms();
    if (r->up.fd < 0)
        return;
    if (r->desk->state == DESK_OVER && r->out.n == 0 && r->desk->in.closed)
        return upgrade_end(r);
    op_flow(r);
    upgrade_watch(r, (listens(r) ? EPOLLIN : (uint32_t)EPOLLRDHUP) | (r->out.n > 0 ? (uint32_t)EPOLLOUT : 0));
}

/* --- from the client ---------------------------------------------------------------------------------------------- */

static int
on_bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct request *r = ctx;
    struct desk *d = r->desk;

    (void)end;
    (void)out;
    if (d->state == DESK_OVER || r->up.fd < 0)
        return 0;
    if (control && d->in.frame.opcode == WS_PING) {
        if (upgrade_answers(r))
            desk_put(r, WS_PONG, p, n);
    } else if (control && d->in.frame.opcode == WS_CLOSE)
        put_close(r, CLOSE_DONE, "");
    else if (!control && d->in.opcode == WS_TEXT)
        put_close(r, CLOSE_KIND, "RFB is binary");
    else if (!control && n > 0 && buf_append(&r->in, p, n) < 0)
        upgrade_end(r);
    return 0;
}

static void
look(struct request *r, const uint8_t *p, size_t n)
{
    struct desk *d = r->desk;

    d->late += d->state == DESK_OVER ? n : 0;
    if (d->late > LATE_MAX)
        return upgrade_end(r);
    if (ws_feed(&d->in, p, n, on_bytes, r, &d->nothing) != WS_OK)
        put_close(r, CLOSE_PROTOCOL, "that is no WebSocket's frame");
    buf_reset(&d->nothing);
    op_send(r);
}

static void
desk_hear(struct request *r, uint32_t events)
{
    static uint8_t room[READ_ONCE];

    if ((events & ~(uint32_t)EPOLLOUT) != 0 && (r->up.events & EPOLLIN) == 0)
        return upgrade_end(r);      /* that it has gone is all that was waited for */
    if ((events & ~(uint32_t)EPOLLOUT) != 0) {
        ssize_t n = upgrade_read(r, room, sizeof(room));
        if (n < 0)
            return;
        if (n > 0) {
            r->desk->heard_ms = clock_ms();
            look(r, room, (size_t)n);
        }
    }
    if (r->up.fd >= 0)
        settle(r);
}

static void
desk_begin(struct request *r, const uint8_t *p, size_t n)
{
    r->desk->heard_ms = clock_ms();
    r->bytes_in += n;
    if (n > 0)
        look(r, p, n);
    if (r->up.fd >= 0)
        settle(r);
}

static void
desk_time(struct request *r, uint64_t now)
{
    struct desk *d = r->desk;
    uint64_t after = listens(r) ? PING_MS : DEAF_MS;

    if (!listens(r))
        d->heard_ms = now;      /* its silence is ours */
    if (clock_since(now, d->heard_ms) >= GONE_MS ||
        (d->state == DESK_OVER && clock_since(now, d->over_ms) >= LAST_MS))
        return upgrade_end(r);
    if (d->state == DESK_SEEN && (clock_since(now, d->heard_ms) >= after || !listens(r)) &&
        clock_since(now, d->pinged_ms) >= after) {
        d->pinged_ms = now;
        desk_put(r, WS_PING, NULL, 0);
    }
    if (r->up.fd >= 0)
        settle(r);
}

static const struct upgraded viewer = { .begin = desk_begin, .hear = desk_hear, .time = desk_time };

/* --- what the display says ---------------------------------------------------------------------------------------- */

/* The one subprotocol there is, where the client names it (RFC 6455, 4.2.2); noVNC's older clients do. */
static void
begin_view(struct request *r)
{
    r->desk->state = DESK_SEEN;
    upgrade_reply(r, &viewer);
    r->stream = true;           /* it is heard by how much waits for the client */
    if (r->response != NULL && upgrade_has_word(r, "Sec-WebSocket-Protocol", "binary"))
        (void)MHD_add_response_header(r->response, "Sec-WebSocket-Protocol", "binary");
}

static void
desk_out(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    struct desk *d = r->desk;

    if (is_err || d->state == DESK_OVER)
        return;
    if (d->state == DESK_GRANTED)
        begin_view(r);
    desk_put(r, WS_BINARY, p, n);
}

static void
desk_failed(struct request *r, const struct err *err)
{
    if (r->desk->state != DESK_SEEN)
        reply_err(r, err);
    else
        put_close(r, CLOSE_POLICY, err->msg);
}

static void
desk_over(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)flags;
    (void)code;
    (void)ms;
    if (r->desk->state == DESK_SEEN)
        put_close(r, CLOSE_DONE, "the display closed the connection");
    else if (r->response == NULL)
        reply_error(r, MHD_HTTP_BAD_GATEWAY, "desktop.closed", "", "the sandbox's display says nothing");
}

static void
desk_wake(struct request *r)
{
    if (r->up.fd >= 0)
        settle(r);
    else if (r->response != NULL)
        http_wake(r);
}

static const struct op_answers desk_said = { .out = desk_out, .exit = desk_over, .failed = desk_failed,
                                             .wake = desk_wake };

/* --- who comes ---------------------------------------------------------------------------------------------------- */

static void
on_granted(struct request *r)
{
    r->desk->state = DESK_GRANTED;
    r->desk->heard_ms = clock_ms();
    op_flow(r);
}

void
desk_waits(struct front *f)
{
    uint64_t now = clock_ms();

    for (struct request *r = f->requests; r != NULL; r = r->next) {
        if (r->dead || r->desk == NULL || r->desk->state != DESK_GRANTED || r->response != NULL ||
            clock_since(now, r->desk->heard_ms) < MUTE_MS)
            continue;
        op_drop(r);
        reply_error(r, MHD_HTTP_GATEWAY_TIMEOUT, "desktop.timeout", "something else in the sandbox may have taken its "
                    "place", "the sandbox's display says nothing");
        http_wake(r);
    }
}

static const struct answers desk_answers = { .granted = on_granted };

static void
connect_it(struct request *r)
{
    if (!upgrade_asked(r))
        return;
    r->op_answers = &desk_said;
    ASK(r, EDGE_ASK_DESKTOP, &desk_answers, .id = r->id, .control = r->desk->control);
}

static void
on_box(struct request *r, const struct edge_box *box)
{
    if (upgrade_role(r) && upgrade_state(r, box))
        connect_it(r);
}

/* Without a word it is what the session is. */
static void
on_session(struct request *r, const struct edge_attach *a, const char *text)
{
    struct desk *d = r->desk;

    (void)text;
    if (!d->named)
        d->control = a->writes;
    connect_it(r);
}

static const struct answers box_answers = { .box = on_box };
static const struct answers session_answers = { .attached = on_session };

/* False: refused, which was said. */
static bool
desk_new(struct request *r)
{
    char room[16];
    bool bad = false;
    const char *mode = query_get(r, "mode", room, sizeof(room), &bad);
    struct desk *d;

    if (bad || (mode != NULL && strcmp(mode, "view") != 0 && strcmp(mode, "control") != 0))
        return reply_unfit(r, "desktop.mode", "mode is view or control");
    d = calloc(1, sizeof(*d));
    if (d == NULL) {
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "out of memory");
        return false;
    }
    r->desk = d;
    d->named = mode != NULL;
    d->control = mode != NULL && strcmp(mode, "control") == 0;
    d->nothing = (struct buf)BUF_INIT(READ_ONCE);
    ws_init(&d->in, true);
    return true;
}

void
desk_free(struct request *r)
{
    if (r->desk == NULL)
        return;
    ws_free(&r->desk->in);
    buf_free(&r->desk->nothing);
    free(r->desk);
    r->desk = NULL;
}

static void
view(struct request *r)
{
    if (!desk_new(r))
        return;
    if (r->role == EDGE_ATTACH)
        ASK(r, EDGE_ASK_SESSION, &session_answers, .id = r->id);
    else
        ASK(r, EDGE_ASK_GET, &box_answers, .id = r->id);        /* what is not the caller's is not there */
}

static void
on_person(struct request *r)
{
    if (r->role != EDGE_ATTACH) {
        reply_error(r, MHD_HTTP_FORBIDDEN, "auth.role", "`cloche desktop SANDBOX` makes one",
                    "the role \"%s\" may not be in an address: a session's credential may", edge_role_name(r->role));
        return;
    }
    who_count(r);
    if (!waits_place(r))
        return;
    memcpy(r->id, r->role_box, sizeof(r->role_box));
    ASK(r, EDGE_ASK_SESSION, &session_answers, .id = r->id);
}

static const struct answers person_answers = { .who = on_person };

static void
person(struct request *r)
{
    if (!edge_credential_well(EDGE_BEARER, r->rest))
        reply_error(r, MHD_HTTP_NOT_FOUND, "desktop.address", "`cloche desktop SANDBOX` prints one that has",
                    "the address has no session's credential");
    else if (desk_new(r))
        ASK(r, EDGE_ASK_WHO, &person_answers, .kind = EDGE_BEARER, .text = r->rest);
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

static void
page_reply(struct request *r, const char *type, const char *text)
{
    static const char *const own[][2] = {
        { "Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors "
                                     "'none'; base-uri 'none'; form-action 'none'" },
        { "Referrer-Policy", "no-referrer" },
        { NULL, NULL },
    };

    reply_page(r, MHD_HTTP_OK, type, text, strlen(text), own);
}

static void
page(struct request *r)
{
    page_reply(r, "text/html; charset=utf-8", desktop_page);
}

static void
script(struct request *r)
{
    page_reply(r, "text/javascript; charset=utf-8", desktop_script);
}

/* The page is for whoever opens it: it says nothing of any sandbox. */
const struct route desktop_routes[] = {
    { "GET", "/v1/sandboxes/{}/desktop/view", view,   false, false, .endless = true },
    { "GET", "/desktop",                      page,   false, false, .open = true, .ours = true },
    { "GET", "/desktop/page.js",              script, false, false, .open = true, .ours = true },
    { "GET", "/desktop/ws/{*}",               person, false, false, .open = true, .foreign = true,
      .named = true, .endless = true },
};
const size_t desktop_n_routes = ARRAY_LEN(desktop_routes);
