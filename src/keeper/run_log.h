/* keeper/run_log.h: the newest output of a command, both streams, in the order in which they came
 *
 * A ring of bytes and, beside it, of pieces, each of one stream. What does not fit pushes the oldest out. A position is
 * the number of bytes of its stream before it, so a reader sees what it missed. Pure but for the memory.
 */
#ifndef CLOCHE_KEEPER_RUN_LOG_H
#define CLOCHE_KEEPER_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_LOG_BYTES  (256U * 1024)
#define RUN_LOG_PIECES 4096             /* a command that changes streams with every byte keeps so many */

struct run_piece {
    uint64_t byte, at;                  /* bytes of both streams before it; its position in its own */
    uint32_t n;
    uint8_t stream;                     /* 0 stdout, 1 stderr */
};

struct run_log {
    struct run_piece *pieces;           /* RUN_LOG_PIECES; NULL: nothing came yet */
    uint8_t *bytes;                     /* behind them, RUN_LOG_BYTES */
    uint64_t first, next;               /* pieces, counted from the beginning: the oldest, and behind the newest */
    uint64_t begin, end;                /* bytes of both streams, likewise; but for those there was no memory for */
    uint64_t at[2];                     /* position of the end of each */
};

/* Where a reader is. All zero: at the beginning, and of each stream it has nothing. */
struct run_reader {
    uint64_t piece, byte;               /* the run_log's: what was before is done with */
    uint64_t at[2];                     /* it wants each stream from there on */
};

/* Zero-initialised is empty. -1: no memory, which loses what was to be added, but not that it was. */
int run_log_add(struct run_log *log, uint8_t stream, const uint8_t *p, size_t n);
void run_log_free(struct run_log *log);
/* The next bytes that @reader has not had, @max at most, all of one stream; it is behind them then. Their number, 0
 * when there are none (yet). @p is good until the next run_log_add(). */
size_t run_log_read(const struct run_log *log, struct run_reader *reader, size_t max, uint8_t *stream, uint64_t *at,
                    const uint8_t **p);
/* Bytes that are there and that @reader has not come to. */
uint64_t run_log_left(const struct run_log *log, const struct run_reader *reader);
/* The position of the oldest byte of @stream that is kept; its end when none is. */
uint64_t run_log_oldest(const struct run_log *log, uint8_t stream);

#endif
