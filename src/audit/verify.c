/* audit/verify.c: see verify.h */
#include "audit/verify.h"

#include <stdio.h>
#include <string.h>

struct verify {
    const uint8_t *expect;
    struct verify_result *out;
    const struct scan_file *file;       /* the one before this line's */
    bool whole;
    uint8_t before[AUDIT_HASH];         /* what the oldest entry says of the one before it */
    bool explained;                     /* a later one says that that one was removed */
};

static int
bad(struct verify *v, const struct scan_at *at, uint64_t seq, const char *why)
{
    v->out->bad = why;
    v->out->bad_line = at->number;
    v->out->bad_seq = seq;
    snprintf(v->out->bad_file, sizeof(v->out->bad_file), "%s", at->file->path);
    return 1;
}

static bool
is(const struct audit_line *line, const char *key, struct str value)
{
    struct audit_member m;

    return audit_member(line, key, &m) && str_eq(m.value, value);
}

/* What the record says about itself. */
static void
look_into(struct verify *v, const struct audit_line *line)
{
    struct audit_member last, hash;
    uint8_t bytes[AUDIT_HASH];
    uint64_t seq;

    if (is(line, "capability", STR_LIT("audit_recovery")))
        v->out->recoveries++;
    if (is(line, "capability", STR_LIT("audit_cut")))
        v->out->cuts++;
    if (is(line, "capability", STR_LIT("audit_retention")) && audit_member(line, "last", &last) &&
        audit_member(line, "hash", &hash) && str_parse_u64(last.value, INT64_MAX, &seq) && seq + 1 == v->out->first &&
        audit_hash_parse(hash.value, bytes) && memcmp(bytes, v->before, sizeof(bytes)) == 0)
        v->explained = true;
}

static int
on_line(void *ctx, const struct scan_at *at, struct str text, const struct audit_line *line)
{
    struct verify *v = ctx;
    struct verify_result *out = v->out;
    uint64_t next = out->head.seq + 1;
    const char *why;

    if (at->cut)
        return bad(v, at, next, "the last line is cut: a writer died; the next one will set it aside");
    if (line == NULL)
        return bad(v, at, next, "it is not an entry of a record");
    why = audit_follow(&out->head, out->entries == 0, line, text);
    if (why != NULL)
        return bad(v, at, line->seq, why);
    if (at->file != v->file && v->whole && at->file->named != 0 && at->file->named != line->seq)
        return bad(v, at, line->seq, "the file begins with another entry than its name says");
    v->file = at->file;
    if (out->entries++ == 0) {
        out->first = line->seq;
        memcpy(v->before, line->prev, sizeof(v->before));
    }
    if (line->type == AUDIT_CAPABILITY)
        look_into(v, line);
    if (v->expect != NULL && memcmp(line->hash, v->expect, AUDIT_HASH) == 0) {
        out->expected = true;
        out->expected_seq = line->seq;
    }
    return 0;
}

int
audit_verify(struct scan *s, bool whole, const uint8_t expect[AUDIT_HASH], struct verify_result *out,
             struct err *err)
{
    struct verify v = { .expect = expect, .out = out, .whole = whole };

    *out = (struct verify_result){ .entries = 0 };
    if (scan_lines(s, 0, on_line, &v, err) < 0)
        return -1;
    if (out->bad != NULL)
        return 0;
    out->partial = out->first > 1 && !v.explained;
    if (out->partial && whole) {
        out->bad = "its beginning is missing, and no entry says that it was removed";
        out->bad_seq = out->first - 1;
        snprintf(out->bad_file, sizeof(out->bad_file), "%s", s->files[0].path);
    } else if (expect != NULL && !out->expected) {
        out->bad = "the expected entry is not in it: its end was cut off, or it is another record";
        out->bad_seq = out->head.seq + 1;
        snprintf(out->bad_file, sizeof(out->bad_file), "%s", s->n > 0 ? s->files[s->n - 1].path : "");
    }
    return 0;
}
