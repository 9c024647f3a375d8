/* audit/scan.h: reading the record, oldest entry first
 *
 * Which files there are, and how long, is looked up once under the record's lock: what is appended later is not part of
 * it, and nobody is caught in the middle of a write. A folder that is not ours can be read too, where it may be.
 */
#ifndef CLOCHE_AUDIT_SCAN_H
#define CLOCHE_AUDIT_SCAN_H

#include "audit/audit.h"
#include "audit/parse.h"

#define SCAN_FILES_MAX (AUDIT_KEEP_MAX + 32)

struct scan_file {
    char *path;
    int fd;                     /* -1 while it is not read */
    uint64_t from, size;        /* which bytes are read: from a line's beginning on, up to there */
    uint64_t named;             /* the number that its name says; 0: none */
};

struct scan {
    struct scan_file *files;
    size_t n;
    unsigned aside;             /* files of damaged ends in the folder */
};

#define SCAN_INIT { .files = NULL, .n = 0 }
#define cleanup_scan __attribute__((cleanup(scan_free)))

/* The files of the record in @dir. 0, also when there are none, or -1 with @err (audit.none: no such folder). */
int scan_open_dir(const char *dir, struct scan *out, struct err *err);
/* One file more, which may be any part of a record or something that was exported. */
int scan_add_file(struct scan *s, const char *path, struct err *err);
void scan_free(struct scan *s);

/* One line: @text without its newline; @line is NULL when it is none of the record, and with @cut it is what is behind
 * the last newline. Returns 0 to go on, anything else to end. */
struct scan_at {
    const struct scan_file *file;
    uint64_t number;            /* of the line in its file, from 1 on */
    uint64_t offset;            /* of its first byte */
    bool cut;
};
typedef int scan_line_fn(void *ctx, const struct scan_at *at, struct str text, const struct audit_line *line);

/* Call @fn for each line of the files from @first on. What @fn returned, 0, or -1 with @err. */
int scan_lines(struct scan *s, size_t first, scan_line_fn *fn, void *ctx, struct err *err);

#endif
