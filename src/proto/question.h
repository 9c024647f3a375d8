/* proto/question.h: what a front asks the warden, and the answers (edge.h, edge_gate.h, edge_run.h)
 *
 * A question begins with its trace and span (EDGE_WORK bytes), a ticket that its front chose, and who asks; behind
 * that comes its message. An answer begins with the ticket. All that there is to know of a question is its row of
 * EDGE_QUESTIONS, of which the warden's table (warden/who.c) is made: for each there is an asked_NAME(), and for each
 * that is GATED a deed_NAME(), which says what it would do. Neither can be forgotten: it does not link then.
 */
#ifndef CLOCHE_PROTO_QUESTION_H
#define CLOCHE_PROTO_QUESTION_H

#include "audit/audit.h"
#include "proto/edge_gate.h"
#include "proto/edge_run.h"
#include "proto/edge_sign.h"

#define EDGE_SECONDS_MAX (365U * 86400)

/* --- questions ---------------------------------------------------------------------------------------------------- */

#define EDGE_CALLER(F) \
    F(U32_IN, ticket, 1, UINT32_MAX) \
    F(U32, who)                             /* the handle; 0 nobody */
PROTO_STRUCT(edge_caller, EDGE_CALLER);

/* The beginning of a question. */
#define EDGE_HEAD(F) \
    F(RAW, trace, EDGE_TRACE) \
    F(RAW, span, EDGE_SPAN) \
    F(BOOL, sampled) \
    F(STRUCT_IN, edge_caller, caller)
PROTO_STRUCT(edge_head, EDGE_HEAD);

/* Most are about one sandbox: its id or name; "" the caller's default one. */
#define ASK_BOX(F) F(TEXT, id, EDGE_NAME_MAX)
PROTO_STRUCT(ask_box, ASK_BOX);

/* A new key in the place of the former one; or, @more, another one beside it, which is the same each time. */
#define ASK_KEY(F) F(TEXT, id, EDGE_NAME_MAX) F(BOOL, more)
PROTO_STRUCT(ask_key, ASK_KEY);

/* It is to end so many seconds from now. */
#define ASK_LIFE(F) F(TEXT, id, EDGE_NAME_MAX) F(U32_IN, seconds, 1, EDGE_SECONDS_MAX)
PROTO_STRUCT(ask_life, ASK_LIFE);

#define ASK_LIST(F) \
    F(BOOL, all) \
    F(U16_IN, limit, 1, EDGE_LIST_MAX) \
    F(TEXT, prefix, EDGE_NAME_MAX)          /* of the name */ \
    F(TEXT_IF, label, EDGE_LABELS_MAX, edge_labels_well)            /* "" any */ \
    F(TEXT_IF, after, EDGE_CURSOR_MAX, edge_maybe_cursor)           /* "" none */ \
    F(TEXT_IF, workspace, EDGE_WORKSPACE_MAX, edge_workspace_well)  /* "" any */
PROTO_STRUCT(ask_list, ASK_LIST);

#define ASK_OP(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(REST, op, edge_op_LEAST, EDGE_OP_BYTES)       /* struct edge_op, as it goes on to the keeper */
PROTO_STRUCT(ask_op, ASK_OP);

#define ASK_EVENTS(F) \
    F(U16_IN, limit, 1, 1000) \
    F(TEXT, id, EDGE_NAME_MAX)              /* "" of all */
PROTO_STRUCT(ask_events, ASK_EVENTS);

/* EVENTs that were, after that number; FOLLOWING; and those that come, until UNFOLLOW. */
#define ASK_FOLLOW(F) \
    F(U16_IN, limit, 0, 1000) \
    F(U64, after) \
    F(TEXT, id, EDGE_NAME_MAX)
PROTO_STRUCT(ask_follow, ASK_FOLLOW);

#define ASK_WHO(F) \
    F(ENUM, edge_credential, kind, EDGE_BEARER, EDGE_SANDBOX_KEY) \
    F(TEXT, text, EDGE_CREDENTIAL_MAX)
PROTO_STRUCT(ask_who, ASK_WHO);

#define ASK_TOKEN(F) \
    F(ENUM, edge_token_ask, what, TOKEN_MAKE, TOKEN_REVOKE) \
    F(U8, role)                             /* MAKE, as the next one: 0 for ever */ \
    F(U64_IN, seconds, 0, TOKEN_LIVES_MAX) \
    F(TEXT, text, EDGE_NAME_MAX)            /* MAKE: its name; REVOKE: its id */
