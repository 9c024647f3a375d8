/* front/mcp/rpc.c: the life of a call, and all that is said to its client */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "front/mcp/mcp.h"

/* --- its life ----------------------------------------------------------------------------------------------------- */

int
mcp_open(struct front *f)
{
    f->mcp_sessions = calloc(MCP_SESSIONS, sizeof(*f->mcp_sessions));
    return getrandom(f->mcp_key, sizeof(f->mcp_key), 0) == (ssize_t)sizeof(f->mcp_key) && f->mcp_sessions != NULL
               ? 0 : -1;
}

void
mcp_free(struct request *r)
{
    if (r->mcp == NULL)
        return;
    mcp_message_free(&r->mcp->message);
    json_decref(r->mcp->args);
    json_decref(r->mcp->capabilities);
    buf_free(&r->mcp->out);
    buf_free(&r->mcp->err);
    buf_free(&r->mcp->half[0]);
    buf_free(&r->mcp->half[1]);
    free(r->mcp);
    r->mcp = NULL;
}

bool
mcp_begin(struct request *r)
{
    r->mcp = calloc(1, sizeof(*r->mcp));
    if (r->mcp == NULL) {
        r->f->ended = true;
        return false;
    }
    r->mcp->who = r->who;
    r->mcp->out = r->mcp->err = (struct buf)BUF_INIT(MCP_OUTPUT_MAX);
    r->mcp->half[0] = r->mcp->half[1] = (struct buf)BUF_INIT(8);
    return true;
}

bool
mcp_is_stateless(const struct request *r)
{
    return r->mcp->version == MCP_VERSION_STATELESS;
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

void
mcp_say(struct request *r, json_t *message)
{
    static const char head[] = "event: message\ndata: ";
    /* ASCII: some clients take U+2028 and the like for the end of a line */
    cleanup_free char *text = message != NULL ? json_dumps(message, JSON_COMPACT | JSON_DIGITS | JSON_ENSURE_ASCII)
                                              : NULL;

    json_decref(message);
    if (text == NULL) {
        stream_break(r);
        return;
    }
    stream_add(r, head, sizeof(head) - 1);
    stream_add(r, text, strlen(text));
    stream_add(r, "\n\n", 2);
    r->mcp->said_s = clock_ms() / 1000;
}

static void
say_last(struct request *r, unsigned status, json_t *message)
{
    r->mcp->over = true;
    if (r->mcp->streaming) {
        mcp_say(r, message);
        stream_close(r);
    } else {
        reply_json(r, status, message);
    }
}

static json_t *
id_of(const struct request *r)
{
    return r->mcp->message.id != NULL ? json_incref(r->mcp->message.id) : json_null();
}

/* An answer about the request as such. */
static void __attribute__((format(printf, 5, 0)))
rpc_refuse(struct request *r, unsigned status, int code, json_t *data, const char *fmt, va_list ap)
{
    char text[1024];
    json_t *error;

    vsnprintf(text, sizeof(text), fmt, ap);
    error = json_pack("{s:i, s:o}", "code", code, "message", json_of_text((const uint8_t *)text, strlen(text)));
    if (data != NULL)
        json_object_set_new(error, "data", data);
    say_last(r, status, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id_of(r), "error", error));
}

void
mcp_turn_away(struct request *r, unsigned status, int code, json_t *data, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    rpc_refuse(r, status, code, data, fmt, ap);
    va_end(ap);
}

void
mcp_error(struct request *r, int code, json_t *data, const char *fmt, ...)
{
    unsigned status = MHD_HTTP_OK;
    va_list ap;

    if (mcp_is_stateless(r))
        status = code == MCP_NO_METHOD ? MHD_HTTP_NOT_FOUND : code == MCP_NO_CAPABILITY ? MHD_HTTP_BAD_REQUEST : status;
    va_start(ap, fmt);
    rpc_refuse(r, status, code, data, fmt, ap);
    va_end(ap);
}

json_t *
mcp_server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "cloche", "title", "cloche sandboxes", "version", CLOCHE_VERSION);
}

void
mcp_result(struct request *r, json_t *result)
{
    if (mcp_is_stateless(r) && result != NULL) {
        json_t *meta = json_object_get(result, "_meta");
        if (meta == NULL) {
            meta = json_object();
            json_object_set_new(result, "_meta", meta);
        }
        json_object_set_new(meta, MCP_META "serverInfo", mcp_server_info());
        if (json_object_get(result, "resultType") == NULL)
            json_object_set_new(result, "resultType", json_string("complete"));
    }
    r->mcp->made = false;
    say_last(r, MHD_HTTP_OK, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id_of(r), "result", result));
}

