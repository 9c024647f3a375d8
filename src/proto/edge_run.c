/* proto/edge_run.c: see edge_run.h */
#include "proto/edge_run.h"

#include <string.h>

bool
edge_role_well(const char *role)
{
    return role[0] >= 'a' && role[0] <= 'z' &&
           role[strspn(role, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool
ask_well(const struct edge_run_ask *ask)
{
    enum run_ask what = ask->what;

    if (what == RUN_RESTART ? !ask->context : ask->context && what != RUN_GET && what != RUN_SIGNAL && what != RUN_END)
        return false;
    if (what == RUN_MESSAGE ? !edge_role_well(ask->role) : ask->role[0] != '\0' || ask->text[0] != '\0' || ask->json)
        return false;
    return (what == RUN_MESSAGE || (ask->number == 0) == (what == RUN_LIST)) && (!ask->last || what == RUN_INPUT) &&
           ((ask->at[0] == 0 && ask->at[1] == 0) || what == RUN_FOLLOW) &&
           (what == RUN_SIGNAL ? ask->signal >= 1 && ask->signal <= 31 : ask->signal == 0) &&
           (ask->rows != 0) == (what == RUN_RESIZE) && (ask->cols != 0) == (what == RUN_RESIZE);
}
PROTO_SHAPE_WELL(edge_run_ask, EDGE_RUN_ASK_FIELDS, ask_well)

static bool
run_well(const struct edge_run *run)
{
    for (size_t i = 0; i < 2; i++)
        if (run->bytes[i] > INT64_MAX || run->gone[i] > run->bytes[i])
            return false;
    return (run->state & RUN_ENDED) != 0 || (run->flags == 0 && run->code == 0 && run->ended_ms == 0);
}
PROTO_SHAPE_WELL(edge_run, EDGE_RUN_FIELDS, run_well)

const char *
edge_context_state(const struct edge_run *run)
{
    if ((run->state & RUN_ENDED) != 0)
        return "dead";
    return (run->state & RUN_ENDING) != 0 ? "ending" : (run->state & RUN_BUSY) != 0 ? "busy" : "idle";
}
