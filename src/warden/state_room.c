/* warden/state_room.c: a full disk (see state_priv.h)
 *
 * What is changed goes to SQLite's log first, which may take 4 MB before it is put into the file: many versions of the
 * same few pages, and of a small disk all there is. Putting them into the file gives that back, but needs a page or two
 * there itself. So a file of some bytes is kept for nothing else than to be given up then, and by the next start.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "warden/state_priv.h"

#define ROOM (128 * 1024)

void
state_room_open(struct state *s, const char *dir)
{
    char path[PATH_MAX];

    s->room = -1;       /* without it a disk is full a little sooner */
    if (snprintf(path, sizeof(path), "%s/state.room", dir) < (int)sizeof(path))
        s->room = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
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
