/* proto/edge_limits.h: limits of one command as clients say them: names and values as of `limits` in settings */
#ifndef CLOCHE_PROTO_EDGE_LIMITS_H
#define CLOCHE_PROTO_EDGE_LIMITS_H

#include <jansson.h>

#include "proto/edge.h"

#define EDGE_TIME_MAX_MS (24UL * 3600 * 1000)

/* @limits (NULL: there are none) into @op, an EXEC whose flags and timeout_ms are there. NULL; or what is wrong. */
const char *edge_limits(const json_t *limits, struct edge_op *op);
/* Which limit a command met that ended with those flags (EDGE_OOM ...): an object, or null. */
json_t *edge_limit_reached(uint8_t flags);

#endif
