/* cli/attach_folder.c: see attach_folder.h
 *
 * All of it is for one session. The sandbox's host key is made here too: the client knows it before it connects, so it
 * never asks whether to trust one. What the client must not do for a server that may lie is in its configuration.
 */
#include "cli/attach_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "program/json.h"
#include "program/state.h"
#include "proto/edge.h"

#define FILE_MAX  16384
#define OLD_S     (14L * 3600)      /* no session of a folder lives so long */
#define OWN       "attach"          /* in the state folder */

static const char *const files[] = { "config", "known_hosts", "user_key", "user_key.pub", "host_key", "host_key.pub",
                                     "ticket", "session" };

const char *
attach_folder_host(const json_t *said, char out[64])
{
    snprintf(out, 64, "cloche-%.12s", json_text(said, "id"));
    return out;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static int
write_file(int dir, const char *name, const void *p, size_t n, struct err *err)
{
    cleanup_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd >= 0 && io_write_full(fd, p, n) == 0 ? 0 : err_sys(err, errno, "attach.folder", "write %s", name);
}

static int
write_json(int dir, const char *name, const json_t *o, struct err *err)
{
    char *text = json_dumps(o, JSON_COMPACT);
    int r = text != NULL ? write_file(dir, name, text, strlen(text), err)
                         : err_set(err, ERR_SYSTEM, "memory", "out of memory");

    free(text);
    return r;
}

static int
read_file(int dir, const char *name, struct buf *out, struct err *err)
{
    if (io_read_regular(dir, name, out) < 0 || buf_nul(out) < 0)
        return err_sys(err, errno, "attach.folder", "read %s", name);
    return 0;
}

/* The type and the key of a public one, without what is behind them. */
static int
read_public(int dir, const char *name, struct buf *out, struct err *err)
{
    char *text, *end;

    if (read_file(dir, name, out, err) < 0)
        return -1;
    text = (char *)out->p;
    end = strchr(text, ' ');
    if (end == NULL)
        return err_set(err, ERR_DENIED, "attach.folder", "%s is no public key", name);
    end += 1 + strcspn(end + 1, " \n");
    *end = '\0';
    return 0;
}

/* --- old ones ----------------------------------------------------------------------------------------------------- */

static void
remove_old(int parent)
{
    cleanup_close int list = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = list };
    const char *name;
    struct stat st;

    while (list >= 0 && (name = dirents_next(&names)) != NULL) {
        cleanup_close int dir = -1;
        if (!edge_is_id(name) || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
            time(NULL) - st.st_mtime < OLD_S)
            continue;
        dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(files); i++)
            (void)unlinkat(dir, files[i], 0);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    }
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Its path, and what it lies in; the folder itself is new. */
static int
make_folder(struct attach_folder *f, const char *path, const json_t *said, struct err *err)
{
    char state[PATH_MAX];

    if (path != NULL) {
        if (mkdir(path, 0700) < 0)
            return err_sys(err, errno, "attach.folder", "make the folder %s", path);
        if (realpath(path, f->path) == NULL)
            return err_sys(err, errno, "attach.folder", "%s", path);
    } else {
        cleanup_close int own = state_own_open(OWN, "attach.folder", err);
        if (own < 0 || state_dir_path(state, err) < 0)
            return -1;
        remove_old(own);
        if (mkdirat(own, json_text(said, "id"), 0700) < 0)
            return err_sys(err, errno, "attach.folder", "make a folder for the session");
        if (snprintf(f->path, sizeof(f->path), "%s/" OWN "/%s", state, json_text(said, "id")) >= (int)sizeof(f->path))
            return err_set(err, ERR_USAGE, "attach.folder", "the state folder's path is too long");
    }
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return f->fd >= 0 ? 0 : err_sys(err, errno, "attach.folder", "%s", f->path);
}

static int
make_key(const struct attach_folder *f, const char *name, struct err *err)
{
    char path[PATH_MAX + 16];
    const char *argv[] = { "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cloche", "-f", path, NULL };
    int status = -1, r;
    pid_t pid;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ);
    while (r == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == ENOENT || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
        err_set(err, ERR_NOT_FOUND, "attach.client", "there is no ssh-keygen here");
        return err_hint(err, "an editor reaches the sandbox by OpenSSH's client: install openssh-client");
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0 : err_set(err, ERR_SYSTEM, "attach.client", "ssh-keygen made no key");
}

/* A path in a command of the configuration: one word of a shell, in which ssh replaces %. */
static void
put_shell(struct buf *out, const char *text)
{
    buf_put_u8(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_puts(out, "'\\'");
        if (*text == '%')
            buf_put_u8(out, '%');
        buf_put_u8(out, (uint8_t)*text);
    }
    buf_put_u8(out, '\'');
}

static void
put_path(struct buf *out, const char *key, const char *folder, const char *name)
{
    buf_printf(out, "  %s \"", key);
    for (; *folder != '\0'; folder++) {
        if (*folder == '%')
            buf_put_u8(out, '%');
        buf_put_u8(out, (uint8_t)*folder);
    }
    buf_printf(out, "/%s\"\n", name);
}

