/* guest/walk.c: see walk.h */
#include "guest/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/msg.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

#define RACE_TRIES 8
#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* A walk under way: the directories from the root to here, and what is left of the path. */
struct walk {
    int stack[WALK_DEPTH_MAX];
    size_t depth;               /* of the stack; stack[0] is the root, borrowed */
    const char *root_path;
    unsigned links;
    char rest[2 * PATH_MAX];
};

static void
walk_pop_to(struct walk *w, size_t depth)
{
    while (w->depth > depth) {
        w->depth--;
        close_fd(&w->stack[w->depth]);
    }
}

/* Take the next component of @w->rest into @name. False when there is none. */
static bool
next_component(struct walk *w, char name[NAME_MAX + 1], int *error)
{
    const char *p = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(p, "/");

    *error = n > NAME_MAX ? ENAMETOOLONG : 0;
    if (n == 0 || n > NAME_MAX)
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    p += n;
    p += strspn(p, "/");
    memmove(w->rest, p, strlen(p) + 1);
    return true;
}

/* Put the target of a link in front of what is left. */
static int
expand_link(struct walk *w, const char *target)
{
    char old[sizeof(w->rest)];
    const char *rel = target;
    size_t n, old_n = strlen(w->rest);

    if (++w->links > WALK_LINKS_MAX)
        return ELOOP;
    if (target[0] == '/') {
        n = strlen(w->root_path);
        if (strcmp(w->root_path, "/") != 0) {
            if (strncmp(target, w->root_path, n) != 0 || (target[n] != '/' && target[n] != '\0'))
                return WALK_ESCAPES;
            rel = target + n;
        }
        walk_pop_to(w, 1);
    }
    n = strlen(rel);
    if (n + 1 + old_n + 1 > sizeof(w->rest))
        return ENAMETOOLONG;
    memcpy(old, w->rest, old_n + 1);
    memcpy(w->rest, rel, n);
    w->rest[n] = '/';
    memcpy(w->rest + n + 1, old, old_n + 1);
    return 0;
}

/* 0: descended (or expanded a link); 1: this is the place; else an errno or WALK_ESCAPES. */
static int
step(struct walk *w, const char *name, bool follow)
{
    int top = w->stack[w->depth - 1];
    bool last = w->rest[strspn(w->rest, "/")] == '\0';
    char target[PATH_MAX];
    ssize_t n;
    int fd;

    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        if (w->depth == 1)
            return WALK_ESCAPES;
        walk_pop_to(w, w->depth - 1);
        return 0;
    }
    if (last && !follow)
        return 1;
    for (int tries = 0;; tries++) {
        n = readlinkat(top, name, target, sizeof(target) - 1);
        if (n >= 0) {
            target[n] = '\0';
            return n == 0 ? ENOENT : expand_link(w, target);
        }
        if (last)
            return 1;
        if (w->depth == WALK_DEPTH_MAX)
            return ENAMETOOLONG;
        fd = openat(top, name, DIR_FLAGS | O_NOFOLLOW);
        if (fd >= 0)
            break;
        /* No link a moment ago, and no directory now: perhaps it is a link by now. */
        if ((errno != ENOTDIR && errno != ELOOP) || tries == RACE_TRIES)
            return errno;
    }
    w->stack[w->depth++] = fd;
    return 0;
}

static int
walk_all(struct walk *w, bool follow, struct walk_place *out)
{
    char name[NAME_MAX + 1];
    int rc = 0, error;

    while (rc == 0 && next_component(w, name, &error))
        rc = step(w, name, follow);
    if (rc == 0 && error != 0)
        rc = error;
    if (rc == 0)
        memcpy(name, ".", 2);
    if (rc != 0 && rc != 1)
        return rc;
    out->dir = fcntl(w->stack[w->depth - 1], F_DUPFD_CLOEXEC, 0);
    memcpy(out->name, name, sizeof(name));
    return out->dir < 0 ? errno : 0;
}

int
walk_slow(int root, const char *root_path, const char *rel, bool follow, struct walk_place *out)
{
    struct walk w = { .stack = { root }, .depth = 1, .root_path = root_path };
    size_t n = strlen(rel);
    int rc;

    out->dir = -1;
    if (n + 1 > sizeof(w.rest))
        return ENAMETOOLONG;
    memcpy(w.rest, rel, n + 1);
    rc = walk_all(&w, follow, out);
    walk_pop_to(&w, 1);
    return rc;
}

int
walk_to(int root, const char *root_path, const char *rel, bool follow, struct walk_place *out)
{
    const struct open_how how = { .flags = DIR_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    char parent[MSG_PATH_MAX + 1], target[1];
    size_t n = strlen(rel), end;

    out->dir = -1;
    while (n > 0 && rel[n - 1] == '/')
        n--;
    for (end = n; end > 0 && rel[end - 1] != '/'; end--)
        continue;
    if (n > MSG_PATH_MAX || n - end > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(out->name, rel + end, n - end);
    out->name[n - end] = '\0';
    if (n - end == 0)
        memcpy(out->name, ".", 2);
    memcpy(parent, rel, end);
    parent[end] = '\0';
    out->dir = (int)syscall(SYS_openat2, root, end == 0 ? "." : parent, &how, sizeof(how));
    /* EXDEV: it left the root, or was only absolute. EAGAIN: something moved. Both deserve the exact answer. */
    if (out->dir < 0 && errno != EXDEV && errno != ENOSYS && errno != EAGAIN && errno != ELOOP && errno != EPERM)
        return errno;
    if (out->dir >= 0 && (!follow || readlinkat(out->dir, out->name, target, sizeof(target)) < 0))
        return 0;
    close_fd(&out->dir);
    return walk_slow(root, root_path, rel, follow, out);
}
