/* audit/audit.h: writing the record of what was done and decided
 *
 * Entries are lines of JSON in a folder, each with the SHA-256 of itself and of the one before (docs/audit.md has the
 * format to the byte). Several processes may append at a time: each takes a lock for as long as it writes one batch, so
 * the folder has one chain. Nothing here starts a thread, installs a handler or keeps a lock between two calls; a
 * process uses it from one thread at a time.
 *
 *     struct audit *a;
 *     audit_open(&(struct audit_options){ .dir = "/var/lib/cloche/audit", .durable = true }, &a, &err);
 *     audit_append(a, &entry, &err);          as often as there is something
 *     audit_commit(a, &err);                  then once, for all who wait; only now anything may proceed
 *     audit_close(a);
 *
 * After a failure, entries appended since the last successful audit_commit() may not be in the record: refuse every
 * request that waits for them. The entries stay queued and the next audit_commit() tries again.
 */
#ifndef CLOCHE_AUDIT_AUDIT_H
#define CLOCHE_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/steady.h"
#include "base/str.h"

#define AUDIT_LINE_MAX   (48 * 1024)            /* bytes of one line with its newline */
#define AUDIT_TEXT_MAX   1024                   /* bytes of one text as it is written; what is cut ends in "..." */
#define AUDIT_META_MAX   24                     /* members of an entry's metadata */
#define AUDIT_KEY_MAX    40                     /* bytes of a member's name: letters, digits, "_" */
#define AUDIT_QUEUE_MAX  (4UL * 1024 * 1024)    /* bytes appended and not committed; more is refused */
#define AUDIT_FILE_BYTES (64UL * 1024 * 1024)   /* of one file by default; then the next one begins */
#define AUDIT_KEEP_FILES 16                     /* full files that are kept by default, beside the one in use */
#define AUDIT_KEEP_MAX   1000
#define AUDIT_HASH       32
#define AUDIT_HASH_TEXT  64
#define AUDIT_TIME_TEXT  27                     /* "2026-11-21T17:00:00.123456Z" */

enum audit_type {
    AUDIT_MODE_TRANSITION, AUDIT_SECRET_OUTBOUND, AUDIT_SECRET_INBOUND, AUDIT_CAPABILITY, AUDIT_POLICY_DECISION,
    AUDIT_SIGNING_SUBMITTED, AUDIT_SIGNING_REJECTED, AUDIT_SIGNING_APPROVED, AUDIT_FALLBACK, AUDIT_KILL_SWITCH,
    AUDIT_LIFECYCLE, AUDIT_FETCH_ERROR,
    AUDIT_TYPES,
};

enum audit_severity { AUDIT_INFO, AUDIT_WARN, AUDIT_ERROR, AUDIT_CRITICAL, AUDIT_SEVERITIES };

/* "sandbox_lifecycle"; "warn". */
const char *audit_type_name(enum audit_type type);
const char *audit_severity_name(enum audit_severity severity);
bool audit_type_parse(struct str name, enum audit_type *out);
bool audit_severity_parse(struct str name, enum audit_severity *out);

enum audit_kind { AUDIT_STRING, AUDIT_NUMBER, AUDIT_BOOL, AUDIT_NULL };

struct audit_meta {
    const char *key;
    enum audit_kind kind;
    struct str text;            /* of AUDIT_STRING: any bytes; what is not UTF-8 is shown as \xNN */
    int64_t number;             /* of AUDIT_NUMBER, and 0 or 1 of AUDIT_BOOL */
};

/* All texts are borrowed until audit_append() returns. */
struct audit_entry {
    enum audit_type type;
    enum audit_severity severity;
    struct timespec when;       /* wall clock; all zero: now */
    struct str summary;
    struct str sandbox;         /* its id; empty: none */
    struct str trace_id;        /* empty: none */
    struct audit_meta meta[AUDIT_META_MAX];
    size_t n_meta;
    bool full;                  /* a member had no room: audit_append() refuses the entry */
};

void audit_put(struct audit_entry *e, const char *key, struct str text);
void audit_put_cstr(struct audit_entry *e, const char *key, const char *text);      /* NULL: null */
void audit_put_number(struct audit_entry *e, const char *key, int64_t number);
void audit_put_bool(struct audit_entry *e, const char *key, bool truth);

