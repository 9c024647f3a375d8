/* proto/edge_scribe.h: what the warden and cloche-scribe say to each other (edge.h, src/scribe) */
#ifndef CLOCHE_PROTO_EDGE_SCRIBE_H
#define CLOCHE_PROTO_EDGE_SCRIBE_H

#include "audit/chain.h"
#include "proto/edge.h"

#define SCRIBE_HEAD_FIELDS(F) F(U64, seq) F(RAW, hash, AUDIT_HASH)
PROTO_OF(audit_head, SCRIBE_HEAD_FIELDS);

#define SCRIBE_ASK_WRITE(F) \
    F(BOOL, durable) \
    F(U64, number) \
    F(REST, body, 11, AUDIT_LINE_MAX - 9)   /* an entry as audit_body() makes it */
PROTO_STRUCT(scribe_write, SCRIBE_ASK_WRITE);

#define SCRIBE_ASK_READ(F) F(ID, id) F(U64, offset)
PROTO_STRUCT(scribe_read, SCRIBE_ASK_READ);

#define SCRIBE_ASK_HEAD(F) F(STRUCT_IN, audit_head, head) F(BOOL, rebooted)
PROTO_STRUCT(scribe_head, SCRIBE_ASK_HEAD);

#define SCRIBE_ASK_CLOCK(F) F(U64, at_ms)
PROTO_STRUCT(scribe_clock, SCRIBE_ASK_CLOCK);

#define SCRIBE_TO(M) \
    M(SCRIBE_WRITE,   160, scribe_write) \
    M(SCRIBE_AGAIN,   161, nothing)         /* after FAILED: what is written from here on is to be tried again */ \
    M(SCRIBE_READ,    162, scribe_read)     /* with a socket, on which a page of that transcript goes */ \
    M(SCRIBE_HEAD,    163, scribe_head)     /* is that entry there? Before anything is written */ \
    M(SCRIBE_CLOCK,   170, scribe_clock)    /* it is that late (base/steady.h). Before all else */
PROTO_EDGE(edge_to_scribe, SCRIBE_TO);

#define SCRIBE_TELL_LINE(F) F(REST, line, 1, AUDIT_LINE_MAX)
PROTO_STRUCT(scribe_line, SCRIBE_TELL_LINE);

#define SCRIBE_TELL_WRITTEN(F) F(U64, number) F(STRUCT_IN, audit_head, head)
PROTO_STRUCT(scribe_written, SCRIBE_TELL_WRITTEN);

#define SCRIBE_TELL_MISSED(F) F(U64, seq) F(U64, left) F(BOOL, older) F(STRUCT_IN, audit_head, head)
PROTO_STRUCT(scribe_missed, SCRIBE_TELL_MISSED);

#define SCRIBE_TELL_ROOM(F) F(U32, files) F(U64, bytes)
PROTO_STRUCT(scribe_room, SCRIBE_TELL_ROOM);

#define SCRIBE_OF(M) \
    M(SCRIBE_PAST,    164, scribe_line)     /* that is there already, oldest first; only at the beginning */ \
    M(SCRIBE_READY,   165, nothing)         /* that was all of them */ \
    M(SCRIBE_LINE,    166, scribe_line)     /* that was written */ \
    M(SCRIBE_WRITTEN, 167, scribe_written)  /* up to there, on the disk where that was asked; the last one's head */ \
    M(SCRIBE_FAILED,  168, edge_why)        /* what was not said to be written is not; all until AGAIN is dropped */ \
    M(SCRIBE_MISSED,  169, scribe_missed)   /* as audit_missing; the head of the entry that says so */ \
    M(SCRIBE_ROOM,    171, scribe_room)     /* so many transcripts, of so many bytes, went for room */
PROTO_EDGE(edge_of_scribe, SCRIBE_OF);

#endif
