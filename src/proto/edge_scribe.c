/* proto/edge_scribe.c: see edge_scribe.h */
#include "proto/edge_scribe.h"

PROTO_SHAPE(audit_head, SCRIBE_HEAD_FIELDS)
PROTO_SHAPE(scribe_write, SCRIBE_ASK_WRITE)
PROTO_SHAPE(scribe_read, SCRIBE_ASK_READ)
PROTO_SHAPE(scribe_head, SCRIBE_ASK_HEAD)
PROTO_SHAPE(scribe_clock, SCRIBE_ASK_CLOCK)
PROTO_SHAPE(scribe_room, SCRIBE_TELL_ROOM)
PROTO_SHAPE(scribe_line, SCRIBE_TELL_LINE)
PROTO_SHAPE(scribe_written, SCRIBE_TELL_WRITTEN)
PROTO_SHAPE(scribe_missed, SCRIBE_TELL_MISSED)
