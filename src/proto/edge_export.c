/* proto/edge_export.c: see edge_export.h */
#include "proto/edge_export.h"

#include <string.h>

void
export_text(struct export_span *s, const char *key, const char *text)
{
    if (s->n_notes < EXPORT_NOTES && text != NULL && text[0] != '\0' && strlen(text) <= EXPORT_TEXT_MAX)
        s->notes[s->n_notes++] = (struct export_note){ .key = key, .text = text };
}

void
export_number(struct export_span *s, const char *key, int64_t number)
{
    if (s->n_notes < EXPORT_NOTES)
        s->notes[s->n_notes++] = (struct export_note){ .key = key, .text = "", .is_number = true,
                                                       .number = (uint64_t)number };
}

PROTO_SHAPE(export_from, EXPORT_SOURCE_FIELDS)
PROTO_SHAPE(export_note, EXPORT_NOTE_FIELDS)
PROTO_SHAPE(export_span, EXPORT_SPAN_FIELDS)
PROTO_SHAPE(export_numbers, EXPORT_NUMBERS_FIELDS)
