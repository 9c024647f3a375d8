/* warden/edge_run.h: commands in the background, as they are asked about and told (see edge.h)
 *
 * A command that was begun with OP_BACKGROUND is kept by its sandbox's keeper: its newest output, and how it ended. Its
 * number is that of the operation, which the warden gave it. A position in a stream is the number of bytes before it.
 */
#ifndef CLOCHE_WARDEN_EDGE_RUN_H
#define CLOCHE_WARDEN_EDGE_RUN_H

#include "warden/edge.h"

#define EDGE_RUNS_MAX 64        /* that one sandbox keeps, those that run among them */
#define EDGE_RUN_NAME 255       /* bytes of a command's first word */
#define EDGE_RUN_MAX  (128 + EDGE_RUN_NAME)
#define EDGE_RUN_ASK_MAX 64

enum run_ask {
    RUN_LIST = 1,       /* RUNs, the oldest first */
    RUN_GET,            /* RUN */
    RUN_FOLLOW,         /* RUN, OUTs from @at on, and when it has ended RUN once more */
    RUN_INPUT,          /* IN and IN_END come, for its stdin; DONE counts what it took */
    RUN_SIGNAL,         /* RUN */
    RUN_RESIZE,         /* RUN */
    RUN_END,            /* RUN, when it has ended, or does not for long; of one that had, its record is no more */
    RUN_ASKS
};

struct edge_run_ask {
    enum run_ask what;
    uint64_t number;            /* 0 for LIST, and for it alone */
    uint64_t at[2];             /* FOLLOW: where to go on, in stdout and stderr */
    uint8_t signal;             /* SIGNAL: 1 to 31 */
    bool last;                  /* INPUT: nothing comes after it */
    uint16_t rows, cols;        /* RESIZE, from 1 */
};

int edge_put_run_ask(struct buf *b, const struct edge_run_ask *ask);
/* Every value in its range, and 0 where it has no meaning. */
bool edge_get_run_ask(struct wire_in *in, struct edge_run_ask *ask);

#define RUN_ENDED    0x01
#define RUN_ENDING   0x02       /* it was told to end, and has not yet */
#define RUN_STDIN    0x04       /* its stdin is open */
#define RUN_TERMINAL 0x08

struct edge_run {
    uint64_t number;
    uint8_t state;              /* RUN_ENDED ... */
    uint8_t flags;              /* EDGE_SIGNALED ...; 0 until it has ended */
    uint8_t code;               /* exit code, or signal */
    uint64_t begun_ms, ended_ms;    /* since 1970; ended_ms 0 until it has */
    uint64_t ms;                /* how long it ran, or runs */
    uint64_t bytes[2], gone[2]; /* of each stream: how much there was, and how much of that is kept no more */
    const char *name;           /* the command's first word, cut if it is long */
};

int edge_put_run(struct buf *b, const struct edge_run *run);
bool edge_get_run(struct wire_in *in, struct edge_run *run);

#endif
