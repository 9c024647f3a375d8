/* audit/filter.h: which entries somebody wants to see. Pure. */
#ifndef CLOCHE_AUDIT_FILTER_H
#define CLOCHE_AUDIT_FILTER_H

#include "audit/parse.h"

struct audit_filter {
    uint32_t types;             /* 1 << enum audit_type; 0: all */
    uint32_t severities;        /* 1 << enum audit_severity; 0: all */
    struct str sandbox;         /* the beginning of its id; empty: all */
    struct str host;            /* a connection's, whole or from a dot on (".example.org"); empty: all */
    struct str by;              /* who asked: a whole word, or several, of what the member "by" says; empty: all */
    struct str since, until;    /* the beginning of a timestamp, both inclusive; empty: no bound */
    struct str text;            /* somewhere in the summary or the metadata, any case; empty: all */
};

/* Texts of @f are compared as they are written in the record: escape them before (audit_escape). */
bool audit_filter_match(const struct audit_filter *f, const struct audit_line *line);

/* A moment as a person gives it: the beginning of a timestamp ("2026-11-21", "2026-11-21T17:00"), or how long ago
 * ("10m", "2h", "30s", "1d"). Writes the timestamp's beginning to @out. */
bool audit_filter_time(struct str text, char out[AUDIT_TIME_TEXT + 1]);

#endif
