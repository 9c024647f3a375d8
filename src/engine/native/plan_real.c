/* engine/native/plan_real.c: see plan_real.h */
#include "engine/native/plan_real.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "engine/native/expand.h"
#include "match/path.h"
#include "wall/mnt.h"

#define LINKS_MAX 40            /* as the kernel (path_resolution(7)) */

bool
plan_real_path(int fd, char *out, size_t size)
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, out, size - 1);
    if (n < 0)
        return false;
    out[n] = '\0';
    errno = ENOENT;
    return out[0] == '/';
}

int
plan_real_below(int fd, const char *host, const char *relative, char *out, size_t size, struct err *err)
{
    cleanup_close int target = mnt_open_beneath(fd, relative, O_PATH, true);
    const char *below;
    char real[PATH_MAX];

    if (target < 0 && (errno == ENOSYS || errno == EPERM)) {
        err_set(err, ERR_UNSUPPORTED, "wall.openat2.unsupported",
                "where %s leads cannot be found safely without openat2", relative);
        return err_hint(err, "it needs Linux 5.6 and no outer seccomp filter that hides openat2");
    }
    if (target < 0 && !mnt_is_absent(errno))
        return err_sys(err, errno, "wall.expand.unseen", "%s/%s", host, relative);
    if (target < 0 || !plan_real_path(target, real, sizeof(real)))
        return 0;
    below = expand_below(real, host);
    if (below == NULL || below[0] == '\0' || strlen(below) >= size)
        return 0;
    memcpy(out, below, strlen(below) + 1);
    return 1;
}

/* One component more behind the @n bytes of @out. How long it is then, or 0: no room. */
static size_t
add_component(char out[PATH_MAX], size_t n, struct str component)
{
    if (str_eq_c(component, "."))
        return n;
    if (str_eq_c(component, "..")) {
        while (n > 1 && out[--n] != '/')
            ;
    } else {
        if (n + 1 + component.n >= PATH_MAX)
            return 0;
        if (n > 1)
            out[n++] = '/';
        memcpy(out + n, component.p, component.n);
        n += component.n;
    }
    out[n] = '\0';
    return n;
}

bool
plan_real_walk(const char *path, char out[PATH_MAX], plan_real_link *on_link, void *ctx)
{
    char left[2 * PATH_MAX], next[2 * PATH_MAX], link[PATH_MAX];
    const char *at = left;
    size_t n = 1, before = 1;
    unsigned links = 0;

    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return false;
    memcpy(left, path, strlen(path) + 1);
    memcpy(out, "/", 2);
    for (;; before = n) {
        struct str component;
        ssize_t target;

        at += strspn(at, "/");
        component = (struct str){ at, strcspn(at, "/") };
        if (component.n == 0)
            return true;
        at += component.n;
        n = add_component(out, n, component);
        if (n == 0)
            return false;
        target = readlink(out, link, sizeof(link) - 1);
        if (target <= 0)
            continue;
        if (++links > LINKS_MAX || (size_t)target + strlen(at) + 2 > sizeof(left))
            return false;
        if (on_link != NULL && !on_link(ctx, out))
            return false;
        snprintf(next, sizeof(next), "%.*s/%s", (int)target, link, at);
        memcpy(left, next, strlen(next) + 1);
        at = left;
        n = link[0] == '/' ? 1 : before;
        out[n] = '\0';
    }
}

bool
plan_real_future(const char *path, char out[PATH_MAX])
{
    return plan_real_walk(path, out, NULL, NULL);
}

struct noting {
    struct native_plan *plan;
    struct plan_way *way;
};

static bool
note_link(void *ctx, const char *at)
{
    struct noting *to = ctx;
    struct plan_way *way = to->way;
    struct stat st;

    if (way->links == NULL)
        way->links = (struct plan_link *)(void *)plan_room(to->plan, LINKS_MAX * sizeof(*way->links));
    if (way->links == NULL || way->n_links == LINKS_MAX || lstat(at, &st) < 0)
        return false;
    way->links[way->n_links] = (struct plan_link){ plan_printf(to->plan, "%s", at), st.st_uid };
    return way->links[way->n_links++].at != NULL;
}

bool
plan_real_way(struct native_plan *plan, const char *path, struct plan_way *way)
{
    struct noting to = { plan, way };
    char real[PATH_MAX];

    *way = (struct plan_way){ .real = NULL };
    if (!plan_real_walk(path, real, note_link, &to))
        return false;
    way->real = plan_printf(plan, "%s", real);
    return way->real != NULL;
}

bool
plan_real_opens_again(const struct stat *st)
{
    return S_ISDIR(st->st_mode) && (st->st_uid == geteuid() || geteuid() == 0);
}

bool
plan_real_shut(const char *path, char out[PATH_MAX])
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    struct stat st;

    if (path[0] != '/' || n >= sizeof(part) || lstat(path, &st) == 0 || errno != EACCES)
        return false;
    memcpy(part, path, n + 1);
    /* the nearest folder above it that can be seen: what is behind it cannot */
    do {
        while (n > 1 && part[n - 1] != '/')
            n--;
        n -= n > 1;
        part[n] = '\0';
    } while (n > 1 && lstat(part, &st) < 0);
    memcpy(out, part, n + 1);
    return stat(part, &st) == 0 && plan_real_opens_again(&st);
}

const char *
plan_real_pattern(struct native_plan *plan, const char *pattern)
{
    size_t n = path_glob_prefix(str_of(pattern)), used = 0;
    char prefix[PATH_MAX], real[PATH_MAX], escaped[2 * PATH_MAX];

    if (n == 0 || n >= sizeof(prefix))
        return pattern;
    memcpy(prefix, pattern, n);
    prefix[n] = '\0';
    if (!plan_real_future(prefix, real) || strcmp(real, prefix) == 0)
        return pattern;
    for (size_t i = 0; real[i] != '\0'; i++) {
        if (strchr("*?[\\", real[i]) != NULL)
            escaped[used++] = '\\';
        escaped[used++] = real[i];
    }
    return plan_printf(plan, "%.*s%s", (int)used, escaped, pattern + n);
}