void
mcp_begin_stream(struct request *r)
{
    if (!r->mcp->streams || r->response != NULL)
        return;
    reply_stream(r, "text/event-stream");
    if (r->response == NULL)
        return;
    (void)MHD_add_response_header(r->response, "X-Accel-Buffering", "no");
    http_watch_peer(r, true);
    r->mcp->streaming = true;
    r->mcp->said_s = clock_ms() / 1000;
    r->mcp->epoch = r->epoch;
}

static json_t *
notification(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

void
mcp_progress(struct request *r, const uint8_t *p, size_t n, bool is_err)
{
    struct mcp_call *call = r->mcp;
    json_t *text;

    if (call->token == NULL || !call->streaming || n == 0)
        return;
    text = json_of_piece(&call->half[is_err ? 1 : 0], p, n, false);
    if (text == NULL || json_string_length(text) == 0) {
        json_decref(text);
        return;
    }
    call->progress += n;
    mcp_say(r, notification("notifications/progress",
                            json_pack("{s:O, s:I, s:o}", "progressToken", call->token, "progress",
                                      (json_int_t)call->progress, "message", text)));
}

void
mcp_ask_client(struct request *r, const char *method, json_t *params,
               void (*answered)(struct request *r, const json_t *result))
{
    struct mcp_call *call = r->mcp;

    mcp_begin_stream(r);
    snprintf(call->wait, sizeof(call->wait), "cloche-%llu", (unsigned long long)++r->f->mcp_turns);
    call->answered = answered;
    mcp_say(r, json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", call->wait, "method", method, "params",
                         params));
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

void
mcp_cancel(struct request *r)
{
    if (r->mcp->over)
        return;
    ask_drop(r);
    op_drop(r);
    r->mcp->over = true;
    if (r->mcp->streaming)
        stream_close(r);
    else
        mcp_turn_away(r, MHD_HTTP_OK, MCP_INTERNAL, NULL, "the request was cancelled");
    http_wake(r);
}

/* Nobody knows of a sandbox that a call has made and not named. It is not waited for. */
void
mcp_gone(struct request *r)
{
    static const struct answers none = { .no = NULL };

    if (r->mcp == NULL || !r->mcp->made)
        return;
    r->mcp->made = false;
    ASK(r, EDGE_ASK_DELETE, &none, .id = r->mcp->box);
    r->ticket = 0;
}

bool
mcp_is_live(const struct request *r)
{
    return r->mcp != NULL && !r->dead && !r->mcp->over;
}

void
mcp_cancel_in(struct request *by, const char *session, const json_t *id)
{
    for (struct request *r = by->f->requests; r != NULL; r = r->next)
        if (r != by && mcp_is_live(r) && session[0] != '\0' && strcmp(r->mcp->session_id, session) == 0 &&
            (id == NULL || (r->mcp->message.id != NULL && json_equal(r->mcp->message.id, id))))
            mcp_cancel(r);
}

int
mcp_timeout(const struct front *f)
{
    for (const struct request *r = f->requests; r != NULL; r = r->next)
        if (mcp_is_live(r) && r->mcp->streaming)
            return 1000;
    return -1;
}

/* --- a stream on which nothing goes on, and whose caller may have none to go on with ------------------------------ */

static void
on_approval(struct request *r, const struct edge_approval *a)
{
    (void)r;
    (void)a;
}

static void
on_still_good(struct request *r, uint32_t count, bool more)
{
    (void)r;
    (void)count;
    (void)more;
}

static void
on_ended(struct request *r, const struct err *err)
{
    if (r->mcp->over || strncmp(err->code, "auth.", 5) != 0)
        return;
    r->mcp->over = true;
    stream_refuse(r, err);
}

/* What a command or a question of it does is ended by who does it (warden/ends.c). Any caller may ask this. */
static void
look(struct request *r)
{
    static const struct answers still = { .approval = on_approval, .end = on_still_good, .no = on_ended };
    uint64_t epoch = r->f->epochs != NULL ? atomic_load(&r->f->epochs->credentials) : 0;
    uint32_t who = r->who;

    if (r->mcp->who == 0 || r->ticket != 0 || r->op.fd >= 0 ||
        (epoch == r->mcp->epoch && (r->until_ms == 0 || clock_wall_ms() < r->until_ms)))
        return;
    r->who = r->mcp->who;       /* not the call's own: that is judged no more */
    ask_approvals(r, false, 0, 1, "", "", &still);
    r->who = who;
    if (r->ticket != 0)
        r->mcp->epoch = epoch;
}

void
mcp_tick(struct front *f)
{
    uint64_t now = clock_ms() / 1000;

    for (struct request *r = f->requests; r != NULL; r = r->next) {
        if (!mcp_is_live(r) || !r->mcp->streaming || r->stream_end)
            continue;
        if (now - r->mcp->said_s >= MCP_ALIVE_S) {
            r->mcp->said_s = now;
            stream_add(r, ":\r\n\r\n", 5);
        }
        look(r);
    }
}
