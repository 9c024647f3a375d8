/* guest/files.c: file requests (see guest.h)
 *
 * Each request is a job. What is quick is done at once; reading, listing and removing a tree go step by step
 * between the loop's rounds, each step bounded, so that a large tree never delays a signal. What goes wrong ends
 * the request, never the guest. The name guard is asked before a name is made, replaced or removed: the guest's
 * own calls do not pass its filter.
 */
#include "guest/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/changes.h"
#include "guest/guard.h"
#include "guest/guard_link.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

static struct file_job *
job_of(struct guest *g, uint16_t request)
{
    for (size_t i = 0; g->files != NULL && request != 0 && i < MSG_FILES_MAX; i++)
        if (g->files->jobs[i].request == request)
            return &g->files->jobs[i];
    return NULL;
}

static void
job_end(struct guest *g, struct file_job *j)
{
    if (j->stepping)
        g->files->n_stepping--;
    close_fd(&j->fd);
    if (j->tree != NULL)
        remove_tree_free(j->tree);
    free(j->names);
    replace_free(j->replacement);
    *j = (struct file_job){ .fd = -1 };
}

int
files_fail(struct guest *g, uint16_t request, int error)
{
    struct msg_file_error m = { .code = FILE_CODE_ERRNO };

    switch (error) {
    case WALK_ESCAPES: m.code = FILE_CODE_ESCAPES; break;
    case FILES_NOT_REGULAR: m.code = FILE_CODE_NOT_REGULAR; break;
    case FILES_NO_ROOT: m.code = FILE_CODE_NO_ROOT; break;
    case FILES_TOO_DEEP: m.code = FILE_CODE_TOO_DEEP; break;
    case FILES_CANCELLED: m.code = FILE_CODE_CANCELLED; break;
    case FILES_WATCHES: m.code = FILE_CODE_WATCHES; break;
    case FILES_WATCH_DIRS: m.code = FILE_CODE_WATCH_DIRS; break;
    case FILES_WATCH_SYSTEM: m.code = FILE_CODE_WATCH_SYSTEM; break;
    case FILES_WATCH_GONE: m.code = FILE_CODE_WATCH_GONE; break;
    default: m.sys_errno = (uint32_t)(error > 0 ? error : EIO);
    }
    return msg_put_file_error(&g->link.out, request, &m);
}

static int
files_ok(struct guest *g, struct file_job *j, uint64_t count)
{
    uint16_t request = j->request;

    job_end(g, j);
    return msg_put_u64(&g->link.out, MSG_FILE_OK, request, count);
}

int
files_walk(struct guest *g, const char *path, bool follow, struct walk_place *out)
{
    const char *rel;

    out->dir = -1;
    if (!msg_path_shape(g->root_path, path, &rel))
        return WALK_ESCAPES;
    return walk_to(g->root, g->root_path, rel, follow, out);
}

/* A link that appeared since the walk: whoever put it there wanted us elsewhere. */
int
files_open_error(int error)
{
    if (error == ELOOP)
        return WALK_ESCAPES;
    return error == ENXIO ? FILES_NOT_REGULAR : error;
}

