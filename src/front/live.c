/* front/live.c: GET /v1/sandboxes/{}/exec/ws: a command over a WebSocket
 *
 * The client's first message, text, is JSON and says what to run. From then on binary messages are bytes behind one
 * that names their channel (0 stdin, 1 stdout, 2 stderr), and text messages are JSON: of the client resize, signal and
 * stdin_end, of ours started, exit and error. What a command prints is only ever in binary messages, so it can say
 * nothing in our name. Nobody waits for anybody: what the command does not read, or is not there yet to read, waits
 * here up to LIVE_STDIN_MAX, then the client's socket is not read; what the client does not read stops the operation's
 * socket (FRONT_STREAM_MAX). A client that goes away takes its command along, or the question whether it may run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/ws.h"
#include "front/live.h"
#include "wire/whole.h"

#define SUBPROTOCOL "cloche.exec"    /* beside which a page says its credential (who.c) */
#define LIVE_STDIN_MAX (256UL * 1024)   /* bytes that the command did not take yet */
#define LIVE_TEXT_MAX  (256UL * 1024)   /* of one text message: a command has half of that */
#define LIVE_START_MS  30000            /* for the first message to come */
#define LIVE_PING_MS   30000            /* of silence, then it is asked whether it is there */
#define LIVE_GONE_MS   90000            /* of silence: it is not */
#define LIVE_DEAF_MS   5000             /* of what is not read: an end behind it shows when something is sent */
#define LIVE_END_MS    10000            /* to take the last words */
#define LIVE_OUT_MAX   (4UL * 1024 * 1024)
#define READ_ONCE      16384

enum { CHANNEL_IN, CHANNEL_OUT, CHANNEL_ERR };
enum { CLOSE_DONE = 1000, CLOSE_PROTOCOL = 1002, CLOSE_KIND = 1003, CLOSE_POLICY = 1008, CLOSE_LARGE = 1009 };

struct live {
    enum { LIVE_OPEN, LIVE_ASKED, LIVE_RUNS, LIVE_OVER } state;
    struct ws_way in;
    struct buf text;            /* of a message, so far */
    struct buf nothing;         /* what ws_feed() would pass on */
    struct packet_queue to_op;
    size_t window;              /* bytes of stdin that the keeper has room for */
    bool inside, stdin_end, pty;
    bool deaf;                  /* what comes has no meaning any more */
    size_t late;                /* bytes that came after the last word */
    uint64_t begun_ms, heard_ms, pinged_ms, over_ms;
};

/* --- to the client ------------------------------------------------------------------------------------------------ */

static bool
listens(const struct request *r)
{
    return upgrade_listens(r, LIVE_STDIN_MAX, READ_ONCE);
}

/* Listen by how much waits. Whoever is not listened to can go away all the same. */
static void
settle(struct request *r)
{
    if (upgrade_send(r) > 0)
        r->live->over_ms = clock_ms();
    op_flow(r);
    upgrade_watch(r, (listens(r) ? EPOLLIN : (uint32_t)EPOLLRDHUP) | (r->out.n > 0 ? (uint32_t)EPOLLOUT : 0));
}

static void
live_put(struct request *r, uint8_t opcode, const uint8_t *head, size_t head_n, const void *p, size_t n)
{
    if (r->up.fd < 0)
        return;
    if (r->out.n + n + head_n + WS_HEAD_MAX > LIVE_OUT_MAX ||
        ws_write_head(&r->out, true, opcode, head_n + n, NULL) < 0 ||
        (head_n > 0 && buf_append(&r->out, head, head_n) < 0) || (n > 0 && buf_append(&r->out, p, n) < 0))
        upgrade_end(r);         /* it would be half a message */
}

static void
put_json(struct request *r, json_t *message)
{
    char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;

    json_decref(message);
    if (text != NULL)
        live_put(r, WS_TEXT, NULL, 0, text, strlen(text));
    else
        upgrade_end(r);
    free(text);
}

static void
put_bytes(struct request *r, uint8_t channel, const void *p, size_t n)
{
    live_put(r, WS_BINARY, &channel, 1, p, n);
}

/* Nothing comes after it. */
static void
put_close(struct request *r, unsigned code)
{
    const uint8_t p[2] = { (uint8_t)(code >> 8), (uint8_t)code };

    if (r->live->state == LIVE_OVER)
        return;
    live_put(r, WS_CLOSE, NULL, 0, p, sizeof(p));
    r->live->state = LIVE_OVER;
    r->live->over_ms = clock_ms();
    buf_reset(&r->in);
    ask_drop(r);
    op_drop(r);
}

