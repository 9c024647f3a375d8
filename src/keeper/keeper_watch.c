/* keeper/keeper_watch.c: what changes in the workspace, as the guest says it, to who watches
 *
 * Everything that the guest says was checked where it was decoded: paths are below the directory that is watched, and
 * there is no more of them than credit was given for, so that what waits for a slow client has a ceiling. Credit goes
 * back when the front has what came; meanwhile changes wait in the sandbox, where what is too much is dropped and
 * told.
 */
#include <string.h>

#include "base/clock.h"
#include "keeper/keeper.h"
#include "match/path.h"

size_t
watch_count(const struct keeper_live *k)
{
    size_t n = 0;

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        n += k->ops[i] != NULL && k->ops[i]->kind == OP_WATCH;
    return n;
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static void
say_change(struct op *o, const struct edge_change *c)
{
    o->said_us = clock_us();
    op_say(o, EDGE_FILE_CHANGE, EDGE_FILE_CHANGE_SHAPE(), c);
}

int
watch_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    const struct msg_file m = { .path = want->path, .length = WATCH_WINDOW,
                                .flags = (want->flags & OP_RECURSIVE) != 0 ? MSG_FILE_RECURSIVE : 0 };

    o->said_us = o->begin_us;
    if (guest_client_file(o->k->l.client, MSG_FILE_WATCH, &m, &o->channel, err) < 0)
        return -1;
    path_below(guest_client_root(o->k->l.client), o->path);
    say_change(o, &(struct edge_change){ .kind = EDGE_CHANGE_NONE, .path = o->path, .from = "" });
    return 0;
}

static void
on_change(struct op *o, const struct msg_change *m)
{
    static const enum edge_change_kind kinds[] = {
        [CHANGE_WATCHING] = EDGE_CHANGE_WATCHING, [CHANGE_CREATED] = EDGE_CHANGE_CREATED,
        [CHANGE_MODIFIED] = EDGE_CHANGE_MODIFIED, [CHANGE_DELETED] = EDGE_CHANGE_DELETED,
        [CHANGE_RENAMED] = EDGE_CHANGE_RENAMED, [CHANGE_UNWATCHED] = EDGE_CHANGE_UNWATCHED,
        [CHANGE_OVERFLOW] = EDGE_CHANGE_OVERFLOW,
    };
    const struct edge_change c = { .kind = kinds[m->kind], .directory = m->directory, .path = m->path,
                                   .from = m->from };

    o->owed[0] += guest_change_bytes(m);
    o->count++;
    o->passed[1] += strlen(m->path) + strlen(m->from);
    say_change(o, &c);
    watch_give_back(o);
}

void
watch_give_back(struct op *o)
{
    /* not in crumbs: what is left is room enough */
    if (o->kind != OP_WATCH || o->channel == 0 || o->edge.fd < 0 || o->owed[0] < WATCH_WINDOW / 4 ||
        packet_queue_waits(&o->out))
        return;
    if (guest_client_file_more(o->k->l.client, o->channel, o->owed[0], NULL) == 0)
        o->owed[0] = 0;
}

void
watch_event(struct op *o, const struct guest_event *ev)
{
    struct err err = ERR_INIT;

    if (ev->type == GUEST_FILE_CHANGE)
        return on_change(o, &ev->change);
    if (ev->type != GUEST_FILE_FAILED)
        return;
    (void)guest_file_err(&ev->file_error, o->path, &err);
    o->result.bytes = o->count;
    op_say_failed(o, &err);
    op_ended(o);
}

/* Nothing was said for a while: what stands between us and the client may take that for the end. */
void
watch_time(struct keeper_live *k, uint64_t now)
{
    const struct edge_change none = { .kind = EDGE_CHANGE_NONE, .path = "", .from = "" };

    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        struct op *o = k->ops[i];
        if (o != NULL && o->kind == OP_WATCH && o->channel != 0 && o->count > 0 && !packet_queue_waits(&o->out) &&
            clock_since(now, o->said_us) >= WATCH_ALIVE_US)
            say_change(o, &none);
    }
}
