/* keeper/keeper_port.c: connections to servers in the sandbox, at ports that were exposed
 *
 * The guest makes them, inside: nothing but bytes comes here, so whoever has taken the guest over can answer in the
 * place of a server of the sandbox and of no other. That it is inside has to be true for that, so a sandbox that shares
 * the host's network has no ports here; and where the network is open, the ports at which cloche-egress listens inside
 * are none of the sandbox's servers.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "keeper/keeper.h"
#include "wall/capture.h"

#define CONNECT_US 10000000     /* for a connection to be there */

static bool
is_egress(const struct sandbox_facts *facts, uint16_t port)
{
    if (!facts->captured)
        return false;
    for (size_t i = 0; i < facts->n_ports; i++)
        if (facts->ports[i] == port)
            return true;
    return port == 53 || port == 80 || port == 443;
}

void
port_facts(const struct keeper_live *k, struct buf *out)
{
    const struct sandbox_facts *facts = sandbox_facts(k->l.sb);

    if (!facts->own_net) {
        buf_puts(out, "none");
        return;
    }
    buf_puts(out, facts->captured ? "except 53 80 443" : "all");
    for (size_t i = 0; facts->captured && i < facts->n_ports; i++)
        buf_printf(out, " %u", (unsigned)facts->ports[i]);
}

static size_t
connections(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        n += k->ops[i] != NULL && k->ops[i]->kind == OP_CONNECT;
    return n;
}

int
port_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    return port_connect(o, (uint16_t)want->offset, err);
}

int
port_connect(struct op *o, uint16_t port, struct err *err)
{
    const struct sandbox_facts *facts = sandbox_facts(o->k->l.sb);

    if (!facts->own_net)
        return err_set(err, ERR_UNSUPPORTED, "ports.network", "the sandbox has no network of its own");
    if (is_egress(facts, port))
        return err_set(err, ERR_DENIED, "ports.reserved", "port %u leads out of the sandbox", (unsigned)port);
    if (connections(o->k) > PORT_CONNECTIONS)
        return err_set(err, ERR_LIMIT, "ports.busy", "%d connections to this sandbox are open; that is the limit",
                       PORT_CONNECTIONS);
    o->deadline_us = o->begin_us + CONNECT_US;
    return guest_client_connect(o->k->l.client, port, OP_WINDOW, &o->channel, err);
}

void
port_failed(struct op *o, const struct msg_exec_failed *why)
{
    struct err err = ERR_INIT;

    if (o->as == OP_DESKTOP && why->sys_errno == ECONNREFUSED) {
        err_set(&err, ERR_SYSTEM, "desktop.none", "no desktop runs in the sandbox");
        err_hint(&err, "a look at the screen starts it: GET /api/sandbox/screen/windows?id=SANDBOX");
    } else if (why->sys_errno == ECONNREFUSED) {
        err_set(&err, ERR_SYSTEM, "ports.refused", "nothing listens at that port of the sandbox");
    } else {
        err_sys(&err, (int)why->sys_errno, "ports.connect", "the connection to the sandbox's server");
    }
    op_say_failed(o, &err);
    op_ended(o);
}

void
port_late(struct op *o)
{
    struct err err = ERR_INIT;

    o->deadline_us = 0;
    err_set(&err, ERR_SYSTEM, "ports.timeout", "the sandbox's server does not accept");
    op_say_failed(o, &err);
    op_signal(o, SIGKILL);
}

void
port_closed(struct keeper_live *k, const char *id)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_DENIED, "ports.closed", "this port is not exposed any more");
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        struct op *o = k->ops[i];
        if (o == NULL || o->kind != OP_CONNECT || o->channel == 0 || strcmp(o->path, id) != 0)
            continue;
        op_say_failed(o, &err);
        op_signal(o, SIGKILL);
    }
}