/* Replace what must not be written in @text: append what may be to @out (empty when it is called) and return true, or
 * return false when @text may be written as it is. Called for the summary and every text of the metadata. */
typedef bool audit_redact_fn(void *ctx, struct str text, struct buf *out);

struct audit_options {
    const char *dir;            /* absolute; its last part is made (0700) where it is missing */
    uint64_t file_bytes;        /* 0: AUDIT_FILE_BYTES */
    unsigned keep_files;        /* 0: AUDIT_KEEP_FILES */
    uint64_t keep_s;            /* full files that nothing was written to for so long go too; 0: age does not matter */
    const struct steady *clock; /* by which that is judged (steady_age_s); NULL: the host's */
    bool durable;               /* audit_commit() returns when the entries are on the disk (fdatasync) */
    audit_redact_fn *redact;    /* NULL: none */
    void *redact_ctx;
};

struct audit;

/* Open the record for appending, making it where there is none. 0, or -1 with @err: audit.folder (not ours, or writable
 * by others), audit.open (code of the system), audit.missing (the folder's parent is not there). */
int audit_open(const struct audit_options *options, struct audit **out, struct err *err);

/* Queue @e. Nothing of it is on the disk before audit_commit(). -1 with @err: audit.entry (it breaks a rule of this
 * header), audit.full (AUDIT_QUEUE_MAX), memory. */
int audit_append(struct audit *a, const struct audit_entry *e, struct err *err);

/* Write what is queued: one lock, one write and, when durable, one fdatasync for all of it. What a writer that died
 * left half written is set aside first, and said in the record. 0, also when nothing is queued, or -1 with @err:
 * audit.write (no room, or another error of the system), audit.busy (the lock could not be had within 10 s),
 * audit.damaged (the chain cannot be continued), audit.forked (this is a child of the process that opened it),
 * audit.sync (fdatasync failed: every later call fails too, the record must be opened anew). */
int audit_commit(struct audit *a, struct err *err);

/* Let full files go that are older than keep_s, as the beginning of a file does: first the entries about them are
 * written, and on the disk. What is queued stays queued. 0, or -1 with @err as audit_commit(). */
int audit_prune(struct audit *a, struct err *err);

/* How many entries are queued. */
size_t audit_queued(const struct audit *a);

/* For a process that writes for others. Entries whose body was made where their texts were known (chain.h): queue one.
 * As audit_append(); a body that breaks the form of the record is audit.entry. */
int audit_append_body(struct audit *a, struct str body, struct err *err);
/* From now on audit_commit() waits for the disk, or not. */
void audit_set_durable(struct audit *a, bool durable);
/* The lines that the last audit_commit() or audit_prune() wrote, whole, each with its newline; until the next call. */
struct str audit_written(const struct audit *a);

/* What is known to be in it, by who wrote it before this process: @head is looked for by the next audit_commit() or
 * audit_prune(), as what this process wrote itself always is, and where it is not, an entry says so (audit_cut).
 * @rebooted: the machine was started anew since, which costs entries that nobody waited for. */
struct audit_head;
void audit_expect(struct audit *a, const struct audit_head *head, bool rebooted);
/* The last entry that is known to be written. */
void audit_last(const struct audit *a, struct audit_head *out);
/* What the last of those calls has not found; NULL: nothing was missing. */
struct audit_missing {
    uint64_t seq, left;         /* the entry that was written last; with which one the record ended instead */
    bool older;                 /* newer files only are left: it is not known whether it was there */
};
const struct audit_missing *audit_missed(const struct audit *a);

/* Free it; what is queued is lost. NULL is harmless. */
void audit_close(struct audit *a);

/* --- entries of one sandbox, as they are said again and again ----------------------------------------------------- */

/* All begin an entry: @out is overwritten. Texts are borrowed. */
void audit_lifecycle(struct audit_entry *out, const char *sandbox, const char *event, const char *summary);
void audit_policy_decision(struct audit_entry *out, const char *sandbox, const char *decision, const char *reason,
                           const char *summary);
void audit_capability(struct audit_entry *out, const char *sandbox, const char *capability, const char *summary);

#endif
