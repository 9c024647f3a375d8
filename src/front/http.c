/* front/http.c: libmicrohttpd, and the life of a request */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "front/collect.h"
#include "front/front.h"
#include "front/live.h"
#include "front/preview.h"
#include "wire/whole.h"
#include "wall/service.h"

/* Memory of requests that are over, for those to come: one is so large (about 20 KiB) that the C library would give it
 * back to the kernel each time, page by page, and get it anew. A sanitizer is to see each by itself. */
#define SPARE_MAX (SERVICE_SANITIZED ? 0 : 64)
static struct { struct request *first; size_t n; } spare;

#define OPEN_BODY_MAX  8192     /* of a body that comes without a credential: a form */
#define JSON_VALUE_MAX 256UL    /* bytes that a value of JSON takes in memory, beside its text */

/* --- its life ----------------------------------------------------------------------------------------------------- */

static void
random_digits(struct front *f, size_t n, char *out)
{
    if (f->random_left < n)
        f->random_left = getrandom(f->random, sizeof(f->random), 0) == (ssize_t)sizeof(f->random)
                             ? sizeof(f->random) : n;      /* what was there again: an id, if not a new one */
    f->random_left -= n;
    trace_digits(f->random + f->random_left, n, out);
}

/* The first line is there. Its URI as it came: what it means is decided here and not by a decoder that would end it at
 * an encoded NUL. */
static void *
on_uri(void *ctx, const char *uri, struct MHD_Connection *c)
{
    struct front *f = ctx;
    struct request *r = spare.first != NULL ? spare.first : malloc(sizeof(*r));

    if (r == NULL)
        return NULL;
    if (r == spare.first) {
        spare.first = r->next;
        spare.n--;
    }
    memset(r, 0, offsetof(struct request, path));   /* the rest is 16 KiB that is written before it is read */
    r->path[0] = r->query[0] = '\0';
    r->begun_us = clock_us();
    r->f = f;
    r->c = c;
    r->peer.fd = r->op.fd = r->up.fd = -1;
    r->body = (struct buf)BUF_INIT(FRONT_BODY_MAX);
    r->in = (struct buf)BUF_INIT(FRONT_BODY_MAX);
    r->out = (struct buf)BUF_INIT(FRONT_RESULT_MAX);
    r->err_out = (struct buf)BUF_INIT(FRONT_RESULT_MAX);
    r->half[0] = (struct buf)BUF_INIT(8);
    r->half[1] = (struct buf)BUF_INIT(8);
    random_digits(f, sizeof(r->number) / 2, r->number);     /* one that counts would tell what others ask */
    r->uri = strdup(uri);
    doors_busy(r, false);
    r->next = f->requests;
    f->requests = r;
    if (f->second.at_ms == 0)
        loop_at(&f->loop, &f->second, f->loop.now_ms + FRONT_SECOND_MS);
    return r;
}

static void
on_completed(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_RequestTerminationCode why)
{
    const bool well = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    struct request *r = *slot;
    struct link *k;

    (void)ctx;
    (void)c;
    *slot = NULL;
    if (r == NULL)
        return;
    doors_busy(r, false);
    k = doors_link(r);
    if (k != NULL)
        k->unread = well && framing_unread(k->framing);
    metrics_request(r, well);
    ask_drop(r);
    op_drop(r);
    visit_over(r);
    execute_over(r);
    http_unwatch_peer(r);
    r->dead = true;
}

static void
put_aside(struct request *r)
{
    if (spare.n == SPARE_MAX) {
        free(r);
        return;
    }
    r->next = spare.first;
    spare.first = r;
    spare.n++;
}

/* What hold_bytes() counted for it is free again. */
static void
release(struct request *r)
{
    hold_count(&r->f->bodies, r->caller, r->held_bytes, 0);
    r->held_bytes = 0;
}

