/* proto/edge_keeper.h: what a sandbox's keeper hears and says (edge.h): to the warden, and on an operation's socket */
#ifndef CLOCHE_PROTO_EDGE_KEEPER_H
#define CLOCHE_PROTO_EDGE_KEEPER_H

#include "audit/audit.h"
#include "base/mask.h"
#include "proto/edge_gate.h"
#include "proto/edge_run.h"

/* --- warden to keeper --------------------------------------------------------------------------------------------- */

#define KEEP_MAKE(F) \
    F(TEXT_IF, id, EDGE_ID, edge_is_id)     /* the engine's */ \
    F(FLAGS, bounds, EDGE_BOUNDED | EDGE_JUDGED) \
    F(TEXT, policy, EDGE_POLICY_MAX) \
    F(MAYBE_ID, volume) \
    F(MAYBE_ID, base)                       /* the template that it begins with; "" none */ \
    F(MAYBE_ID, owner)                      /* edge_box's: the transcript is its */ \
    F(TEXT, parks, LANGUAGE_TEXT_MAX)       /* it waits for TAKE, with that language's interpreter; "" it does not */
PROTO_STRUCT(keep_make, KEEP_MAKE);

/* Of one that was parked: whose it is from now on. */
#define KEEP_TAKE(F) F(MAYBE_ID, owner)
PROTO_STRUCT(keep_take, KEEP_TAKE);

/* A caller is by whose credential it is: a token's id, of a key its sandbox's, "" by none that could end. */
#define KEEP_OP(F) \
    F(U64, number) \
    F(TEXT, by, EDGE_WHO_MAX)               /* who asks, for the transcript */ \
    F(MAYBE_ID, caller) \
    F(REST, op, edge_op_LEAST, EDGE_OP_BYTES)       /* struct edge_op */
PROTO_STRUCT(keep_op, KEEP_OP);

#define KEEP_RUN_ASK(F) \
    F(MAYBE_ID, caller) \
    F(TEXT, by, EDGE_WHO_MAX)               /* of MESSAGE: who asks */ \
    F(STRUCT_IN, edge_run_ask, ask)
PROTO_STRUCT(keep_run_ask, KEEP_RUN_ASK);

/* A call of a tool, for the transcript. */
#define KEEP_CALL(F) F(TEXT, by, EDGE_WHO_MAX) F(TEXT, tool, GATE_NAME_MAX) F(TEXT, params, EDGE_MESSAGE_TEXT)
PROTO_STRUCT(keep_call, KEEP_CALL);

#define KEEP_CHANGE(F) F(U32, number) F(TEXT, policy, EDGE_POLICY_MAX)
PROTO_STRUCT(keep_change, KEEP_CHANGE);

#define KEEP_TELL_PRINT(F) \
    F(FLAGS, bounds, EDGE_BOUNDED | EDGE_JUDGED) \
    F(TEXT, policy, EDGE_POLICY_MAX) \
    F(MAYBE_ID, owner)                      /* as MAKE has it */
PROTO_STRUCT(keep_tell_print, KEEP_TELL_PRINT);

/* SCOPE_SANDBOX: all further ones to that host and port; SCOPE_CALLER: all that comes on the connections that wait. */
#define KEEP_NET_ANSWER(F) F(U32, number) F(BOOL, allow) F(ENUM, approval_scope, scope, SCOPE_ONCE, SCOPE_CALLER)
PROTO_STRUCT(keep_net_answer, KEEP_NET_ANSWER);

