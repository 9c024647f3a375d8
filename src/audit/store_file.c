/* audit/store_file.c: the record's folder, its files and their locks */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "audit/store_priv.h"
#include "base/cleanup.h"
#include "base/io.h"

#define LOCK_STEP_US     200        /* between two tries at first; at most LOCK_STEP_MAX_US */
#define LOCK_STEP_MAX_US 5000
#define TAIL_FIRST       2048       /* bytes that are read for the last line before a whole line's worth is */

static const char prefix[] = "audit-", suffix[] = ".jsonl";

int
store_dir(struct audit *a, struct err *err)
{
    struct stat st;

    if (a->dir_fd >= 0)
        return a->dir_fd;
    if (mkdir(a->dir, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, errno == ENOENT ? "audit.missing" : "audit.open", "make the folder %s", a->dir);
    a->dir_fd = open(a->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (a->dir_fd < 0 || fstat(a->dir_fd, &st) < 0)
        return err_sys(err, errno, "audit.open", "open the folder %s", a->dir);
    if (st.st_uid == geteuid() && (st.st_mode & 022) == 0)
        return a->dir_fd;
    close_fd(&a->dir_fd);
    err_set(err, ERR_DENIED, "audit.folder", "%s is not yours alone: others could write into the record", a->dir);
    return err_hint(err, "chown it to the user who runs cloche, and chmod go-w");
}

int
store_lock(int fd, struct err *err)
{
    uint64_t waited = 0, step = LOCK_STEP_US;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(err, errno, "audit.lock", "lock the audit record");
        if (waited >= STORE_PATIENCE_MS * 1000UL) {
            err_set(err, ERR_SYSTEM, "audit.busy", "another process has kept the audit record locked for %d s",
                    STORE_PATIENCE_MS / 1000);
            return err_hint(err, "a stopped process of cloche? `ps -o pid,stat,cmd -C cloche` shows T for it");
        }
        nanosleep(&(struct timespec){ .tv_nsec = (long)step * 1000 }, NULL);
        waited += step;
        step = step * 2 < LOCK_STEP_MAX_US ? step * 2 : LOCK_STEP_MAX_US;
    }
    return 0;
}

bool
store_is_current(int dir_fd, const struct stat *st)
{
    struct stat now;

    return fstatat(dir_fd, STORE_CURRENT, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st->st_dev &&
           now.st_ino == st->st_ino;
}

void
store_unlock(int fd)
{
    (void)flock(fd, LOCK_UN);
}

void
store_name(uint64_t first, char out[STORE_NAME_MAX])
{
    snprintf(out, STORE_NAME_MAX, "%s%020llu%s", prefix, (unsigned long long)first, suffix);
}

static bool
number_of(const char *name, uint64_t *out)
{
    const size_t before = sizeof(prefix) - 1, after = sizeof(suffix) - 1;
    size_t n = strlen(name);

    return n == before + 20 + after && memcmp(name, prefix, before) == 0 &&
           memcmp(name + before + 20, suffix, after) == 0 &&
           str_parse_u64((struct str){ name + before, 20 }, INT64_MAX, out);
}

static int
by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

ssize_t
store_list(int dir_fd, uint64_t *out, size_t max, struct err *err)
{
    cleanup_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    size_t n = 0;

    if (dir == NULL)
        return err_sys(err, errno, "audit.open", "read the record's folder");
    (void)take_fd(&fd);
    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
        uint64_t first;
        if (!number_of(entry->d_name, &first))
            continue;
        if (n == max)
            return err_set(err, ERR_LIMIT, "audit.files", "more than %zu files of the record", max);
        out[n++] = first;
    }
    if (errno != 0)
        return err_sys(err, errno, "audit.open", "read the record's folder");
    qsort(out, n, sizeof(*out), by_number);
    return (ssize_t)n;
}

/* The last @n of the @size bytes of @fd. 1, or 0 when they do not hold a line's beginning, or -1 with errno. */
static int
last_line(int fd, uint64_t size, size_t n, uint8_t *room, struct str *out)
{
    ssize_t have = io_pread(fd, room, n, size - n);
    const uint8_t *before;

    if (have < 0)
        return -1;
    if ((size_t)have < n) {
        errno = EIO;            /* somebody else made it shorter, lock or not */
        return -1;
    }
    if (room[n - 1] != '\n') {
        *out = (struct str){ NULL, 0 };
        return 1;
    }
    before = n > 1 ? memrchr(room, '\n', n - 1) : NULL;
    if (before == NULL && n < size)
        return 0;
    before = before != NULL ? before + 1 : room;
    *out = (struct str){ (const char *)before, n - 1 - (size_t)(before - room) };
    return 1;
}

int
store_tail(int fd, uint64_t size, struct audit_head *out, struct err *err)
{
    uint8_t small[TAIL_FIRST];
    cleanup_free uint8_t *large = NULL;
    struct audit_line line;
    struct str text;
    int r;

    if (size == 0)
        return 0;
    r = last_line(fd, size, size < TAIL_FIRST ? (size_t)size : TAIL_FIRST, small, &text);
    if (r == 0) {
        large = malloc(AUDIT_LINE_MAX + 1);
        if (large == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        r = last_line(fd, size, size < AUDIT_LINE_MAX + 1 ? (size_t)size : AUDIT_LINE_MAX + 1, large, &text);
    }
    if (r < 0)
        return err_sys(err, errno, "audit.read", "read the end of the audit record");
    if (r == 0 || !audit_parse(text, &line) || !audit_hash_holds(&line, text))
        return 0;
    out->seq = line.seq;
    memcpy(out->hash, line.hash, AUDIT_HASH);
    return 1;
}

bool
store_first(int fd, uint64_t *seq)
{
    cleanup_free char *room = malloc(AUDIT_LINE_MAX);
    ssize_t n = room != NULL ? pread(fd, room, AUDIT_LINE_MAX, 0) : -1;
    const char *end = n > 0 ? memchr(room, '\n', (size_t)n) : NULL;
    struct audit_line line;

    if (end == NULL || !audit_parse((struct str){ room, (size_t)(end - room) }, &line))
        return false;
    *seq = line.seq;
    return true;
}

int
store_note(struct audit *a, const struct audit_entry *e, struct err *err)
{
    cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX);

    if (audit_body(e, NULL, NULL, &body, err) < 0)
        return -1;
    return audit_seal(&a->head, (struct str){ (const char *)body.p, body.n }, &a->lines) == 0
               ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}
