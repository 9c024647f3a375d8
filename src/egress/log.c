/* egress/log.c: decisions, one JSON object to a message, to the supervisor
 *
 * A program that keeps asking the same host is told of once; how often it went on is said at intervals ("count"). A
 * request would otherwise cost more here than on its way.
 *
 * What waits for it lies in one buffer, each message behind its length in two bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <jansson.h>

#include "egress/egress.h"

static const char *const via_names[] = {
    [DECIDE_DNS] = "dns", [DECIDE_CONNECT] = "connect", [DECIDE_HTTP] = "http", [DECIDE_TLS_SNI] = "tls",
    [DECIDE_SOCKS] = "socks", [DECIDE_TCP] = "tcp",
};

const char *
decide_via_name(enum decide_via via)
{
    return via_names[via];
}

static const char *const kind_names[] = { [DECIDE_DENY] = "deny", [DECIDE_ALLOW] = "allow", [DECIDE_ASK] = "ask" };

#define TEXT_MAX HOST_NAME_MAX_LEN      /* of what a client said in the place of a host or method: the rest is cut */

/* What the sandbox said may be any bytes; what is no text is left out. */
static void
put_text(json_t *o, const char *key, struct str s)
{
    json_t *text = s.n > 0 ? json_stringn(s.p, s.n < TEXT_MAX ? s.n : TEXT_MAX) : NULL;

    if (text != NULL)
        json_object_set_new(o, key, text);
}

static bool
would_wait(int saved_errno)
{
    return saved_errno == EAGAIN || saved_errno == EINTR || saved_errno == ENOBUFS;
}