PROTO_STRUCT(ask_token, ASK_TOKEN);

/* A ticket for the console, whose session has that role for so long: TOKEN, whose text is the ticket: this, and 64
 * hexadecimal digits. */
#define EDGE_CONSOLE_TICKET "cloche_console_"
#define ASK_CONSOLE(F) \
    F(U8, role)                             /* edge_role_of_person */ \
    F(U32_IN, seconds, 1, EDGE_CONSOLE_FOR_MAX) \
    F(U32_IN, within, 1, EDGE_CONSOLE_WITHIN_MAX)   /* seconds for it to be used */
PROTO_STRUCT(ask_console, ASK_CONSOLE);

/* TOKEN: the session's. */
#define ASK_CONSOLE_OPEN(F) F(TEXT, ticket, EDGE_CREDENTIAL_MAX)
PROTO_STRUCT(ask_console_open, ASK_CONSOLE_OPEN);

/* LINEs, of the newest or after an entry of that number, then END; or first FOLLOWING, and those that come. */
#define ASK_AUDIT(F) \
    F(BOOL, follow) \
    F(BOOL, count)                          /* END alone, with how many there are */ \
    F(U32_IN, types, 0, (1U << AUDIT_TYPES) - 1) \
    F(U32_IN, severities, 0, (1U << AUDIT_SEVERITIES) - 1) \
    F(U64_IN, since_ms, 0, 4102444800000)   /* until the year 2100 */ \
    F(U64_IN, until_ms, 0, 4102444800000)   /* 0: now, and later */ \
    F(U64, after) \
    F(U16_IN, limit, 0, 1000) \
    F(TEXT, by, EDGE_WHO_MAX)               /* whose requests; "" of all */ \
    F(TEXT, id, EDGE_NAME_MAX)              /* "" of all */
PROTO_STRUCT(ask_audit, ASK_AUDIT);

/* GRANTED; what is read comes as that of a file. */
#define ASK_TRANSCRIPT(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(U64, offset)
PROTO_STRUCT(ask_transcript, ASK_TRANSCRIPT);

#define ASK_GATE(F) \
    F(TEXT, id, EDGE_NAME_MAX)              /* "" a new one */ \
    F(TEXT_IF, tool, GATE_NAME_MAX, gate_tool_well) \
    F(TEXT, params, EDGE_OP_MAX)            /* a JSON object */
PROTO_STRUCT(ask_gate, ASK_GATE);

#define ASK_APPROVALS(F) \
    F(BOOL, follow) \
    F(U8_IN, state, 0, APPROVAL_STATES - 1) /* 0 any */ \
    F(U16_IN, limit, 1, EDGE_APPROVALS_OPEN) \
    F(TEXT_IF, id, EDGE_ID, edge_maybe_id)  /* "" of all */ \
    F(TEXT_IF, after, EDGE_CURSOR_MAX, edge_maybe_cursor)
PROTO_STRUCT(ask_approvals, ASK_APPROVALS);

#define ASK_ID(F) F(TEXT_IF, id, EDGE_ID, edge_maybe_id)
PROTO_STRUCT(ask_id, ASK_ID);

#define ASK_SNAPSHOT(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(TEXT_IF, name, EDGE_NAME_MAX, edge_maybe_name)    /* of the template; "": it is for forks */
PROTO_STRUCT(ask_snapshot, ASK_SNAPSHOT);

#define ASK_CANCEL(F) F(U32_IN, ticket, 1, UINT32_MAX)
PROTO_STRUCT(ask_cancel, ASK_CANCEL);

#define ASK_CHANGE(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(REF, was, EDGE_HASH)                  /* SHA-256 of the policy that is changed */ \
    F(TEXT, policy, EDGE_POLICY_MAX)
PROTO_STRUCT(ask_change, ASK_CHANGE);

#define ASK_EXPOSE(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(U16_IN, port, 1, UINT16_MAX) \
    F(U32_IN, seconds, 0, EDGE_SECONDS_MAX) /* 0: as long as it lives */ \
    F(TEXT_IF, name, EDGE_NAME_MAX, edge_maybe_name)
PROTO_STRUCT(ask_expose, ASK_EXPOSE);

