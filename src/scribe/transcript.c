/* scribe/transcript.c: pages of transcripts, to whoever the warden gave a socket for one; and how long they are kept
 *
 * A transcript is a file ID.jsonl that its sandbox's keeper appends to (keeper/keeper_transcript.c), locked as long
 * as the keeper lives. Only whole lines are handed out. Whose it is says its first line; where there is none it is the
 * daemon's owner's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "scribe/scribe.h"

#define NAME_MAX_ (EDGE_ID + 8)
#define FILES_MAX 20000     /* that are looked at to find the oldest */

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void
page_say(struct page *p, uint8_t type, const struct shape *shape, const void *m)
{
    if (proto_queue(&p->out, p->socket.fd, type, shape, m, -1) < 0)
        close_fd(&p->socket.fd);
}

/* Bytes of the whole lines at the beginning of p[0..n). */
static size_t
whole_lines(const uint8_t *p, size_t n)
{
    const uint8_t *last = n > 0 ? memrchr(p, '\n', n) : NULL;

    return last != NULL ? (size_t)(last - p) + 1 : 0;
}

static int
open_transcript(int folder, const char *name)
{
    return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static int
read_page(const char *dir, const char *id, uint64_t offset, uint8_t *room, size_t *n, struct err *err)
{
    cleanup_close int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    char name[NAME_MAX_];
    ssize_t got;

    snprintf(name, sizeof(name), "%s.jsonl", id);
    fd = folder < 0 ? -1 : open_transcript(folder, name);
    if (fd < 0 && errno == ENOENT) {
        err_set(err, ERR_NOT_FOUND, "transcript.none", "there is no transcript of this sandbox");
        return err_hint(err, "transcript: off keeps none; old ones are removed (docs/daemon.md)");
    }
    got = fd < 0 || offset > INT64_MAX ? -1 : pread(fd, room, SCRIBE_PAGE, (off_t)offset);
    if (got < 0)
        return err_sys(err, errno, "transcript.read", "read the transcript");
    *n = (size_t)got;
    return 0;
}

void
page_begin(struct page *p, const char *dir, const char *id, uint64_t offset)
{
    cleanup_free uint8_t *room = malloc(SCRIBE_PAGE);
    struct err err = ERR_INIT;
    size_t n = 0;

    p->out = (struct packet_queue)PACKET_QUEUE_INIT(2 * SCRIBE_PAGE);
    if (room == NULL)
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
    if (room == NULL || read_page(dir, id, offset, room, &n, &err) < 0) {
        PROTO_SAY(page_say, p, EDGE_FAILED, .why = err);
        return;
    }
    n = whole_lines(room, n);
    for (size_t at = 0, take; at < n && p->socket.fd >= 0; at += take) {
        take = n - at < EDGE_CHUNK ? n - at : EDGE_CHUNK;
        PROTO_SAY(page_say, p, EDGE_OUT, .bytes = room + at, .n_bytes = take);
    }
    if (p->socket.fd >= 0)
        PROTO_SAY(page_say, p, EDGE_DONE, .count = offset + n);
}

/* --- how long they are kept --------------------------------------------------------------------------------------- */

struct kept {
    char name[NAME_MAX_], owner[EDGE_ID + 1];
    int64_t changed;
    uint64_t bytes;
    uint64_t rank;      /* among its owner's, the newest first: how many, or how many bytes, these are with it */
};

static int
by_owner(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    int order = strcmp(x->owner, y->owner);

    return order != 0 ? order : x->changed > y->changed ? -1 : x->changed < y->changed;
}

static int
by_rank(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->changed > y->changed ? -1 : x->changed < y->changed;
}

/* The newest of each owner, then the second newest of each, and so on: whoever has fewer than its share loses none.
 * With @by_bytes as many of each as come to the same number of bytes. */
static void
fair_order(struct kept *all, size_t n, bool by_bytes)
{
    qsort(all, n, sizeof(*all), by_owner);
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || strcmp(all[i].owner, all[i - 1].owner) != 0;
        all[i].rank = (first ? 0 : all[i - 1].rank) + (by_bytes ? all[i].bytes : 1);
    }
    qsort(all, n, sizeof(*all), by_rank);
}

