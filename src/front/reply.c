/* front/reply.c: responses */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "front/front.h"
#include "front/live.h"

#define ANSWER_ALWAYS 16384     /* bytes of one that there is always room for */

/* --- whole ones --------------------------------------------------------------------------------------------------- */

/* Whether @n bytes may wait for its client. What they were made of need not any more. */
static bool
has_room(struct request *r, size_t n)
{
    if (!r->stream) {
        buf_free(&r->out);
        buf_free(&r->err_out);
    }
    if (n > ANSWER_ALWAYS)
        waits_count(r);     /* of that, before there is more */
    if (n > ANSWER_ALWAYS && !waits_room(r, n)) {
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "http.busy", "read the answers that wait for you, and ask again",
                    "there is no room for the answer: too much waits for this caller's clients");
        return false;
    }
    r->answer_bytes = n;
    waits_count(r);
    return true;
}

static void
ids(struct request *r)
{
    char trace[TRACE_TEXT + 1];

    trace_print(&r->trace, trace);
    (void)MHD_add_response_header(r->response, "X-Request-Id", r->number);
    (void)MHD_add_response_header(r->response, "traceparent", trace);
    cors_put(r);
}

static void
headers(struct request *r, const char *type)
{
    (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    ids(r);
    /* files of a sandbox are a stranger's: no browser may take them for a page of ours */
    (void)MHD_add_response_header(r->response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

void
reply_location(struct request *r, const char *at)
{
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_LOCATION, at);
}

void
reply_hints(struct request *r)
{
    if (r->response == NULL)
        return;
    if (r->status == MHD_HTTP_SERVICE_UNAVAILABLE)  /* RFC 9110 10.2.3: it is over soon, or somebody has to see to it */
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
    if (r->status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE)   /* RFC 9110 15.5.16: no coding is taken */
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
    if (r->status == MHD_HTTP_UNAUTHORIZED)         /* RFC 9110 11.6.1, RFC 6750 3 */
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"cloche\"");
}

void
reply_json(struct request *r, unsigned status, json_t *body)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_DIGITS) : NULL;
    size_t n;

    json_decref(body);
    if (r->response != NULL) {
        free(text);
        return;
    }
    if (text == NULL) {
        status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        text = strdup("{\"error\":\"out of memory\",\"code\":\"memory\"}");
    }
    n = text != NULL ? strlen(text) : 0;
    if (!has_room(r, n)) {
        free(text);
        return;
    }
    r->status = status;
    r->bytes_out = n;
    r->response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (r->response == NULL) {
        free(text);
        r->f->ended = true;     /* no memory for an answer: it comes anew */
        return;
    }
    headers(r, "application/json");
    reply_hints(r);
}

void
reply_empty(struct request *r, unsigned status)
{
    static char nothing[] = "";

    if (r->response != NULL)
        return;
    r->status = status;
    r->response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    if (r->response == NULL)
        r->f->ended = true;
    else
        ids(r);
}

void
reply_text(struct request *r, unsigned status, const char *type, const void *p, size_t n)
{
    if (r->response != NULL || !has_room(r, n))
        return;
    r->status = status;
    r->bytes_out = n;
    r->response = MHD_create_response_from_buffer(n, (void *)(uintptr_t)p, MHD_RESPMEM_MUST_COPY);
    if (r->response == NULL)
        r->f->ended = true;
    else
        headers(r, type);
}

static void
put_all(struct request *r, const char *const list[][2])
{
    for (size_t i = 0; r->response != NULL && list[i][0] != NULL; i++)
        (void)MHD_add_response_header(r->response, list[i][0], list[i][1]);
}

void
reply_page(struct request *r, unsigned status, const char *type, const void *p, size_t n, const char *const own[][2])
{
    static const char *const all[][2] = {
        { "X-Frame-Options", "DENY" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { NULL, NULL },
    };

    reply_text(r, status, type, p, n);
    put_all(r, all);
    put_all(r, own);
}

void
reply_list(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", r->answers->list, r->list));
}

void
reply_error(struct request *r, unsigned status, const char *code, const char *detail, const char *fmt, ...)
{
    char text[2048];
    json_t *message, *body;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (r->live != NULL) {
        live_refuse(r, code, detail, text);
        return;
    }
    if ((r->route != NULL && r->route->words != WORDS_OURS) || strncmp(r->path, "/e2b/", 5) == 0) {
        reply_e2b(r, r->route != NULL ? r->route->words : WORDS_OURS, status, code, detail, text);
        return;
    }
    message = json_of_text((const uint8_t *)text, strlen(text));
    if (r->api)
        body = json_pack("{s:o}", "error", message);
    else
        body = json_pack("{s:o, s:s, s:o, s:s}", "error", message, "code", code, "detail",
                         json_of_text((const uint8_t *)detail, strlen(detail)), "request_id", r->number);
    reply_json(r, status, body);
}

bool
reply_unfit(struct request *r, const char *code, const char *what)
{
    reply_error(r, MHD_HTTP_BAD_REQUEST, code, "docs/daemon.md has the form", "%s", what);
    return false;
}

const char *
json_unknown(const json_t *object, const char *const known[])
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], name) != 0)
            i++;
        if (known[i] == NULL)
            return name;
    }
    return NULL;
}

