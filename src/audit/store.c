/* audit/store.c: appending; see audit.h for what is promised and store_priv.h for the files */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/store_priv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/kernel.h"
#include "base/sha256.h"
#include "base/steady.h"

static const char move_away[] = "`cloche audit verify` says more; move the folder away to begin a new record";

static int
open_current(struct audit *a, struct err *err)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s/" STORE_CURRENT, a->dir) >= (int)sizeof(path))
        return err_set(err, ERR_LIMIT, "audit.open", "%s: the path is too long", a->dir);
    a->size = 0;
    a->fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (a->fd < 0 && errno == ENOENT) {
        if (store_dir(a, err) < 0)
            return -1;
        a->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
    }
    return a->fd < 0 ? err_sys(err, errno, "audit.open", "open the audit record %s", path) : 0;
}

int
audit_open(const struct audit_options *options, struct audit **out, struct err *err)
{
    struct audit *a = calloc(1, sizeof(*a));

    if (a == NULL || (a->dir = strdup(options->dir)) == NULL) {
        free(a);
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    a->options = *options;
    if (a->options.file_bytes == 0)
        a->options.file_bytes = AUDIT_FILE_BYTES;
    if (a->options.keep_files == 0 || a->options.keep_files > AUDIT_KEEP_MAX)
        a->options.keep_files = a->options.keep_files == 0 ? AUDIT_KEEP_FILES : AUDIT_KEEP_MAX;
    a->fd = a->dir_fd = -1;
    a->pid = getpid();
    a->queue.max = AUDIT_QUEUE_MAX;
    a->lines.max = 4 * AUDIT_QUEUE_MAX;     /* with what audit_seal() adds to the shortest bodies */
    if (open_current(a, err) < 0) {
        audit_close(a);
        return -1;
    }
    *out = a;
    return 0;
}

void
audit_close(struct audit *a)
{
    if (a == NULL)
        return;
    close_fd(&a->fd);
    close_fd(&a->dir_fd);
    buf_free(&a->queue);
    buf_free(&a->lines);
    free(a->dir);
    free(a);
}

size_t
audit_queued(const struct audit *a)
{
    return a->n_queued;
}

/* What was put behind @at of the queue, and whether that @failed. */
static int
queued(struct audit *a, size_t at, bool failed, struct err *err)
{
    size_t n = a->queue.n - at - 4;

    if (failed) {
        bool full = !buf_ok(&a->queue);
        a->queue.n = at;
        a->queue.broken = false;
        return full ? err_set(err, ERR_LIMIT, "audit.full", "%zu bytes of entries are not written yet", at) : -1;
    }
    for (size_t i = 0; i < 4; i++)
        a->queue.p[at + i] = (uint8_t)(n >> (24 - 8 * i));
    a->n_queued++;
    return 0;
}

int
audit_append(struct audit *a, const struct audit_entry *e, struct err *err)
{
    size_t at = a->queue.n;

    return queued(a, at, buf_put_be32(&a->queue, 0) < 0 ||
                  audit_body(e, a->options.redact, a->options.redact_ctx, &a->queue, err) < 0, err);
}

int
audit_append_body(struct audit *a, struct str body, struct err *err)
{
    cleanup_buf struct buf line = BUF_INIT(AUDIT_LINE_MAX);
    struct audit_head nowhere = { .seq = 0 };
    struct audit_line parsed;
    size_t at = a->queue.n;

    if (audit_seal(&nowhere, body, &line) < 0 ||
        !audit_parse((struct str){ (const char *)line.p, line.n - 1 }, &parsed))
        return err_set(err, ERR_PROTOCOL, "audit.entry", "an entry that does not have the record's form");
    return queued(a, at, buf_put_be32(&a->queue, 0) < 0 || buf_append(&a->queue, body.p, body.n) < 0, err);
}

void
audit_set_durable(struct audit *a, bool durable)
{
    a->options.durable = durable;
}

void
audit_expect(struct audit *a, const struct audit_head *head, bool rebooted)
{
    if (head->seq <= a->last.seq)
        return;
    a->last = *head;
    a->rebooted = rebooted;
    a->size = 0;
}

void
audit_last(const struct audit *a, struct audit_head *out)
{
    *out = a->last;
}

const struct audit_missing *
audit_missed(const struct audit *a)
{
    return a->missed ? &a->missing : NULL;
}

struct str
audit_written(const struct audit *a)
{
    return (struct str){ (const char *)a->lines.p, a->lines.n };
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* The file in use, locked, and its size. Files may be filled under our hands while we wait for their locks, as many as
 * others fill: what ends the turns is the clock. */
static int
lock_current(struct audit *a, uint64_t *size, struct err *err)
{
    const uint64_t begun = clock_ms();
    struct stat st;

    do {
        int dir = store_dir(a, err);
        if (dir < 0 || (a->fd < 0 && open_current(a, err) < 0) || store_lock(a->fd, err) < 0)
            return -1;
        if (fstat(a->fd, &st) < 0)
            return err_sys(err, errno, "audit.read", "look at the audit record");
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
            return err_set(err, ERR_DENIED, "audit.folder", "%s/" STORE_CURRENT " is not your file alone", a->dir);
        *size = (uint64_t)st.st_size;
        if ((st.st_mode & S_IWUSR) != 0 && st.st_nlink > 0 && store_is_current(dir, &st))
            return 0;
        close_fd(&a->fd);       /* it was filled, or removed, meanwhile; maybe with its folder */
        close_fd(&a->dir_fd);
    } while (clock_since(clock_ms(), begun) < STORE_PATIENCE_MS);
    return err_set(err, ERR_SYSTEM, "audit.busy", "the audit record's files change faster than they can be opened");
}

/* A full file, to be removed when the entry about it is written. 1; 0: it stays, and with it all that came later, since
 * whoever looks into the record has to see what is wrong with it; -1 with @err. */
static int
retire(struct audit *a, int dir, uint64_t first, struct err *err)
{
    struct audit_head last;
    struct audit_entry e;
    char hex[AUDIT_HASH_TEXT + 1];
    cleanup_close int fd = -1;
    struct stat st;
    int r;

    store_name(first, a->old[a->n_old]);
    fd = openat(dir, a->old[a->n_old], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "audit.read", "look at %s/%s", a->dir, a->old[a->n_old]);
    r = store_tail(fd, (uint64_t)st.st_size, &last, err);
    if (r <= 0)
        return r;
    sha256_text(last.hash, hex);
    audit_capability(&e, NULL, "audit_retention", "the oldest file of the record is removed");
    audit_put_cstr(&e, "file", a->old[a->n_old]);
    audit_put_number(&e, "first", (int64_t)first);
    audit_put_number(&e, "last", (int64_t)last.seq);
    audit_put_cstr(&e, "hash", hex);
    if (store_note(a, &e, err) < 0)
        return -1;
    a->n_old++;
    return 1;
}

/* Nothing was written to that full file for longer than it is kept: an older one has older entries only. */
static bool
too_old(const struct audit *a, int dir, uint64_t first)
{
    const uint64_t wall = clock_wall_ms(), boot = clock_boot_ms();
    const struct steady host = steady_begin(wall, boot), *clock = a->options.clock != NULL ? a->options.clock : &host;
    char name[STORE_NAME_MAX];
    struct stat st;

    store_name(first, name);
    return a->options.keep_s > 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           steady_age_s(clock, boot, wall, st.st_mtim.tv_sec) > a->options.keep_s;
}

/* Those of the @n full files that are too many or too old, up to STORE_OLD_MAX. */
static int
retire_all(struct audit *a, int dir, const uint64_t *firsts, ssize_t n, struct err *err)
{
    int r = 1;

    for (ssize_t i = 0; r > 0 && i < n && a->n_old < STORE_OLD_MAX &&
         (n - i > (ssize_t)a->options.keep_files || too_old(a, dir, firsts[i])); i++)
        r = retire(a, dir, firsts[i], err);
    return r < 0 ? -1 : 0;
}

/* The file in use is empty: it continues the newest full one, if there is one. */
static int
begin_file(struct audit *a, struct err *err)
{
    static uint64_t firsts[STORE_FILES_MAX];
    cleanup_close int before = -1;
    int dir = store_dir(a, err), r;
    char name[STORE_NAME_MAX];
    struct stat st;
    ssize_t n = dir < 0 ? -1 : store_list(dir, firsts, STORE_FILES_MAX, err);

    a->head = (struct audit_head){ .seq = 0 };
    if (n <= 0)
        return (int)n;
    store_name(firsts[n - 1], name);
    before = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (before < 0)
        return err_sys(err, errno, "audit.open", "open %s/%s", a->dir, name);
    /* somebody may have died between renaming it and closing it for good, and somebody else may wait for its lock */
    if (store_lock(before, err) < 0)
        return -1;
    if (fchmod(before, 0400) < 0 || fstat(before, &st) < 0)
        return err_sys(err, errno, "audit.open", "close %s/%s", a->dir, name);
    r = store_tail(before, (uint64_t)st.st_size, &a->head, err);
    if (r == 0) {
        err_set(err, ERR_PROTOCOL, "audit.damaged", "the end of %s/%s is damaged", a->dir, name);
        err_hint(err, "%s", move_away);
    }
    if (r <= 0)
        return -1;
    return retire_all(a, dir, firsts, n, err);
}

/* The file in use is full: it gets its name and is closed for good; the next one is opened and locked. */
static int
change_files(struct audit *a, uint64_t *size, struct err *err)
{
    char name[STORE_NAME_MAX];
    int dir = store_dir(a, err);
    uint64_t first;

    if (dir < 0)
        return -1;
    if (!store_first(a->fd, &first)) {
        err_set(err, ERR_PROTOCOL, "audit.damaged", "the first entry of %s/" STORE_CURRENT " is damaged", a->dir);
        return err_hint(err, "%s", move_away);
    }
    store_name(first, name);
    if (fdatasync(a->fd) < 0 || kernel_renameat2(dir, STORE_CURRENT, dir, name, RENAME_NOREPLACE) < 0)
        return err_sys(err, errno, "audit.write", "begin a new file of the audit record");
    if (fchmod(a->fd, 0400) < 0 || fsync(dir) < 0)
        return err_sys(err, errno, "audit.write", "close %s/%s", a->dir, name);
    store_unlock(a->fd);
    close_fd(&a->fd);
    return lock_current(a, size, err);
}

/* a->head becomes what the file, locked, ends with. */
static int
find_head(struct audit *a, uint64_t *size, struct err *err)
{
    int r;

    if (*size > 0 && *size == a->size)
        return 0;               /* nobody else has written since */
    if (*size == 0)
        return begin_file(a, err) < 0 ? -1 : store_look_back(a, 0, err);
    r = store_tail(a->fd, *size, &a->head, err);
    if (r < 0 || (r == 0 && store_repair(a, size, err) < 0))
        return -1;
    return store_look_back(a, *size, err);
}

/* --- a batch ------------------------------------------------------------------------------------------------------ */

static int
seal_queue(struct audit *a, struct err *err)
{
    for (size_t at = 0; at < a->queue.n;) {
        const uint8_t *p = a->queue.p + at;
        size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (audit_seal(&a->head, (struct str){ (const char *)p + 4, n }, &a->lines) < 0)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        at += 4 + n;
    }
    return 0;
}

static int
write_lines(struct audit *a, uint64_t size, struct err *err)
{
    int saved;

    if (io_write_full(a->fd, a->lines.p, a->lines.n) == 0)
        return 0;
    saved = errno;
    /* half a batch is none; where even this fails, the next writer sets it aside */
    (void)!ftruncate(a->fd, (off_t)size);
    err_sys(err, saved, "audit.write", "write to the audit record in %s", a->dir);
    return saved == ENOSPC || saved == EDQUOT
               ? err_hint(err, "make room there; what is recorded is never removed to make room for more") : -1;
}

static int
write_batch(struct audit *a, struct err *err)
{
    uint64_t size;

    buf_reset(&a->lines);
    a->n_old = 0;
    a->missed = false;
    if (lock_current(a, &size, err) < 0 || find_head(a, &size, err) < 0)
        return -1;
    /* not while something is to be said about the file itself */
    if (size >= a->options.file_bytes && a->lines.n == 0 &&
        (change_files(a, &size, err) < 0 || find_head(a, &size, err) < 0))
        return -1;
    if (seal_queue(a, err) < 0 || write_lines(a, size, err) < 0)
        return -1;
    a->size = size + a->lines.n;
    a->last = a->head;
    a->rebooted = false;
    return 0;
}

static void
remove_old(struct audit *a)
{
    for (size_t i = 0; i < a->n_old; i++)
        (void)unlinkat(a->dir_fd, a->old[i], 0);        /* tried again with the next file */
    a->n_old = 0;
}

static int
can_write(const struct audit *a, struct err *err)
{
    if (a->pid != getpid())
        return err_set(err, ERR_PROTOCOL, "audit.forked", "the audit record is open in the parent process");
    if (a->failed)
        return err_set(err, ERR_SYSTEM, "audit.sync", "the audit record could not be brought to the disk before");
    return 0;
}

static int
not_written(struct audit *a)
{
    a->size = 0;
    if (a->fd >= 0)
        store_unlock(a->fd);
    return -1;
}

/* The entries about what is too old. An empty file is begun, which looks for itself. */
static int
write_notes(struct audit *a, struct err *err)
{
    static uint64_t firsts[STORE_FILES_MAX];
    uint64_t size;
    ssize_t n;
    int dir;

    buf_reset(&a->lines);
    a->n_old = 0;
    a->missed = false;
    if (lock_current(a, &size, err) < 0 || find_head(a, &size, err) < 0 || (dir = store_dir(a, err)) < 0)
        return -1;
    if (size > 0 && ((n = store_list(dir, firsts, STORE_FILES_MAX, err)) < 0 ||
                     retire_all(a, dir, firsts, n, err) < 0))
        return -1;
    if (a->lines.n > 0 && write_lines(a, size, err) < 0)
        return -1;
    a->size = size + a->lines.n;
    a->last = a->head;
    a->rebooted = false;
    return 0;
}

int
audit_prune(struct audit *a, struct err *err)
{
    if (can_write(a, err) < 0)
        return -1;
    if (write_notes(a, err) < 0)
        return not_written(a);
    if (a->lines.n > 0 && (fdatasync(a->fd) < 0 || fsync(a->dir_fd) < 0)) {
        err_sys(err, errno, "audit.sync", "bring the audit record in %s to the disk", a->dir);
        a->failed = true;
        return not_written(a);
    }
    remove_old(a);              /* while nobody else can look for what is too old */
    store_unlock(a->fd);
    return 0;
}

int
audit_commit(struct audit *a, struct err *err)
{
    bool began;

    if (a->n_queued == 0)
        return 0;
    if (can_write(a, err) < 0)
        return -1;
    if (write_batch(a, err) < 0)
        return not_written(a);
    began = a->size == a->lines.n;
    /* others may write while we wait for the disk, and the file system brings us all there at once */
    store_unlock(a->fd);
    if (a->options.durable && (fdatasync(a->fd) < 0 || (began && (store_dir(a, err) < 0 || fsync(a->dir_fd) < 0)))) {
        a->failed = true;
        return err_sys(err, errno, "audit.sync", "bring the audit record in %s to the disk", a->dir);
    }
    remove_old(a);
    buf_reset(&a->queue);
    a->n_queued = 0;
    return 0;
}