static int
open_regular(const struct walk_place *place, int flags, mode_t mode, int *fd)
{
    struct stat st;

    *fd = openat(place->dir, place->name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (*fd < 0)
        return files_open_error(errno);
    if (fstat(*fd, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return S_ISREG(st.st_mode) ? 0 : FILES_NOT_REGULAR;
}

/* Make the missing directories of the path's first @n bytes. */
static int
make_parents(struct guest *g, const char *path, size_t n, mode_t mode)
{
    char part[MSG_PATH_MAX + 1];
    const char *rel;
    size_t at;

    if (!msg_path_shape(g->root_path, path, &rel))
        return WALK_ESCAPES;
    if (strcmp(rel, ".") == 0)
        return 0;               /* the root itself, and then @rel does not point into @path */
    at = (size_t)(rel - path);
    while (at < n) {
        struct walk_place place;
        struct stat st;
        int rc;

        at += strcspn(path + at, "/");
        if (at > n)
            at = n;
        memcpy(part, path, at);
        part[at] = '\0';
        rc = files_walk(g, part, true, &place);
        if (rc == 0 && fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            rc = guard_link_check(g, place.dir, place.name, "mkdir");
            if (rc == 0 && mkdirat(place.dir, place.name, mode) < 0 && errno != EEXIST)
                rc = errno;
            if (rc == 0)
                rc = guard_link_made(g, place.dir, place.name, true);
        }
        close_fd(&place.dir);
        if (rc != 0)
            return rc;
        at += strspn(path + at, "/");
    }
    return 0;
}

static size_t
parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

static int
start_read(struct guest *g, struct file_job *j, const struct msg_file *m)
{
    struct walk_place place;
    int rc = files_walk(g, m->path, true, &place);

    if (rc == 0)
        rc = open_regular(&place, O_RDONLY, 0, &j->fd);
    close_fd(&place.dir);
    j->offset = (off_t)m->offset;
    j->left = m->length == 0 ? UINT64_MAX : m->length;
    return rc;
}

/* Into the file that is there, or one that is there from now on. */
static int
write_in_place(struct guest *g, struct file_job *j, const struct msg_file *m, const struct walk_place *place)
{
    int rc, flags = O_WRONLY;

    if ((m->flags & MSG_FILE_CREATE) != 0)
        flags |= O_CREAT | ((m->flags & MSG_FILE_EXCLUSIVE) != 0 ? O_EXCL : 0);
    if ((m->flags & MSG_FILE_APPEND) != 0)
        flags |= O_APPEND;
    rc = open_regular(place, flags, m->mode == 0 ? 0666 : (mode_t)m->mode & 0777, &j->fd);
    if (rc == 0)
        rc = guard_link_opened(g, place->dir, place->name, j->fd);
    /* also of one that was there, and whatever the umask is */
    if (rc == 0 && m->mode != 0 && fchmod(j->fd, (mode_t)m->mode & 0777) < 0)
        rc = errno;
    /* Not O_TRUNC: nothing but a regular file may be touched. */
    if (rc == 0 && (m->flags & MSG_FILE_TRUNCATE) != 0 && ftruncate(j->fd, 0) < 0)
        rc = errno;
    return rc;
}

static int
start_write(struct guest *g, struct file_job *j, const struct msg_file *m)
{
    bool fresh = (m->flags & MSG_FILE_CREATE) != 0 && (m->flags & MSG_FILE_EXCLUSIVE) != 0;
    struct walk_place place;
    int rc = 0;

    if ((m->flags & MSG_FILE_PARENTS) != 0)
        rc = make_parents(g, m->path, parent_length(m->path), 0777);
    if (rc != 0)
        return rc;
    /* As open(2): a name that must be new is not looked for behind a link. */
    rc = files_walk(g, m->path, !fresh, &place);
    if (rc == 0 && strcmp(place.name, ".") == 0)
        rc = EISDIR;
    if (rc == 0)
        rc = guard_link_check(g, place.dir, place.name, "write");
    if (rc == 0)
        rc = replace_is_meant(m) ? replace_begin(&place, m, &j->replacement, &j->fd) : REPLACE_IN_PLACE;
    if (rc == REPLACE_IN_PLACE) {
        rc = guard_link_check_write(g, place.dir, place.name);
        if (rc == 0)
            rc = guard_link_unshare(g, place.dir, place.name, (m->flags & MSG_FILE_TRUNCATE) != 0 ? 0 : UINT64_MAX);
    }
    if (rc == 0 && j->fd < 0) {
        rc = write_in_place(g, j, m, &place);
        if (rc == 0)
            rc = guard_link_made(g, place.dir, place.name, false);
    }
    close_fd(&place.dir);
    return rc;
}

static int
start_list(struct guest *g, struct file_job *j, const struct msg_file *m)
{
    struct walk_place place;
    int rc = files_walk(g, m->path, true, &place);

    if (rc == 0) {
        j->fd = openat(place.dir, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rc = j->fd < 0 ? files_open_error(errno) : 0;
    }
    close_fd(&place.dir);
    if (rc != 0)
        return rc;
    j->names = calloc(1, sizeof(*j->names));
    if (j->names == NULL)
        return ENOMEM;
    j->names->fd = j->fd;
    return 0;
}

static void
info_of(const struct stat *st, const char *name, struct msg_file_info *out)
{
    *out = (struct msg_file_info){
        .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid,
        .nlink = (uint32_t)st->st_nlink, .size = (uint64_t)st->st_size,
        .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
        .name = name,
    };
}

static int
do_stat(struct guest *g, uint16_t request, const struct msg_file *m)
{
    struct walk_place place;
    struct msg_file_info info;
    struct stat st;
    int rc = files_walk(g, m->path, (m->flags & MSG_FILE_NOFOLLOW) == 0, &place);

    if (rc == 0 && fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = errno;
    close_fd(&place.dir);
    if (rc != 0)
        return files_fail(g, request, rc);
    info_of(&st, "", &info);
    return msg_put_file_info(&g->link.out, request, &info);
}

static int
do_mkdir(struct guest *g, const struct msg_file *m)
{
    mode_t mode = m->mode == 0 ? 0777 : (mode_t)m->mode & 0777;
    struct walk_place place;
    struct stat st;
    int rc;

    if ((m->flags & MSG_FILE_PARENTS) != 0) {
        rc = make_parents(g, m->path, strlen(m->path), mode);
        if (rc != 0)
            return rc;
        rc = files_walk(g, m->path, true, &place);
        if (rc == 0 && fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            rc = errno;
        close_fd(&place.dir);
        return rc != 0 ? rc : S_ISDIR(st.st_mode) ? 0 : EEXIST;
    }
    rc = files_walk(g, m->path, false, &place);
    if (rc == 0 && strcmp(place.name, ".") == 0)
        rc = EEXIST;
    if (rc == 0)
        rc = guard_link_check(g, place.dir, place.name, "mkdir");
    if (rc == 0 && mkdirat(place.dir, place.name, mode) < 0)
        rc = errno;
    if (rc == 0)
        rc = guard_link_made(g, place.dir, place.name, true);
    close_fd(&place.dir);
    return rc;
}

static int
do_rename(struct guest *g, const struct msg_file *m)
{
    unsigned flags = (m->flags & MSG_FILE_EXCLUSIVE) != 0 ? RENAME_NOREPLACE : 0;
    struct walk_place from, to = { .dir = -1 };
    int rc = files_walk(g, m->path, false, &from);

    if (rc == 0)
        rc = files_walk(g, m->to, false, &to);
    if (rc == 0 && (strcmp(from.name, ".") == 0 || strcmp(to.name, ".") == 0))
        rc = EBUSY;
    if (rc == 0)
        rc = guard_link_check(g, from.dir, from.name, "rename");
    if (rc == 0)
        rc = guard_link_check(g, to.dir, to.name, "rename");
    if (rc == 0)
        rc = guard_link_rename(g, from.dir, from.name, to.dir, to.name, flags == 0);
    if (rc == 0 && syscall(SYS_renameat2, from.dir, from.name, to.dir, to.name, flags) < 0)
        rc = errno;
    else if (rc == 0 && (rc = guard_link_renamed(g, from.dir, from.name, to.dir, to.name)) != 0)
        (void)syscall(SYS_renameat2, to.dir, to.name, from.dir, from.name, RENAME_NOREPLACE);
    if (rc == GUARD_DONE)
        rc = 0;
    close_fd(&from.dir);
    close_fd(&to.dir);
    return rc;
}

/* A name that is gone at once, or a tree that takes steps (then @j->tree is set). */
static int
start_remove(struct guest *g, struct file_job *j, const struct msg_file *m)
{
    struct walk_place place;
    int rc = files_walk(g, m->path, false, &place);

    if (rc == 0 && strcmp(place.name, ".") == 0)
        rc = EBUSY;
    if (rc == 0)
        rc = remove_one(g, place.dir, place.name, &j->count);
    if (rc == ENOTEMPTY && (m->flags & MSG_FILE_RECURSIVE) != 0) {
        rc = remove_tree_begin(place.dir, place.name, &j->tree);
        if (rc == 0)
            place.dir = -1;
    }
    close_fd(&place.dir);
    return rc;
}

/* 0: done; 1: goes on in steps or chunks; else what to answer. */
static int
start(struct guest *g, struct file_job *j, uint8_t type, const struct msg_file *m)
{
    int rc;

    if (g->root < 0)
        return FILES_NO_ROOT;
    switch (type) {
    case MSG_FILE_READ: rc = start_read(g, j, m); break;
    case MSG_FILE_WRITE: rc = start_write(g, j, m); break;
    case MSG_FILE_LIST: rc = start_list(g, j, m); break;
    case MSG_FILE_REMOVE:
        rc = start_remove(g, j, m);
        return rc != 0 ? rc : j->tree != NULL;
    case MSG_FILE_MKDIR: return do_mkdir(g, m);
    default: return do_rename(g, m);
    }
    return rc != 0 ? rc : 1;
}

/* The request is over but for the chunks of a write that are already on their way. */
static int
fail_job(struct guest *g, struct file_job *j, int error)
{
    uint16_t request = j->request;
    bool draining = j->type == MSG_FILE_WRITE;

    job_end(g, j);
    if (draining)
        *j = (struct file_job){ .request = request, .type = MSG_FILE_WRITE, .fd = -1 };
    return files_fail(g, request, error);
}

static struct file_job *
new_job(struct guest *g)
{
    if (g->files == NULL) {
        g->files = calloc(1, sizeof(*g->files));
        for (size_t i = 0; g->files != NULL && i < MSG_FILES_MAX; i++)
            g->files->jobs[i].fd = -1;
    }
    for (size_t i = 0; g->files != NULL && i < MSG_FILES_MAX; i++)
        if (g->files->jobs[i].request == 0)
            return &g->files->jobs[i];
    return NULL;
}

int
files_on_request(struct guest *g, const struct frame *f)
{
    struct msg_file m;
    struct file_job *j;
    int rc;

    if (f->channel == 0 || job_of(g, f->channel) != NULL || changes_of(g, f->channel) != NULL || !msg_get_file(f, &m))
        return -1;
    if (f->type == MSG_FILE_WATCH)
        return changes_begin(g, f->channel, &m);
    if (f->type == MSG_FILE_STAT)
        return g->root < 0 ? files_fail(g, f->channel, FILES_NO_ROOT) : do_stat(g, f->channel, &m);
    j = new_job(g);
    if (j == NULL)
        return f->type == MSG_FILE_WRITE ? -1 : files_fail(g, f->channel, EAGAIN);
    j->request = f->channel;
    j->type = f->type;
    rc = start(g, j, f->type, &m);
    if (rc == 0)
        return files_ok(g, j, j->count);
    if (rc != 1)
        return fail_job(g, j, rc);
    j->stepping = f->type != MSG_FILE_WRITE;
    if (j->stepping)
        g->files->n_stepping++;
    return 0;
}

int
files_on_chunk(struct guest *g, const struct frame *f)
{
    struct file_job *j = job_of(g, f->channel);
    size_t at = 0;

    if (j == NULL || j->type != MSG_FILE_WRITE)
        return -1;
    while (j->fd >= 0 && at < f->length) {
        ssize_t n = write(j->fd, f->payload + at, f->length - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_job(g, j, n < 0 ? errno : EIO);
        at += (size_t)n;
    }
    j->count += at;
    return 0;
}

int
files_on_end(struct guest *g, const struct frame *f)
{
    struct file_job *j = job_of(g, f->channel);
    int rc;

    if (j == NULL || j->type != MSG_FILE_WRITE)
        return -1;
    if (j->fd >= 0) {
        rc = j->replacement != NULL ? replace_finish(g, j->replacement, j->fd) : 0;
        if (rc == 0)
            return files_ok(g, j, j->count);
        job_end(g, j);
        return files_fail(g, f->channel, rc);
    }
    job_end(g, j);              /* it failed and was answered: this was its last message */
    return 0;
}

int
files_on_cancel(struct guest *g, const struct frame *f)
{
    struct file_job *j = job_of(g, f->channel);
    bool answered;

    if (j == NULL && changes_of(g, f->channel) != NULL)
        return changes_end(g, changes_of(g, f->channel), FILES_CANCELLED);
    /* Over already, and its answer is on the way. */
    if (j == NULL)
        return 0;
    answered = j->type == MSG_FILE_WRITE && j->fd < 0;
    job_end(g, j);
    return answered ? 0 : files_fail(g, f->channel, FILES_CANCELLED);
}

static int
step_read(struct guest *g, struct file_job *j)
{
    struct buf *out = &g->link.out;
    size_t max = j->left < MSG_DATA_MAX ? (size_t)j->left : MSG_DATA_MAX;
    uint8_t header[FRAME_HEADER];
    ssize_t n;

    if (buf_reserve(out, FRAME_HEADER + MSG_DATA_MAX) < 0)
        return -1;
    do
        n = pread(j->fd, out->p + out->n + FRAME_HEADER, max, j->offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_job(g, j, errno);
    if (n == 0)
        return files_ok(g, j, j->count);
    frame_header_encode(header, MSG_FILE_DATA, 0, j->request, (uint32_t)n);
    (void)buf_append(out, header, sizeof(header));
    out->n += (size_t)n;
    j->offset += n;
    j->left -= (uint64_t)n;
    j->count += (uint64_t)n;
    return j->left == 0 ? files_ok(g, j, j->count) : 0;
}

/* One batch of names is one frame: 4 KiB of directory records never make more than MSG_DATA_MAX of entries. */
static int
step_list(struct guest *g, struct file_job *j)
{
    struct buf *out = &g->link.out;
    size_t at = frame_begin(out, MSG_FILE_ENTRIES, 0, j->request);
    size_t before = out->n;
    const char *name;

    if (at == SIZE_MAX)
        return -1;
    do {
        struct msg_file_info info;
        struct stat st;

        name = dirents_next(j->names);
        /* Gone since the directory was read: not there. */
        if (name == NULL || fstatat(j->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        info_of(&st, name, &info);
        if (msg_put_entry(out, &info) < 0)
            return -1;
        j->count++;
    } while (name != NULL && !dirents_drained(j->names));
    if (out->n == before)
        out->n = at;
    else if (frame_end(out, at) < 0)
        return -1;
    if (name != NULL)
        return 0;
    return j->names->failed != 0 ? fail_job(g, j, j->names->failed) : files_ok(g, j, j->count);
}

static int
step_remove(struct guest *g, struct file_job *j)
{
    int rc = remove_tree_step(g, j->tree, &j->count);

    if (rc == REMOVE_MORE)
        return 0;
    return rc == 0 ? files_ok(g, j, j->count) : fail_job(g, j, rc);
}

bool
files_busy(const struct guest *g)
{
    return g->files != NULL && g->files->n_stepping > 0;
}

int
files_step(struct guest *g)
{
    for (size_t i = 0; i < MSG_FILES_MAX && files_busy(g) && !link_full(&g->link); i++) {
        struct file_job *j = &g->files->jobs[i];
        int rc = 0;

        if (j->request == 0 || !j->stepping)
            continue;
        switch (j->type) {
        case MSG_FILE_READ: rc = step_read(g, j); break;
        case MSG_FILE_LIST: rc = step_list(g, j); break;
        default: rc = step_remove(g, j); break;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}