bool
json_number(const json_t *v, json_int_t min, json_int_t max, uint32_t *out)
{
    if (v == NULL)
        return true;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
        return false;
    *out = (uint32_t)json_integer_value(v);
    return true;
}

bool
wants_events(const struct request *r)
{
    const char *accept = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

    return accept != NULL && strstr(accept, "text/event-stream") != NULL;
}

bool
reply_member(struct request *r, const char *code, const char *name, const char *known)
{
    reply_error(r, MHD_HTTP_BAD_REQUEST, code, known, "there is no member \"%.64s\"", name);
    return false;
}

/* @way: what to do about it over HTTP, where who found it says nothing */
static const struct { const char *code; unsigned status; const char *way; } codes[] = {
    { "sandbox.paused", 409, "POST .../resume" },
    { "files.not-found", 404, "GET .../dirs/PATH lists a folder; ?parents=true makes those above what is written" },
    { "files.is-a-directory", 409, "GET .../dirs/PATH lists it" },
    { "files.not-a-directory", 409, "GET .../stat/PATH says what it is" },
    { "files.not-empty", 409, "?recursive=true removes what is in it, too" },
    { "exec.cwd", 400, "cwd begins with a slash, or is below the workspace" },
    { "sandbox.state", 409 }, { "sandbox.name-taken", 409 }, { "sandbox.gone", 410 },
    { "idempotency.conflict", 422 }, { "idempotency.gone", 410 }, { "policy.stale", 412 },
    { "policy.fixed", 409 }, { "limits.no-cgroup", 409 }, { "limits.in-use", 409 }, { "limits.rlimit", 409 },
    { "limits.wider", 422 },
    { "volume.busy", 409 }, { "volume.gone", 410 }, { "volume.full", 507 },
    { "template.gone", 410 }, { "template.full", 507 }, { "template.exists", 409 }, { "template.busy", 409 },
    { "template.view", 409 },
    { "ports.network", 409 }, { "ports.reserved", 409 },
    { "browser.missing", 409 }, { "browser.network", 409 }, { "browser.ended", 502 }, { "browser.start", 502 },
    { "browser.none", 502 }, { "browser.timeout", 504 },
    { "desktop.none", 409 }, { "desktop.network", 409 }, { "desktop.viewer", 400 },
    { "audit.unavailable", 503 }, { "audit.followers", 429 }, { "transcript.none", 404 },
    { "transcript.off", 409 }, { "transcript.full", 507 },
    { "serve.warden.late", 503 }, { "serve.maker.late", 503 },
    { "serve.keeper.ended", 503 },
    { "sandbox.too-many", 429 }, { "sandbox.busy", 429 }, { "serve.closing", 503 },
    { "auth.required", 401 }, { "auth.malformed", 401 }, { "auth.unknown", 401 }, { "auth.expired", 401 },
    { "auth.ended", 401 }, { "auth.again", 503 }, { "gate.decided", 409 }, { "gate.changed", 409 },
    { "gate.digest", 409 }, { "gate.too-large", 413 }, { "serve.state.full", 507 }, { "serve.state.behind", 503 },
    { "files.exists", 409 }, { "files.busy", 409 }, { "files.symlink-loop", 409 }, { "files.no-space", 507 },
    { "files.too-large", 507 }, { "files.too-many-entries", 413 }, { "files.not-regular", 409 },
    { "context.dead", 409 }, { "context.busy", 409 }, { "context.ends", 409 },
    { "exec.ended", 409 }, { "exec.stdin-closed", 409 }, { "exec.stdin-busy", 409 }, { "exec.no-terminal", 409 },
};

