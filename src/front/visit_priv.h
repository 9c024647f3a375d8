/* front/visit_priv.h: a request that cloche-adapter answers (visit*.c only) */
#ifndef CLOCHE_FRONT_VISIT_PRIV_H
#define CLOCHE_FRONT_VISIT_PRIV_H

#include "front/front.h"

struct visiting {
    uint32_t who;                       /* whose request it is; r->who is the call's own once it was judged */
    uint64_t epoch;                     /* when that was known to be good last; of VISIT_REMEMBERED: what was asked */
    uint32_t look;                      /* the ticket by which that was asked; 0 */
    bool hears;                         /* the adapter is told that somebody has to approve it */
    bool granted;                       /* an operation: its end is heard by who has it */
    bool makes;                         /* it asked for a sandbox that ends with who does not know of it */
    char made[EDGE_ID + 1];             /* that one, and its client has not been told of it; "" */
    struct packet_queue out;
};

#endif
