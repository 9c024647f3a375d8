/* egress/log.c: decisions, one JSON object to a message, to the supervisor */
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
tell(struct egress *e, json_t *o)
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

void
log_decision(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict)
{
    if (e->control.fd >= 0)
        tell(e, entry(request, verdict));
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
    tell(e, o);
}
