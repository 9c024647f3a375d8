/* warden/state_room.c: a full disk (see state_priv.h)
 *
 * What is changed goes to SQLite's log first, which may take 16 MB before it is put into the file: many versions of the
 * same few pages, and of a small disk all there is. Putting them into the file gives that back, but needs a page or two
 * there itself. So a file of some bytes is kept for nothing else than to be given up then, and by the next start.
 *
 * It also waits for the disk several times, some ten milliseconds in which nobody is answered. So it is done when
 * nothing else is to do, and where that moment never comes, when the log is long.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "warden/state_priv.h"

#define ROOM (128 * 1024)
#define LOG_PAGES 512           /* are put into the file when there is time for it, */
#define LOG_MOST  4096          /* and so many at once */

void
state_room_open(struct state *s, const char *dir)
{
    char path[PATH_MAX];

    s->room = -1;       /* without it a disk is full a little sooner */
    if (snprintf(path, sizeof(path), "%s/state.room", dir) < (int)sizeof(path))
        s->room = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int
on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct state *s = ctx;

    (void)name;
    s->log_pages = pages;
    if (pages >= LOG_MOST)
        (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;       /* where the disk is full the log goes on */
}

void
state_keep_log(struct state *s)
{
    sqlite3_wal_hook(s->db, on_commit, s);
}

bool
state_log_is_long(const struct state *s)
{
    return s->log_pages >= LOG_PAGES;
}

void
state_settle(struct state *s)
{
    int all = 0, put = 0;

    if (!state_log_is_long(s))
        return;
    state_end_open(s);
    s->log_pages = 0;
    /* where it cannot be done it is tried again after the next change, and not again and again */
    if (sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &all, &put) != SQLITE_OK || put < all)
        return;
    /* the first page of a new log is waited for too: now, and not when somebody asks */
    (void)state_begin_log(s);
}

void
state_make_room(struct state *s)
{
    int r = ftruncate(s->room, 0);

    (void)r;            /* there may be none */
    (void)sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
}

void
state_keep_room(struct state *s)
{
    static const char nothing[4096];
    off_t at = lseek(s->room, 0, SEEK_END);

    while (at >= 0 && at < ROOM) {
        ssize_t n = pwrite(s->room, nothing, sizeof(nothing), at);
        if (n <= 0)
            return;     /* there is no more */
        at += n;
    }
}
