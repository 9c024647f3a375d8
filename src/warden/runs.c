/* warden/runs.c: questions about commands in the background
 *
 * Their keeper has them. Here is judged who asks and of which sandbox; the answer goes over a socket of its own, like
 * that of an operation.
 */
#include <string.h>

#include "proto/edge_run.h"
#include "warden/record.h"

/* What acts on the command, by the name under which it is recorded. NULL: it only looks. */
static const char *
deed_name(enum run_ask what)
{
    switch (what) {
    case RUN_INPUT: return "exec_stdin";
    case RUN_SIGNAL: return "exec_signal";
    case RUN_END: return "exec_end";
    case RUN_RESTART: return "exec_restart";
    case RUN_MESSAGE: return "message";
    default: return NULL;
    }
}

static bool
recorded(struct warden *w, struct box *b, const struct edge_run_ask *ask)
{
    const char *name = deed_name(ask->what);
    struct audit_entry e;

    if (name == NULL)
        return false;
    if (ask->what == RUN_MESSAGE) {
        audit_capability(&e, NULL, name, "a message was put into a sandbox's transcript");
        audit_put_cstr(&e, "role", ask->role);
        audit_put_number(&e, "bytes", (int64_t)strlen(ask->text));
        return record_first_as(w, b, &e, RECORD_WAIT);
    }
    audit_capability(&e, NULL, name, "something was asked of a command in the background");
    audit_put_number(&e, "exec_id", (int64_t)ask->number);
    if (ask->what == RUN_SIGNAL)
        audit_put_number(&e, "signal", ask->signal);
    return record_first_as(w, b, &e, ask->what == RUN_END ? RECORD_INSIST : RECORD_WAIT);
}

static int
pass_on(struct warden *w, struct box *b, const struct edge_run_ask *ask, struct err *err)
{
    struct keep_run_ask m = { .ask = *ask };
    char by[EDGE_WHO_MAX + 1];

    memcpy(m.caller, w->who.id, sizeof(m.caller));
    if (ask->what == RUN_MESSAGE) {
        who_text(w, &w->who, by);
        m.by = by;
        m.ask.number = record_operation(w);
    }
    return box_grant(w, b, EDGE_RUN_ASK, EDGE_RUN_ASK_SHAPE(), &m, err);
}

int
asked_run(struct warden *w, const struct ask_run *m)
{
    const struct edge_run_ask *ask = &m->ask;
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    /* the guest hears nothing meanwhile */
    if (b != NULL && b->r.paused && ask->what != RUN_MESSAGE &&
        (deed_name(ask->what) != NULL || ask->what == RUN_RESIZE))
        err_set(&err, ERR_DENIED, "sandbox.paused", "the sandbox is paused; resume it first");
    if (err.kind == ERR_NONE && recorded(w, b, ask))
        return 0;
    if (err.kind != ERR_NONE || pass_on(w, b, ask, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}
