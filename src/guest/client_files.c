/* guest/client_files.c: file requests, and the guest's failures in words (see client.h) */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "guest/client_priv.h"

static int
ready(const struct guest_client *c, struct err *err)
{
    if (c->failed || !c->setup_done)
        return err_set(err, ERR_PROTOCOL, c->failed ? "guest.protocol" : "guest.order",
                       "a file request to a guest that is %s", c->failed ? "broken" : "not set up");
    return 0;
}

/* Watches have places of their own: they stay. */
static struct client_file *
new_request(struct guest_client *c, uint8_t type)
{
    bool watch = type == MSG_FILE_WATCH;

    for (size_t i = watch ? MSG_FILES_MAX : 0; i < MSG_FILES_MAX + (watch ? MSG_WATCHES_MAX : 0); i++) {
        if (c->files[i].id != 0)
            continue;
        do
            c->next_file++;
        while (c->next_file == 0 || client_file_of(c, c->next_file) != NULL);
        c->files[i] = (struct client_file){ .id = c->next_file, .type = type, .ended = type != MSG_FILE_WRITE };
        return &c->files[i];
    }
    return NULL;
}

static int
escapes(const char *path, struct err *err)
{
    err_set(err, ERR_DENIED, "files.path-escapes", "Path escapes workspace.");
    return err_hint(err, "\"%s\": use a path below the workspace, without \"..\"", path);
}

static int
too_many_watches(struct err *err)
{
    err_set(err, ERR_LIMIT, "watch.too-many", "%d directories of this sandbox are watched; that is the limit",
            MSG_WATCHES_MAX);
    return err_hint(err, "end another watch, or watch one directory above them with recursive");
}

/* Sent by the next pump or at once: the caller polls with guest_client_poll_events() either way. */
static int
queued(struct guest_client *c, size_t at, int rc, struct err *err)
{
    if (rc == 0 && buf_ok(&c->out))
        return 0;
    c->out.n = at;
    c->out.broken = false;
    return err_set(err, ERR_LIMIT, "guest.request-too-large", "a file request is above its ceiling");
}

int
guest_client_file(struct guest_client *c, uint8_t type, const struct msg_file *m, uint16_t *request,
                  struct err *err)
{
    struct client_file *r;
    const char *rel;
    size_t at = c->out.n;

    if (ready(c, err) < 0)
        return -1;
    if (type < MSG_FILE_READ || type > MSG_FILE_WATCH || (type >= MSG_FILE_CHUNK && type <= MSG_FILE_CANCEL))
        return err_set(err, ERR_USAGE, "guest.file-request", "0x%02x is not a file request", type);
    if (m->path == NULL || !msg_path_shape(c->root, m->path, &rel))
        return escapes(m->path == NULL ? "" : m->path, err);
    if (type == MSG_FILE_RENAME && (m->to == NULL || !msg_path_shape(c->root, m->to, &rel)))
        return escapes(m->to == NULL ? "" : m->to, err);
    if (type == MSG_FILE_WATCH && (m->length < MSG_WATCH_WINDOW_MIN || m->length > MSG_WATCH_WINDOW_MAX))
        return err_set(err, ERR_USAGE, "guest.file-request", "a watch with room for %llu bytes",
                       (unsigned long long)m->length);
    r = new_request(c, type);
    if (r == NULL && type == MSG_FILE_WATCH)
        return too_many_watches(err);
    if (r == NULL)
        return err_set(err, ERR_LIMIT, "files.too-many", "%d file requests wait for this sandbox; the limit is %d",
                       MSG_FILES_MAX, MSG_FILES_MAX);
    *request = r->id;
    r->room = r->window = type == MSG_FILE_WATCH ? (uint32_t)m->length : 0;
    r->left = m->length != 0 ? m->length : UINT64_MAX;
    if (queued(c, at, msg_put_file(&c->out, type, r->id, m), err) < 0) {
        r->id = 0;
        return -1;
    }
    return 0;
}

int
guest_client_file_chunk(struct guest_client *c, uint16_t request, const void *p, size_t n, size_t *taken,
                        struct err *err)
{
    const struct client_file *r = client_file_of(c, request);