void
http_bury(struct front *f)
{
    for (struct request **at = &f->requests, *r; (r = *at) != NULL;) {
        if (!r->dead) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        release(r);
        waits_unplace(r);
        if (r->response != NULL)
            MHD_destroy_response(r->response);
        json_decref(r->json);
        json_decref(r->list);
        json_decref(r->files);
        collect_free(r);
        fork_free(r);
        contexts_free(r);
        live_free(r);
        desk_free(r);
        audit_free(r);
        page_free(r);
        preview_free(r);
        buf_free(&r->body);
        buf_free(&r->in);
        buf_free(&r->out);
        buf_free(&r->err_out);
        buf_free(&r->half[0]);
        buf_free(&r->half[1]);
        r->answer_bytes = 0;
        waits_count(r);
        route_wipe(r);
        free(r->below);
        free(r->policy);
        explicit_bzero(r->key, sizeof(r->key));
        put_aside(r);
    }
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

void
http_unwatch_peer(struct request *r)
{
    (void)loop_forget(&r->f->loop, &r->peer);
}

static void
on_peer(struct watch *w, uint32_t events)
{
    struct request *r = w->owner;

    (void)events;
    if (r->dead)
        return;
    http_unwatch_peer(r);
    if (r->up.fd >= 0) {
        upgrade_end(r);
        return;
    }
    ask_drop(r);
    op_drop(r);
    if (r->response == NULL)
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "http.gone", "", "the client is gone");
    r->stream_end = true;
    http_wake(r);       /* libmicrohttpd finds the connection closed and ends it */
}

/* While it is suspended nobody looks at its connection but us: a client that has gone is not worked for. */
void
http_watch_peer(struct request *r, bool half)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (r->peer.fd >= 0 || info == NULL)
        return;
    r->peer = (struct watch){ .fd = info->connect_fd, .ready = on_peer, .owner = r };
    /* EPOLLHUP: both directions are closed */
    if (loop_watch(&r->f->loop, &r->peer, half ? EPOLLRDHUP : EPOLLHUP) < 0)
        r->peer.fd = -1;
}

static void
suspend(struct request *r)
{
    r->suspended = true;
    doors_busy(r, true);
    MHD_suspend_connection(r->c);
    /* over TCP a client that has gone looks like one that says no more; the owner's socket tells them apart */
    http_watch_peer(r, visit_leaves(r) || r->f->strangers);
}

