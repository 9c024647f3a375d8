/* proto/question.c: see question.h */
#include "proto/question.h"

static bool
who_well(const struct ask_who *m)
{
    return edge_credential_well(m->kind, m->text);
}

static bool
token_well(const struct ask_token *m)
{
    bool make = m->what == TOKEN_MAKE;

    return make == (m->role > EDGE_NOBODY && m->role < EDGE_KEY) && (make || m->seconds == 0) &&
           (make ? edge_maybe_name(m->text) : m->what == TOKEN_LIST ? m->text[0] == '\0' : edge_is_id(m->text));
}

static bool
console_well(const struct ask_console *m)
{
    return edge_role_of_person(m->role);
}

PROTO_SHAPE(edge_caller, EDGE_CALLER)
PROTO_SHAPE(edge_head, EDGE_HEAD)
PROTO_SHAPE(ask_box, ASK_BOX)
PROTO_SHAPE(ask_key, ASK_KEY)
PROTO_SHAPE(ask_life, ASK_LIFE)
PROTO_SHAPE(ask_list, ASK_LIST)
PROTO_SHAPE(ask_op, ASK_OP)
PROTO_SHAPE(ask_events, ASK_EVENTS)
PROTO_SHAPE(ask_follow, ASK_FOLLOW)
PROTO_SHAPE_WELL(ask_who, ASK_WHO, who_well)
PROTO_SHAPE_WELL(ask_token, ASK_TOKEN, token_well)
PROTO_SHAPE_WELL(ask_console, ASK_CONSOLE, console_well)
PROTO_SHAPE(ask_console_open, ASK_CONSOLE_OPEN)
PROTO_SHAPE(ask_audit, ASK_AUDIT)
PROTO_SHAPE(ask_transcript, ASK_TRANSCRIPT)
PROTO_SHAPE(ask_gate, ASK_GATE)
PROTO_SHAPE(ask_approvals, ASK_APPROVALS)
PROTO_SHAPE(ask_id, ASK_ID)
PROTO_SHAPE(ask_snapshot, ASK_SNAPSHOT)
PROTO_SHAPE(ask_cancel, ASK_CANCEL)
PROTO_SHAPE(ask_change, ASK_CHANGE)
PROTO_SHAPE(ask_expose, ASK_EXPOSE)
PROTO_SHAPE(ask_unexpose, ASK_UNEXPOSE)
PROTO_SHAPE(ask_preview, ASK_PREVIEW)
PROTO_SHAPE(ask_browser, ASK_BROWSER)
PROTO_SHAPE(ask_desktop, ASK_DESKTOP)
PROTO_SHAPE(ask_run, ASK_RUN)
PROTO_SHAPE(ask_attach, ASK_ATTACH)
PROTO_SHAPE(ask_attach_open, ASK_ATTACH_OPEN)
PROTO_SHAPE(ask_tunnel, ASK_TUNNEL)
PROTO_SHAPE(ask_detach, ASK_DETACH)
PROTO_SHAPE(tell_ticket, TELL_TICKET)
PROTO_SHAPE(tell_box, TELL_BOX)
PROTO_SHAPE(tell_item, TELL_ITEM)
PROTO_SHAPE(tell_event, TELL_EVENT)
PROTO_SHAPE(tell_end, TELL_END)
PROTO_SHAPE(tell_no, TELL_NO)
PROTO_SHAPE(tell_who, TELL_WHO)
PROTO_SHAPE(tell_token, TELL_TOKEN)
PROTO_SHAPE(tell_line, TELL_LINE)
PROTO_SHAPE(tell_gate, TELL_GATE)
PROTO_SHAPE(tell_approval, TELL_APPROVAL)
PROTO_SHAPE(tell_grant, TELL_GRANT)
PROTO_SHAPE(tell_policy, TELL_POLICY)
PROTO_SHAPE(tell_volume, TELL_VOLUME)
PROTO_SHAPE(tell_stats, TELL_STATS)
PROTO_SHAPE(tell_usage, TELL_USAGE)
PROTO_SHAPE(tell_port, TELL_PORT)
PROTO_SHAPE(tell_attach, TELL_ATTACH)