void
live_refuse(struct request *r, const char *code, const char *detail, const char *text)
{
    if (r->live->state == LIVE_OVER)
        return;
    put_json(r, json_pack("{s:s, s:o, s:s, s:o, s:s}", "type", "error", "error",
                          json_of_text((const uint8_t *)text, strlen(text)), "code", code, "detail",
                          json_of_text((const uint8_t *)detail, strlen(detail)), "request_id", r->number));
    put_close(r, CLOSE_POLICY);
}

/* --- to the command ----------------------------------------------------------------------------------------------- */

/* When it runs, if it does not yet. */
static void
tell(struct request *r, uint8_t type, const struct shape *shape, const void *m)
{
    struct live *l = r->live;
    uint8_t room[FRAME_HEADER + 8];
    cleanup_buf struct buf b = PROTO_BUF(room, shape);

    if (r->op.fd < 0 && l->state != LIVE_ASKED)
        return;
    if (proto_frame(&b, type, shape, m) < 0 ||
        (r->op.fd < 0 ? packet_queue_put(&l->to_op, &b) : packet_queue_send(&l->to_op, r->op.fd, &b, -1)) < 0) {
        /* gone: that is read. Too much: it does not read, and nothing of what is said would come through */
        if (errno == ENOBUFS)
            live_refuse(r, "exec.too-much", "", "more signals and sizes were sent than the sandbox takes");
    }
}

bool
live_wants_out(const struct request *r)
{
    return packet_queue_waits(&r->live->to_op);
}

void
live_send(struct request *r)
{
    struct live *l = r->live;

    if (r->op.fd >= 0)
        (void)packet_queue_flush(&l->to_op, r->op.fd);
    while (l->state == LIVE_RUNS && r->in.n > 0 && l->window > 0) {
        size_t n = r->in.n < l->window ? r->in.n : l->window;
        PROTO_SAY(tell, r, EDGE_IN, .bytes = r->in.p, .n_bytes = n);
        l->window -= n;
        buf_consume(&r->in, n);
    }
    if (l->state == LIVE_RUNS && l->stdin_end && r->in.n == 0) {
        l->stdin_end = false;
        tell(r, EDGE_IN_END, EDGE_IN_END_SHAPE(), NULL);
    }
}

/* --- what the client says ----------------------------------------------------------------------------------------- */

/* A text message while the command runs. NULL, or what is wrong with it. */
static const char *
steer(struct request *r, const json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));
    uint16_t rows, cols;

    if (type != NULL && strcmp(type, "resize") == 0) {
        if (!exec_size(message, &rows, &cols))
            return "resize has rows and cols from 1 to 4096";
        PROTO_SAY(tell, r, EDGE_RESIZE, .rows = rows, .cols = cols);
        return NULL;
    }
    if (type != NULL && strcmp(type, "signal") == 0) {
        int signo = exec_signal(json_object_get(message, "signal"));
        if (signo < 0)
            return "signal is a name such as INT, or a number from 1 to 31";
        PROTO_SAY(tell, r, EDGE_SIGNAL, .signo = (uint8_t)signo);
        return NULL;
    }
    if (type != NULL && strcmp(type, "stdin_end") == 0) {
        r->live->stdin_end = true;
        live_send(r);
        return NULL;
    }
    return "a message of type resize, signal or stdin_end is expected";
}

static const struct answers asked;
static const struct op_answers said;

static void
start(struct request *r)
{
    static struct edge_op op;

    r->json = json_loadb((const char *)r->live->text.p, r->live->text.n, JSON_REJECT_DUPLICATES, NULL);
    if (r->json == NULL)
        return live_refuse(r, "http.json", "", "the first message is not valid JSON");
    json_whole_numbers(r->json);
    json_drop_nulls(r->json, NULL);
    if (r->role == EDGE_ATTACH) {       /* whose route is attach.c's, and opens nothing else */
        r->op_answers = &said;
        r->live->state = LIVE_ASKED;
        return attach_connect(r, &asked);
    }
    if (!exec_request(r, &op))
        return;
    op.flags |= OP_STDIN | OP_LIVE;
    r->live->pty = (op.flags & OP_PTY) != 0;
    r->live->state = LIVE_ASKED;
    ask_op(r, r->id, &op, &asked, &said);
}

