/* egress/answer.h: what a client that speaks HTTP is told when its request goes nowhere */
#ifndef CLOCHE_EGRESS_ANSWER_H
#define CLOCHE_EGRESS_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define ANSWER_MAX 8192         /* bytes of one, at most */

struct answer {
    unsigned status;
    const char *phrase;
    const char *reason;         /* stable word: X-Cloche-Denied, and in the text */
    const char *detail;         /* for people; may be "" */
    struct str rule;            /* that decided; may be empty */
    struct str host;            /* canonical; may be empty */
    uint16_t port;
};

/* Append the answer to @out. @is_head: without its body; @keep: the connection stays open. 0, or -1 when @out has no
 * room. */
int answer_write(struct buf *out, const struct answer *a, bool is_head, bool keep);

#endif
