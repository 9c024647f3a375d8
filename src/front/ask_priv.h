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

/* A question in @b: its ticket, and who asks. Where frame_end() is to begin; ask_send() sends it. */
uint32_t ask_ticket(struct front *f);
size_t ask_begin(struct request *r, struct buf *b, uint8_t type, const struct answers *answers);
void ask_send(struct request *r, struct buf *b, size_t at);
/* Whose question has that ticket: NULL when nobody waits for it any more. */
struct request *ask_whose(struct front *f, uint32_t ticket);
int ask_post(struct front *f, struct buf *b);   /* a whole frame, to the warden; -1: too much waits, or it is gone */
int late_on_pong(void *ctx, const struct frame *f);     /* late.c */
void ask_over(struct request *r);       /* that was the last word on it */

int ask_on_port(void *ctx, const struct frame *f);      /* ask_port.c */

/* ask_more.c */
int ask_on_volume(void *ctx, const struct frame *f);

/* ask_gate.c */
void ask_cancel(struct request *r);
int ask_on_gate(void *ctx, const struct frame *f);
int ask_on_approval(void *ctx, const struct frame *f);
int ask_on_grant(void *ctx, const struct frame *f);

#endif
