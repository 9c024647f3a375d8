/* keeper/context_scan.h: what the process of a context writes, told apart: output of the code, and its driver's frames
 *
 * A frame is the mark of the call, which the code before it cannot have known, a letter, four hexadecimal digits, and
 * so many bytes. It may stand anywhere in a stream; what is not a frame is output. What comes before the call began or
 * after it ended is nobody's. Pure: it keeps no more of what it was given than the head of one frame.
 */
#ifndef CLOCHE_KEEPER_CONTEXT_SCAN_H
#define CLOCHE_KEEPER_CONTEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTEXT_MARK 33             /* the byte 1, and 32 hexadecimal digits: no end of it is the beginning of one */
#define CONTEXT_HEAD 5              /* behind it: letter and digits */
#define CONTEXT_PIECE 4096          /* of one frame at most: what a pipe takes whole */

enum scan_piece_kind {
    SCAN_NONE,                      /* that was all */
    SCAN_OUTPUT,                    /* p[0..n) */
    SCAN_RESULT,                    /* p[0..n) of a result; the @last of it */
    SCAN_ASKED,                     /* whether it may leave what SIGINT interrupts; p[0], for the answer */
    SCAN_END,                       /* of the call, with its @code */
    SCAN_BROKEN,                    /* no driver of ours says that; nothing follows */
};

struct scan_piece {
    enum scan_piece_kind kind;
    const uint8_t *p;
    size_t n;
    bool last;
    uint8_t code;
};

struct context_scan {
    char mark[CONTEXT_MARK];
    enum { SCAN_IDLE, SCAN_BEFORE, SCAN_WITHIN, SCAN_FAULTY } at;
    size_t matched;                 /* bytes of the mark and of the head that came */
    char head[CONTEXT_HEAD];
    size_t left;                    /* of the frame at hand */
    bool framed;                    /* there is one */
    unsigned code;
};

/* A call begins, with 32 digits of its own. */
void context_scan_begin(struct context_scan *s, const char digits[CONTEXT_MARK - 1]);
/* The next piece of *p, of which *n bytes are left; both go on. It points into *p, or into @s. */
struct scan_piece context_scan_next(struct context_scan *s, const uint8_t **p, size_t *n);

#endif