static void
text_message(struct request *r)
{
    struct live *l = r->live;
    const char *wrong = NULL;
    json_t *message;

    if (l->state == LIVE_OPEN) {
        start(r);
    } else {
        message = json_loadb((const char *)l->text.p, l->text.n, JSON_REJECT_DUPLICATES, NULL);
        json_whole_numbers(message);
        json_drop_nulls(message, NULL);
        wrong = message != NULL ? steer(r, message) : "a text message is not valid JSON";
        json_decref(message);
    }
    buf_reset(&l->text);
    if (wrong != NULL)
        live_refuse(r, "exec.message", "docs/daemon.md has the form", wrong);
}

static int
text_bytes(struct request *r, const uint8_t *p, size_t n, bool end)
{
    struct live *l = r->live;

    if (n > 0 && buf_append(&l->text, p, n) < 0) {
        put_close(r, CLOSE_LARGE);
        return -1;
    }
    if (end)
        text_message(r);
    return 0;
}

static int
binary_bytes(struct request *r, const uint8_t *p, size_t n, bool end)
{
    struct live *l = r->live;

    if (l->state == LIVE_OPEN || (n > 0 && !l->inside && p[0] != CHANNEL_IN)) {
        live_refuse(r, "exec.message", "docs/daemon.md has the form",
                    l->state == LIVE_OPEN ? "the first message is text: what to run"
                                          : "a client sends on channel 0 only");
        return -1;
    }
    if (n > 0 && !l->inside) {
        p++;
        n--;
        l->inside = true;
    }
    if (end)
        l->inside = false;
    if (!l->stdin_end && n > 0)
        buf_append(&r->in, p, n);       /* settle() looks at how much waits */
    return 0;
}

static int
control_frame(struct request *r, const uint8_t *p, size_t n)
{
    struct live *l = r->live;

    if (l->in.frame.opcode == WS_PING && upgrade_answers(r))
        live_put(r, WS_PONG, NULL, 0, p, n);
    if (l->in.frame.opcode == WS_CLOSE)
        put_close(r, CLOSE_DONE);
    return 0;
}

static int
on_bytes(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out)
{
    struct request *r = ctx;

    (void)out;
    if (r->live->state == LIVE_OVER || r->up.fd < 0)
        return 0;
    if (control)
        return control_frame(r, p, n);
    return r->live->in.opcode == WS_TEXT ? text_bytes(r, p, n, end) : binary_bytes(r, p, n, end);
}

/* What was read. */
static void
look(struct request *r, const uint8_t *p, size_t n)
{
    struct live *l = r->live;
    enum ws_result result;

    if (l->deaf)
        return;
    result = ws_feed(&l->in, p, n, on_bytes, r, &l->nothing);
    buf_reset(&l->nothing);
    l->deaf = result != WS_OK;
    if (l->deaf)
        put_close(r, result == WS_ROOM ? CLOSE_LARGE : CLOSE_PROTOCOL);
    live_send(r);
}

static void
hear(struct request *r, uint32_t events)
{
    struct live *l = r->live;
    uint8_t p[READ_ONCE];

    if ((events & ~(uint32_t)EPOLLOUT) != 0 && (r->up.events & EPOLLIN) == 0)
        return upgrade_end(r);      /* that it has gone is all that was waited for */
    if ((events & ~(uint32_t)EPOLLOUT) != 0) {
        ssize_t n = upgrade_read(r, p, sizeof(p));
        if (n < 0)
            return;                     /* its command ends with it */
        if (n > 0) {
            l->heard_ms = clock_ms();
            l->late += l->state == LIVE_OVER ? (size_t)n : 0;
            if (l->late > LIVE_TEXT_MAX)
                return upgrade_end(r);
            look(r, p, (size_t)n);
        }
    }
    settle(r);
    /* all is said and it has heard it, or said so too */
    if (l->state == LIVE_OVER && r->out.n == 0 && l->in.closed)
        upgrade_end(r);
}

/* --- what the command says ---------------------------------------------------------------------------------------- */

static void
on_granted(struct request *r)
{
    r->live->state = LIVE_RUNS;
    put_json(r, json_pack("{s:s, s:s}", "type", "started", "request_id", r->number));
    live_send(r);
    settle(r);
}

static void
on_no(struct request *r, const struct err *err)
{
    reply_err(r, err);
    settle(r);
}

static const struct answers asked = { .granted = on_granted, .no = on_no };

static void
on_out(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    put_bytes(r, is_err ? CHANNEL_ERR : CHANNEL_OUT, p, n);
}

