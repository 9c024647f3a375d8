/* program/state.c: see state.h */
#include "program/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int
enter(int at, const char *name)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
state_make_path(const char *path)
{
    cleanup_close int at = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];

    while (at >= 0) {
        const char *end;
        int next;
        while (*path == '/')
            path++;
        if (*path == '\0')
            return take_fd(&at);
        end = strchrnul(path, '/');
        if ((size_t)(end - path) >= sizeof(name)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, (size_t)(end - path));
        name[end - path] = '\0';
        next = enter(at, name);
        close_fd(&at);
        at = next;
        path = end;
    }
    return -1;
}

int
state_dir_path(char path[PATH_MAX], struct err *err)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (xdg != NULL && xdg[0] == '/')
        snprintf(path, PATH_MAX, "%s/cloche", xdg);
    else if (geteuid() == 0)
        snprintf(path, PATH_MAX, "/var/lib/cloche");
    else if (home != NULL && home[0] == '/')
        snprintf(path, PATH_MAX, "%s/.local/state/cloche", home);
    else
        return err_set(err, ERR_USAGE, "cli.state", "neither XDG_STATE_HOME nor HOME says where state may be kept");
    return 0;
}

int
state_dir_check(const char *path, struct err *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, errno, "cli.state", "%s", path);
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return 0;
    err_set(err, ERR_DENIED, "cli.state.unsafe", "the state folder %s %s", path,
            S_ISLNK(st.st_mode) ? "is a link" : !S_ISDIR(st.st_mode) ? "is not a folder"
            : st.st_uid != geteuid() ? "belongs to another user" : "can be written by others");
    return err_hint(err, "remove it, or set XDG_STATE_HOME to another folder");
}

int
state_dir_open(struct err *err)
{
    cleanup_close int fd = -1;
    char path[PATH_MAX];

    if (state_dir_path(path, err) < 0 || state_dir_check(path, err) < 0)
        return -1;
    fd = state_make_path(path);
    if (fd < 0)
        return err_sys(err, errno, "cli.state", "%s", path);
    return take_fd(&fd);
}

int
state_own_open(const char *name, const char *code, struct err *err)
{
    cleanup_close int state = state_dir_open(err), dir = -1;
    struct stat st;

    if (state < 0)
        return -1;
    if (mkdirat(state, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, code, "make \"%s\" in the state folder", name);
    dir = openat(state, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(err, errno, code, "\"%s\" in the state folder", name);
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(err, ERR_DENIED, code, "\"%s\" in the state folder is not this user's own (0700)", name);
    return take_fd(&dir);
}

static bool
read_key(int state, const char *name, uint8_t key[STATE_KEY])
{
    cleanup_close int fd = openat(state, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0 && read(fd, key, STATE_KEY) == STATE_KEY;
}

/* It is there as a whole or not at all; of several who make it at once one has. */
static void
make_key(int state, const char *name)
{
    cleanup_close int fd = -1;
    uint8_t key[STATE_KEY];
    char mine[64];

    snprintf(mine, sizeof(mine), ".%s.%d", name, (int)getpid());
    (void)unlinkat(state, mine, 0);     /* of one of our number that was ended within */
    fd = openat(state, mine, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key) && write(fd, key, sizeof(key)) == (ssize_t)sizeof(key) &&
        fsync(fd) == 0)
        (void)!linkat(state, mine, state, name, 0);
    explicit_bzero(key, sizeof(key));
    (void)unlinkat(state, mine, 0);
}

void
state_key(const char *name, uint8_t key[STATE_KEY])
{
    cleanup_close int state = state_dir_open(NULL);

    if (state >= 0 && read_key(state, name, key))
        return;
    if (state >= 0)
        make_key(state, name);
    if (state >= 0 && read_key(state, name, key))
        return;
    if (getrandom(key, STATE_KEY, 0) != STATE_KEY)
        abort();    /* never a digest without a key */
}
