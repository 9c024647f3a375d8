/* audit/parse.h: reading one line of the record
 *
 * Only the one form that audit_seal() writes is taken: every key in its place, no blank, no other escape than \", \\
 * and \u00xx of control characters (never NUL, which many parsers refuse), valid UTF-8. Texts are handed out as they
 * lie there, escaped: they can be put into other JSON as they are. Pure, and the input is anybody's.
 */
#ifndef CLOCHE_AUDIT_PARSE_H
#define CLOCHE_AUDIT_PARSE_H

#include "audit/audit.h"

struct audit_line {
    uint64_t seq;
    struct str timestamp;       /* AUDIT_TIME_TEXT bytes */
    enum audit_type type;
    enum audit_severity severity;
    struct str summary;         /* escaped, without its quotes; so are the next two, empty when they are not there */
    struct str sandbox, trace_id;
    struct str metadata;        /* with its braces; empty when there is none */
    uint8_t prev[AUDIT_HASH], hash[AUDIT_HASH];
    size_t hashed;              /* bytes of the line that the hash is of */
};

struct audit_member {
    struct str key;
    enum audit_kind kind;
    struct str value;           /* of AUDIT_STRING escaped, without quotes; else as it is written */
};

/* @line without its newline; the views are into it. False when it is not such a line. */
bool audit_parse(struct str line, struct audit_line *out);

/* The next member of the metadata; @rest begins as line.metadata. False at the end. */
bool audit_member_next(struct str *rest, struct audit_member *out);
/* The member @key; false when it is not there. */
bool audit_member(const struct audit_line *line, const char *key, struct audit_member *out);

/* @text as it is written in the record, at most @max bytes ("..." for what is cut). -1: no memory. */
int audit_escape(struct str text, size_t max, struct buf *out);

/* A timestamp of the record in milliseconds since 1970. False when it is none. */
bool audit_time_ms(struct str timestamp, int64_t *out);

/* 64 hexadecimal digits of lower case. */
bool audit_hash_parse(struct str text, uint8_t out[AUDIT_HASH]);

#endif
