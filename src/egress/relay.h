/* egress/relay.h: bytes from one socket to another without a copy through this process
 *
 * Each direction has a pipe that pages are spliced through (splice(2)): into it from one socket, out of it to the
 * other. The pipe is the buffer and its size the ceiling, so a reader that stops stops the writer. A direction has a
 * pipe only while bytes are in it; empty ones wait in a small store for whoever needs one next. A pipe has the usual
 * size (64 KiB), a page where many are in use (RELAY_MANY), and 1 MiB while a stream fills it again and again; at most
 * RELAY_LARGE_MAX have that at a time, since all pipes of a user together are limited too (pipe(7)). One thread.
 */
#ifndef CLOCHE_EGRESS_RELAY_H
#define CLOCHE_EGRESS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_STORE 64          /* empty pipes that are kept */
#define RELAY_MANY  512         /* pipes in use; further ones hold a page */
#define RELAY_LARGE_MAX 8

struct relay {
    int in, out;        /* the pipe; -1: none now */
    size_t held;        /* bytes in the pipe */
    size_t full;        /* its capacity */
    bool large;         /* it has grown */
    bool stuck;         /* full before its bytes are: small pieces take a whole slot each */
    bool starved;       /* there was no pipe to be had: to be tried again after a while */
    bool eof;           /* nothing more comes */
    bool done;          /* and all of it has gone out: the target's writing side is shut */
    uint64_t moved;
};

#define RELAY_INIT { .in = -1, .out = -1 }

void relay_close(struct relay *r);

/* Move what can be moved from @from to @to now. -1 when either is broken. Afterwards relay_wants_* say what to wait
 * for. */
int relay_pump(struct relay *r, int from, int to);
bool relay_wants_input(const struct relay *r);
bool relay_wants_output(const struct relay *r);

#endif
