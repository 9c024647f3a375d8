/* audit/store_priv.h: the files of the record, for store*.c, repair.c and scan.c
 *
 *   audit.jsonl                          the one in use; 0600
 *   audit-NNNNNNNNNNNNNNNNNNNN.jsonl     full ones, by the number of their first entry; 0400
 *   audit-damaged-N-K.bin                what was set aside behind entry N
 *
 * A writer holds an exclusive lock (flock) on the file in use. It renames a full file and then makes it read-only,
 * both under its lock: a process that waited for that lock notices this and opens the next file. A process that begins
 * a file takes the lock of the previous one and makes it read-only again; this completes a change of files during
 * which another process died. A lock of an older file is only taken while holding the newer file's lock, never the
 * other way round.
 */
#ifndef CLOCHE_AUDIT_STORE_PRIV_H
#define CLOCHE_AUDIT_STORE_PRIV_H

#include <sys/stat.h>
#include <sys/types.h>

#include "audit/audit.h"
#include "audit/chain.h"

#define STORE_CURRENT   "audit.jsonl"
#define STORE_NAME_MAX  48
#define STORE_OLD_MAX   8       /* full files that are removed at a time */
#define STORE_PATIENCE_MS 10000 /* for a lock, and for a file that is not full before we have its lock */
#define STORE_FILES_MAX (AUDIT_KEEP_MAX + 16)   /* full files in a folder; more is refused */

struct audit {
    char *dir;
    struct audit_options options;
    int dir_fd;                 /* -1 until it is needed */
    int fd;                     /* the file in use as far as we know; -1 */
    pid_t pid;                  /* of who opened it */
    bool failed;                /* fdatasync did: what is on the disk is not known any more */
    struct buf queue;           /* bodies, each behind its length in four bytes */
    size_t n_queued;
    struct audit_head head;     /* behind the first @size bytes of the file @fd */
    uint64_t size;              /* 0: @head is not known */
    struct audit_head last;     /* what we wrote last, or were told of; seq 0: nothing yet */
    bool rebooted;              /* the machine was started anew since */
    bool missed;                /* it was not there: */
    struct audit_missing missing;
    struct buf lines;           /* what is being written */
    char old[STORE_OLD_MAX][STORE_NAME_MAX];    /* full files to be removed when the batch is written */
    size_t n_old;
};

/* store_file.c */

/* The folder as a descriptor, borrowed; -1 with @err. */
int store_dir(struct audit *a, struct err *err);
/* Lock @fd; -1 with @err (audit.busy). Unlock it. */
int store_lock(int fd, struct err *err);
void store_unlock(int fd);
/* Whether the file of @st, which is locked, is the one in use. Who renamed it may have been killed before it was
 * closed: then it can still be written to, but the name is another file's, or nobody's. */
bool store_is_current(int dir_fd, const struct stat *st);
/* The full files, oldest first: the numbers that they are named by. How many, or -1 with @err. */
ssize_t store_list(int dir_fd, uint64_t *out, size_t max, struct err *err);
void store_name(uint64_t first, char out[STORE_NAME_MAX]);
/* The last entry of the @size bytes of @fd. 1; 0: there is no whole and sound one at the end; -1 with @err. */
int store_tail(int fd, uint64_t size, struct audit_head *out, struct err *err);
/* The first entry's number. False: none. */
bool store_first(int fd, uint64_t *seq);
/* An entry of the record's own about itself, sealed into @a->lines. */
int store_note(struct audit *a, const struct audit_entry *e, struct err *err);

/* look_back.c: a->head is what the record ends with, its newest file, locked, has @size bytes: where a->last is not in
 * it, that is said in @a->lines. */
int store_look_back(struct audit *a, uint64_t size, struct err *err);

/* repair.c: the file's end is no sound entry: set what is behind the last sound one aside, shorten the file to @*size,
 * find @a->head and say so in @a->lines. Locked. */
int store_repair(struct audit *a, uint64_t *size, struct err *err);

#endif
