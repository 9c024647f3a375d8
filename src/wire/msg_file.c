/* wire/msg_file.c: see msg.h; requests and answers about files */
#include "wire/msg.h"

#include <string.h>

#define FILE_FLAGS                                                                                            \
    (MSG_FILE_CREATE | MSG_FILE_EXCLUSIVE | MSG_FILE_TRUNCATE | MSG_FILE_APPEND | MSG_FILE_PARENTS |          \
     MSG_FILE_RECURSIVE | MSG_FILE_NOFOLLOW)

int
msg_put_file(struct buf *b, uint8_t type, uint16_t request, const struct msg_file *m)
{
    size_t at = frame_begin(b, type, 0, request);

    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be32(b, m->mode);
    (void)buf_put_be64(b, m->offset);
    (void)buf_put_be64(b, m->length);
    (void)wire_put_cstr(b, m->path, MSG_PATH_MAX);
    (void)wire_put_cstr(b, m->to == NULL ? "" : m->to, MSG_PATH_MAX);
    return frame_end(b, at);
}

bool
msg_get_file(const struct frame *f, struct msg_file *m)
{
    struct wire_in in = wire_in_of(f->payload, f->length);

    m->flags = wire_u8(&in);
    m->mode = wire_be32(&in);
    m->offset = wire_be64(&in);
    m->length = wire_be64(&in);
    m->path = wire_cstr(&in, MSG_PATH_MAX, NULL);
    m->to = wire_cstr(&in, MSG_PATH_MAX, NULL);
    /* An offset or length above what off_t holds would turn negative on its way to the kernel. */
    return wire_done(&in) && (m->flags & ~FILE_FLAGS) == 0 && m->mode <= 07777 && m->offset <= INT64_MAX &&
           m->length <= INT64_MAX;
}

int
msg_put_file_error(struct buf *b, uint16_t request, const struct msg_file_error *m)
{
    size_t at = frame_begin(b, MSG_FILE_ERROR, 0, request);

    (void)buf_put_u8(b, m->code);
    (void)buf_put_be32(b, m->sys_errno);
    return frame_end(b, at);
}

bool
msg_get_file_error(const struct frame *f, struct msg_file_error *m)
{
    struct wire_in in = wire_in_of(f->payload, f->length);

    m->code = wire_u8(&in);
    m->sys_errno = wire_be32(&in);
    return wire_done(&in) && m->code <= FILE_CODE_WATCH_GONE && m->sys_errno < 4096 &&
           (m->code != FILE_CODE_ERRNO || m->sys_errno != 0);
}

int
msg_put_entry(struct buf *b, const struct msg_file_info *m)
{
    (void)buf_put_be32(b, m->mode);
    (void)buf_put_be32(b, m->uid);
    (void)buf_put_be32(b, m->gid);
    (void)buf_put_be32(b, m->nlink);
    (void)buf_put_be64(b, m->size);
    (void)buf_put_be64(b, m->mtime_ns);
    return wire_put_cstr(b, m->name, MSG_PATH_MAX);
}

bool
msg_next_entry(struct wire_in *in, struct msg_file_info *m)
{
    if (in->bad || in->n == 0)
        return false;
    m->mode = wire_be32(in);
    m->uid = wire_be32(in);
    m->gid = wire_be32(in);
    m->nlink = wire_be32(in);
    m->size = wire_be64(in);
    m->mtime_ns = wire_be64(in);
    m->name = wire_cstr(in, MSG_PATH_MAX, NULL);
    /* A name is one component: a host that joins it to a directory must not be led elsewhere by it. */
    if (!in->bad && (strchr(m->name, '/') != NULL || strcmp(m->name, ".") == 0 || strcmp(m->name, "..") == 0))
        in->bad = true;
    return !in->bad;
}

int
msg_put_file_info(struct buf *b, uint16_t request, const struct msg_file_info *m)
{
    size_t at = frame_begin(b, MSG_FILE_INFO, 0, request);

    (void)msg_put_entry(b, m);
    return frame_end(b, at);
}

bool
msg_get_file_info(const struct frame *f, struct msg_file_info *m)
{
    struct wire_in in = wire_in_of(f->payload, f->length);

    return msg_next_entry(&in, m) && wire_done(&in) && m->name[0] == '\0';
}

int
msg_put_change(struct buf *b, uint16_t request, const struct msg_change *m)
{
    size_t at = frame_begin(b, MSG_FILE_CHANGE, 0, request);

    (void)buf_put_u8(b, m->kind);
    (void)buf_put_u8(b, m->directory);
    (void)wire_put_cstr(b, m->path, MSG_PATH_MAX);
    (void)wire_put_cstr(b, m->from, MSG_PATH_MAX);
    return frame_end(b, at);
}

bool
msg_change_path(const char *path)
{
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");

        if (n == 0 || n > MSG_NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '\0')
            return true;
    }
}

bool
msg_get_change(const struct frame *f, struct msg_change *m)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t directory;

    m->kind = wire_u8(&in);
    directory = wire_u8(&in);
    m->directory = directory != 0;
    m->path = wire_cstr(&in, MSG_PATH_MAX, NULL);
    m->from = wire_cstr(&in, MSG_PATH_MAX, NULL);
    if (!wire_done(&in) || directory > 1)
        return false;
    switch (m->kind) {
    case CHANGE_WATCHING:
    case CHANGE_OVERFLOW: return !m->directory && m->path[0] == '\0' && m->from[0] == '\0';
    case CHANGE_RENAMED: return msg_change_path(m->path) && msg_change_path(m->from);
    case CHANGE_UNWATCHED: return m->directory && msg_change_path(m->path) && m->from[0] == '\0';
    case CHANGE_CREATED:
    case CHANGE_MODIFIED:
    case CHANGE_DELETED: return msg_change_path(m->path) && m->from[0] == '\0';
    default: return false;
    }
}

static bool
has_dotdot(const char *path)
{
    for (const char *p = path; *p != '\0';) {
        size_t n = strcspn(p, "/");

        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n + (p[n] == '/');
    }
    return false;
}

bool
msg_path_shape(const char *root, const char *path, const char **rel)
{
    size_t n = strlen(root);

    if (path[0] == '\0' || has_dotdot(path))
        return false;
    if (path[0] == '/') {
        while (n > 0 && root[n - 1] == '/')
            n--;
        if (root[0] != '/' || strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
            return false;
        path += n;
        path += strspn(path, "/");
    }
    *rel = path[0] == '\0' ? "." : path;
    return true;
}
