/* proto/edge_run.h: commands in the background, as they are asked about and told (see edge.h)
 *
 * A command that was begun with OP_BACKGROUND is kept by its sandbox's keeper: its newest output, and how it ended. Its
 * number is that of the operation, which the warden gave it. A position in a stream is the number of bytes before it.
 */
#ifndef CLOCHE_PROTO_EDGE_RUN_H
#define CLOCHE_PROTO_EDGE_RUN_H

#include "proto/edge.h"

#define EDGE_RUNS_MAX 64        /* that one sandbox keeps, those that run among them */
#define EDGE_MESSAGE_ROLE 31                /* a small letter, then small letters, digits, "_-" */
#define EDGE_MESSAGE_TEXT (64 * 1024)
#define EDGE_RUN_NAME 255       /* bytes of a command's first word */

enum run_ask {
    RUN_LIST = 1,       /* RUNs, the oldest first */
    RUN_GET,            /* RUN */
    RUN_FOLLOW,         /* RUN, OUTs from @at on, and when it has ended RUN once more */
    RUN_INPUT,          /* IN and IN_END come, for its stdin; DONE counts what it took */
    RUN_SIGNAL,         /* RUN */
    RUN_RESIZE,         /* RUN */
    RUN_END,            /* RUN, when it has ended, or does not for long; of one that had, its record is no more */
    RUN_RESTART,        /* of a context: RUN, when it has begun anew */
    RUN_MESSAGE,        /* of no command: a line for the sandbox's transcript; DONE counts nothing, but is its number */
    RUN_ASKS
};

/* Every value is 0 where it has no meaning. */
#define EDGE_RUN_ASK_FIELDS(F) \
    F(ENUM, run_ask, what, 1, RUN_ASKS - 1) \
    F(U64_IN, number, 0, INT64_MAX)     /* 0 for LIST; of MESSAGE the warden's; never 0 otherwise */ \
    F(BOOL, context)            /* @number is a context's: of GET, SIGNAL, END, and always of RESTART */ \
    F(U64S, at, 2)              /* FOLLOW: where to go on, in stdout and stderr */ \
    F(U8, signal)               /* SIGNAL: 1 to 31 */ \
    F(BOOL, last)               /* INPUT: nothing comes after it */ \
    F(U16, rows)                /* RESIZE, from 1; so too @cols */ \
    F(U16, cols) \
    F(BOOL, json)               /* MESSAGE: @text is JSON */ \
    F(TEXT, role, EDGE_MESSAGE_ROLE)    /* MESSAGE; "" otherwise, as @text, which it may be of MESSAGE too */ \
    F(TEXT, text, EDGE_MESSAGE_TEXT)
PROTO_STRUCT(edge_run_ask, EDGE_RUN_ASK_FIELDS);

#define RUN_ENDED    0x01
#define RUN_ENDING   0x02       /* it was told to end, and has not yet */
#define RUN_STDIN    0x04       /* its stdin is open */
#define RUN_TERMINAL 0x08
#define RUN_CONTEXT  0x10       /* it is a context, its name a language's; */
#define RUN_BUSY     0x20       /* and code runs in it */

#define EDGE_RUN_FIELDS(F) \
    F(U64_IN, number, 1, INT64_MAX) \
    F(FLAGS, state, RUN_ENDED | RUN_ENDING | RUN_STDIN | RUN_TERMINAL | RUN_CONTEXT | RUN_BUSY) \
    F(U8, flags)                /* EDGE_SIGNALED ...; 0 until it has ended */ \
    F(U8, code)                 /* exit code, or signal */ \
    F(U64_IN, begun_ms, 0, INT64_MAX)   /* since 1970 */ \
    F(U64_IN, ended_ms, 0, INT64_MAX)   /* 0 until it has */ \
    F(U64_IN, ms, 0, INT64_MAX)         /* how long it ran, or runs */ \
    F(U64S, bytes, 2)           /* of each stream: how much there was, */ \
    F(U64S, gone, 2)            /* and how much of that is kept no more */ \
    F(TEXT, name, EDGE_RUN_NAME)        /* the command's first word, cut if it is long */
PROTO_STRUCT(edge_run, EDGE_RUN_FIELDS);

bool edge_role_well(const char *role);      /* of a MESSAGE */
/* The state of a context, as people are told it: "dead", "ending", "busy" or "idle". */
const char *edge_context_state(const struct edge_run *run);

#endif
