/* keeper/keeper_desktop.c: somebody who looks at the sandbox's display, or sits at it (docs/desktop.md)
 *
 * A viewer's connection is one to a port of the sandbox's loopback (keeper_port.c), whose server is the display, or
 * whatever took its place. What the viewer says is judged here, where the warden said which mode it has: a front cannot
 * make one that looks into one that acts. What passes is whole messages (wire/rfb.h). What the display says is the
 * sandbox's word, for the viewer to read.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"
#include "wire/rfb.h"

struct viewer {
    struct rfb rfb;
    struct buf passed;          /* and not yet in op.in: a message at most, and what came at once */
    bool over;                  /* it was refused */
};

int
desktop_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    struct viewer *v = calloc(1, sizeof(*v));

    o->kind = OP_CONNECT;
    if (v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    o->viewer = v;
    rfb_init(&v->rfb, (want->flags & OP_WRITES) != 0);
    v->passed = (struct buf)BUF_INIT(RFB_MESSAGE_MAX + EDGE_CHUNK);
    if (!sandbox_facts(o->k->l.sb)->own_net)
        return err_set(err, ERR_UNSUPPORTED, "desktop.network", "this sandbox has no screen: it shares the host's "
                       "network");
    return port_connect(o, DESKTOP_PORT, err);
}

void
desktop_in(struct op *o, const uint8_t *p, size_t n)
{
    struct viewer *v = o->viewer;
    struct err err = ERR_INIT;

    if (v->over || rfb_feed(&v->rfb, p, n, &v->passed, &err) == 0)
        return;
    v->over = true;
    buf_reset(&v->passed);
    o->in_n = o->in_at = 0;
    op_say_failed(o, &err);
    op_signal(o, SIGKILL);
}

bool
desktop_more(struct op *o)
{
    struct viewer *v = o->viewer;

    if (v == NULL || v->passed.n == 0)
        return false;
    o->in_at = 0;
    o->in_n = v->passed.n < sizeof(o->in) ? v->passed.n : sizeof(o->in);
    memcpy(o->in, v->passed.p, o->in_n);
    buf_consume(&v->passed, o->in_n);
    return true;
}

void
desktop_free(struct op *o)
{
    if (o->viewer == NULL)
        return;
    rfb_free(&o->viewer->rfb);
    buf_free(&o->viewer->passed);
    free(o->viewer);
    o->viewer = NULL;
}
