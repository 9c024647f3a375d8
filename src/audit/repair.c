/* audit/repair.c: the end of a record whose writer died
 *
 * A writer that is killed, or a machine that loses its power, leaves an end that is no entry: half a line, or a block
 * that was never written. Everything behind the last sound entry goes into a file of its own and an entry says where,
 * how much and with which hash, so nothing disappears without being said. What cannot be set aside stops the record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/store_priv.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"

#define CHUNK   65536
#define TRIES   1000        /* names for what is set aside behind one entry */
#define DAMAGE_MAX (2 * AUDIT_FILE_BYTES)   /* more no crash leaves; copied, it would fill the disk */

static int
cannot_read(struct err *err)
{
    return err_sys(err, errno, "audit.read", "read the audit record");
}

/* Where the sound entries at the beginning of @fd end, and the last of them. -1 with @err. */
static int
sound_part(int fd, uint64_t size, uint64_t *end, struct audit_head *head, struct err *err)
{
    cleanup_free char *room = malloc(AUDIT_LINE_MAX);

    *end = 0;
    if (room == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *head = (struct audit_head){ .seq = 0 };
    while (*end < size) {
        size_t want = size - *end < AUDIT_LINE_MAX ? (size_t)(size - *end) : AUDIT_LINE_MAX;
        ssize_t n = pread(fd, room, want, (off_t)*end);
        size_t at = 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_read(err);
        for (const char *newline; (newline = memchr(room + at, '\n', (size_t)n - at)) != NULL;) {
            struct str text = { room + at, (size_t)(newline - room) - at };
            struct audit_line line;
            if (!audit_parse(text, &line) || audit_follow(head, *end + at == 0, &line, text) != NULL)
                break;
            at += text.n + 1;
        }
        if (at == 0)
            break;
        *end += at;
    }
    return 0;
}

static int
open_aside(struct audit *a, int dir, char name[STORE_NAME_MAX + 32], struct err *err)
{
    for (unsigned k = 1; k <= TRIES; k++) {
        int fd;
        snprintf(name, STORE_NAME_MAX + 32, "audit-damaged-%llu-%u.bin", (unsigned long long)a->head.seq, k);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            return err_sys(err, errno, "audit.write", "set the record's damaged end aside in %s/%s", a->dir, name);
    }
    return err_set(err, ERR_LIMIT, "audit.damaged", "%s: more than %d damaged ends behind one entry", a->dir, TRIES);
}

static int
copy(struct audit *a, int to, uint64_t from, uint64_t size, uint8_t hash[SHA256_SIZE], struct err *err)
{
    cleanup_free uint8_t *room = malloc(CHUNK);
    struct sha256 sum;

    if (room == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    sha256_init(&sum);
    while (from < size) {
        ssize_t n = pread(a->fd, room, size - from < CHUNK ? (size_t)(size - from) : CHUNK, (off_t)from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return cannot_read(err);
        if (io_write_full(to, room, (size_t)n) < 0)
            return err_sys(err, errno, "audit.write", "set the record's damaged end aside");
        sha256_add(&sum, room, (size_t)n);
        from += (uint64_t)n;
    }
    sha256_end(&sum, hash);
    return fsync(to) == 0 ? 0 : err_sys(err, errno, "audit.write", "set the record's damaged end aside");
}

static int
say(struct audit *a, const char *name, uint64_t bytes, const uint8_t hash[SHA256_SIZE], struct err *err)
{
    struct audit_entry e;
    char hex[SHA256_TEXT + 1];

    sha256_text(hash, hex);
    audit_capability(&e, NULL, "audit_recovery",
                     "the record's end was damaged, by a crash or by somebody: it was set aside");
    e.severity = AUDIT_ERROR;
    audit_put_cstr(&e, "file", name);
    audit_put_number(&e, "bytes", (int64_t)bytes);
    audit_put_cstr(&e, "sha256", hex);
    return store_note(a, &e, err);
}

/* When nothing of the file is sound there is nothing to hang the entry on but the file before. */
static int
without_head(struct audit *a, int dir, struct err *err)
{
    static uint64_t firsts[STORE_FILES_MAX];
    ssize_t n = store_list(dir, firsts, STORE_FILES_MAX, err);
    char name[STORE_NAME_MAX];
    cleanup_close int fd = -1;
    struct stat st;
    int r;

    if (n <= 0)
        return (int)n;
    store_name(firsts[n - 1], name);
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot_read(err);
    r = store_tail(fd, (uint64_t)st.st_size, &a->head, err);
    return r != 0 ? (r > 0 ? 0 : -1)
                  : err_set(err, ERR_PROTOCOL, "audit.damaged", "the end of %s/%s is damaged", a->dir, name);
}

int
store_repair(struct audit *a, uint64_t *size, struct err *err)
{
    cleanup_close int to = -1;
    char name[STORE_NAME_MAX + 32];
    uint8_t hash[SHA256_SIZE];
    int dir = store_dir(a, err);
    uint64_t end = 0;

    if (dir < 0 || sound_part(a->fd, *size, &end, &a->head, err) < 0 || (end == 0 && without_head(a, dir, err) < 0))
        return -1;
    if (*size - end > DAMAGE_MAX) {
        err_set(err, ERR_PROTOCOL, "audit.damaged", "%s/" STORE_CURRENT " has %llu bytes behind its last sound entry",
                a->dir, (unsigned long long)(*size - end));
        return err_hint(err, "no crash leaves so much: look at the file, and move it away");
    }
    to = open_aside(a, dir, name, err);
    if (to < 0)
        return -1;
    if (copy(a, to, end, *size, hash, err) < 0 || fsync(dir) < 0) {
        if (err != NULL && err->kind == ERR_NONE)
            err_sys(err, errno, "audit.write", "set the record's damaged end aside");
        unlinkat(dir, name, 0);
        return -1;
    }
    if (ftruncate(a->fd, (off_t)end) < 0)
        return err_sys(err, errno, "audit.write", "shorten the record to its last sound entry");
    if (say(a, name, *size - end, hash, err) < 0)
        return -1;
    *size = end;
    return 0;
}
