/* wire/table.h: a dialogue is a table, and the table is the documentation
 *
 * Each edge between two processes lists the messages that one side may send: type, the states in which it is
 * permitted, whether it may come only once, its shortest and longest payload, and who handles it. Whatever the
 * table does not say is not permitted, and a peer that sends it is broken or hostile: the caller ends it. There
 * is no "ignore and go on".
 */
#ifndef CLOCHE_WIRE_TABLE_H
#define CLOCHE_WIRE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

struct msg_rule {
    uint8_t type;
    bool once;
    uint8_t flags;          /* the header flags that may be set; any other is refused */
    uint32_t states;        /* bit mask of the states in which the message is permitted */
    uint32_t min_length;
    uint32_t max_length;
    int (*handler)(void *ctx, const struct frame *f);   /* 0 or more: go on; negative: end the peer */
};

/* One peer's dialogue. @state is one bit, moved by the handlers. */
struct msg_gate {
    const struct msg_rule *rules;
    size_t n_rules;
    uint32_t state;
    uint64_t seen[4];       /* bit per type, for @once */
};

enum msg_verdict {
    MSG_OK = 0,
    MSG_UNKNOWN = -1,       /* no such type in the table */
    MSG_UNPERMITTED = -2,   /* not in this state */
    MSG_REPEATED = -3,      /* a once-message came again */
    MSG_TOO_LONG = -4,
    MSG_TOO_SHORT = -5,
    MSG_FLAGS = -6,         /* a flag that the message does not have */
    MSG_HANDLER = -7,       /* the handler refused the payload */
};

/* Judge a decoded header before its payload is read or room is made for it. Pure. */
enum msg_verdict msg_check(const struct msg_gate *gate, const struct frame *header);
/* Judge again and hand the whole frame to its handler. */
enum msg_verdict msg_dispatch(struct msg_gate *gate, const struct frame *f, void *ctx);
/* "unknown message", "message not permitted in this state" ... */
const char *msg_verdict_text(enum msg_verdict v);

/* The next frame at the front of @p[0..n): 1 with @f filled, 0 when more bytes are needed (@need: how many in all,
 * at least FRAME_HEADER), -1 with @verdict when the header is already refused. */
int msg_next(const struct msg_gate *gate, const uint8_t *p, size_t n, struct frame *f, size_t *need,
             enum msg_verdict *verdict);

#endif
