/* adapters/mcp/rpc.c: the life of a call, and all that is said to its client */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"

/* --- its life ----------------------------------------------------------------------------------------------------- */

struct mcp_all mcp_all;

int
mcp_open(void)
{
    mcp_all.sessions = calloc(MCP_SESSIONS, sizeof(*mcp_all.sessions));
    return getrandom(mcp_all.key, sizeof(mcp_all.key), 0) == (ssize_t)sizeof(mcp_all.key) && mcp_all.sessions != NULL
               ? 0 : -1;
}

static void
call_free(struct visit *r)
{
    mcp_message_free(&r->mcp->message);
    json_decref(r->mcp->args);
    json_decref(r->mcp->capabilities);
    buf_free(&r->mcp->out);
    buf_free(&r->mcp->err);
    buf_free(&r->mcp->half[0]);
    buf_free(&r->mcp->half[1]);
    rich_free(&r->mcp->rich);
    free(r->mcp);
    r->mcp = NULL;
}

bool
mcp_begin(struct visit *r)
{
    r->mcp = calloc(1, sizeof(*r->mcp));
    if (r->mcp == NULL) {
        visit_no_memory(r);
        return false;
    }
    r->mcp->out = r->mcp->err = (struct buf)BUF_INIT(MCP_OUTPUT_MAX);
    r->mcp->half[0] = r->mcp->half[1] = (struct buf)BUF_INIT(8);
    return true;
}

bool
mcp_is_stateless(const struct visit *r)
{
    return r->mcp->version == MCP_VERSION_STATELESS;
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

void
mcp_say(struct visit *r, json_t *message)
{
    static const char head[] = "event: message\ndata: ";
    /* ASCII: some clients take U+2028 and the like for the end of a line */
    cleanup_free char *text = message != NULL ? json_dumps(message, JSON_COMPACT | JSON_DIGITS | JSON_ENSURE_ASCII)
                                              : NULL;

    json_decref(message);
    if (text == NULL) {
        visit_break(r);
        return;
    }
    visit_add(r, head, sizeof(head) - 1);
    visit_add(r, text, strlen(text));
    visit_add(r, "\n\n", 2);
    r->mcp->said_s = clock_ms() / 1000;
}

static void
say_last(struct visit *r, unsigned status, json_t *message)
{
    r->mcp->over = true;
    if (r->mcp->streaming) {
        mcp_say(r, message);
        visit_close(r);
    } else {
        visit_json(r, status, message);
    }
}

static json_t *
id_of(const struct visit *r)
{
    return r->mcp->message.id != NULL ? json_incref(r->mcp->message.id) : json_null();
}

/* An answer about the request as such. */
static void __attribute__((format(printf, 5, 0)))
rpc_refuse(struct visit *r, unsigned status, int code, json_t *data, const char *fmt, va_list ap)
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
mcp_turn_away(struct visit *r, unsigned status, int code, json_t *data, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    rpc_refuse(r, status, code, data, fmt, ap);
    va_end(ap);
}

void
mcp_error(struct visit *r, int code, json_t *data, const char *fmt, ...)
{
    unsigned status = HTTP_OK;
    va_list ap;

    if (mcp_is_stateless(r))
        status = code == MCP_NO_METHOD ? HTTP_NOT_FOUND : code == MCP_NO_CAPABILITY ? HTTP_BAD_REQUEST : status;
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
mcp_result(struct visit *r, json_t *result)
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
    if (r->mcp->made)
        visit_told(r);
    r->mcp->made = false;
    say_last(r, HTTP_OK, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id_of(r), "result", result));
}

static void
on_alive(struct timer *t)
{
    uint64_t now = clock_ms() / 1000;
    bool any = false;

    for (struct visit *r = adapters_visits; r != NULL; r = r->next) {
        if (!mcp_is_live(r) || !r->mcp->streaming)
            continue;
        any = true;
        if (now - r->mcp->said_s < MCP_ALIVE_S)
            continue;
        r->mcp->said_s = now;
        visit_add(r, ":\r\n\r\n", 5);
    }
    if (any)
        visits_at(t, clock_ms() + MCP_LOOK_MS);
}

void
mcp_begin_stream(struct visit *r)
{
    if (!r->mcp->streams || r->mcp->streaming || r->mcp->over)
        return;
    visit_put(r, "X-Accel-Buffering", "no");
    visit_stream(r);
    r->mcp->streaming = true;
    r->mcp->said_s = clock_ms() / 1000;
    mcp_all.alive.due = on_alive;
    if (mcp_all.alive.at_ms == 0)
        visits_at(&mcp_all.alive, clock_ms() + MCP_LOOK_MS);
}

static json_t *
notification(const char *method, json_t *params)
{
    return json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params);
}

void
mcp_progress(struct visit *r, const uint8_t *p, size_t n, bool is_err)
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
mcp_ask_client(struct visit *r, const char *method, json_t *params,
               void (*answered)(struct visit *r, const json_t *result))
{
    struct mcp_call *call = r->mcp;

    mcp_begin_stream(r);
    snprintf(call->wait, sizeof(call->wait), "cloche-%llu", (unsigned long long)++mcp_all.turns);
    call->answered = answered;
    mcp_say(r, json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", call->wait, "method", method, "params",
                         params));
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

void
mcp_cancel(struct visit *r)
{
    if (r->mcp->over)
        return;
    visit_drop(r);
    r->mcp->over = true;
    if (r->mcp->streaming)
        visit_close(r);
    else
        mcp_turn_away(r, HTTP_OK, MCP_INTERNAL, NULL, "the request was cancelled");
}

void
mcp_gone(struct visit *r)
{
    if (r->mcp != NULL)
        call_free(r);
}

bool
mcp_is_live(const struct visit *r)
{
    return r->mcp != NULL && !r->mcp->over;
}

void
mcp_cancel_in(struct visit *by, const char *session, const json_t *id)
{
    for (struct visit *r = adapters_visits; r != NULL; r = r->next)
        if (r != by && mcp_is_live(r) && session[0] != '\0' && strcmp(r->mcp->session_id, session) == 0 &&
            (id == NULL || (r->mcp->message.id != NULL && json_equal(r->mcp->message.id, id))))
            mcp_cancel(r);
}
