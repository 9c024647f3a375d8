/* front/ask_priv.h: what the files of the warden's edge share (ask*.c only) */
#ifndef CLOCHE_FRONT_ASK_PRIV_H
#define CLOCHE_FRONT_ASK_PRIV_H

#include "front/front.h"

#define ASK_FRAME_MAX (EDGE_MESSAGE_MAX + FRAME_HEADER)

/* An answer at hand. */
struct heard {
    struct front *f;
    int fd;             /* that came with it; -1 */
};

uint32_t ask_ticket(struct front *f);
/* A question in @b, its message in up to two parts. 0 or -1. */
int ask_frame(struct request *r, struct buf *b, uint8_t type, uint32_t ticket, const struct proto_part *message,
              size_t n);
int ask_post(struct front *f, struct buf *b);   /* a whole frame, to the warden; -1: too much waits, or it is gone */
int late_on_pong(struct heard *h, const struct nothing *m);     /* late.c */
int late_on_behind(struct heard *h, const struct edge_why *m);
void ask_over(struct request *r);       /* that was the last word on it */

#endif