#define EDGE_TO_KEEPER(M) \
    M(EDGE_MAKE,         96,  keep_make) \
    M(EDGE_OP,           97,  keep_op)          /* with the operation's socket */ \
    M(EDGE_PAUSE,        98,  nothing) \
    M(EDGE_RESUME,       99,  nothing) \
    M(EDGE_CHECK,        100, nothing)          /* is the guest there? */ \
    M(EDGE_STOP,         101, nothing) \
    M(EDGE_SHOW,         116, edge_number)      /* the policy that it holds its sandbox to */ \
    M(EDGE_CHANGE,       117, keep_change)      /* hold it to that from now on */ \
    M(EDGE_USE,          125, nothing)          /* what does it use? */ \
    M(EDGE_RUN_ASK,      177, keep_run_ask)     /* with its socket */ \
    M(EDGE_CALL,         178, keep_call) \
    M(EDGE_PORT_CLOSED,  193, edge_only_id)     /* its connections end */ \
    M(EDGE_TELL_PRINT,   196, keep_tell_print)  /* before MAKE: what would it be? It can be asked again */ \
    M(EDGE_SWEEP,        198, edge_only_id)     /* in the place of MAKE: nothing is to be left of that volume */ \
    M(EDGE_SNAPSHOT,     238, edge_only_id)     /* copy its files into that template; one at a time */ \
    M(EDGE_NET_ANSWER,   206, keep_net_answer) \
    M(EDGE_TAKE,         236, keep_take)        /* after PARKED; the answer is MADE or NOT_MADE */ \
    M(EDGE_CALLER_ENDED, 227, edge_only_id)     /* what goes on in its name ends (warden/ends.c) */
PROTO_EDGE(edge_to_keeper, EDGE_TO_KEEPER);

/* --- keeper to warden --------------------------------------------------------------------------------------------- */

/* "\nNAME=VALUE\n..." */
#define KEEP_MADE(F) F(TEXT_IF, facts, EDGE_FACTS_MAX, keep_facts_well)
PROTO_STRUCT(keep_made, KEEP_MADE);

/* Of one that is made ahead: what is next, its guest or its interpreter, may take so long. */
#define EDGE_STEP_MAX_S 3600
#define KEEP_STEP(F) F(U32_IN, seconds, 1, EDGE_STEP_MAX_S)
PROTO_STRUCT(keep_step, KEEP_STEP);

#define KEEP_STILL(F) \
    F(BOOL, made) \
    F(BOOL, paused) \
    F(U32_IN, ops, 0, EDGE_OPS_MAX)         /* operations that run */ \
    F(U32_IN, asks, 0, EDGE_OPS_MAX)        /* questions about commands that are open */ \
    F(TEXT_IF, facts, EDGE_FACTS_MAX, keep_facts_well)
PROTO_STRUCT(keep_still, KEEP_STILL);

#define KEEP_GONE(F) \
    F(BOOL, died)                           /* nobody and no limit ended it */ \
    F(TEXT, why, EDGE_DETAIL_MAX)
PROTO_STRUCT(keep_gone, KEEP_GONE);

#define KEEP_SHOWN(F) F(U32, number) F(BOOL, last) F(BYTES, json, EDGE_CHUNK)
PROTO_STRUCT(keep_shown, KEEP_SHOWN);

#define KEEP_CHANGED(F) F(U32, number) F(BOOL, done) F(ERR_IF, why, keep_not_changed)
PROTO_STRUCT(keep_changed, KEEP_CHANGED);

#define KEEP_PRINT(F) F(TEXT, print, EDGE_PRINT_MAX)
PROTO_STRUCT(keep_print, KEEP_PRINT);

/* An entry of the audit record (warden/entry.h). */
#define ENTRY_BYTES_MAX (AUDIT_META_MAX * (AUDIT_KEY_MAX + AUDIT_TEXT_MAX + 16) + AUDIT_TEXT_MAX + 64)
#define KEEP_NOTED(F) F(REST, entry, 8, ENTRY_BYTES_MAX)
PROTO_STRUCT(keep_noted, KEEP_NOTED);

/* What values are recognised by (base/mask.h). */
#define KEEP_MASK(F) \
    F(COPY, name, MASK_NAME, NULL) \
    F(U32_IN, n, MASK_MIN, MASK_MAX) \
    F(U64, roll) \
    F(RAW, sum, SHA256_SIZE)
