/* proto/edge_keeper.c: see edge_keeper.h */
#include "proto/edge_keeper.h"

#include <string.h>

static bool
keep_facts_well(const char *facts)
{
    return facts[0] == '\0' || (facts[0] == '\n' && facts[strlen(facts) - 1] == '\n');
}

static bool
keep_code_well(const char *code)
{
    return code[strspn(code, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

static bool
keep_not_changed(const void *m)
{
    const struct keep_changed *c = m;

    return !c->done;
}

static bool
keep_host_well(const char *host)
{
    return host[0] != '\0' && host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:")] == '\0';
}

/* As cloche-egress shows them: printable ASCII. */
static bool
keep_request_well(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

static bool
net_ask_well(const struct keep_net_ask *ask)
{
    return ask->method[0] != '\0' || ask->path[0] == '\0';
}

PROTO_SHAPE(keep_make, KEEP_MAKE)
PROTO_SHAPE(keep_op, KEEP_OP)
PROTO_SHAPE(keep_take, KEEP_TAKE)
PROTO_SHAPE(keep_run_ask, KEEP_RUN_ASK)
PROTO_SHAPE(keep_call, KEEP_CALL)
PROTO_SHAPE(keep_change, KEEP_CHANGE)
PROTO_SHAPE(keep_tell_print, KEEP_TELL_PRINT)
PROTO_SHAPE(keep_net_answer, KEEP_NET_ANSWER)
PROTO_SHAPE(keep_made, KEEP_MADE)
PROTO_SHAPE(keep_step, KEEP_STEP)
PROTO_SHAPE(keep_still, KEEP_STILL)
PROTO_SHAPE(keep_gone, KEEP_GONE)
PROTO_SHAPE(keep_shown, KEEP_SHOWN)
PROTO_SHAPE(keep_changed, KEEP_CHANGED)
PROTO_SHAPE(keep_print, KEEP_PRINT)
PROTO_SHAPE(keep_copied, KEEP_COPIED)
PROTO_SHAPE(keep_noted, KEEP_NOTED)
PROTO_SHAPE(mask, KEEP_MASK)
PROTO_SHAPE(keep_masks, KEEP_MASKS)
PROTO_SHAPE(keep_op_said, KEEP_OP_SAID)
PROTO_SHAPE_WELL(keep_net_ask, KEEP_NET_ASK, net_ask_well)
PROTO_SHAPE(edge_resize, EDGE_RESIZE_FIELDS)
PROTO_SHAPE(edge_signal, EDGE_SIGNAL_FIELDS)
PROTO_SHAPE(edge_entry, EDGE_ENTRY_FIELDS)
PROTO_SHAPE(edge_exit, EDGE_EXIT_FIELDS)
PROTO_SHAPE(edge_run_out, EDGE_RUN_OUT_FIELDS)
PROTO_SHAPE(edge_rich, EDGE_RICH_FIELDS)
