/* front/ports.c: /v1/sandboxes/{}/ports: ports that are exposed, and where they are found (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "front/preview.h"
#include "front/preview_rules.h"

#define LIVES_MAX (365UL * 86400)   /* seconds */

/* --- addresses ---------------------------------------------------------------------------------------------------- */

/* "http://HOST" as the client came here; else where the daemon listens for browsers; NULL: nowhere. */
const char *
ports_base(const struct request *r, char out[300])
{
    const char *host = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

    if (!r->f->strangers)
        return r->f->doors.base[0] != '\0' ? r->f->doors.base : NULL;
    if (host == NULL || strlen(host) > 260)
        return NULL;
    snprintf(out, 300, "%s://%s", r->f->tls ? "https" : "http", host);
    return out;
}

bool
ports_have_address(const struct request *r)
{
    char room[300];

    return ports_base(r, room) != NULL;
}

void
ports_put(const struct request *r, json_t *out, json_t *path)
{
    char room[300];
    const char *base = ports_base(r, room);

    json_object_set_new(out, "url", base != NULL && path != NULL
                                        ? json_sprintf("%s%s", base, json_string_value(path)) : json_null());
    json_object_set_new(out, "path", path);
}

/* The same host, with an origin for this capability alone; false: its name leads nowhere. */
static bool
own_host(const char *base, const char *capability, char *out, size_t size)
{
    const char *host = strstr(base, "://") + 3;
    struct host canonical;
    struct str name;
    uint16_t port;
    int n;

    if (host_split_port(str_of(host), &name, &port) != HOST_OK || host_canonical(name, &canonical) != HOST_OK)
        return false;
    if (canonical.is_ip && ip_classify(canonical.ip) != IP_LOOPBACK)
        return false;
    n = snprintf(out, size, "%.*s%s.preview.%s", (int)(host - base), base, capability,
                 canonical.is_ip ? "localhost" : canonical.name);
    if (port != 0 && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ":%u", (unsigned)port);
    return n > 0 && (size_t)n + 2 < size;
}

json_t *
json_of_port(const struct request *r, const struct edge_port *p, const char *capability)
{
    json_t *one = json_pack("{s:s, s:s, s:i, s:s, s:I, s:o, s:I}", "id", p->id, "sandbox", p->box, "port", (int)p->port,
                            "name", p->name, "created_ms", (json_int_t)p->created_ms, "expires_ms", p->expires_ms > 0
                            ? json_integer((json_int_t)p->expires_ms) : json_null(), "connections",
                            (json_int_t)p->connections);
    char room[300], host[512];
    const char *base;

    if (one == NULL || capability[0] == '\0')
        return one;
    ports_put(r, one, json_sprintf("%s%s/", PREVIEW_PATH, capability));
    base = ports_base(r, room);
    json_object_set_new(one, "host_url", base != NULL && own_host(base, capability, host, sizeof(host))
                                             ? json_sprintf("%s/", host) : json_null());
    return one;
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

static void
on_exposed(struct request *r, const struct edge_port *p, const char *capability)
{
    reply_json(r, MHD_HTTP_CREATED, json_of_port(r, p, capability));
}

static void
on_item(struct request *r, const struct edge_port *p, const char *capability)
{
    (void)capability;
    json_array_append_new(r->list, json_of_port(r, p, ""));
}

static void
on_ended(struct request *r, const struct edge_port *p, const char *capability)
{
    (void)capability;
    reply_json(r, MHD_HTTP_OK, json_of_port(r, p, ""));
}

static const struct answers exposed_answers = { .port = on_exposed };
static const struct answers list_answers = { .port = on_item, .end = reply_list, .list = "ports" };
static const struct answers ended_answers = { .port = on_ended };

static bool
members_known(const json_t *body)
{
    static const char *const known[] = { "port", "name", "ttl", NULL };

    return json_is_object(body) && json_unknown(body, known) == NULL;
}

static void
expose(struct request *r)
{
    const json_t *port = json_object_get(r->json, "port"), *name = json_object_get(r->json, "name");
    const json_t *ttl = json_object_get(r->json, "ttl");
    const char *text = name != NULL ? json_cstr(name) : "";

    if (!members_known(r->json))
        reply_unfit(r, "ports.request", "the body is an object; known members: port, name, ttl");
    else if (!json_is_integer(port) || json_integer_value(port) < 1 || json_integer_value(port) > 65535)
        reply_unfit(r, "ports.request", "port is a whole number from 1 to 65535");
    else if (text == NULL || (name != NULL && !edge_name_well(text)))
        reply_unfit(r, "ports.request", "a name begins with a letter or digit and has at most 63 of these and ._-");
    else if (ttl != NULL && (!json_is_integer(ttl) || json_integer_value(ttl) < 0 ||
                             json_integer_value(ttl) > (json_int_t)LIVES_MAX))
        reply_unfit(r, "ports.request",
                    "ttl is a whole number of seconds, at most a year; 0 or absent: as long as the sandbox lives");
    else
        ASK(r, EDGE_ASK_EXPOSE, &exposed_answers, .id = r->id, .port = (uint16_t)json_integer_value(port),
            .seconds = ttl != NULL ? (uint32_t)json_integer_value(ttl) : 0, .name = text);
}

static void
front_ports_list(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_PORTS, &list_answers, .id = r->id);
}

static void
end_it(struct request *r)
{
    static const char none[] = "00000000000000000000000000000000";

    /* what is no id is asked for too: whether the sandbox is the caller's comes first */
    ASK(r, EDGE_ASK_UNEXPOSE, &ended_answers, .id = r->id, .which = edge_is_id(r->rest) ? r->rest : none);
}

const struct route port_routes[] = {
    { "POST",   "/v1/sandboxes/{}/ports",   expose,           true,  false },
    { "GET",    "/v1/sandboxes/{}/ports",   front_ports_list, false, false },
    { "DELETE", "/v1/sandboxes/{}/ports/{*}", end_it,           false, false },
};
const size_t port_n_routes = ARRAY_LEN(port_routes);