/* -1: it is of a sandbox that lives, whose keeper holds it; or it cannot be opened. */
static int
open_ended(int folder, const char *name)
{
    cleanup_close int fd = open_transcript(folder, name);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

static void
read_owner(int fd, struct kept *one)
{
    char line[sizeof(TRANSCRIPT_OWNER) - 1 + EDGE_ID];

    if (pread(fd, line, sizeof(line), 0) != (ssize_t)sizeof(line) ||
        memcmp(line, TRANSCRIPT_OWNER, sizeof(TRANSCRIPT_OWNER) - 1) != 0)
        return;
    memcpy(one->owner, line + sizeof(TRANSCRIPT_OWNER) - 1, EDGE_ID);
}

static bool
is_transcript(const char *name)
{
    char id[EDGE_ID + 1];

    if (strlen(name) != EDGE_ID + 6 || strcmp(name + EDGE_ID, ".jsonl") != 0)
        return false;
    memcpy(id, name, EDGE_ID);
    id[EDGE_ID] = '\0';
    return edge_is_id(id);
}

/* Those that ended. */
static size_t
transcript_list(int folder, struct kept *out)
{
    cleanup_close int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    size_t n = 0;

    if (dir == NULL)
        return 0;
    (void)take_fd(&fd);
    while (n < FILES_MAX && (entry = readdir(dir)) != NULL) {
        cleanup_close int one = is_transcript(entry->d_name) ? open_ended(folder, entry->d_name) : -1;
        struct stat st;
        if (one < 0 || fstat(one, &st) < 0)
            continue;
        snprintf(out[n].name, sizeof(out[n].name), "%.38s", entry->d_name);
        read_owner(one, &out[n]);
        out[n].bytes = (uint64_t)st.st_size;
        out[n++].changed = st.st_mtim.tv_sec;
    }
    return n;
}

/* Unless it is held again. */
static bool
forget(int folder, const char *name)
{
    cleanup_close int fd = open_ended(folder, name);

    return fd >= 0 && unlinkat(folder, name, 0) == 0;
}

/* Those that are too many or too old go. How many are left in @all. */
static size_t
forget_old(int folder, struct kept *all, size_t n, const struct transcript_keep *keep)
{
    const uint64_t boot = clock_boot_ms(), wall = clock_wall_ms();
    size_t left = 0;

    fair_order(all, n, false);
    for (size_t i = 0; i < n; i++) {
        bool old = keep->s > 0 && steady_age_s(keep->clock, boot, wall, all[i].changed) > keep->s;
        if ((i < keep->n && !old) || !forget(folder, all[i].name))
            all[left++] = all[i];
    }
    return left;
}

void
transcript_prune(const char *dir, const struct transcript_keep *keep, uint32_t *files, uint64_t *bytes)
{
    cleanup_close int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free struct kept *all = calloc(FILES_MAX, sizeof(*all));
    uint64_t in_all = 0;
    size_t n;

    *files = 0;
    *bytes = 0;
    if (folder < 0 || all == NULL)
        return;
    n = forget_old(folder, all, transcript_list(folder, all), keep);
    for (size_t i = 0; i < n; i++)
        in_all += all[i].bytes;
    fair_order(all, n, true);
    for (size_t i = n; i > 0 && in_all > keep->bytes; i--)
        if (forget(folder, all[i - 1].name)) {
            in_all -= all[i - 1].bytes;
            *bytes += all[i - 1].bytes;
            ++*files;
        }
}

/* Bytes of all; @ended: of those that nobody holds, which takes to open each. */
static uint64_t
bytes_in(const char *dir, bool ended)
{
    cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int folder = fd;
    cleanup_dir DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    uint64_t in_all = 0;
    struct stat st;

    if (list == NULL)
        return 0;
    (void)take_fd(&fd);
    for (size_t n = 0; n < FILES_MAX && (entry = readdir(list)) != NULL; n++) {
        cleanup_close int one = -1;
        if (is_transcript(entry->d_name) && (!ended || (one = open_ended(folder, entry->d_name)) >= 0) &&
            fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            in_all += (uint64_t)st.st_size;
    }
    return in_all;
}

bool
transcript_too_much(const char *dir, uint64_t bytes)
{
    return bytes_in(dir, false) > bytes && bytes_in(dir, true) > bytes;
}