    *taken = 0;
    if (ready(c, err) < 0)
        return -1;
    if (r == NULL || r->ended || n == 0) {
        *taken = n;     /* the request is over (it failed): the rest has nowhere to go */
        return 0;
    }
    if (c->out.n - c->out_at > CLIENT_DATA_MARK)
        return 0;
    n = n < MSG_DATA_MAX ? n : MSG_DATA_MAX;
    if (queued(c, c->out.n, frame_append(&c->out, MSG_FILE_CHUNK, 0, request, p, n), err) < 0)
        return -1;
    *taken = n;
    return 0;
}

static int
finish(struct guest_client *c, uint16_t request, uint8_t type, struct err *err)
{
    struct client_file *r = client_file_of(c, request);

    if (ready(c, err) < 0)
        return -1;
    if (r == NULL || (r->ended && type == MSG_FILE_END))
        return 0;
    r->ended = true;
    return queued(c, c->out.n, frame_append(&c->out, type, 0, request, NULL, 0), err);
}

int
guest_client_file_end(struct guest_client *c, uint16_t request, struct err *err)
{
    return finish(c, request, MSG_FILE_END, err);
}

int
guest_client_file_cancel(struct guest_client *c, uint16_t request, struct err *err)
{
    return finish(c, request, MSG_FILE_CANCEL, err);
}

const char *
guest_client_root(const struct guest_client *c)
{
    return c->root;
}

uint32_t
guest_change_bytes(const struct msg_change *m)
{
    return (uint32_t)(2 + 2 * 5 + strlen(m->path) + strlen(m->from));
}

int
guest_client_file_more(struct guest_client *c, uint16_t request, uint32_t bytes, struct err *err)
{
    struct client_file *r = client_file_of(c, request);

    if (ready(c, err) < 0)
        return -1;
    if (r == NULL || r->type != MSG_FILE_WATCH || bytes == 0)
        return 0;
    if (bytes > r->window - r->room)
        return err_set(err, ERR_PROTOCOL, "guest.window", "more credit given back than was used");
    if (queued(c, c->out.n, msg_put_u32(&c->out, MSG_FILE_MORE, request, bytes), err) < 0)
        return -1;
    r->room += bytes;
    return 0;
}

int
guest_exec_failed_code(const struct msg_exec_failed *m)
{
    if (m->stage == EXEC_STAGE_INTERPRETER)
        return 127;
    if (m->stage != EXEC_STAGE_EXEC)
        return 125;
    return m->sys_errno == ENOENT || m->sys_errno == ENOTDIR ? 127 : 126;
}

int
guest_exec_failed_err(const struct msg_exec_failed *m, const char *argv0, const char *cwd, struct err *err)
{
    int e = (int)m->sys_errno;

    switch (m->stage) {
    case EXEC_STAGE_EXEC:
        if (guest_exec_failed_code(m) == 127) {
            err_set(err, ERR_NOT_FOUND, "exec.not-found", "%s: command not found in the sandbox", argv0);
            return err_hint(err, "the PATH of the sandbox's environment is what counts; --bind brings a program in, "
                            "--toolchains auto the compilers and interpreters of your home");
        }
        return err_sys(err, e, "exec.not-runnable", "%s", argv0);
    case EXEC_STAGE_INTERPRETER:
        err_set(err, ERR_NOT_FOUND, "exec.no-interpreter",
                "%s is in the sandbox, but not what runs it: its `#!` line or its ELF header names a missing file",
                argv0);
        return err_hint(err, "`head -1` or `readelf -l` of the file says which; --bind brings it in");
    case EXEC_STAGE_CWD:
        return err_sys(err, e, "exec.cwd", "working directory %s in the sandbox", cwd);
    case EXEC_STAGE_USER:
        return err_sys(err, e, "exec.user", "the command's user in the sandbox");
    case EXEC_STAGE_RLIMIT:
        return err_sys(err, e, "exec.rlimit", "the command's resource limits");
    case EXEC_STAGE_JOIN:
        return err_sys(err, e, "exec.limits", "join the cgroup of the command's own limits");
    case EXEC_STAGE_LOOK:
        if (e != EOPNOTSUPP && e != ENOSYS)
            return err_sys(err, e, "attach.inspect", "confine what only looks at the workspace");
        err_set(err, ERR_UNSUPPORTED, "attach.inspect", "this sandbox has no Landlock, by which an editor only looks");
        return err_hint(err, "it needs Linux 5.13 or later with Landlock, and a mode other than max");
    case EXEC_STAGE_DENY:
        return err_sys(err, e, "exec.syscalls", "the filter of the system calls that the policy denies");
    case EXEC_STAGE_PTY:
        return err_sys(err, e, "exec.pty", "a terminal in the sandbox");
    case EXEC_STAGE_GUARD:
        return err_sys(err, e, "exec.guard", "the name guard's filter");
    case EXEC_STAGE_STDIO:
        return err_sys(err, e, "exec.stdio", "the command's standard streams");
    case EXEC_STAGE_CONNECT:
        return err_sys(err, e, "ports.connect", "a server in the sandbox");
    default:
        return err_sys(err, e, "exec.spawn", "a new process in the sandbox");
    }
}

