/* vault/store_disk.c: the store's folder and files: whose they are, who may read them, how they are replaced */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "vault/store_priv.h"

/* --- the folder --------------------------------------------------------------------------------------------------- */

static int
where(char out[PATH_MAX], struct err *err)
{
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n;

    if (xdg != NULL && xdg[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/cloche", xdg);
    else if (geteuid() == 0)
        n = snprintf(out, PATH_MAX, "/var/lib/cloche");
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/.local/share/cloche", home);
    else
        return err_set(err, ERR_USAGE, "vault.store.where",
                       "neither XDG_DATA_HOME nor HOME says where secrets are kept");
    return n < PATH_MAX ? 0 : err_set(err, ERR_USAGE, "vault.store.where", "the store's path is too long");
}

/* The folder and what is missing above it. */
static int
make_folders(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES) {
            *p = '/';
            return -1;
        }
        *p = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* Nobody else owns it, nobody else can read or write it. */
static int
check_owner(struct store *s, const char *name, const struct stat *st, mode_t closed, struct err *err)
{
    const char *slash = name[0] != '\0' ? "/" : "";

    if (st->st_uid != geteuid()) {
        err_set(err, ERR_POLICY, "vault.store.owner", "%s%s%s belongs to uid %u, not to you (%u)", s->path, slash, name,
                (unsigned)st->st_uid, (unsigned)geteuid());
        return err_hint(err, "secrets belong to the user who runs cloche: unset XDG_DATA_HOME, or chown it");
    }
    if ((st->st_mode & closed) != 0) {
        err_set(err, ERR_POLICY, "vault.store.mode", "%s%s%s is open to others (mode %04o)", s->path, slash, name,
                (unsigned)(st->st_mode & 07777));
        return err_hint(err, "chmod %s %s%s%s, and take its secrets for known", S_ISDIR(st->st_mode) ? "700" : "600",
                        s->path, slash, name);
    }
    return 0;
}

int
store_enter(struct store *s, struct err *err)
{
    struct stat st;

    if (where(s->path, err) < 0)
        return -1;
    if (make_folders(s->path) < 0)
        return err_sys(err, errno, "vault.store.where", "%s", s->path);
    s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0 || fstat(s->dir, &st) < 0)
        return err_sys(err, errno, "vault.store.where", "%s", s->path);
    return check_owner(s, "", &st, 077, err);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* An fd, -1 with @err, or -2 when there is no such file. */
static int
open_own(struct store *s, const char *name, int flags, mode_t closed, struct err *err)
{
    cleanup_close int fd = openat(s->dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return -2;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "vault.store.file", "%s/%s", s->path, name);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(err, ERR_POLICY, "vault.store.file", "%s/%s is not a file of its own", s->path, name);
    if (check_owner(s, name, &st, closed, err) < 0)
        return -1;
    return take_fd(&fd);
}

int
store_take_lock(struct store *s, bool write, struct err *err)
{
    int r;

    s->lock = open_own(s, STORE_LOCK, O_RDWR | O_CREAT, 077, err);
    if (s->lock < 0)
        return -1;
    s->writable = write;
    do
        r = flock(s->lock, write ? LOCK_EX : LOCK_SH);
    while (r < 0 && errno == EINTR);
    return r < 0 ? err_sys(err, errno, "vault.store.lock", "%s/" STORE_LOCK, s->path) : 0;
}

int
store_exists(struct store *s, const char *name, struct err *err)
{
    cleanup_close int fd = open_own(s, name, O_RDONLY, 077, err);

    return fd >= 0 ? 1 : fd == -2 ? 0 : -1;
}

int
store_read_file(struct store *s, const char *name, struct buf *out, struct err *err)
{
    cleanup_close int fd = open_own(s, name, O_RDONLY, 077, err);

    if (fd < 0)
        return fd == -2 ? 0 : -1;
    return io_read_all(fd, out) < 0 ? err_sys(err, errno, "vault.store.file", "%s/%s", s->path, name) : 1;
}

int
store_read_key(struct store *s, struct err *err)
{
    cleanup_close int fd = open_own(s, STORE_KEY, O_RDONLY, 077, err);
    struct stat st;

    if (fd < 0)
        return fd == -2 ? 0 : -1;
    if (fstat(fd, &st) < 0 || st.st_size != SEAL_KEY) {
        err_set(err, ERR_POLICY, "vault.key.damaged", "%s/" STORE_KEY " is not a key of %d bytes", s->path, SEAL_KEY);
        return err_hint(err, "restore it from a backup; it is left as it is");
    }
    /* straight into locked memory */
    if (secret_alloc(&s->key, SEAL_KEY, err) < 0)
        return -1;
    return io_read_full(fd, s->key.p, SEAL_KEY) < 0
               ? err_sys(err, errno, "vault.key.damaged", "%s/" STORE_KEY, s->path) : 1;
}

/* @p into NAME.new, synced, renamed over NAME. The caller holds the lock, so what is called NAME.new is a left-over. */
static int
replace(struct store *s, const char *name, mode_t mode, const void *p, size_t n, struct err *err)
{
    char beside[64];
    cleanup_close int fd = -1;

    snprintf(beside, sizeof(beside), "%s.new", name);
    if (unlinkat(s->dir, beside, 0) < 0 && errno != ENOENT)
        return err_sys(err, errno, "vault.store.write", "%s/%s", s->path, beside);
    fd = openat(s->dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "vault.store.write", "%s/%s", s->path, beside);
    if (io_write_full(fd, p, n) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
        renameat(s->dir, beside, s->dir, name) < 0) {
        int saved = errno;
        unlinkat(s->dir, beside, 0);
        err_sys(err, saved, "vault.store.write", "%s/%s", s->path, name);
        return err_hint(err, "what was there is unchanged");
    }
    return fsync(s->dir) < 0 ? err_sys(err, errno, "vault.store.write", "%s", s->path) : 0;
}

int
store_write_file(struct store *s, const char *name, mode_t mode, const struct buf *bytes, struct err *err)
{
    if (!s->writable)
        return err_set(err, ERR_SYSTEM, "vault.store.write", "%s is open for reading only", s->path);
    return replace(s, name, mode, bytes->p, bytes->n, err);
}

int
store_make_key(struct store *s, struct err *err)
{
    if (secret_alloc(&s->key, SEAL_KEY, err) < 0 || seal_random(s->key.p, SEAL_KEY, err) < 0)
        return -1;
    return replace(s, STORE_KEY, 0600, s->key.p, SEAL_KEY, err);
}

/* One line appended in one write: whoever watches never sees half of one. */
int
store_revoke(struct store *s, const char *id, struct err *err)
{
    cleanup_close int fd = open_own(s, STORE_REVOKED, O_WRONLY | O_CREAT | O_APPEND, 077, err);
    char line[40];
    struct stat st;
    int n = snprintf(line, sizeof(line), "%s\n", id);

    if (fd < 0)
        return -1;
    /* sandboxes that run have read it: a list that has grown too long begins anew */
    if (fstat(fd, &st) < 0 || ((size_t)st.st_size > STORE_REVOKED_MAX - sizeof(line) && ftruncate(fd, 0) < 0) ||
        io_write_full(fd, line, (size_t)n) < 0 || fsync(fd) < 0)
        return err_sys(err, errno, "vault.store.write", "%s/" STORE_REVOKED, s->path);
    return 0;
}

void
store_close(struct store *s)
{
    secret_free(&s->key);
    buf_free(&s->bytes);
    close_fd(&s->lock);
    close_fd(&s->dir);
}
