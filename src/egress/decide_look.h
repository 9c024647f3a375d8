/* egress/decide_look.h: the two parts of decide(): what the rules say, and what has to be looked into
 */
#ifndef CLOCHE_EGRESS_DECIDE_LOOK_H
#define CLOCHE_EGRESS_DECIDE_LOOK_H

#include "egress/decide.h"

/* decide.c: all of decide() but struct decide_look, which decide_look.c adds. */
void decide_judge(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out);

#endif