/* What the host has too little of at the moment: whoever asks again may have more luck. */
static unsigned
status_of_system(const struct err *err)
{
    switch (err->sys_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return err_is(err, "memory") ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

unsigned
status_of(const struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(codes[i].code, err->code) == 0)
            return codes[i].status;
    switch (err->kind) {
    case ERR_NOT_FOUND: return MHD_HTTP_NOT_FOUND;
    case ERR_DENIED: return MHD_HTTP_FORBIDDEN;
    case ERR_LIMIT: return MHD_HTTP_TOO_MANY_REQUESTS;
    case ERR_POLICY:
    case ERR_USAGE: return MHD_HTTP_BAD_REQUEST;
    case ERR_UNSUPPORTED: return MHD_HTTP_NOT_IMPLEMENTED;
    case ERR_PROTOCOL: return MHD_HTTP_BAD_GATEWAY;
    default: return status_of_system(err);
    }
}

static const char *
way_of(const struct err *err)
{
    for (size_t i = 0; err->hint[0] == '\0' && i < ARRAY_LEN(codes); i++)
        if (codes[i].way != NULL && strcmp(codes[i].code, err->code) == 0)
            return codes[i].way;
    return err->hint;
}

const struct err *
ended_of(const struct request *r, const struct err *err)
{
    static const struct err ended = { .kind = ERR_DENIED, .code = "auth.ended", .hint = "",
                                      .msg = "the credential of who began this opens nothing any more" };

    return r->who != 0 && (err_is(err, "auth.unknown") || err_is(err, "auth.expired")) ? &ended
                                                                                                             : err;
}

void
reply_err(struct request *r, const struct err *err)
{
    err = ended_of(r, err);
    reply_error(r, status_of(err), err->code, way_of(err), "%s", err->msg);
}

/* --- streamed ones ------------------------------------------------------------------------------------------------ */

static ssize_t
on_more(void *ctx, uint64_t at, char *p, size_t max)
{
    struct request *r = ctx;
    size_t n = r->out.n < max ? r->out.n : max;

    (void)at;
    if (n > 0) {
        memcpy(p, r->out.p, n);
        buf_consume(&r->out, n);
        r->bytes_out += n;
        op_flow(r);
        return (ssize_t)n;
    }
    if (r->stream_end)
        return r->stream_broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    if (!r->suspended) {
        r->suspended = true;
        MHD_suspend_connection(r->c);
    }
    return 0;
}

static bool
begin_stream(struct request *r, unsigned status, uint64_t size)
{
    if (r->response != NULL)
        return false;
    r->stream = true;
    r->status = status;
    r->response = MHD_create_response_from_callback(size, 32768, on_more, r, NULL);
    r->f->ended = r->f->ended || r->response == NULL;
    return r->response != NULL;
}

void
reply_stream_of(struct request *r, unsigned status, const char *type, uint64_t size)
{
    if (begin_stream(r, status, size))
        headers(r, type);
}

void
reply_stream_bare(struct request *r, unsigned status, uint64_t size)
{
    if (begin_stream(r, status, size))
        ids(r);
}

void
reply_stream(struct request *r, const char *type)
{
    reply_stream_of(r, MHD_HTTP_OK, type, MHD_SIZE_UNKNOWN);
}

void
stream_add(struct request *r, const void *p, size_t n)
{
    if (buf_append(&r->out, p, n) < 0)
        r->stream_end = r->stream_broken = true;
    waits_count(r);
    http_wake(r);
}

void
stream_close(struct request *r)
{
    r->stream_end = true;
    http_wake(r);
}

void
stream_break(struct request *r)
{
    r->stream_end = r->stream_broken = true;
    http_wake(r);
}

void
stream_event(struct request *r, const char *id, const char *name, json_t *data)
{
    cleanup_free char *line = data != NULL ? json_dumps(data, JSON_COMPACT | JSON_DIGITS) : NULL;
    cleanup_buf struct buf b = BUF_INIT(16 * FRONT_STREAM_MAX);

    json_decref(data);
    if (line == NULL || (id != NULL && buf_printf(&b, "id: %s\n", id) < 0) ||
        buf_printf(&b, "event: %s\ndata: ", name) < 0 || buf_puts(&b, line) < 0 || buf_puts(&b, "\n\n") < 0)
        stream_break(r);
    else
        stream_add(r, b.p, b.n);
}

void
stream_refuse(struct request *r, const struct err *err)
{
    if (!r->stream || r->response == NULL) {
        reply_err(r, err);
        return;
    }
    if (r->stream_end)
        return;
    err = ended_of(r, err);
    stream_event(r, NULL, "error", json_pack("{s:o, s:s, s:o}", "error",
                                             json_of_text((const uint8_t *)err->msg, strlen(err->msg)), "code",
                                             err->code, "detail",
                                             json_of_text((const uint8_t *)err->hint, strlen(err->hint))));
    stream_close(r);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

json_t *
json_of_next(const json_t *list, bool more)
{
    size_t n = json_array_size(list);
    const json_t *last = n > 0 ? json_array_get(list, n - 1) : NULL;

    if (!more || last == NULL)
        return json_null();
    return json_sprintf("%s-%lld", json_string_value(json_object_get(last, "id")),
                        (long long)json_integer_value(json_object_get(last, "created_ms")));
}

/* --- sandboxes ---------------------------------------------------------------------------------------------------- */

/* "\nNAME=VALUE\n..." as an object; of @facts every "warning" in the list "warnings". */
static json_t *
json_of_lines(const char *lines, bool facts)
{
    json_t *out = json_object(), *warnings = facts ? json_array() : NULL;

    for (const char *at = lines[0] == '\n' ? lines + 1 : lines, *end; *at != '\0'; at = end + 1) {
        char name[64];
        size_t n = strcspn(at, "=\n");
        end = strchr(at, '\n');
        if (end == NULL)
            break;
        if (at[n] != '=' || n >= sizeof(name))
            continue;
        memcpy(name, at, n);
        name[n] = '\0';
        json_t *value = json_of_text((const uint8_t *)at + n + 1, (size_t)(end - at) - n - 1);
        if (facts && strcmp(name, "warning") == 0)
            json_array_append_new(warnings, value);
        else
            json_object_set_new(out, name, value);
    }
    if (facts)
        json_object_set_new(out, "warnings", warnings);
    return out;
}

static json_t *
json_of_ms(uint64_t ms)
{
    return ms > 0 ? json_integer((json_int_t)ms) : json_null();
}

json_t *
json_of_event(const struct edge_event *event)
{
    return json_pack("{s:I, s:I, s:o, s:s, s:o}", "number", (json_int_t)event->number, "at_ms",
                     (json_int_t)event->at_ms, "sandbox", event->id[0] != '\0' ? json_string(event->id) : json_null(),
                     "type", event->type, "detail",
                     json_of_text((const uint8_t *)event->detail, strlen(event->detail)));
}

/* NULL in JSON: it is not recovered by itself. A try counts within its window only, which may be over by now. */
static json_t *
json_of_recovery(const struct edge_recovery *recovery)
{
    uint64_t now = clock_wall_ms(), age = now > recovery->began_ms ? now - recovery->began_ms : 0;

    if (recovery->after_s == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}", "after", (json_int_t)recovery->after_s,
                     "tries", (json_int_t)recovery->tries, "window", (json_int_t)recovery->window_s,
                     "used", (json_int_t)recovery_used(recovery, age), "given_up", recovery->given_up,
                     "next_ms", json_of_ms(recovery->next_ms));
}

json_t *
json_of_box(const struct edge_box *box)
{
    json_t *policy = box->policy[0] != '\0' ? json_loads(box->policy, JSON_REJECT_DUPLICATES, NULL) : json_object();

    return json_pack("{s:s, s:o, s:o, s:s, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, "
                     "s:o, s:o}",
                     "id", box->id, "owner", box->owner[0] != '\0' ? json_string(box->owner) : json_null(),
                     "name", json_of_text((const uint8_t *)box->name, strlen(box->name)),
                     "state", box_state_name(box->state), "paused", box->paused, "default", box->is_default,
                     "persistent", box->persists,
                     "labels", json_of_lines(box->labels, false), "policy", policy != NULL ? policy : json_null(),
                     "created_ms", json_of_ms(box->created_ms), "started_ms", json_of_ms(box->started_ms),
                     "ended_ms", json_of_ms(box->ended_ms), "last_used_ms", json_of_ms(box->used_ms),
                     "idle_timeout", (json_int_t)box->idle_s, "max_lifetime", (json_int_t)box->life_s,
                     "recovery", json_of_recovery(&box->recovery),
                     "facts", json_of_lines(box->facts, true),
                     "detail", json_of_text((const uint8_t *)box->detail, strlen(box->detail)), "workspace_key",
                     box->workspace[0] != '\0' ? json_of_text((const uint8_t *)box->workspace, strlen(box->workspace))
                                               : json_null(), "volume",
                     box->volume[0] != '\0' ? json_string(box->volume) : json_null(), "template",
                     box->base[0] != '\0' ? json_string(box->base) : json_null());
}