#define ASK_UNEXPOSE(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(TEXT_IF, which, EDGE_ID, edge_is_id)  /* of the port */
PROTO_STRUCT(ask_unexpose, ASK_UNEXPOSE);

#define ASK_PREVIEW(F) F(TEXT_IF, capability, EDGE_CAPABILITY, edge_is_capability)
PROTO_STRUCT(ask_preview, ASK_PREVIEW);

/* GRANTED: an operation BROWSER. */
#define ASK_BROWSER(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(ENUM, edge_browse, what, BROWSER_START, BROWSER_ONLY)
PROTO_STRUCT(ask_browser, ASK_BROWSER);

/* GRANTED: an operation DESKTOP. */
#define ASK_DESKTOP(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(BOOL, control)                        /* or to look */
PROTO_STRUCT(ask_desktop, ASK_DESKTOP);

/* A ticket for a session of an editor, or of who sits at the desktop. */
#define ASK_ATTACH(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(BOOL, writes) \
    F(BOOL, screen) \
    F(U32_IN, seconds, 1, EDGE_ATTACH_FOR_MAX) \
    F(U32_IN, within, 1, EDGE_ATTACH_WITHIN_MAX)    /* seconds for the ticket to be used */
PROTO_STRUCT(ask_attach, ASK_ATTACH);

#define ASK_ATTACH_OPEN(F) F(TEXT, id, EDGE_NAME_MAX) F(TEXT, ticket, EDGE_TICKET_MAX)
PROTO_STRUCT(ask_attach_open, ASK_ATTACH_OPEN);

#define ASK_TUNNEL(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(TEXT, host_key, EDGE_ATTACH_KEY_MAX)          /* edge_attach_keys_well */ \
    F(TEXT, user_key, EDGE_ATTACH_KEY_MAX)
PROTO_STRUCT(ask_tunnel, ASK_TUNNEL);

#define ASK_DETACH(F) F(TEXT, id, EDGE_NAME_MAX) F(TEXT_IF, which, EDGE_ID, edge_is_id)
PROTO_STRUCT(ask_detach, ASK_DETACH);

#define ASK_RUN(F) \
    F(TEXT, id, EDGE_NAME_MAX) \
    F(STRUCT_IN, edge_run_ask, ask)
PROTO_STRUCT(ask_run, ASK_RUN);

/* Number, message, name; which roles may ask it; whether the gate holds it until somebody approves (WAITS: it is about
 * that itself); and as what it is on record before it is done: LOOKS for what changes nothing. */
