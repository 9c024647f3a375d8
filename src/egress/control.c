/* egress/control.c: the messages of control.h */
#include "egress/control.h"

PROTO_SHAPE(egress_rule, EGRESS_SAY_RULE)
PROTO_SHAPE(egress_change, EGRESS_SAY_CHANGE)
PROTO_SHAPE(egress_ask, EGRESS_SAY_ASK)
PROTO_SHAPE(egress_parent, EGRESS_SAY_PARENT)
PROTO_SHAPE(egress_trust, EGRESS_SAY_TRUST)
PROTO_SHAPE(egress_name_server, EGRESS_SAY_NAME_SERVER)
PROTO_SHAPE(egress_look, EGRESS_SAY_LOOK)
PROTO_SHAPE(egress_strip, EGRESS_SAY_STRIP)
PROTO_SHAPE(egress_answer, EGRESS_SAY_ANSWER)
