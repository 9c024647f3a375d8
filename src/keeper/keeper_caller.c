/* keeper/keeper_caller.c: what goes on in the name of a caller whose credential has ended (warden/ends.c) */
#include <string.h>

#include "keeper/keeper.h"

static void
end_of(struct keeper_live *k, const char *caller, const struct err *why)
{
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        struct op *o = k->ops[i];
        if (o == NULL || o->edge.fd < 0 || strcmp(o->caller, caller) != 0)
            continue;
        packet_queue_clear(&o->out);    /* what was not told yet is not any more */
        op_say_failed(o, why);
        op_cancel(o);
    }
}

int
op_on_caller_ended(struct keeper_live *k, const struct edge_only_id *caller)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_DENIED, "auth.ended", "the credential of who began this opens nothing any more");
    err_hint(&err, "it was revoked or replaced, or its time is over");
    end_of(k, caller->id, &err);
    asker_caller_ended(k, caller->id, &err);
    return 0;
}