#define EDGE_QUESTIONS(Q) \
    Q(EDGE_ASK_CREATE,     1,   edge_create,    create,     OPERATOR | AGENT,                   GATED, \
      RECORDED("create", RECORD_WAIT)) \
    Q(EDGE_ASK_GET,        2,   ask_box,        get,        OPERATOR | AGENT | AUDITOR | KEY,   FREE,  LOOKS) \
    Q(EDGE_ASK_LIST,       3,   ask_list,       list,       OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_DELETE,     4,   ask_box,        delete,     OPERATOR | AGENT,                   GATED, \
      RECORDED("delete", RECORD_INSIST)) \
    Q(EDGE_ASK_PAUSE,      5,   ask_box,        pause,      OPERATOR | AGENT,                   FREE, \
      RECORDED("pause", RECORD_WAIT)) \
    Q(EDGE_ASK_RESUME,     6,   ask_box,        resume,     OPERATOR | AGENT,                   FREE, \
      RECORDED("resume", RECORD_WAIT)) \
    Q(EDGE_ASK_RECOVER,    7,   ask_box,        recover,    OPERATOR | AGENT,                   GATED, \
      RECORDED("recover", RECORD_WAIT)) \
    Q(EDGE_ASK_OP,         8,   ask_op,         op,         OPERATOR | AGENT | KEY,             GATED, BY_KIND) \
    Q(EDGE_ASK_STOP_ALL,   9,   nothing,        stop_all,   OPERATOR,                           FREE,  NOTED) \
    Q(EDGE_ASK_EVENTS,     10,  ask_events,     events,     OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_WHO,        11,  ask_who,        who,        ANYBODY,                            FREE,  LOOKS) \
    Q(EDGE_ASK_TOKEN,      12,  ask_token,      token,      OPERATOR,                           GATED, \
      RECORDED("create_token", RECORD_WAIT)) \
    Q(EDGE_ASK_CONSOLE,    202, ask_console,    console,    OPERATOR,                           GATED, \
      RECORDED("console", RECORD_WAIT)) \
    /* whoever has the ticket */ \
    Q(EDGE_ASK_CONSOLE_OPEN, 203, ask_console_open, console_open, ANYBODY,                      FREE, \
      RECORDED("console_open", RECORD_WAIT)) \
    Q(EDGE_ASK_KEY,        13,  ask_key,        key,        OPERATOR | AGENT,                   GATED, \
      RECORDED("new_key", RECORD_WAIT)) \
    Q(EDGE_ASK_AUDIT,      14,  ask_audit,      audit,      OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    /* with the ticket of one that is followed: no more. No answer */ \
    Q(EDGE_ASK_UNFOLLOW,   15,  nothing,        unfollow,   OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_TRANSCRIPT, 16,  ask_transcript, transcript, OPERATOR | AGENT | AUDITOR | KEY,   FREE,  LOOKS) \
    Q(EDGE_ASK_GATE,       18,  ask_gate,       gate,       OPERATOR | AGENT | KEY,             WAITS, LOOKS) \
    Q(EDGE_ASK_APPROVALS,  19,  ask_approvals,  approvals,  OPERATOR | AGENT | APPROVER | AUDITOR | KEY, FREE, LOOKS) \
    Q(EDGE_ASK_DECIDE,     20,  edge_decision,  decide,     OPERATOR | APPROVER,                FREE, \
      RECORDED("approve", RECORD_WAIT)) \
    /* one to end, or "": list them */ \
    Q(EDGE_ASK_GRANTS,     21,  ask_id,         grants,     OPERATOR | APPROVER,                FREE,  NOTED) \
    /* nobody waits for that question any more; no answer */ \
    Q(EDGE_ASK_CANCEL,     22,  ask_cancel,     cancel,     ANYBODY,                            FREE,  LOOKS) \
    Q(EDGE_ASK_POLICY,     23,  ask_box,        policy,     OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_CHANGE,     24,  ask_change,     change,     OPERATOR,                           GATED, \
      RECORDED("policy", RECORD_WAIT)) \
    /* one to remove, or "": list them */ \
    Q(EDGE_ASK_VOLUMES,    25,  ask_id,         volumes,    OPERATOR | AGENT | AUDITOR,         GATED, \
      RECORDED("remove_volume", RECORD_INSIST)) \
    /* VOLUME, when its files are copied */ \
    Q(EDGE_ASK_SNAPSHOT,   26,  ask_snapshot,   snapshot,   OPERATOR | AGENT,                   GATED, \
      RECORDED("snapshot", RECORD_WAIT)) \
    /* one to remove, or "": list them */ \
    Q(EDGE_ASK_TEMPLATES,  27,  ask_box,        templates,  OPERATOR | AGENT | AUDITOR,         GATED, \
      RECORDED("remove_template", RECORD_INSIST)) \
    Q(EDGE_ASK_LIFE,       28,  ask_life,       life,       OPERATOR | AGENT,                   GATED, \
      RECORDED("lifetime", RECORD_WAIT)) \
    Q(EDGE_ASK_STATS,      29,  nothing,        stats,      OPERATOR | AUDITOR,                 FREE,  LOOKS) \
    Q(EDGE_ASK_USAGE,      30,  ask_box,        usage,      OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_FOLLOW,     31,  ask_follow,     follow,     OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_RUN,        176, ask_run,        run,        OPERATOR | AGENT | KEY,             FREE,  BY_KIND) \
    Q(EDGE_ASK_EXPOSE,     188, ask_expose,     expose,     OPERATOR | AGENT,                   GATED, \
      RECORDED("expose_port", RECORD_WAIT)) \
    Q(EDGE_ASK_PORTS,      189, ask_box,        ports,      OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_UNEXPOSE,   190, ask_unexpose,   unexpose,   OPERATOR | AGENT,                   FREE, \
      RECORDED("unexpose_port", RECORD_INSIST)) \
    /* the gate is not asked about these: the signing policy says what a person is asked about */ \
    Q(EDGE_ASK_SIGN,       194, ask_sign,       sign,       OPERATOR | AGENT | KEY,             FREE, \
      RECORDED("sign", RECORD_WAIT)) \
    Q(EDGE_ASK_SIGN_TEXT,  201, ask_sign_text,  sign_text,  OPERATOR | AGENT | KEY,             FREE, \
      RECORDED("sign", RECORD_WAIT)) \
    Q(EDGE_ASK_SIGN_DECIDE, 195, ask_sign_decide, sign_decide, OPERATOR | APPROVER,             FREE, \
      RECORDED("approve", RECORD_WAIT)) \
    Q(EDGE_ASK_SIGN_LOOK,  200, ask_sign_look,  sign_look,  OPERATOR | AGENT | APPROVER | AUDITOR | KEY, FREE, LOOKS) \
    /* whoever has the capability: PORT, and GRANTED, a connection to it */ \
    Q(EDGE_ASK_PREVIEW,    191, ask_preview,    preview,    ANYBODY,                            FREE,  NOTED) \
    /* START, and after each one CONNECT, for which nobody is asked again */ \
    Q(EDGE_ASK_BROWSER,    155, ask_browser,    browser,    OPERATOR | AGENT | KEY,             GATED, \
      RECORDED("browser", RECORD_WAIT)) \
    /* of a session's credential it has been asked when its ticket was made */ \
    Q(EDGE_ASK_DESKTOP,    157, ask_desktop,    desktop,    OPERATOR | AGENT | KEY | ATTACH,    GATED, \
      RECORDED("desktop", RECORD_WAIT)) \
    /* an editor's ways in (warden/attach.c): a ticket; a session for the ticket; what that is; a connection */ \
    Q(EDGE_ASK_ATTACH,     149, ask_attach,     attach,     OPERATOR | AGENT,                   GATED, \
      RECORDED("attach", RECORD_WAIT)) \
    Q(EDGE_ASK_OPEN,       150, ask_attach_open, attach_open, OPERATOR | AGENT,                 FREE, \
      RECORDED("attach_open", RECORD_WAIT)) \
    Q(EDGE_ASK_SESSION,    151, ask_box,        session,    ATTACH,                             FREE,  LOOKS) \
    Q(EDGE_ASK_TUNNEL,     152, ask_tunnel,     tunnel,     ATTACH,                             FREE, \
      RECORDED("attach_tunnel", RECORD_WAIT)) \
    Q(EDGE_ASK_SESSIONS,   153, ask_box,        sessions,   OPERATOR | AGENT | AUDITOR,         FREE,  LOOKS) \
    Q(EDGE_ASK_DETACH,     154, ask_detach,     detach,     OPERATOR | AGENT,                   FREE, \
      RECORDED("detach", RECORD_INSIST))
PROTO_EDGE(edge_question, EDGE_QUESTIONS);

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define TELL_TICKET(F) F(U32, ticket)
PROTO_STRUCT(tell_ticket, TELL_TICKET);

#define TELL_BOX(F) \
    F(U32, ticket) \
    F(STRUCT_IN, edge_box, box) \
    F(TEXT, key, EDGE_CREDENTIAL_MAX)   /* "" but in the answer to CREATE without EDGE_DEFAULT, and to KEY */
PROTO_STRUCT(tell_box, TELL_BOX);

#define TELL_ITEM(F) F(U32, ticket) F(STRUCT_IN, edge_box, box)
PROTO_STRUCT(tell_item, TELL_ITEM);

#define TELL_EVENT(F) F(U32, ticket) F(STRUCT_IN, edge_event, event)
PROTO_STRUCT(tell_event, TELL_EVENT);

#define TELL_END(F) F(U32, ticket) F(U32, count) F(BOOL, more)
PROTO_STRUCT(tell_end, TELL_END);

#define TELL_NO(F) F(U32, ticket) F(ERR, why)
PROTO_STRUCT(tell_no, TELL_NO);

#define TELL_WHO(F) \
    F(U32, ticket) \
    F(U32_IN, who, 1, UINT32_MAX)       /* the handle */ \
    F(ENUM, edge_role, role, EDGE_NOBODY + 1, EDGE_ROLES - 1) \
    F(U64, until_ms)                    /* since 1970; 0 for ever */ \
    F(TEXT_IF, box, EDGE_ID, edge_maybe_id)     /* of a key */
PROTO_STRUCT(tell_who, TELL_WHO);

#define TELL_TOKEN(F) \
    F(U32, ticket) \
    F(STRUCT_IN, edge_token, token) \
    F(TEXT, text, EDGE_CREDENTIAL_MAX)  /* "" but in the answer to its making */
PROTO_STRUCT(tell_token, TELL_TOKEN);

#define TELL_LINE(F) F(U32, ticket) F(REST, line, 1, AUDIT_LINE_MAX)
PROTO_STRUCT(tell_line, TELL_LINE);

#define TELL_GATE(F) F(U32, ticket) F(STRUCT_IN, edge_verdict, verdict)
PROTO_STRUCT(tell_gate, TELL_GATE);

#define TELL_APPROVAL(F) F(U32, ticket) F(STRUCT_IN, edge_approval, approval)
PROTO_STRUCT(tell_approval, TELL_APPROVAL);

#define TELL_GRANT(F) F(U32, ticket) F(STRUCT_IN, edge_grant, grant)
PROTO_STRUCT(tell_grant, TELL_GRANT);

#define TELL_POLICY(F) F(U32, ticket) F(BOOL, last) F(BYTES, json, EDGE_CHUNK)
PROTO_STRUCT(tell_policy, TELL_POLICY);

#define TELL_VOLUME(F) F(U32, ticket) F(STRUCT_IN, edge_volume, volume)
PROTO_STRUCT(tell_volume, TELL_VOLUME);

#define TELL_STATS(F) F(U32, ticket) F(REST, samples, 0, EDGE_MESSAGE_MAX - 4)      /* warden/stats.h */
PROTO_STRUCT(tell_stats, TELL_STATS);

#define TELL_USAGE(F) F(U32, ticket) F(TEXT_IF, id, EDGE_ID, edge_is_id) F(STRUCT_IN, edge_usage, usage)
PROTO_STRUCT(tell_usage, TELL_USAGE);

#define TELL_PORT(F) \
    F(U32, ticket) \
    F(STRUCT_IN, edge_port, port) \
    F(TEXT_IF, capability, EDGE_CAPABILITY, edge_maybe_capability)      /* "" but in the answer to EXPOSE */
PROTO_STRUCT(tell_port, TELL_PORT);

#define TELL_ATTACH(F) \
    F(U32, ticket) \
    F(STRUCT_IN, edge_attach, attach) \
    F(TEXT, text, EDGE_TICKET_MAX)      /* ticket, or the session's credential; "" but in the answer to its making */
PROTO_STRUCT(tell_attach, TELL_ATTACH);

/* The last of each question ends it; but ITEM, EVENT, LINE, USAGE, SIGN_ITEM, APPROVAL and GRANT, behind
 * which END comes. */
#define EDGE_ANSWERS(M) \
    M(EDGE_BOX,       32,  tell_box) \
    M(EDGE_ITEM,      33,  tell_item)       /* without its policy */ \
    M(EDGE_EVENT,     34,  tell_event) \
    M(EDGE_END,       35,  tell_end) \
    M(EDGE_GRANTED,   36,  tell_ticket)     /* with the operation's socket */ \
    M(EDGE_NO,        37,  tell_no) \
    M(EDGE_WHO,       40,  tell_who) \
    M(EDGE_TOKEN,     41,  tell_token) \
    M(EDGE_LINE,      43,  tell_line)       /* of the audit record */ \
    M(EDGE_FOLLOWING, 44,  tell_ticket) \
    M(EDGE_GATE,      46,  tell_gate) \
    M(EDGE_APPROVAL,  47,  tell_approval)   /* END follows unless they are followed */ \
    M(EDGE_GRANT,     48,  tell_grant) \
    M(EDGE_POLICY,    50,  tell_policy)     /* several, in order */ \
    M(EDGE_VOLUME,    51,  tell_volume) \
    M(EDGE_STATS,     54,  tell_stats) \
    M(EDGE_USAGE,     55,  tell_usage) \
    M(EDGE_SIGNED,    56,  tell_signed) \
    M(EDGE_SIGN_ITEM, 57,  tell_signed) \
    M(EDGE_PORT,      192, tell_port) \
    M(EDGE_ATTACHED,  155, tell_attach) \
    M(EDGE_EPOCHS,    212, nothing)         /* no answer, but the first that it says: with the page of epoch.h */ \
    M(EDGE_HEARD,     230, nothing)         /* to EDGE_PING */ \
    M(EDGE_BEHIND,    233, edge_why)        /* the same, while what happens cannot be put on record */
PROTO_EDGE(edge_answer, EDGE_ANSWERS);

#endif
