/* keeper/keeper_transcript.h: the transcript of one sandbox of the daemon; for keeper*.c only
 *
 * A file ID.jsonl in the daemon's folder of transcripts, which outlives the sandbox: one line of JSON for each
 * operation when it begins, for pieces of its output, and for its result (docs/daemon.md), and before all of them
 * whose it is (proto/edge.h: TRANSCRIPT_OWNER), by which the scribe keeps a share for each. It is only appended to, in
 * whole lines, and locked (shared) as long as the sandbox lives, so that it is not removed. Values that no record may
 * have are replaced by their names. The sandbox does not see it; nobody waits for the disk.
 *
 * What cannot be written is missing, and the next line that can be says how much.
 */
#ifndef CLOCHE_KEEPER_KEEPER_TRANSCRIPT_H
#define CLOCHE_KEEPER_KEEPER_TRANSCRIPT_H

#include "base/err.h"
#include "base/mask.h"
#include "base/sha256.h"
#include "launcher/keeper_settings.h"
#include "proto/edge_keeper.h"
#include "workspace/edits.h"

#define TRANSCRIPT_BYTES  (64UL * 1024 * 1024)  /* of one; then no more is written but that it is full */
#define TRANSCRIPT_OUTPUT (256UL * 1024)        /* of one command's output, each stream */

struct op;
struct op_trace;

struct transcript {
    int fd;                     /* -1: none is kept */
    bool output;                /* what commands write, and what files are given, is in it */
    bool full;
    uint64_t size, lost;        /* bytes; lines that could not be written */
    struct masks *masks;        /* borrowed */
    char owner[EDGE_ID + 1];    /* whose the sandbox is; "" the daemon's owner's: no line says so */
};

/* Mode "off", "commands", "full" or "edits". 0, or -1 with @err: it cannot be kept (transcript.open). @masks is
 * borrowed. */
int transcript_open(struct transcript *t, const struct keeper_settings *daemon, const char *id, const char *owner,
                    struct masks *masks, struct err *err);
void transcript_close(struct transcript *t);

/* An operation begins, which @by asked for; bytes of its output (0: stdout), or of the file that it writes; it is over,
 * as @o->result says.
 * Of @o they use the number, the kind, the clock and @o->trace, which is theirs. */
void transcript_begin(struct transcript *t, struct op *o, const struct edge_op *want, const char *by);
/* And what @want has as variables is not in its output: of a call, those that its context was begun with. */
void transcript_hide(struct op *o, const struct edge_op *want);
void transcript_output(struct transcript *t, struct op *o, size_t stream, const uint8_t *p, size_t n);
void transcript_written(struct transcript *t, struct op *o, const uint8_t *p, size_t n);
void transcript_end(struct transcript *t, struct op *o);

/* A file is another one after operation @number (0: after all), one of @operations that ended since the look before. */
void transcript_edit(struct transcript *t, uint64_t number, uint32_t operations, const struct edit *e);
/* A look told of @more files less than there are, or could not see all; @over: no more looks are told of. */
void transcript_edits(struct transcript *t, uint64_t number, uint32_t more, bool incomplete, bool over);

/* What a client says for it, @m->ask is a MESSAGE. 0, or -1 with @err: none is kept, or there is no room. */
int transcript_message(struct transcript *t, const struct keep_run_ask *m, struct err *err);
/* A tool was called, whose operations come next. */
void transcript_call(struct transcript *t, const struct keep_call *m);

#endif