void
http_wake(struct request *r)
{
    if (!r->suspended || r->dead)
        return;
    r->suspended = false;
    MHD_resume_connection(r->c);
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

static bool
hold_bytes(struct request *r, size_t n)
{
    if (!hold_room(r, &r->f->bodies, n))
        return false;
    hold_count(&r->f->bodies, r->caller, r->held_bytes, r->held_bytes + n);
    r->held_bytes += n;
    return true;
}

static size_t
body_max(const struct request *r)
{
    return r->route->open ? OPEN_BODY_MAX : FRONT_BODY_MAX;
}

static const char *
body_hint(const struct request *r)
{
    return r->no_room ? "all bodies together have 128 MiB, in which a value counts as 256 bytes: send less, or later"
           : r->route->open ? "a body that comes without a credential has at most 8 KiB"
                            : "a body of JSON has at most 10 MiB";
}

static void
take_body(struct request *r, const char *p, size_t n)
{
    bool over = n > body_max(r) - r->body.n;

    if (r->too_large)
        return;
    if (over || !hold_bytes(r, n) || buf_append(&r->body, p, n) < 0) {
        r->no_room = !over;
        r->too_large = true;
        release(r);
        buf_free(&r->body);
        r->body = (struct buf)BUF_INIT(FRONT_BODY_MAX);
    }
}

/* Each value but the first of a list or an object has a comma before it. */
bool
http_json_room(struct request *r)
{
    bool in_string = false;
    size_t values = 0;

    for (size_t i = 0; i < r->body.n; i++) {
        uint8_t c = r->body.p[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{' || c == ','))
            values++;
    }
    return hold_bytes(r, values * JSON_VALUE_MAX);
}

static bool
body_declared_too_large(const struct request *r)
{
    const char *length = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t n;

    return length != NULL && !r->route->upload &&
           (!str_parse_u64(str_of(length), UINT64_MAX, &n) || n > body_max(r));
}

/* Everything has come: JSON where that is meant. */
static bool
body_well(struct request *r)
{
    json_error_t why;

    if (r->too_large) {
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "http.body-too-large", body_hint(r), "the body is too large");
        return false;
    }
    if (!r->route->json || r->body.n == 0)
        return true;
    if (!http_json_room(r)) {
        r->no_room = true;
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "http.body-too-large", body_hint(r),
                    "the body has too many values");
        return false;
    }
    r->json = json_loadb((const char *)r->body.p, r->body.n, JSON_REJECT_DUPLICATES, &why);
    if (r->json != NULL) {
        json_whole_numbers(r->json);
        if (strcmp(r->method, MHD_HTTP_METHOD_PATCH) != 0)      /* there null removes what was said before */
            json_drop_nulls(r->json, "policy");
        return true;
    }
    reply_error(r, MHD_HTTP_BAD_REQUEST, "http.json", why.text, "the body is not valid JSON");
    return false;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* More than its credential may ask in a second. Owners, whom the kernel vouches for, are not counted. */
static bool
limited(struct request *r)
{
    const struct link *k = doors_link(r);
    struct presented p = who_presents(r);
    char after[16];
    unsigned seconds;

    if (r->f->doors.rate == 0 || k == NULL || (p.n == 0 && !r->f->strangers))
        return false;
    seconds = rate_take(&r->f->rate, &k->peer, p.text, r->f->doors.rate);
    explicit_bzero(&p, sizeof(p));
    if (seconds == 0)
        return false;
    reply_error(r, MHD_HTTP_TOO_MANY_REQUESTS, "http.rate", "come again later (Retry-After); rate-limit in the "
                "daemon's configuration", "too many requests in a second");
    snprintf(after, sizeof(after), "%u", seconds);
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_RETRY_AFTER, after);
    return true;
}

/* Ours is a span of its own in it. */
static void
trace_of(struct request *r)
{
    struct header given = header_of(r, "traceparent");

    /* of two nobody knows which one is meant */
    r->trace_given = given.n == 1 && trace_parse((struct str){ given.value, given.size }, &r->trace);
    if (r->trace_given) {
        trace_bytes(r->trace.span, EDGE_SPAN, r->parent);
    } else {
        random_digits(r->f, TRACE_ID / 2, r->trace.id);
        r->trace.sampled = teller_is(&r->f->tell);
    }
    random_digits(r->f, TRACE_SPAN / 2, r->trace.span);
    trace_bytes(r->trace.id, EDGE_TRACE, r->trace_bytes);
}

/* What is not plainly one request: of all that it says nothing is taken. */
static bool
badly_framed(struct request *r)
{
    const struct link *k = doors_link(r);
    enum http1_result fault = framing_next(k != NULL ? k->framing : NULL);

    if (fault == HTTP1_OK)
        return false;
    reply_error(r, http1_answer(fault), "http.framing", "RFC 9112, read strictly: docs/daemon.md",
                "the request is malformed: %s", http1_word(fault));
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
    return true;
}

static void
first_look(struct request *r, const char *method)
{
    r->seen = true;
    r->method = method;
    trace_of(r);
    if (badly_framed(r))
        return;
    r->route = r->uri != NULL ? route_find(r) : NULL;
    if (r->route == NULL && r->early == 0) {
        r->early = MHD_HTTP_NOT_FOUND;
        r->early_code = "http.route";
        r->early_why = "there is no such route";
    }
    if (r->route != NULL && body_declared_too_large(r)) {
        r->early = MHD_HTTP_CONTENT_TOO_LARGE;
        r->early_code = "http.body-too-large";
        r->early_why = "the body is too large";
    }
    doors_judge(r);
    if (r->early == 0) {
        gate_look(r);
        r->held = !limited(r) && !r->route->open && !who_admit(r) && r->response == NULL;
        return;
    }
    if (cors_preflight(r))
        return;
    if (r->api && r->early == MHD_HTTP_NOT_FOUND)
        reply_error(r, r->early, r->early_code, "", "Unknown sandbox route: %.16s %.1000s", method, r->path);
    else
        reply_error(r, r->early, r->early_code, r->early == MHD_HTTP_CONTENT_TOO_LARGE ? body_hint(r)
                    : doors_hint(r->early_code), "%s", r->early_why);
    if (r->early == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ALLOW, r->allowed);
}

static enum MHD_Result
respond(struct request *r)
{
    if (r->queued)
        return MHD_YES;
    r->queued = true;
    return MHD_queue_response(r->c, r->status, r->response);
}

/* Whether it waits for more. What there is no room for is judged unseen. */
static bool
sees_more(struct request *r, const char *p, size_t *n)
{
    size_t take = *n < EDGE_SEEN_MAX - r->in.n ? *n : EDGE_SEEN_MAX - r->in.n;

    if (*n == 0) {
        r->whole = true;
        return false;
    }
    if (take == 0 || !hold_bytes(r, take) || buf_append(&r->in, p, take) < 0)
        return false;
    *n -= take;
    return *n == 0;     /* with the first byte that is not seen it begins */
}

static void
begin(struct request *r)
{
    r->begun = true;
    if (waits_place(r))
        r->route->begin(r);
}

/* As much as goes on its way now. */
static size_t
passed_on(struct request *r, const uint8_t *p, size_t n)
{
    if (preview_is(r))
        return preview_upload(r, p, n);
    return r->in.n > 0 ? 0 : op_upload(r, p, n);    /* what was seen goes before it */
}

static enum MHD_Result
upload(struct request *r, const char *p, size_t *n)
{
    const bool ended = *n == 0;

    if (!r->begun && r->route->seen && sees_more(r, p, n))
        return MHD_YES;
    if (!r->begun) {
        begin(r);
        if (r->route->seen && ended && r->response == NULL)
            op_upload_end(r);
    }
    if (*n > 0 && (r->response == NULL || preview_is(r))) {
        *n -= passed_on(r, (const uint8_t *)p, *n);
        if (*n > 0) {
            r->full = r->op.fd >= 0;
            op_flow(r);
            suspend(r);
        }
        return MHD_YES;
    }
    if (*n > 0) {
        *n = 0;         /* it failed already; the rest has nowhere to go */
        return MHD_YES;
    }
    if (!r->whole && (r->response == NULL || preview_is(r))) {
        r->whole = true;
        if (preview_is(r))
            preview_upload_end(r);
        else
            op_upload_end(r);
    }
    if (r->response != NULL)
        return respond(r);
    suspend(r);
    return MHD_YES;
}

static enum MHD_Result
on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method, const char *version,
           const char *p, size_t *n, void **slot)
{
    struct request *r = *slot;

    (void)ctx;
    (void)c;
    (void)url;
    (void)version;
    if (r == NULL)
        return MHD_NO;      /* no memory */
    if (!r->seen) {
        first_look(r, method);
        if (r->held)
            suspend(r);
        return r->response != NULL ? respond(r) : MHD_YES;
    }
    if (r->held) {
        r->held = false;
        doors_busy(r, false);       /* its body is the client's to send */
        return r->response != NULL ? respond(r) : MHD_YES;
    }
    if (r->queued)
        return MHD_YES;
    if (r->route->upload) {
        size_t came = *n;
        enum MHD_Result result = upload(r, p, n);
        r->bytes_in += came - *n;
        return result;
    }
    if (*n > 0) {
        r->bytes_in += *n;
        take_body(r, p, *n);
        *n = 0;
        return MHD_YES;
    }
    if (!r->begun && body_well(r))
        begin(r);
    r->begun = true;
    if (r->response != NULL)
        return respond(r);
    suspend(r);
    return MHD_YES;
}

