/* warden/edge_port.c: ports of sandboxes that were exposed (see edge.h) */
#include <string.h>

#include "warden/edge.h"

bool
edge_is_capability(const char *text)
{
    return strspn(text, "0123456789abcdef") == EDGE_CAPABILITY && text[EDGE_CAPABILITY] == '\0';
}

int
edge_put_port(struct buf *b, const struct edge_port *p)
{
    wire_put_cstr(b, p->id, EDGE_ID);
    wire_put_cstr(b, p->box, EDGE_ID);
    buf_put_be16(b, p->port);
    buf_put_be64(b, p->created_ms);
    buf_put_be64(b, p->expires_ms);
    buf_put_be64(b, p->connections);
    return wire_put_cstr(b, p->name, EDGE_NAME_MAX);
}

bool
edge_get_port(struct wire_in *in, struct edge_port *p)
{
    const char *id = wire_cstr(in, EDGE_ID, NULL), *box = wire_cstr(in, EDGE_ID, NULL), *name;

    p->port = wire_be16(in);
    p->created_ms = wire_be64(in);
    p->expires_ms = wire_be64(in);
    p->connections = wire_be64(in);
    name = wire_cstr(in, EDGE_NAME_MAX, NULL);
    if (in->bad || !edge_is_id(id) || !edge_is_id(box) || p->port == 0 || (name[0] != '\0' && !edge_name_well(name)))
        return false;
    memcpy(p->id, id, EDGE_ID + 1);
    memcpy(p->box, box, EDGE_ID + 1);
    memcpy(p->name, name, strlen(name) + 1);
    return true;
}