static void
on_ended(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    json_t *message = exec_exit_json(r, flags, code, ms);

    json_object_set_new(message, "type", json_string("exit"));
    put_json(r, message);
    put_close(r, CLOSE_DONE);
}

static void
on_failed(struct request *r, const struct err *err)
{
    uint32_t code = edge_shells_code(err);

    if (code == 0) {
        reply_err(r, err);
        return;
    }
    put_bytes(r, r->live->pty ? CHANNEL_OUT : CHANNEL_ERR, err->msg, strlen(err->msg));
    put_bytes(r, r->live->pty ? CHANNEL_OUT : CHANNEL_ERR, "\r\n", 2);
    on_ended(r, 0, code, 0);
}

static void
on_taken(struct request *r, uint32_t bytes)
{
    struct live *l = r->live;

    /* never more than was under way, whatever a keeper says */
    l->window = bytes > EDGE_CHUNK - l->window ? EDGE_CHUNK : l->window + bytes;
    live_send(r);
}

static const struct op_answers said = { .out = on_out, .exit = on_ended, .failed = on_failed, .taken = on_taken,
                                        .wake = settle };

/* --- beginning and time ------------------------------------------------------------------------------------------- */

static void
front_live_begin(struct request *r, const uint8_t *p, size_t n)
{
    struct live *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return upgrade_end(r);
    r->live = l;
    r->stream = true;           /* its operation is heard by how much waits for the client */
    ws_init(&l->in, true);
    l->text = (struct buf)BUF_INIT(LIVE_TEXT_MAX);
    l->nothing = (struct buf)BUF_INIT(LIVE_TEXT_MAX);
    l->to_op = (struct packet_queue)PACKET_QUEUE_INIT(128UL * 1024);
    l->window = EDGE_CHUNK;
    l->begun_ms = l->heard_ms = clock_ms();
    r->bytes_in += n;
    if (n > 0)
        look(r, p, n);
    settle(r);
}

static void
on_time(struct request *r, uint64_t now)
{
    struct live *l = r->live;
    uint64_t after = listens(r) ? LIVE_PING_MS : LIVE_DEAF_MS;

    if (l->state == LIVE_OPEN && clock_since(now, l->begun_ms) >= LIVE_START_MS)
        live_refuse(r, "exec.message", "", "no first message came");
    if (!listens(r))
        l->heard_ms = now;      /* its silence is ours */
    if (clock_since(now, l->heard_ms) >= LIVE_GONE_MS ||
        (l->state == LIVE_OVER && clock_since(now, l->over_ms) >= LIVE_END_MS))
        return upgrade_end(r);
    if ((clock_since(now, l->heard_ms) >= after || !listens(r)) && clock_since(now, l->pinged_ms) >= after &&
        l->state != LIVE_OVER) {
        l->pinged_ms = now;
        live_put(r, WS_PING, NULL, 0, NULL, 0);
    }
    settle(r);
}

void
live_free(struct request *r)
{
    struct live *l = r->live;

    r->live = NULL;
    if (l == NULL)
        return;
    ws_free(&l->in);
    buf_free(&l->text);
    buf_free(&l->nothing);
    packet_queue_clear(&l->to_op);
    free(l);
}

/* --- the route ---------------------------------------------------------------------------------------------------- */

static const struct upgraded speaks = { .begin = front_live_begin, .hear = hear, .time = on_time };

static void
speak(struct request *r)
{
    upgrade_reply(r, &speaks);
    /* the one that is no credential: a browser wants one of those that it named (RFC 6455, 4.1) */
    if (r->response != NULL && upgrade_has_word(r, "Sec-WebSocket-Protocol", SUBPROTOCOL))
        (void)MHD_add_response_header(r->response, "Sec-WebSocket-Protocol", SUBPROTOCOL);
}

void
live_upgrade(struct request *r)
{
    if (upgrade_asked(r))
        speak(r);
}

static void
on_box(struct request *r, const struct edge_box *box)
{
    if (upgrade_role(r) && upgrade_asked(r) && upgrade_state(r, box))
        speak(r);
}

static const struct answers found = { .box = on_box };

static void
live_begin(struct request *r)
{
    ASK(r, EDGE_ASK_GET, &found, .id = r->id);     /* what is not the caller's is not there, upgrade or not */
}

const struct route live_routes[] = {
    { "GET", "/v1/sandboxes/{}/exec/ws", live_begin, false, false, .endless = true, .spoken = true },
};
const size_t live_n_routes = ARRAY_LEN(live_routes);
