/* workspace/edits.h: what has become of the files of a folder since the last look, with diffs of texts
 *
 * For a tree that somebody hostile fills and changes meanwhile. Nothing but regular files is opened, by openat2 from
 * the folder, without following a link or leaving its mount, and never so that it could block. A file counts as
 * unchanged while its inode, size, mode and change time are the same; one that changed about when it was looked at is
 * read again the next time. Bounded in files, bytes and time: what a look could not do, it says (struct edits_said).
 */
#ifndef CLOCHE_WORKSPACE_EDITS_H
#define CLOCHE_WORKSPACE_EDITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"

#define EDITS_FILES   50000             /* entries that are known of, folders too */
#define EDITS_TEXT    (128UL * 1024)    /* bytes of a file whose lines are compared */
#define EDITS_KEPT    (32UL * 1024 * 1024)  /* of all texts that are kept for the next look */
#define EDITS_HASHED  (8UL * 1024 * 1024)   /* of a file that is hashed */
#define EDITS_READ    (128UL * 1024 * 1024) /* read by one look */
#define EDITS_LOOK_US 5000000UL         /* that one look takes */
#define EDITS_SAID    500               /* files that one look says */
#define EDITS_DIFF    (32UL * 1024)     /* bytes of a diff */

/* A file at one time. */
struct edit_state {
    char kind;                  /* 'f' file, 'l' link, 'o' something else; 0: there was none */
    bool hashed;
    uint32_t mode;
    uint64_t size;
    uint8_t sum[SHA256_SIZE];   /* of a link: of where it leads */
};

enum edit_diff {
    EDIT_DIFF_NONE,             /* no text, or too much of it */
    EDIT_DIFF_WHOLE,
    EDIT_DIFF_CUT,              /* there is more */
    EDIT_DIFF_BINARY,
    EDIT_DIFF_WITHHELD,         /* values that it may hold are not known */
};

struct edit {
    const char *path;           /* below the folder, any bytes but NUL */
    struct edit_state before, after;
    enum edit_diff how;
    struct str diff;
};

/* What a text must not show, replaced, to @out: 1 then, 0: it stays as it is, -1: nothing of it may be shown. */
typedef int edits_redact(void *ctx, struct str text, struct buf *out);
typedef void edits_tell(void *ctx, const struct edit *e);

struct edits_said {
    uint32_t files, more;       /* that were told of; that were not */
    bool incomplete;            /* there are more entries than are known of, or it took too long, or a part was shut */
};

struct edits;

struct edits *edits_new(void);  /* NULL: no memory */
void edits_free(struct edits *x);
/* Of what this user in this group cannot read no look shows what is in it; what is in a folder not even that it is
 * there. For a caller who may read more than the ones it looks for. */
void edits_as(struct edits *x, uid_t uid, gid_t gid);

/* Look at all below @root (O_PATH will do). @tell is NULL the first time: nothing is told then. 0, or -1: the folder
 * itself cannot be read. */
int edits_look(struct edits *x, int root, edits_redact *redact, edits_tell *tell, void *ctx, struct edits_said *said);

#endif
