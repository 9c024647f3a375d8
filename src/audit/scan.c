/* audit/scan.c: see scan.h */
#include "audit/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/store_priv.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define CHUNK (1024 * 1024)

void
scan_free(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        close_fd(&s->files[i].fd);
        free(s->files[i].path);
    }
    free(s->files);
    *s = (struct scan)SCAN_INIT;
}

static struct scan_file *
scan_add(struct scan *s, const char *dir, const char *name, struct err *err)
{
    struct scan_file *grown;
    char *path = NULL;

    if (s->n == SCAN_FILES_MAX) {
        err_set(err, ERR_LIMIT, "audit.files", "more than %d files", SCAN_FILES_MAX);
        return NULL;
    }
    grown = reallocarray(s->files, s->n + 1, sizeof(*grown));
    if (grown != NULL)
        s->files = grown;
    if (grown == NULL || asprintf(&path, "%s%s%s", dir, dir[0] != '\0' ? "/" : "", name) < 0) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    s->files[s->n] = (struct scan_file){ .path = path, .fd = -1 };
    return &s->files[s->n++];
}

static int
open_file(struct scan_file *f, struct err *err)
{
    struct stat st;

    f->fd = open(f->path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) < 0)
        return err_sys(err, errno, "audit.read", "%s", f->path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "audit.read", "%s is not a file", f->path);
    f->size = (uint64_t)st.st_size;
    return 0;
}

int
scan_add_file(struct scan *s, const char *path, struct err *err)
{
    struct scan_file *f = scan_add(s, "", path, err);

    return f != NULL ? open_file(f, err) : -1;
}

static int
add_full_files(struct scan *s, int dir_fd, const char *dir, struct err *err)
{
    static uint64_t firsts[STORE_FILES_MAX];
    ssize_t n = store_list(dir_fd, firsts, STORE_FILES_MAX, err);

    for (ssize_t i = 0; i < n; i++) {
        char name[STORE_NAME_MAX];
        struct scan_file *f;
        store_name(firsts[i], name);
        f = scan_add(s, dir, name, err);
        if (f == NULL || open_file(f, err) < 0)
            return -1;
        f->named = firsts[i];
    }
    return n < 0 ? -1 : 0;
}

static unsigned
count_aside(int dir_fd)
{
    cleanup_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    unsigned n = 0;

    if (dir == NULL)
        return 0;
    (void)take_fd(&fd);
    while ((entry = readdir(dir)) != NULL)
        n += strncmp(entry->d_name, "audit-damaged-", 14) == 0;
    return n;
}

/* The file in use, locked while the others are looked up; 1 when it was filled and renamed meanwhile. */
static int
try_dir(const char *dir, int dir_fd, struct scan *s, struct err *err)
{
    cleanup_close int fd = openat(dir_fd, STORE_CURRENT, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    struct scan_file *f;

    if (fd < 0 && errno != ENOENT)
        return err_sys(err, errno, "audit.read", "%s/" STORE_CURRENT, dir);
    if (fd >= 0) {
        if (store_lock(fd, err) < 0)
            return -1;
        if (fstat(fd, &st) < 0)
            return err_sys(err, errno, "audit.read", "%s/" STORE_CURRENT, dir);
        if (!S_ISREG(st.st_mode))
            return err_set(err, ERR_DENIED, "audit.folder", "%s/" STORE_CURRENT " is no file", dir);
        if (!store_is_current(dir_fd, &st))
            return 1;
    }
    if (add_full_files(s, dir_fd, dir, err) < 0)
        return -1;
    if (fd < 0)
        return 0;
    store_unlock(fd);
    f = scan_add(s, dir, STORE_CURRENT, err);
    if (f == NULL)
        return -1;
    f->size = (uint64_t)st.st_size;
    f->fd = take_fd(&fd);
    return 0;
}

int
scan_open_dir(const char *dir, struct scan *out, struct err *err)
{
    cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const uint64_t begun = clock_ms();
    int r;

    if (dir_fd < 0 && errno == ENOENT) {
        err_set(err, ERR_NOT_FOUND, "audit.none", "there is no audit record in %s", dir);
        return err_hint(err, "runs write one; `--dir DIR` names another folder");
    }
    if (dir_fd < 0)
        return err_sys(err, errno, "audit.read", "%s", dir);
    do {        /* files may be filled and renamed under our eyes */
        scan_free(out);
        r = try_dir(dir, dir_fd, out, err);
    } while (r > 0 && clock_since(clock_ms(), begun) < STORE_PATIENCE_MS);
    if (r > 0)
        r = err_set(err, ERR_SYSTEM, "audit.busy", "the record's files change faster than they can be opened");
    out->aside = r == 0 ? count_aside(dir_fd) : 0;
    return r;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

struct reader {
    scan_line_fn *fn;
    void *ctx;
    struct scan_at at;
    bool skip;          /* the rest of a line that is too long, and was told */
};

static int
tell(struct reader *r, struct str text, bool whole)
{
    struct audit_line line;
    bool parsed = whole && audit_parse(text, &line);
    int result = 0;

    if (!r->skip) {
        r->at.number++;
        r->at.cut = !whole && text.n < AUDIT_LINE_MAX;
        result = r->fn(r->ctx, &r->at, text, parsed ? &line : NULL);
    }
    r->skip = !whole && text.n >= AUDIT_LINE_MAX;
    r->at.offset += text.n + (whole ? 1 : 0);
    return result;
}

/* The lines among the @*n bytes of @room, of which the rest is moved to its beginning. */
static int
take_lines(struct reader *r, char *room, size_t *n, bool last)
{
    const char *newline;
    size_t at = 0;
    int result = 0;

    while (result == 0 && at < *n && (newline = memchr(room + at, '\n', *n - at)) != NULL) {
        struct str text = { room + at, (size_t)(newline - room) - at };
        result = tell(r, text, true);
        at += text.n + 1;
    }
    if (result == 0 && at < *n && (last || *n - at >= AUDIT_LINE_MAX)) {
        struct str text = { room + at, *n - at };
        result = tell(r, text, false);
        at = *n;
    }
    memmove(room, room + at, *n - at);
    *n -= at;
    return result;
}

static int
read_file(const struct scan_file *file, char *room, scan_line_fn *fn, void *ctx, struct err *err)
{
    struct reader r = { .fn = fn, .ctx = ctx, .at = { .file = file, .offset = file->from } };
    uint64_t at = file->from;
    size_t n = 0;
    int result = 0;

    while (result == 0 && at < file->size) {
        size_t want = file->size - at < CHUNK ? (size_t)(file->size - at) : CHUNK;
        ssize_t got = pread(file->fd, room + n, want, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(err, errno, "audit.read", "%s", file->path);
        at = got == 0 ? file->size : at + (uint64_t)got;    /* shorter than it was: what is left is cut */
        n += (size_t)got;
        result = take_lines(&r, room, &n, at >= file->size);
    }
    return result;
}

int
scan_lines(struct scan *s, size_t first, scan_line_fn *fn, void *ctx, struct err *err)
{
    cleanup_free char *room = malloc(CHUNK + AUDIT_LINE_MAX);
    int result = 0;

    if (room == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = first; result == 0 && i < s->n; i++)
        result = read_file(&s->files[i], room, fn, ctx, err);
    return result;
}