/* What a hostile server could ask of a client, and what would lead from the sandbox to where the client is. */
static const char never[] =
    "  IdentitiesOnly yes\n  IdentityAgent none\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
    "  UpdateHostKeys no\n  VerifyHostKeyDNS no\n  PreferredAuthentications publickey\n  PubkeyAuthentication yes\n"
    "  PasswordAuthentication no\n  KbdInteractiveAuthentication no\n  HostbasedAuthentication no\n"
    "  GSSAPIAuthentication no\n  ForwardAgent no\n  ForwardX11 no\n  ForwardX11Trusted no\n  Tunnel no\n"
    "  PermitLocalCommand no\n  PermitRemoteOpen none\n  ClearAllForwardings yes\n  ControlMaster no\n"
    "  ControlPath none\n  CanonicalizeHostname no\n  ProxyUseFdpass no\n  ConnectTimeout 60\n";

static int
write_config(const struct attach_folder *f, const json_t *said, const char *user, const struct api *api,
             struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(8 * PATH_MAX), key = BUF_INIT(FILE_MAX);
    char host[64], self[PATH_MAX], socket[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return err_sys(err, errno, "attach.folder", "our own path");
    self[n] = '\0';
    if (realpath(api->socket, socket) == NULL)
        return err_sys(err, errno, "attach.folder", "the daemon's socket");
    if (strpbrk(f->path, "\"\\\n") != NULL || strpbrk(self, "\n") != NULL || strpbrk(socket, "\n") != NULL)
        return err_set(err, ERR_USAGE, "attach.folder", "a path has characters that OpenSSH's configuration cannot");
    attach_folder_host(said, host);
    buf_printf(&text, "Host %s\n  HostName %s\n  HostKeyAlias %s\n  User %s\n  ProxyCommand ", host, host, host, user);
    put_shell(&text, self);
    buf_puts(&text, " attach --socket ");
    put_shell(&text, socket);
    buf_puts(&text, " --proxy ");
    put_shell(&text, f->path);
    buf_puts(&text, "\n");
    put_path(&text, "IdentityFile", f->path, "user_key");
    put_path(&text, "UserKnownHostsFile", f->path, "known_hosts");
    buf_puts(&text, never);
    if (!buf_ok(&text) || write_file(f->fd, "config", text.p, text.n, err) < 0)
        return buf_ok(&text) ? -1 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (read_public(f->fd, "host_key.pub", &key, err) < 0)
        return -1;
    buf_reset(&text);
    buf_printf(&text, "%s %s\n", host, (const char *)key.p);
    return write_file(f->fd, "known_hosts", text.p, text.n, err);
}

static bool
is_word(const char *text)
{
    return text[0] != '\0' && text[0] != '-' &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

int
attach_folder_make(struct attach_folder *f, const char *path, const json_t *said, const char *user,
                   const struct api *api, struct err *err)
{
    *f = (struct attach_folder){ .fd = -1 };
    if (!edge_is_id(json_text(said, "id")) || json_text(said, "ticket")[0] == '\0')
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon says no ticket");
    if (user == NULL)
        user = json_text(said, "user");
    if (!is_word(user)) {
        err_set(err, ERR_USAGE, "attach.user", "nobody knows what the sandbox's user is called inside");
        return err_hint(err, "`cloche exec SANDBOX id -un` says it; --user takes it");
    }
    if (make_folder(f, path, said, err) < 0 || make_key(f, "user_key", err) < 0 || make_key(f, "host_key", err) < 0 ||
        write_config(f, said, user, api, err) < 0 || write_json(f->fd, "ticket", said, err) < 0) {
        attach_folder_close(f);
        return -1;
    }
    return 0;
}

/* --- using -------------------------------------------------------------------------------------------------------- */

int
attach_folder_open(struct attach_folder *f, const char *path, struct err *err)
{
    struct stat st;

    *f = (struct attach_folder){ .fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
    snprintf(f->path, sizeof(f->path), "%s", path);
    if (f->fd < 0 || fstat(f->fd, &st) < 0) {
        err_sys(err, errno, "attach.folder", "%s", path);
    } else if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        err_set(err, ERR_DENIED, "attach.folder", "%s is not this user's own (0700)", path);
    } else {
        while (flock(f->fd, LOCK_EX) < 0)
            if (errno != EINTR)
                return err_sys(err, errno, "attach.folder", "lock %s", path);
        return 0;
    }
    attach_folder_close(f);
    return -1;
}

void
attach_folder_close(struct attach_folder *f)
{
    close_fd(&f->fd);
}

json_t *
attach_folder_read(const struct attach_folder *f, const char *name, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(FILE_MAX);
    json_t *o;

    if (!io_present(f->fd, name) || read_file(f->fd, name, &text, err) < 0)
        return NULL;
    o = json_loads((const char *)text.p, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(o))
        return o;
    json_decref(o);
    err_set(err, ERR_DENIED, "attach.folder", "%s in %s is no JSON object", name, f->path);
    return NULL;
}

int
attach_folder_session(const struct attach_folder *f, const json_t *session, struct err *err)
{
    if (write_json(f->fd, "session", session, err) < 0)
        return -1;
    (void)unlinkat(f->fd, "ticket", 0);
    return 0;
}

json_t *
attach_folder_keys(const struct attach_folder *f, struct err *err)
{
    cleanup_buf struct buf host = BUF_INIT(FILE_MAX), user = BUF_INIT(FILE_MAX);
    json_t *keys;

    if (read_file(f->fd, "host_key", &host, err) < 0 || read_public(f->fd, "user_key.pub", &user, err) < 0)
        return NULL;
    keys = json_pack("{s:s, s:s}", "host_key", (const char *)host.p, "user_key", (const char *)user.p);
    if (keys == NULL)
        err_set(err, ERR_DENIED, "attach.folder", "the keys in %s are none", f->path);
    return keys;
}