PROTO_OF(mask, KEEP_MASK);
#define KEEP_MASKS(F) F(RAW, key, MASK_KEY) F(BOOL, all) F(REST, prints, 0, MASKS_MAX * mask_MOST)
PROTO_STRUCT(keep_masks, KEEP_MASKS);

/* How an operation ended. */
#define KEEP_OP_SAID(F) \
    F(U64_IN, number, 0, INT64_MAX) \
    F(ENUM, op_kind, kind, 1, OP_KINDS - 1) \
    F(U8, flags)                            /* EDGE_SIGNALED ... */ \
    F(U32_IN, code, 0, 255) \
    F(U64_IN, ms, 0, INT64_MAX) \
    F(U64_IN, bytes, 0, INT64_MAX) \
    F(TEXT_IF, error, ERR_CODE_MAX, keep_code_well)
PROTO_STRUCT(keep_op_said, KEEP_OP_SAID);

/* A connection of its sandbox waits for a decision. */
#define KEEP_NET_ASK(F) \
    F(U32_IN, number, 1, UINT32_MAX) \
    F(U16_IN, port, 1, UINT16_MAX) \
    F(U32_IN, ms, 1, EDGE_NET_MS_MAX)       /* until it is denied */ \
    F(BOOL, narrow)                         /* rules name requests to that host, and not this one */ \
    F(TEXT_IF, host, EDGE_HOST_MAX, keep_host_well) \
    /* "" of a connection in which nothing can be read; with the query */ \
    F(TEXT_IF, method, EDGE_METHOD_MAX, keep_request_well) \
    F(TEXT_IF, path, EDGE_ASKED_MAX, keep_request_well)
PROTO_STRUCT(keep_net_ask, KEEP_NET_ASK);

#define KEEP_COPIED(F) \
    F(U64, bytes)                           /* of files' contents */ \
    F(U64, us)                              /* for which the sandbox was paused */
PROTO_STRUCT(keep_copied, KEEP_COPIED);

#define EDGE_OF_KEEPER(M) \
    M(EDGE_MADE,       102, keep_made) \
    M(EDGE_NOT_MADE,   103, edge_why) \
    M(EDGE_STEP,       252, keep_step)          /* of one that is to be parked; before each step */ \
    M(EDGE_PARKED,     237, edge_count)         /* it could be taken; the bytes that it holds, 0 not known */ \
    M(EDGE_STILL,      104, keep_still)         /* what an adopted one is */ \
    M(EDGE_PAUSED,     105, edge_yes)           /* this or NOT_PAUSED is the answer to PAUSE and to RESUME */ \
    M(EDGE_NOT_PAUSED, 106, edge_why) \
    M(EDGE_HEALTHY,    107, edge_yes)           /* the answer to CHECK */ \
    M(EDGE_OP_ENDED,   108, nothing)            /* one for each OP and each RUN_ASK */ \
    M(EDGE_GONE,       109, keep_gone)          /* why there is no sandbox any more */ \
    M(EDGE_SHOWN,      118, keep_shown)         /* several, in order */ \
    M(EDGE_CHANGED,    119, keep_changed) \
    M(EDGE_NOTED,      121, keep_noted)         /* for the audit record */ \
    M(EDGE_OP_SAID,    122, keep_op_said) \
    M(EDGE_MASKS,      123, keep_masks) \
    M(EDGE_PRINT,      197, keep_print)         /* the answer to TELL_PRINT, or NOT_MADE */ \
    M(EDGE_SWEPT,      199, nothing)            /* nothing is left, and it ends; or NOT_MADE */ \
    M(EDGE_COPIED,     239, keep_copied)        /* this or NOT_COPIED is the answer to SNAPSHOT */ \
    M(EDGE_NOT_COPIED, 240, edge_why) \
    M(EDGE_NET_ASK,    204, keep_net_ask) \
    M(EDGE_NET_OVER,   205, edge_number)        /* nobody waits for that any more */ \
    M(EDGE_USED,       228, edge_usage)         /* the answer to USE */ \
    M(EDGE_OP_RESULT,  229, edge_op_result)     /* before OP_ENDED */
