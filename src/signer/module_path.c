/* signer/module_path.c: see module_path.h
 *
 * The way is gone component by component, as the kernel would, by descriptors; links are read here. It ends at one that
 * does not, and where it is longer than the kernel's own limit of links.
 */
#include "signer/module_path.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 40

struct way {
    const char *path;           /* for people */
    char left[PATH_MAX];        /* of it, without what was gone */
    int at;                     /* the folder that was reached */
    unsigned links;
};

static int
is_none(const struct way *w, struct err *err)
{
    err_set(err, ERR_USAGE, "sign.token.module", "%s is no PKCS#11 module", w->path);
    return err_hint(err, "the absolute path of a shared library, such as /usr/lib/softhsm/libsofthsm2.so");
}

static int
judge(const struct way *w, const char *name, const struct stat *st, struct err *err)
{
    const bool others = !S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
                        !(S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0);

    if (!others && (st->st_uid == 0 || st->st_uid == geteuid()))
        return 0;
    if (S_ISREG(st->st_mode))
        err_set(err, ERR_POLICY, "sign.token.module", "others may write the module %s", w->path);
    else
        err_set(err, ERR_POLICY, "sign.token.module", "others may replace the module %s: \"%.255s\" on the way is %s",
                w->path, name, others ? "for them to write in" : "theirs");
    return err_hint(err, "it, and each folder and link on the way, has to be root's or yours, and writable by "
                         "nobody else");
}

/* The next component of what is left, into @name; "": there is none, or it is too long. */
static void
next(struct way *w, char name[NAME_MAX + 1])
{
    const char *from = w->left + strspn(w->left, "/");
    size_t n = strcspn(from, "/");

    snprintf(name, NAME_MAX + 1, "%.*s", n <= NAME_MAX ? (int)n : 0, from);
    memmove(w->left, from + n, strlen(from + n) + 1);
}

static int
enter(struct way *w, const char *folder, struct err *err)
{
    cleanup_close int fd = openat(w->at, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return is_none(w, err);
    if (judge(w, folder, &st, err) < 0)
        return -1;
    close_fd(&w->at);
    w->at = take_fd(&fd);
    return 0;
}

/* What the link @fd says stands before what is left. */
static int
follow(struct way *w, int fd, struct err *err)
{
    char to[PATH_MAX], all[2 * PATH_MAX];
    ssize_t n = readlinkat(fd, "", to, sizeof(to) - 1);

    if (n <= 0 || ++w->links > LINKS_MAX)
        return is_none(w, err);
    to[n] = '\0';
    snprintf(all, sizeof(all), "%s%s", to, w->left);
    if (strlen(all) >= sizeof(w->left))
        return is_none(w, err);
    memcpy(w->left, all, strlen(all) + 1);
    return to[0] == '/' ? enter(w, "/", err) : 0;
}

/* 1: the way goes on; 0: it was there, and is well; -1 with @err. */
static int
step(struct way *w, struct err *err)
{
    cleanup_close int fd = -1;
    char name[NAME_MAX + 1];
    struct stat st;

    next(w, name);
    fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (name[0] == '\0' || fd < 0 || fstat(fd, &st) < 0)
        return is_none(w, err);
    if (judge(w, name, &st, err) < 0)
        return -1;
    if (S_ISLNK(st.st_mode))
        return follow(w, fd, err) < 0 ? -1 : 1;
    if (S_ISDIR(st.st_mode)) {
        close_fd(&w->at);
        w->at = take_fd(&fd);
        return 1;
    }
    return S_ISREG(st.st_mode) && w->left[0] == '\0' ? 0 : is_none(w, err);
}

int
module_path_safe(const char *path, struct err *err)
{
    struct way w = { .path = path, .at = -1 };
    int r = -1;

    if (path[0] != '/' || strlen(path) >= sizeof(w.left))
        return is_none(&w, err);
    memcpy(w.left, path, strlen(path) + 1);
    if (enter(&w, "/", err) == 0)
        while ((r = step(&w, err)) > 0)
            ;
    close_fd(&w.at);
    return r;
}
