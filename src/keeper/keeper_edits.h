/* keeper/keeper_edits.h: what commands do to the files of the workspace, for the transcript; for keeper*.c only
 *
 * A process of the sandbox's keeper looks at the workspace before the first command, and after each operation that may
 * have changed something (workspace/edits.h). It reads what the sandbox wrote, so it is not the keeper, which only
 * hears of it in messages of one form. It has the keeper's list of system calls, the workspace's folder, one socket,
 * and dies with the keeper. Nobody waits for it, but for the first look and, at the sandbox's end, the last.
 */
#ifndef CLOCHE_KEEPER_KEEPER_EDITS_H
#define CLOCHE_KEEPER_KEEPER_EDITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/loop.h"

#define EDITS_BYTES (16UL * 1024 * 1024)    /* of a transcript: what commands said is not to be pushed out */

struct edge_op;
struct keeper_live;
struct op;

struct keeper_edits {
    int root;                   /* the workspace, O_PATH; -1: nobody looks */
    int mounts;                 /* the sandbox's mounts, which would go with it, and what they close lie open to the
                                 * last look; -1: there are none */
    pid_t pid;                  /* who looks; 0 nobody */
    struct watch edge;          /* to it */
    bool *withhold;             /* shared: a value that texts may hold did not reach it */
    bool looking, full;
    uint64_t number, due;       /* the operation behind this look, and behind the next */
    uint32_t n, n_due;          /* how many operations ended before it, since the look before */
    uint64_t bytes;             /* of the transcript so far */
};

/* While the keeper may still look into another process: the sandbox's workspace. 0, or -1 with @err. */
int edits_find(struct keeper_live *k, struct err *err);
/* The first look; masks and the transcript are there. 0, or -1 with @err: there are none of this sandbox. */
int edits_begin(struct keeper_live *k, struct err *err);
/* Values of a command's own variables: no text shows them from now on. Before it begins. */
void edits_hide(struct keeper_live *k, const struct edge_op *want);
/* @o has ended. */
void edits_after(struct op *o);
watch_fn edits_on_said;
/* Nothing runs any more: the last look, then nobody looks. */
void edits_end(struct keeper_live *k);

#endif
