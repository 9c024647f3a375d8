/* keeper/run_log.c: see run_log.h */
#include "keeper/run_log.h"

#include <stdlib.h>
#include <string.h>

static struct run_piece *
piece_at(const struct run_log *log, uint64_t i)
{
    return &log->pieces[i % RUN_LOG_PIECES];
}

/* @n bytes of its beginning, or all of its oldest piece if that is shorter. */
static void
push_out(struct run_log *log, uint64_t n)
{
    struct run_piece *oldest = piece_at(log, log->first);

    if (n >= oldest->n) {
        log->begin = oldest->byte + oldest->n;
        log->first++;
        return;
    }
    oldest->byte += n;
    oldest->at += n;
    oldest->n -= (uint32_t)n;
    log->begin = oldest->byte;
}

/* The piece that is gone on with, or a new one. */
static struct run_piece *
open_piece(struct run_log *log, uint8_t stream)
{
    struct run_piece *newest = log->next > log->first ? piece_at(log, log->next - 1) : NULL;

    if (newest != NULL && newest->stream == stream && newest->at + newest->n == log->at[stream])
        return newest;
    if (log->next - log->first == RUN_LOG_PIECES)
        push_out(log, UINT64_MAX);
    newest = piece_at(log, log->next++);
    *newest = (struct run_piece){ .byte = log->end, .at = log->at[stream], .stream = stream };
    return newest;
}

/* At most as much as there is room for in all. */
static void
keeper_run_log_add(struct run_log *log, uint8_t stream, const uint8_t *p, size_t n)
{
    size_t at = (size_t)(log->end % RUN_LOG_BYTES), head = RUN_LOG_BYTES - at < n ? RUN_LOG_BYTES - at : n;

    while (log->end - log->begin + n > RUN_LOG_BYTES)
        push_out(log, log->end - log->begin + n - RUN_LOG_BYTES);
    open_piece(log, stream)->n += (uint32_t)n;
    memcpy(log->bytes + at, p, head);
    memcpy(log->bytes, p + head, n - head);
    log->end += n;
    log->at[stream] += n;
}

int
run_log_add(struct run_log *log, uint8_t stream, const uint8_t *p, size_t n)
{
    if (log->pieces == NULL) {
        /* pages that are not used are none */
        log->pieces = malloc(RUN_LOG_PIECES * sizeof(*log->pieces) + RUN_LOG_BYTES);
        if (log->pieces == NULL) {
            log->at[stream] += n;
            return -1;
        }
        log->bytes = (uint8_t *)(log->pieces + RUN_LOG_PIECES);
    }
    for (size_t take; n > 0; p += take, n -= take) {
        take = n < RUN_LOG_BYTES ? n : RUN_LOG_BYTES;
        keeper_run_log_add(log, stream, p, take);
    }
    return 0;
}

void
run_log_free(struct run_log *log)
{
    free(log->pieces);
    *log = (struct run_log){ .pieces = NULL };
}

size_t
run_log_read(const struct run_log *log, struct run_reader *reader, size_t max, uint8_t *stream, uint64_t *at,
             const uint8_t **p)
{
    uint64_t i = reader->piece > log->first ? reader->piece : log->first;

    for (; i < log->next; i++) {
        const struct run_piece *one = piece_at(log, i);
        uint64_t from = reader->at[one->stream] > one->at ? reader->at[one->stream] : one->at, byte;
        size_t n, whole;
        if (from >= one->at + one->n)
            continue;
        byte = one->byte + (from - one->at);
        n = (size_t)(one->at + one->n - from);
        n = n < max ? n : max;
        whole = RUN_LOG_BYTES - (size_t)(byte % RUN_LOG_BYTES);
        n = n < whole ? n : whole;
        *p = log->bytes + byte % RUN_LOG_BYTES;
        *stream = one->stream;
        *at = from;
        reader->at[one->stream] = from + n;
        reader->piece = i;
        reader->byte = byte + n;
        return n;
    }
    reader->piece = log->next > log->first ? log->next - 1 : log->first;    /* the newest may grow */
    reader->byte = log->end;
    return 0;
}

uint64_t
run_log_left(const struct run_log *log, const struct run_reader *reader)
{
    return log->end - (reader->byte > log->begin ? reader->byte : log->begin);
}

uint64_t
run_log_oldest(const struct run_log *log, uint8_t stream)
{
    for (uint64_t i = log->first; i < log->next; i++)
        if (piece_at(log, i)->stream == stream)
            return piece_at(log, i)->at;
    return log->at[stream];
}