PROTO_EDGE(edge_of_keeper, EDGE_OF_KEEPER);

/* --- an operation's socket ---------------------------------------------------------------------------------------- */

#define EDGE_RESIZE_FIELDS(F) F(U16_IN, rows, 1, UINT16_MAX) F(U16_IN, cols, 1, UINT16_MAX)
PROTO_STRUCT(edge_resize, EDGE_RESIZE_FIELDS);

#define EDGE_SIGNAL_FIELDS(F) F(U8_IN, signo, 1, 64)
PROTO_STRUCT(edge_signal, EDGE_SIGNAL_FIELDS);

/* Front to keeper; the socket's end cancels. */
#define EDGE_TO_OP(M) \
    M(EDGE_IN,     128, edge_bytes)     /* stdin, or of a file that is written */ \
    M(EDGE_IN_END, 129, nothing) \
    /* of a command that is OP_LIVE */ \
    M(EDGE_RESIZE, 140, edge_resize) \
    M(EDGE_SIGNAL, 141, edge_signal)    /* to its process group, of a terminal to the one in front */
PROTO_EDGE(edge_to_op, EDGE_TO_OP);

#define EDGE_ENTRY_FIELDS(F) F(U32, mode) F(U64, size) F(U64, mtime_ns) F(TEXT, name, EDGE_PATH_MAX)
PROTO_STRUCT(edge_entry, EDGE_ENTRY_FIELDS);

#define EDGE_EXIT_FIELDS(F) \
    F(U8, flags)                /* EDGE_SIGNALED ... */ \
    F(U32_IN, code, 0, 255)     /* or the signal */ \
    F(U64, ms)
PROTO_STRUCT(edge_exit, EDGE_EXIT_FIELDS);

#define EDGE_RUN_OUT_FIELDS(F) \
    F(U8_IN, stream, 0, 1)              /* 0 stdout */ \
    F(U64_IN, at, 0, INT64_MAX)         /* how much of that stream is before it */ \
    F(REST, bytes, 1, EDGE_CHUNK)
PROTO_STRUCT(edge_run_out, EDGE_RUN_OUT_FIELDS);

/* Of a result of code in a context (wire/rich.h). */
#define EDGE_RICH_FIELDS(F) F(BOOL, last) F(REST, bytes, 0, EDGE_CHUNK)
PROTO_STRUCT(edge_rich, EDGE_RICH_FIELDS);

/* Keeper to front; a page of a transcript comes in the same way from the scribe. The last is EXIT, DONE or FAILED. */
#define EDGE_OF_OP(M) \
    M(EDGE_OUT,         130, edge_bytes)    /* stdout, or of a file that is read */ \
    M(EDGE_ERR,         131, edge_bytes) \
    M(EDGE_ENTRY,       132, edge_entry)    /* a file */ \
    M(EDGE_EXIT,        133, edge_exit) \
    M(EDGE_DONE,        134, edge_count) \
    M(EDGE_FAILED,      135, edge_why) \
    M(EDGE_FILE_CHANGE, 136, edge_change) \
    M(EDGE_RICH,        137, edge_rich)     /* of code in a context, before its EXIT; and RUN, what became of that */ \
    M(EDGE_TAKEN,       144, edge_number)   /* bytes of IN that it has: EDGE_CHUNK at most may be under way */ \
    M(EDGE_RUN,         178, edge_run)      /* of a command in the background */ \
    M(EDGE_RUN_OUT,     179, edge_run_out)
PROTO_EDGE(edge_of_op, EDGE_OF_OP);

#endif
