/* workspace/store.c: where the states are, and what each says about itself */
#include "workspace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/quote.h"

#define META_VERSION 2      /* 1: without "protect" */

bool
store_id_valid(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");

    return n >= 8 && n <= COW_ID_MAX && id[n] == '\0';
}

/* The directory that others keep their state in too: it may be reached through symlinks. */
static int
base_path(struct buf *path, struct err *err)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (xdg != NULL && xdg[0] == '/')
        buf_puts(path, xdg);
    else if (geteuid() == 0)
        buf_puts(path, "/var/lib");
    else if (home != NULL && home[0] == '/')
        buf_printf(path, "%s/.local/state", home);
    else
        return err_set(err, ERR_USAGE, "workspace.state.home",
                       "neither XDG_STATE_HOME nor HOME says where state may be kept");
    if (buf_nul(path) < 0 || path->n >= PATH_MAX - 128)
        return err_set(err, ERR_USAGE, "workspace.state.home", "the path of the state directory is too long");
    return 0;
}

int
store_path(struct buf *path, struct err *err)
{
    if (base_path(path, err) < 0)
        return -1;
    buf_puts(path, "/cloche/cow");
    if (buf_nul(path) < 0)
        return err_set(err, ERR_LIMIT, "workspace.state.home", "the path of the state directory is too long");
    return 0;
}

/* mkdir -p, each 0700. Prefixes that exist are not touched. */
static void
make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        (void)mkdir(path, 0700);    /* what matters is whether the whole path opens */
        if (slash == NULL)
            return;
        *slash = '/';
    }
}

static int
check_ours(int fd, const char *what, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "workspace.state.open", "%s", what);
    if (st.st_uid != geteuid()) {
        err_set(err, ERR_DENIED, "workspace.state.unsafe", "the state directory %s belongs to uid %u, not to uid %u",
                what, st.st_uid, geteuid());
        return err_hint(err, "remove it, or set XDG_STATE_HOME to a directory of your own");
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        err_set(err, ERR_DENIED, "workspace.state.unsafe", "the state directory %s is writable by others (mode %04o)",
                what, (unsigned)st.st_mode & 07777);
        return err_hint(err, "chmod go-w it, or set XDG_STATE_HOME to a directory of your own");
    }
    return 0;
}

int
store_enter(int dir, const char *name, struct err *err)
{
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "workspace.state.none", "there is no copy-on-write state %s", name);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        err_set(err, ERR_DENIED, "workspace.state.unsafe", "\"%s\" in the state directory is not a directory", name);
        return err_hint(err, "remove it (symlinks are not followed there), or set XDG_STATE_HOME to another directory");
    }
    if (fd < 0)
        return err_sys(err, errno, "workspace.state.open", "cannot open \"%s\" in the state directory", name);
    return check_ours(fd, name, err) < 0 ? -1 : take_fd(&fd);
}

int
store_open(bool create, struct err *err)
{
    cleanup_buf struct buf base = BUF_INIT(PATH_MAX);
    static const char *const below[] = { "cloche", "cow" };

    if (base_path(&base, err) < 0)
        return -1;
    char *path = (char *)base.p;
    if (create)
        make_parents(path);
    cleanup_close int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "workspace.state.none",
                       "there is no copy-on-write state: %s does not exist", path);
    if (at < 0)
        return err_sys(err, errno, "workspace.state.open", "cannot open the state directory %s", path);
    struct stat st;
    if (fstat(at, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0)) {
        err_set(err, ERR_DENIED, "workspace.state.unsafe", "the state directory %s belongs to uid %u, not to uid %u",
                path, st.st_uid, geteuid());
        return err_hint(err, "set XDG_STATE_HOME to a directory of your own");
    }
    for (size_t i = 0; i < 2; i++) {
        if (create && mkdirat(at, below[i], 0700) < 0 && errno != EEXIST)
            return err_sys(err, errno, "workspace.state.open", "cannot make \"%s\" in the state directory %s",
                           below[i], path);
        int next = store_enter(at, below[i], err);
        if (next < 0)
            return -1;
        close_fd(&at);
        at = next;
    }
    return take_fd(&at);
}

/* --- meta.json --------------------------------------------------------------------------------------------------- */