/* The first @n messages that wait, as many as the supervisor takes now. */
void
log_flush(struct egress *e)
{
    struct buf *w = &e->waiting;
    size_t done = 0;

    while (w->n - done > 2) {
        size_t n = (size_t)w->p[done] << 8 | w->p[done + 1];
        if (send(e->control.fd, w->p + done + 2, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && would_wait(errno))
            break;
        done += 2 + n;
    }
    buf_consume(w, done);
    loop_watch(&e->loop, &e->control, (e->over ? 0 : EPOLLIN) | (w->n > 0 ? EPOLLOUT : 0));
}

/* The last @spare bytes of the room are for others. */
static void
keep(struct egress *e, const char *text, size_t n, size_t spare)
{
    struct buf *w = &e->waiting;

    if (n > UINT16_MAX || w->n + 2 + n + spare > w->max || buf_reserve(w, 2 + n) < 0) {
        e->unsaid++;
        return;
    }
    buf_put_be16(w, (uint16_t)n);
    buf_append(w, text, n);
    loop_watch(&e->loop, &e->control, (e->over ? 0 : EPOLLIN) | EPOLLOUT);
}

static void
say(struct egress *e, json_t *o, size_t spare)
{
    char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    size_t n = text != NULL ? strlen(text) : 0;

    json_decref(o);
    if (text == NULL)
        e->unsaid++;
    else if (e->control.fd >= 0 && (e->waiting.n > 0 ||
             (send(e->control.fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && would_wait(errno))))
        keep(e, text, n, spare);
    free(text);
}

void
log_say(struct egress *e, json_t *o)
{
    say(e, o, 0);
}

void
log_finish(struct egress *e, unsigned ms)
{
    const struct timeval patience = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };
    struct buf *w = &e->waiting;
    size_t done = 0;
    char text[64];

    (void)setsockopt(e->control.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    while (w->n - done > 2) {
        size_t n = (size_t)w->p[done] << 8 | w->p[done + 1];
        if (send(e->control.fd, w->p + done + 2, n, MSG_NOSIGNAL) < 0)
            return;
        done += 2 + n;
    }
    if (e->unsaid > 0) {
        int n = snprintf(text, sizeof(text), "{\"event\":\"unsaid\",\"count\":%llu}", (unsigned long long)e->unsaid);
        (void)send(e->control.fd, text, (size_t)n, MSG_NOSIGNAL);
    }
}

/* That the request calls, where a rule wanted to know. */
static struct str
tool_of(const struct decide_request *request)
{
    return request->mcp != NULL && request->mcp->kind == MCP_CALL ? request->mcp->tool : (struct str){ "", 0 };
}

static json_t *
entry(const struct decide_request *request, const struct decide_verdict *verdict)
{
    json_t *o = json_object();

    json_object_set_new(o, "verdict", json_string(kind_names[verdict->kind]));
    json_object_set_new(o, "via", json_string(decide_via_name(request->via)));
    put_text(o, "host", verdict->host.n > 0 ? (struct str){ verdict->host.name, verdict->host.n } : request->host);
    json_object_set_new(o, "port", json_integer(request->port));
    put_text(o, "method", request->method);
    put_text(o, "tool", tool_of(request));
    put_text(o, "rule", verdict->rule);
    if (verdict->reason != NULL)
        json_object_set_new(o, "reason", json_string(verdict->reason));
    return o;
}

static void
tell(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict, const char *by,
     uint64_t count)
{
    json_t *o = entry(request, verdict);

    if (count > 1)
        json_object_set_new(o, "count", json_integer((json_int_t)count));
    if (by != NULL)
        json_object_set_new(o, "by", json_string(by));
    say(e, o, LOG_ANSWERS_ROOM);
}

void
log_failed(struct egress *e, const struct host *host, uint16_t port, const char *why)
{
    json_t *o = json_object();

    json_object_set_new(o, "verdict", json_string("failed"));
    json_object_set_new(o, "via", json_string(decide_via_name(DECIDE_TCP)));
    put_text(o, "host", (struct str){ host->name, host->n });
    json_object_set_new(o, "port", json_integer(port));
    json_object_set_new(o, "reason", json_string("unreachable"));
    put_text(o, "detail", str_of(why));
    say(e, o, LOG_ANSWERS_ROOM);
}

void
log_decided(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
            const char *by)
{
    if (by != NULL)
        tell(e, request, verdict, by, 1);
    else
        log_decision(e, request, verdict);
}

void
log_secret(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
           const char *name, bool critical)
{
    json_t *o = entry(request, verdict);

    put_text(o, "secret", str_of(name));
    if (critical)
        json_object_set_new(o, "level", json_string("critical"));
    say(e, o, LOG_ANSWERS_ROOM);
}

/* --- the same again ---------------------------------------------------------------------------------------------- */

static void
tell_repeats(struct egress *e, struct log_seen *seen)
{
    const struct mcp_message message = { .kind = seen->tool_n > 0 ? MCP_CALL : MCP_OTHER,
                                         .tool = { seen->tool, seen->tool_n } };
    const struct decide_request request = { .via = seen->via, .host = { seen->host, seen->host_n }, .port = seen->port,
                                            .method = { seen->method, seen->method_n }, .mcp = &message };
    const struct decide_verdict verdict = { .kind = DECIDE_ALLOW, .reason = seen->reason,
                                            .rule = { seen->rule, seen->rule_n } };

    if (seen->more > 0)
        tell(e, &request, &verdict, NULL, seen->more);
    seen->more = 0;
}

static size_t
slot_of(const struct decide_request *request, const struct decide_verdict *verdict)
{
    uint32_t h = 2166136261u ^ request->port ^ ((uint32_t)request->via << 16);

    for (size_t i = 0; i < verdict->host.n; i++)
        h = (h ^ (uint8_t)verdict->host.name[i]) * 16777619u;
    for (size_t i = 0; i < request->method.n; i++)
        h = (h ^ (uint8_t)request->method.p[i]) * 16777619u;
    for (size_t i = 0; i < tool_of(request).n; i++)
        h = (h ^ (uint8_t)tool_of(request).p[i]) * 16777619u;
    return (h ^ h >> 16) % LOG_SEEN;
}

static bool
is_same(const struct log_seen *s, const struct decide_request *request, const struct decide_verdict *v)
{
    return s->via == request->via && s->port == request->port && s->reason == v->reason &&
           str_eq((struct str){ s->host, s->host_n }, (struct str){ v->host.name, v->host.n }) &&
           str_eq((struct str){ s->method, s->method_n }, request->method) &&
           str_eq((struct str){ s->tool, s->tool_n }, tool_of(request)) &&
           str_eq((struct str){ s->rule, s->rule_n }, v->rule);
}

void
log_decision(struct egress *e, const struct decide_request *request, const struct decide_verdict *v)
{
    struct log_seen *seen = &e->seen[slot_of(request, v)];

    if (v->kind != DECIDE_ALLOW || v->host.n == 0 || request->method.n > sizeof(seen->method) ||
        v->rule.n > sizeof(seen->rule)) {
        tell(e, request, v, NULL, 1);
        return;
    }
    if (is_same(seen, request, v)) {
        seen->more++;
        return;
    }
    tell_repeats(e, seen);
    *seen = (struct log_seen){ .via = request->via, .port = request->port, .reason = v->reason, .host_n = v->host.n,
                               .method_n = request->method.n, .rule_n = v->rule.n, .tool_n = tool_of(request).n };
    memcpy(seen->host, v->host.name, v->host.n);
    if (request->method.n > 0)
        memcpy(seen->method, request->method.p, request->method.n);
    if (v->rule.n > 0)
        memcpy(seen->rule, v->rule.p, v->rule.n);
    if (seen->tool_n > 0)
        memcpy(seen->tool, tool_of(request).p, seen->tool_n);
    tell(e, request, v, NULL, 1);
}

void
log_tick(struct egress *e)
{
    for (size_t i = 0; i < LOG_SEEN; i++)
        tell_repeats(e, &e->seen[i]);
}