static const struct { int sys_errno; enum err_kind kind; const char *code; } file_errnos[] = {
    { ENOENT,    ERR_NOT_FOUND, "files.not-found" },
    { EEXIST,    ERR_SYSTEM,    "files.exists" },
    { EACCES,    ERR_DENIED,    "files.denied" },
    { EPERM,     ERR_DENIED,    "files.denied" },
    { EROFS,     ERR_DENIED,    "files.read-only" },
    { ENOTDIR,   ERR_SYSTEM,    "files.not-a-directory" },
    { EISDIR,    ERR_SYSTEM,    "files.is-a-directory" },
    { ENOTEMPTY, ERR_SYSTEM,    "files.not-empty" },
    { ENOSPC,    ERR_LIMIT,     "files.no-space" },
    { EDQUOT,    ERR_LIMIT,     "files.no-space" },
    { EFBIG,     ERR_LIMIT,     "files.too-large" },
    { ELOOP,     ERR_SYSTEM,    "files.symlink-loop" },
    { EAGAIN,    ERR_LIMIT,     "files.too-many" },
    { EBUSY,     ERR_SYSTEM,    "files.busy" },             /* the workspace itself, a mount */
    { ETXTBSY,   ERR_SYSTEM,    "files.busy" },
    { ENAMETOOLONG, ERR_USAGE,  "files.name-too-long" },
};

int
guest_file_err(const struct msg_file_error *m, const char *path, struct err *err)
{
    switch (m->code) {
    case FILE_CODE_ESCAPES:
        return escapes(path, err);
    case FILE_CODE_NO_ROOT:
        return err_set(err, ERR_UNSUPPORTED, "files.no-workspace", "%s: this sandbox has no workspace", path);
    case FILE_CODE_NOT_REGULAR:
        return err_set(err, ERR_DENIED, "files.not-regular", "%s: not a regular file", path);
    case FILE_CODE_TOO_DEEP:
        return err_set(err, ERR_LIMIT, "files.too-deep", "%s: more directories inside each other than can be removed",
                       path);
    case FILE_CODE_CANCELLED:
        return err_set(err, ERR_SYSTEM, "files.cancelled", "%s: cancelled", path);
    case FILE_CODE_WATCHES:
        return too_many_watches(err);
    case FILE_CODE_WATCH_DIRS:
        err_set(err, ERR_LIMIT, "watch.too-many-directories",
                "%s: more than %d directories, which is the limit of one watch", path, MSG_WATCH_DIRS_MAX);
        return err_hint(err, "watch a directory further below, or several");
    case FILE_CODE_WATCH_SYSTEM:
        err_set(err, ERR_LIMIT, "watch.system-limit", "%s: the machine allows this user no more watches", path);
        return err_hint(err, "raise the sysctl fs.inotify.max_user_watches or fs.inotify.max_user_instances");
    case FILE_CODE_WATCH_GONE:
        return err_set(err, ERR_NOT_FOUND, "watch.gone", "%s: the directory was removed or moved", path);
    default:
        break;
    }
    for (size_t i = 0; i < ARRAY_LEN(file_errnos); i++) {
        if (file_errnos[i].sys_errno == (int)m->sys_errno) {
            (void)err_sys(err, file_errnos[i].sys_errno, file_errnos[i].code, "%s", path);
            if (err != NULL)
                err->kind = file_errnos[i].kind;
            return -1;
        }
    }
    return err_sys(err, (int)m->sys_errno, "files.system", "%s", path);
}
