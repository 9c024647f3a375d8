/* egress/log.c: decisions, one JSON object to a message, to the supervisor
 *
 * A program that keeps asking the same host is told of once; how often it went on is said at intervals ("count"). A
 * request would otherwise cost more here than on its way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "egress/egress.h"

static const char *const via_names[] = {
    [DECIDE_DNS] = "dns", [DECIDE_CONNECT] = "connect", [DECIDE_HTTP] = "http", [DECIDE_TLS_SNI] = "tls",
    [DECIDE_SOCKS] = "socks", [DECIDE_TCP] = "tcp",
};

static const char *const kind_names[] = { [DECIDE_DENY] = "deny", [DECIDE_ALLOW] = "allow", [DECIDE_ASK] = "ask" };

/* What the sandbox said may be any bytes; what is no text is left out. */
static void
put_text(json_t *o, const char *key, struct str s)
{
    json_t *text = s.n > 0 ? json_stringn(s.p, s.n) : NULL;

    if (text != NULL)
        json_object_set_new(o, key, text);
}

static void
send_entry(struct egress *e, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT);

    json_decref(o);
    /* a supervisor that does not read loses entries, and learns how many */
    if (text != NULL && send(e->control.fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        e->unsaid++;
    free(text);
}

static json_t *
entry(const struct decide_request *request, const struct decide_verdict *verdict)
{
    json_t *o = json_object();

    json_object_set_new(o, "verdict", json_string(kind_names[verdict->kind]));
    json_object_set_new(o, "via", json_string(via_names[request->via]));
    put_text(o, "host", verdict->host.n > 0 ? (struct str){ verdict->host.name, verdict->host.n } : request->host);
    json_object_set_new(o, "port", json_integer(request->port));
    put_text(o, "method", request->method);
    put_text(o, "rule", verdict->rule);
    if (verdict->reason != NULL)
        json_object_set_new(o, "reason", json_string(verdict->reason));
    return o;
}

static void
tell(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict, uint64_t count)
{
    json_t *o;

    if (e->control.fd < 0)
        return;
    o = entry(request, verdict);
    if (count > 1)
        json_object_set_new(o, "count", json_integer((json_int_t)count));
    send_entry(e, o);
}

void
log_secret(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
           const char *name, bool critical)
{
    json_t *o;

    if (e->control.fd < 0)
        return;
    o = entry(request, verdict);
    put_text(o, "secret", str_of(name));
    if (critical)
        json_object_set_new(o, "level", json_string("critical"));
    send_entry(e, o);
}

/* --- the same again ---------------------------------------------------------------------------------------------- */

static void
tell_repeats(struct egress *e, struct log_seen *seen)
{
    const struct decide_request request = { .via = seen->via, .host = { seen->host, seen->host_n }, .port = seen->port,
                                            .method = { seen->method, seen->method_n } };
    const struct decide_verdict verdict = { .kind = DECIDE_ALLOW, .reason = seen->reason,
                                            .rule = { seen->rule, seen->rule_n } };

    if (seen->more > 0)
        tell(e, &request, &verdict, seen->more);
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
    return (h ^ h >> 16) % LOG_SEEN;
}

static bool
is_same(const struct log_seen *s, const struct decide_request *request, const struct decide_verdict *v)
{
    return s->via == request->via && s->port == request->port && s->reason == v->reason &&
           str_eq((struct str){ s->host, s->host_n }, (struct str){ v->host.name, v->host.n }) &&
           str_eq((struct str){ s->method, s->method_n }, request->method) &&
           str_eq((struct str){ s->rule, s->rule_n }, v->rule);
}

void
log_decision(struct egress *e, const struct decide_request *request, const struct decide_verdict *v)
{
    struct log_seen *seen = &e->seen[slot_of(request, v)];

    if (v->kind != DECIDE_ALLOW || v->host.n == 0 || request->method.n > sizeof(seen->method) ||
        v->rule.n > sizeof(seen->rule)) {
        tell(e, request, v, 1);
        return;
    }
    if (is_same(seen, request, v)) {
        seen->more++;
        return;
    }
    tell_repeats(e, seen);
    *seen = (struct log_seen){ .via = request->via, .port = request->port, .reason = v->reason, .host_n = v->host.n,
                               .method_n = request->method.n, .rule_n = v->rule.n };
    memcpy(seen->host, v->host.name, v->host.n);
    if (request->method.n > 0)
        memcpy(seen->method, request->method.p, request->method.n);
    if (v->rule.n > 0)
        memcpy(seen->rule, v->rule.p, v->rule.n);
    tell(e, request, v, 1);
}

void
log_tick(struct egress *e)
{
    for (size_t i = 0; i < LOG_SEEN; i++)
        tell_repeats(e, &e->seen[i]);
}