static json_t *
names_pack(char *const *names)
{
    json_t *out = json_array();

    for (; out != NULL && *names != NULL; names++) {
        cleanup_buf struct buf text = BUF_INIT(4 * PATH_MAX);
        if (quote_encode(&text, str_of(*names)) < 0 ||
            json_array_append_new(out, json_stringn((const char *)text.p, text.n)) < 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

int
meta_write(int state_dir, const struct cow_state *state, struct err *err)
{
    cleanup_buf struct buf project = BUF_INIT(4 * PATH_MAX);

    if (quote_encode(&project, str_of(state->project)) < 0)
        return err_set(err, ERR_LIMIT, "workspace.state.meta", "the project's path is too long");
    json_t *meta = json_pack("{s:i, s:s, s:s%, s:I, s:I, s:s, s:I, s:i, s:o}", "version", META_VERSION, "id", state->id,
                             "project", (const char *)project.p, project.n, "dev", (json_int_t)state->dev,
                             "ino", (json_int_t)state->ino, "boot", state->boot,
                             "created_s", (json_int_t)state->created.tv_sec,
                             "created_ns", (int)state->created.tv_nsec, "protect", names_pack(state->protect));
    cleanup_free char *text = meta != NULL ? json_dumps(meta, JSON_INDENT(2)) : NULL;
    json_decref(meta);
    if (text == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.state.meta", "cannot write meta.json: no memory");
    if (strlen(text) > COW_META_MAX)
        return err_set(err, ERR_LIMIT, "workspace.state.meta", "filesystem.protect: its names have more than %d bytes",
                       COW_META_MAX);

    /* whole or not at all: a state without meta.json is a run that never began */
    cleanup_close int fd = openat(state_dir, "meta.json.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                  0600);
    if (fd < 0 || io_write_full(fd, text, strlen(text)) < 0 || renameat(state_dir, "meta.json.new", state_dir,
                                                                        "meta.json") < 0)
        return err_sys(err, errno, "workspace.state.meta", "cannot write meta.json");
    return 0;
}

/* @names: an array of texts as names_pack() makes them. */
static int
names_unpack(const json_t *names, struct cow_state *out)
{
    size_t n = json_array_size(names);

    if (!json_is_array(names) || (out->protect = calloc(n + 1, sizeof(*out->protect))) == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        cleanup_buf struct buf text = BUF_INIT(PATH_MAX);
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL || *name == '\0' || quote_decode(&text, str_of(name)) < 0 || buf_nul(&text) < 0 ||
            (out->protect[i] = strdup((const char *)text.p)) == NULL)
            return -1;
    }
    return 0;
}

static int
meta_parse(const char *text, size_t n, struct cow_state *out)
{
    cleanup_buf struct buf project = BUF_INIT(PATH_MAX);
    json_int_t dev, ino, s;
    int version, ns;
    const char *path, *boot, *id;
    json_t *meta = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL), *protect = NULL;
    int r = -1;

    if (meta != NULL &&
        json_unpack_ex(meta, NULL, JSON_STRICT, "{s:i, s:s, s:s, s:I, s:I, s:s, s:I, s:i, s?o}", "version", &version,
                       "id", &id, "project", &path, "dev", &dev, "ino", &ino, "boot", &boot, "created_s", &s,
                       "created_ns", &ns, "protect", &protect) == 0 &&
        version == (protect != NULL ? META_VERSION : 1) && strcmp(id, out->id) == 0 &&
        quote_decode(&project, str_of(path)) == 0 && buf_nul(&project) == 0 && project.p[0] == '/' &&
        strlen(boot) < sizeof(out->boot) && ns >= 0 && ns < 1000000000) {
        memcpy(out->boot, boot, strlen(boot) + 1);
        out->dev = (dev_t)dev;
        out->ino = (ino_t)ino;
        out->created = (struct timespec){ .tv_sec = s, .tv_nsec = ns };
        out->project = strdup((const char *)project.p);
        r = out->project != NULL && (protect == NULL || names_unpack(protect, out) == 0) ? 0 : -1;
    }
    json_decref(meta);
    return r;
}

int
meta_read(int state_dir, struct cow_state *out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(COW_META_MAX);
    cleanup_close int fd = openat(state_dir, "meta.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "workspace.state.meta", "cannot read meta.json of the state %s", out->id);
    if (meta_parse((const char *)text.p, text.n, out) < 0) {
        err_set(err, ERR_PROTOCOL, "workspace.state.meta", "meta.json of the state %s is damaged", out->id);
        return err_hint(err, "`cloche discard %s` removes the state", out->id);
    }
    return 0;
}
