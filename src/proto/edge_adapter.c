/* proto/edge_adapter.c: see edge_adapter.h */
#include "proto/edge_adapter.h"

PROTO_SHAPE(adapt_visit, ADAPT_VISIT)
PROTO_SHAPE(adapt_shown, ADAPT_SHOWN)
PROTO_SHAPE(adapt_head, ADAPT_HEAD)
PROTO_SHAPE(adapt_refuse, ADAPT_REFUSE)
PROTO_SHAPE(adapt_ask, ADAPT_ASK)
