/* proto/edge_adapter.h: what a front and its adapter say to each other (edge.h)
 *
 * The adapter's edge brings visits: requests that the adapter is to answer, each with a socket of its own. On that
 * the front says a long body (IN, IN_END) and the answers to questions (question.h); the adapter asks and answers.
 * Its end is the end of the visit: the client is gone, or the adapter is.
 */
#ifndef CLOCHE_PROTO_EDGE_ADAPTER_H
#define CLOCHE_PROTO_EDGE_ADAPTER_H

#include "base/hold.h"
#include "proto/edge_keeper.h"
#include "proto/question.h"

#define ADAPT_QUERY_MAX   8191
#define ADAPT_VALUE_MAX   32768     /* of a header */
#define ADAPT_VALUES_MAX  40960     /* of all that are passed on */
#define ADAPT_PUTS        2         /* headers of an answer, beside those of every answer; */
#define ADAPT_PUT_MAX     255       /* each as "NAME: VALUE" */
#define ADAPT_STREAM      UINT64_MAX

/* The headers that adapters read, in this order. */
#define ADAPT_HEADERS { "Content-Type", "Accept", "Host", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", \
                        "Mcp-Name", "E2b-Sandbox-Id", "Connect-Timeout-Ms" }
#define ADAPT_N_HEADERS 9

/* What an answer's body is; a stream is none that is a picture. */
enum adapt_type { ADAPT_JSON, ADAPT_PNG, ADAPT_EVENTS, ADAPT_CONNECT, ADAPT_BYTES, ADAPT_LINES, ADAPT_TYPES };
#define ADAPT_TYPE_NAMES { "application/json", "image/png", "text/event-stream", "application/connect+json", \
                           "application/octet-stream", "application/x-ndjson" }
/* In an answer that is KEYED this is the key that came with the sandbox: the front puts it there, and the adapter,
 * which reads what strangers say, does not know it. */
#define ADAPT_KEY         "${cloche:key}"

#define ADAPT_STRANGERS 0x01        /* nobody vouches for its connection */
#define ADAPT_TLS       0x02
#define ADAPT_NO_ROOM   0x04        /* for the body's values, read as JSON */
#define ADAPT_ADDRESS   0x08        /* exposed ports have an address */
#define ADAPT_ASYNC     0x10        /* where somebody has to approve it, it does not wait */
#define ADAPT_WHOLE     0x20        /* all of its body is there, and no IN comes */

/* --- the edge ----------------------------------------------------------------------------------------------------- */

#define ADAPT_VISIT(F) \
    F(U8, row)                              /* of the routes that adapters have (adapters/routes.h) */ \
    F(FLAGS, flags, 0x3f) \
    F(U32, who)                             /* what the warden calls the caller: who is the same, and no more */ \
    F(U32_IN, caller, 0, HOLD_CALLERS - 1)  /* for whom memory is counted */ \
    F(TEXT, id, EDGE_NAME_MAX)              /* what {} stood for in its path; "" none */ \
    F(TEXT, query, ADAPT_QUERY_MAX) \
    F(WORDS, headers, 1, ADAPT_N_HEADERS, ADAPT_VALUE_MAX + 1, ADAPT_VALUES_MAX)    /* "+VALUE", or "": not there */ \
    F(REST, body, 0, EDGE_CHUNK)            /* WHOLE: a short one */
PROTO_STRUCT(adapt_visit, ADAPT_VISIT);

#define EDGE_TO_ADAPTER(M) \
    M(EDGE_VISIT,        240, adapt_visit)      /* with its socket */
PROTO_EDGE(edge_to_adapter, EDGE_TO_ADAPTER);

/* --- a visit's socket --------------------------------------------------------------------------------------------- */

/* A port that was exposed, as it is shown to this client. */
#define ADAPT_SHOWN(F) F(REST, json, 2, EDGE_CHUNK)
PROTO_STRUCT(adapt_shown, ADAPT_SHOWN);

/* Beside IN and IN_END, and BOX, ITEM, EVENT, END, GRANTED, NO, GATE, SIGNED and SIGN_ITEM. */
#define EDGE_TO_VISIT(M) \
    M(EDGE_SHOWN_PORT,   241, adapt_shown)
PROTO_EDGE(edge_to_visit, EDGE_TO_VISIT);

#define ADAPT_HEAD(F) \
    F(U16_IN, status, 200, 599) \
    F(ENUM, adapt_type, type, 0, ADAPT_TYPES - 1) \
    F(BOOL, keyed) \
    F(U64, size)                            /* of the body, which goes on as OUT, then DONE; STREAM: not known */ \
    F(WORDS, puts, 1, ADAPT_PUTS, ADAPT_PUT_MAX, ADAPT_PUTS * (ADAPT_PUT_MAX + 5)) \
    F(REST, body, 0, EDGE_CHUNK)            /* the beginning, or all, of one that is no stream */
PROTO_STRUCT(adapt_head, ADAPT_HEAD);

/* A refusal in the front's own words. */
#define ADAPT_REFUSE(F) \
    F(U16_IN, status, 400, 599) \
    F(TEXT, code, ERR_CODE_MAX) \
    F(TEXT, detail, ERR_HINT_MAX) \
    F(TEXT, text, ERR_MSG_MAX)
PROTO_STRUCT(adapt_refuse, ADAPT_REFUSE);

/* A question of the caller's. One at a time. */
#define ADAPT_ASK(F) \
    F(U8, number)                           /* EDGE_ASK_... */ \
    F(BOOL, async)                          /* if somebody has to approve it, say so and do not wait, */ \
    F(BOOL, hears)                          /* to the adapter; otherwise to the client */ \
    F(REST, message, 0, EDGE_MESSAGE_MAX - 64)
PROTO_STRUCT(adapt_ask, ADAPT_ASK);

/* Beside OUT and DONE. */
#define EDGE_OF_VISIT(M) \
    M(EDGE_ANSWER_HEAD,  242, adapt_head) \
    M(EDGE_ANSWER_ERR,   243, edge_why) \
    M(EDGE_ANSWER_NO,    244, adapt_refuse) \
    M(EDGE_ANSWER_BREAK, 245, nothing)      /* the stream ends, as something that failed */ \
    M(EDGE_VISIT_ASK,    246, adapt_ask) \
    M(EDGE_VISIT_DROP,   247, nothing)      /* the answer is not waited for any more */ \
    M(EDGE_VISIT_TOLD,   248, nothing)      /* the client knows of the sandbox that was made for it (EDGE_FLEETING) */
PROTO_EDGE(edge_of_visit, EDGE_OF_VISIT);

#endif