/* --- the daemon --------------------------------------------------------------------------------------------------- */

int
http_open(struct front *f, struct err *err)
{
    const struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)tls_identity },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
        { MHD_OPTION_END, 0, NULL },
    };
    const union MHD_DaemonInfo *info;

    if (framing_open(f->tls) < 0)
        return err_set(err, ERR_SYSTEM, "front.http", "the TLS library has no gnutls_record_recv");
    f->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                               MHD_ALLOW_UPGRADE | (f->tls ? MHD_USE_TLS : 0), 0, NULL, NULL,
                               on_request, f, MHD_OPTION_URI_LOG_CALLBACK, on_uri, f, MHD_OPTION_NOTIFY_COMPLETED,
                               on_completed, f, MHD_OPTION_NOTIFY_CONNECTION, doors_notify, f,
                               MHD_OPTION_CONNECTION_LIMIT, (unsigned)(f->max_links + FRONT_PASSING),
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)FRONT_IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
                               MHD_OPTION_ARRAY, f->tls ? tls : &tls[2], MHD_OPTION_END);
    info = f->http != NULL ? MHD_get_daemon_info(f->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    f->run.fd = info == NULL ? -1 : info->epoll_fd;
    if (info == NULL || loop_watch(&f->loop, &f->run, EPOLLIN) < 0)
        return err_set(err, ERR_SYSTEM, "front.http", "the HTTP library does not start");
    return 0;
}

int
http_connection(struct front *f, int fd, const struct sockaddr *from, socklen_t n)
{
    /* closes it itself when it refuses */
    return MHD_add_connection(f->http, fd, from, n) == MHD_YES ? 0 : -1;
}

void
http_run(struct front *f)
{
    (void)MHD_run(f->http);
    /* what was given back in there is closed by the next run, and nothing may come that brings one */
    for (; f->given_back && !f->ended; (void)MHD_run(f->http))
        f->given_back = false;
}

int
http_timeout(struct front *f)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(f->http, &ms) != MHD_YES)
        return -1;
    return ms > 10000 ? 10000 : (int)ms;
}
