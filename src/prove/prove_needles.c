/* prove/prove_needles.c: places of the host that are not for the sandbox, by device and inode (see prove.h)
 *
 * A bind mount has the inode of what it shows, whatever it is called inside. So nothing has to be put into the real
 * places, and nothing in them is read: the walk inside is told their numbers, and says where it meets one that opens.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "match/path.h"
#include "prove/prove.h"

#define NEEDLES_MAX   2000      /* of PROBE_NEEDLES_MAX */
#define PER_FOLDER    200

struct list {
    const struct policy *policy;
    bool all;               /* a private root: whatever the policy does not show */
    char *out;
    size_t at, size, n;
};

static bool
is_shown(const struct policy_list *list, struct str path)
{
    for (size_t i = 0; i < list->n; i++)
        if (path_within(path, str_of(list->v[i].value)))
            return true;
    return false;
}

/* Does the policy, or every private root, show @path? */
static bool
is_given(const struct list *l, const char *path)
{
    static const char *const system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt" };
    const struct policy *p = l->policy;
    struct str at = str_of(path);

    for (size_t i = 0; l->all && i < ARRAY_LEN(system); i++)
        if (path_within(at, str_of(system[i])))
            return true;
    if (p->workspace.dir != NULL && path_within(at, str_of(p->workspace.dir)))
        return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(at, str_of(p->binds[i].source)))
            return true;
    return is_shown(&p->allow_read, at) || is_shown(&p->allow_write, at) || is_shown(&p->unix_sockets, at) ||
           (l->all && prove_etc_is_given(p, path));
}

/* A file with another name may be shown by that one (an /etc whose files are links into /usr). */
static void
note(struct list *l, const char *path, const struct stat *st)
{
    int n;

    if (l->n >= NEEDLES_MAX || (!S_ISDIR(st->st_mode) && !(S_ISREG(st->st_mode) && st->st_nlink == 1)) ||
        is_given(l, path))
        return;
    n = snprintf(l->out + l->at, l->size - l->at, "%s%llu:%llu", l->at > 0 ? "," : "", (unsigned long long)st->st_dev,
                 (unsigned long long)st->st_ino);
    if (n < 0 || (size_t)n >= l->size - l->at) {
        l->out[l->at] = '\0';
        l->n = NEEDLES_MAX;
        return;
    }
    l->at += (size_t)n;
    l->n++;
}

/* @path and, @depth levels below it, what lies there. */
static void
gather(struct list *l, const char *path, unsigned depth)
{
    char child[4096];
    struct dirent *e;
    struct stat st;

    if (lstat(path, &st) < 0)
        return;
    note(l, path, &st);
    if (depth == 0 || !S_ISDIR(st.st_mode) || is_given(l, path))
        return;
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int list = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    cleanup_dir DIR *dir = list >= 0 ? fdopendir(list) : NULL;
    for (size_t i = 0; dir != NULL && i < PER_FOLDER && (e = readdir(dir)) != NULL; i++) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            (size_t)snprintf(child, sizeof(child), "%s/%s", path, e->d_name) >= sizeof(child))
            continue;
        gather(l, child, depth - 1);
    }
}

void
prove_needles(const struct policy *policy, char *out, size_t n)
{
    static const char *const outside[] = { "/etc", "/run",  "/var",     "/var/lib", "/var/log", "/root", "/home",
                                           "/boot", "/srv", "/mnt",     "/media",   "/tmp",     "/var/tmp",
                                           "/dev/shm" };
    struct list l = { .policy = policy, .out = out, .size = n };
    char config[4096];

    out[0] = '\0';
    l.all = policy->mode.v != MODE_LIGHT && policy->view.v == VIEW_PRIVATE;
    for (size_t i = 0; i < policy->credentials.n; i++)
        if (policy->credentials.v[i].value[0] == '/')
            gather(&l, policy->credentials.v[i].value, 1);
    if (!l.all)
        return;
    if (policy->home != NULL && (size_t)snprintf(config, sizeof(config), "%s/.config", policy->home) < sizeof(config)) {
        gather(&l, policy->home, 1);
        gather(&l, config, 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(outside); i++)
        gather(&l, outside[i], 1);
}
