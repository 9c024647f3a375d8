/* proto/edge_export.h: what cloche-otlp is told (edge.h, src/otlp)
 *
 * Its sources, the warden and the fronts, have a socket each, and hear nothing on it. The launcher makes both ends.
 */
#ifndef CLOCHE_PROTO_EDGE_EXPORT_H
#define CLOCHE_PROTO_EDGE_EXPORT_H

#include "proto/edge.h"

enum export_source { EXPORT_WARDEN, EXPORT_OWNER, EXPORT_STRANGERS, EXPORT_SOURCES };

/* Launcher to cloche-otlp, with a new source's socket. */
#define EXPORT_SOURCE_FIELDS(F) F(ENUM, export_source, source, 0, EXPORT_SOURCES - 1)
PROTO_STRUCT(export_from, EXPORT_SOURCE_FIELDS);
#define EDGE_TO_EXPORT(M) M(EDGE_EXPORT_FROM, 249, export_from)
PROTO_EDGE(edge_to_export, EDGE_TO_EXPORT);

/* Something that is said of a span: a text, or a number. */
#define EXPORT_NOTES     16
#define EXPORT_KEY_MAX   63
#define EXPORT_TEXT_MAX  1024
#define EXPORT_NOTE_FIELDS(F) \
    F(TEXT, key, EXPORT_KEY_MAX) \
    F(TEXT, text, EXPORT_TEXT_MAX) \
    F(BOOL, is_number) \
    F(U64, number)                          /* as an int64_t has it */
PROTO_STRUCT(export_note, EXPORT_NOTE_FIELDS);

/* What a span is of: the request of a client; something inside the daemon; a connection to a server. */
enum export_kind { EXPORT_REQUEST, EXPORT_INSIDE, EXPORT_CONNECTION, EXPORT_KINDS };
#define EXPORT_SPAN_FIELDS(F) \
    F(RAW, trace, EDGE_TRACE) \
    F(RAW, span, EDGE_SPAN) \
    F(RAW, parent, EDGE_SPAN)               /* all zero: none */ \
    F(ENUM, export_kind, kind, 0, EXPORT_KINDS - 1) \
    F(BOOL, failed) \
    F(U64, begin_us)                        /* since 1970 */ \
    F(U64, end_us) \
    F(U32, lost)                            /* so many before it were not taken: the socket was full */ \
    F(TEXT, name, EXPORT_TEXT_MAX) \
    F(LIST, export_note, notes, 1, EXPORT_NOTES)
PROTO_STRUCT(export_span, EXPORT_SPAN_FIELDS);

/* Samples (warden/stats.h), whole ones; of one report there may be several messages. */
#define EXPORT_NUMBERS_MAX (64 * 1024)
#define EXPORT_NUMBERS_FIELDS(F) \
    F(BOOL, last)                           /* of this report */ \
    F(U64, since_us)                        /* counters began then, since 1970 */ \
    F(U32, lost) \
    F(REST, samples, 0, EXPORT_NUMBERS_MAX)
PROTO_STRUCT(export_numbers, EXPORT_NUMBERS_FIELDS);

#define EDGE_OF_EXPORT(M) \
    M(EDGE_SPAN_OVER,    250, export_span) \
    M(EDGE_NUMBERS,      251, export_numbers)
PROTO_EDGE(edge_of_export, EDGE_OF_EXPORT);

/* A note more, unless there are EXPORT_NOTES; without a text there is none. One that is too long is left out. */
void export_text(struct export_span *s, const char *key, const char *text);
void export_number(struct export_span *s, const char *key, int64_t number);

#endif
