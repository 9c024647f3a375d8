/* guest/guard.c: one notification after the other (see guard.h, guard_priv.h) */
#include "guest/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest/guard_priv.h"

static const struct {
    int nr;
    int (*serve)(struct call *c);
    const char *op;
} calls[] = {
    { SYS_openat, call_open, "create" },
    { SYS_mkdirat, call_make, "mkdir" },
    { SYS_mknodat, call_make, "mknod" },
    { SYS_renameat2, call_rename, "rename" },
    { SYS_linkat, call_link, "link" },
    { SYS_symlinkat, call_symlink, "symlink" },
    { SYS_unlinkat, call_modify, "remove" },
    { SYS_connect, call_connect, "connect" },
    { SYS_bind, call_bind, "bind" },
    { SYS_socketpair, call_socketpair, "socketpair" },
    { SYS_truncate, call_modify, "truncate" },
    { SYS_fchmod, call_modify, "chmod" },
    { SYS_fchmodat, call_modify, "chmod" },
    { SYS_fchown, call_modify, "chown" },
    { SYS_fchownat, call_modify, "chown" },
    { SYS_setxattr, call_modify, "setxattr" },
    { SYS_lsetxattr, call_modify, "setxattr" },
    { SYS_fsetxattr, call_modify, "setxattr" },
    { SYS_removexattr, call_modify, "setxattr" },
    { SYS_lremovexattr, call_modify, "setxattr" },
    { SYS_fremovexattr, call_modify, "setxattr" },
    { SYS_utimensat, call_modify, "utime" },
    { SYS_umask, call_umask, "umask" },
    { SYS_unshare, call_unshare, "unshare" },
#ifdef SYS_renameat
    { SYS_renameat, call_rename, "rename" },
#endif
#ifdef SYS_open
    { SYS_open, call_open, "create" },
    { SYS_creat, call_open, "create" },
    { SYS_mkdir, call_make, "mkdir" },
    { SYS_mknod, call_make, "mknod" },
    { SYS_rename, call_rename, "rename" },
    { SYS_link, call_link, "link" },
    { SYS_symlink, call_symlink, "symlink" },
    { SYS_unlink, call_modify, "remove" },
    { SYS_rmdir, call_modify, "remove" },
    { SYS_chmod, call_modify, "chmod" },
    { SYS_chown, call_modify, "chown" },
    { SYS_lchown, call_modify, "chown" },
    { SYS_utime, call_modify, "utime" },
    { SYS_utimes, call_modify, "utime" },
    { SYS_futimesat, call_modify, "utime" },
#endif
};

/* --- start and end */

static int
copy_list(char ***out, size_t *n_out, char *const *list, size_t n, struct err *err)
{
    *out = calloc(n + 1, sizeof(**out));
    if (*out == NULL)
        return err_sys(err, errno, "memory", "the name guard");
    for (; *n_out < n; ++*n_out)
        if (((*out)[*n_out] = strdup(list[*n_out])) == NULL)
            return err_sys(err, errno, "memory", "the name guard");
    return 0;
}

/* /proc is how callers are looked at: it must be procfs, and show our own pid namespace. */
static int
open_proc(struct guard *g, struct err *err)
{
    char self[16] = "", own[16];
    struct stat st;

    g->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (g->proc < 0 || fstat(g->proc, &st) < 0)
        return err_sys(err, errno, "guard.proc", "/proc");
    snprintf(own, sizeof(own), "%d", (int)g->pid);
    if (!walk_is_proc(g->proc) || readlinkat(g->proc, "self", self, sizeof(self) - 1) < 0 || strcmp(self, own) != 0)
        return err_set(err, ERR_SYSTEM, "guard.proc", "/proc does not show the name guard's own processes");
    g->proc_dev = st.st_dev;
    g->fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return g->fds >= 0 ? 0 : err_sys(err, errno, "guard.proc", "/proc/self/fd");
}

/* CAP_SYS_PTRACE: then reading a process's memory says nothing about whose it is. */
static bool
may_trace_anyone(void)
{
    struct { uint32_t version; int pid; } head = { 0x20080522, 0 };
    struct { uint32_t effective, permitted, inheritable; } data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

    return syscall(SYS_capget, &head, data) < 0 || (data[0].effective & (1u << 19)) != 0;
}

static void
find_plain_devs(struct guard *g)
{
    for (size_t i = 0; i < g->rules.n_roots && g->n_plain_devs < OWN_DEVS_MAX; i++) {
        struct stat st;

        if (!walk_is_proc(g->rules.roots[i].fd) && fstat(g->rules.roots[i].fd, &st) == 0)
            g->plain_devs[g->n_plain_devs++] = st.st_dev;
    }
}

/* The tmpfs that a private root stands on, unless a guarded tree is on it. */
static void
find_own_devs(struct guard *g)
{
    static const char *const places[] = { "/", "/tmp" };

    if ((g->flags & GUARD_EXISTING) != 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct statfs fs;
        struct stat st, root;
        bool own = statfs(places[i], &fs) == 0 && fs.f_type == GS_TMPFS_MAGIC && stat(places[i], &st) == 0;

        for (size_t k = 0; own && k < g->rules.n_roots; k++)
            own = fstat(g->rules.roots[k].fd, &root) == 0 && root.st_dev != st.st_dev;
        for (size_t k = 0; own && k < g->n_trees; k++)
            own = stat(g->trees[k], &root) == 0 && root.st_dev != st.st_dev;
        if (own)
            g->own_devs[g->n_own_devs++] = st.st_dev;
    }
}

static int
start(struct guard *g, const struct guard_plan *plan, struct err *err)
{
    g->flags = guard_flags_whole(plan->flags);
    g->umask_untold = (g->flags & GUARD_NAMES) == 0;    /* umask() does not trap then */
    g->pid = getpid();
    g->uid = geteuid();
    g->gid = getegid();
    g->own_umask = umask(0);
    (void)umask(g->own_umask);
    g->privileged = may_trace_anyone();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "guard.proc", "PR_SET_DUMPABLE");
    if (open_proc(g, err) < 0)
        return -1;
    g->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (g->root < 0)
        return err_sys(err, errno, "guard.root", "/");
    g->home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (copy_list(&g->sockets, &g->n_sockets, plan->sockets, plan->n_sockets, err) < 0 ||
        copy_list(&g->socket_trees, &g->n_socket_trees, plan->socket_trees, plan->n_socket_trees, err) < 0 ||
        copy_list(&g->trees, &g->n_trees, plan->trees, plan->n_trees, err) < 0)
        return -1;
    if (alias_init(g) < 0)
        return err_sys(err, errno, "memory", "the name guard");
    if (rules_init(&g->rules, plan, err) < 0)
        return -1;
    find_own_devs(g);
    find_plain_devs(g);
    near_init(g);
    return 0;
}

int
guard_new(const struct guard_plan *plan, struct guard **out, struct err *err)
{
    struct guard *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return err_sys(err, errno, "memory", "the name guard");
    g->proc = g->fds = g->root = g->home = g->lent = g->bind_watch = -1;
    if (start(g, plan, err) < 0) {
        guard_free(g);
        return -1;
    }
    *out = g;
    return 0;
}

static void
free_denial(struct denial_slot *d)
{
    free(d->target);
    free(d->rule);
    *d = (struct denial_slot){ 0 };
}

static void
free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void
guard_free(struct guard *g)
{
    if (g == NULL)
        return;
    later_settle(g, true);
    held_forget_all(g);
    rules_free(&g->rules);
    seen_forget_all(g);
    device_forget_all(g);
    alias_free(g);
    free_list(g->sockets, g->n_sockets);
    free_list(g->socket_trees, g->n_socket_trees);
    free_list(g->trees, g->n_trees);
    for (size_t i = 0; i < g->n_own_sockets; i++)
        close_fd(&g->own_sockets[i].fd);
    close_fd(&g->bind_watch);
    for (size_t i = 0; i < g->n_denials; i++)
        free_denial(&g->denials[i]);
    free_denial(&g->taken);
    close_fd(&g->proc);
    close_fd(&g->fds);
    close_fd(&g->root);
    close_fd(&g->home);
    free(g);
}

/* --- denials */

int
deny_text(struct guard *g, const char *op, const char *target, const char *rule)
{
    struct denial_slot *d;

    for (size_t i = 0; i < g->n_denials; i++) {
        d = &g->denials[i];
        if (strcmp(d->op, op) == 0 && strcmp(d->target, target) == 0 && strcmp(d->rule, rule) == 0) {
            d->count += d->count < UINT32_MAX;
            return 0;
        }
    }
    d = &g->denials[g->n_denials];
    if (g->n_denials < DENIALS_MAX) {
        *d = (struct denial_slot){ 1, op, strdup(target), strdup(rule) };
        if (d->target != NULL && d->rule != NULL) {
            g->n_denials++;
            return 0;
        }
        free_denial(d);
    }
    g->more_denials += g->more_denials < UINT32_MAX;
    return 0;
}

int
deny(struct call *c, const struct place *p, const char *rule, int error)
{
    char text[2 * PATH_MAX];
    ssize_t n = fd_text(c->g, p->dir, text, PATH_MAX);

    if (n < 0)
        n = 0;
    if (n == 1)
        n = 0;      /* "/" */
    text[n] = '/';
    memcpy(text + n + 1, p->name, p->name_n);
    text[(size_t)n + 1 + p->name_n] = '\0';
    deny_text(c->g, c->op, text, rule);
    return -error;
}

bool
guard_next_denial(struct guard *g, struct guard_denial *out)
{
    free_denial(&g->taken);
    if (g->n_denials == 0 && g->more_denials == 0)
        return false;
    if (g->n_denials == 0) {
        *out = (struct guard_denial){ g->more_denials, "other", "...", "..." };
        g->more_denials = 0;
        return true;
    }
    g->taken = g->denials[0];
    memmove(g->denials, g->denials + 1, --g->n_denials * sizeof(g->denials[0]));
    *out = (struct guard_denial){ g->taken.count, g->taken.op, g->taken.target, g->taken.rule };
    return true;
}

bool
judge_make(struct call *c, const struct place *p, bool directory, const char **rule)
{
    enum place_kind kind;

    /* names that nothing can be made under */
    if (p->name[0] == '/' || (p->name_n == 1 && p->name[0] == '.') || (p->name_n == 2 && memcmp(p->name, "..", 2) == 0))
        return false;
    kind = rules_place(c->g, p->dir, &p->dir_st, p->name, p->name_n, rule);
    return kind == PLACE_PROTECTED || (kind == PLACE_INTERIOR && !directory);
}

/* --- answers */

void
answer(const struct call *c, int result)
{
    struct gs_resp resp = { .id = c->id };

    if (result < 0)
        resp.error = result;
    else
        resp.val = result;
    /* ENOENT: the caller is gone, nobody waits for this. */
    (void)syscall(SYS_ioctl, c->listener, GS_NOTIF_SEND, &resp);
}

void
answer_go_on(const struct call *c)
{
    const struct gs_resp resp = { .id = c->id, .flags = GS_GO_ON };

    (void)syscall(SYS_ioctl, c->listener, GS_NOTIF_SEND, &resp);
}

int
add_fd(const struct call *c, int fd, bool cloexec)
{
    struct gs_addfd add = { .id = c->id, .srcfd = (uint32_t)fd, .newfd_flags = cloexec ? O_CLOEXEC : 0 };
    long rc = syscall(SYS_ioctl, c->listener, GS_NOTIF_ADDFD, &add);

    if (rc >= 0)
        return (int)rc;
    return errno == ENOENT ? ANSWERED : -errno;
}

/* @fd is the caller's @number, or was not passed. */
static int
answer_number(const struct call *c, int fd, int number)
{
    close(fd);
    if (number < 0)
        return number;
    answer(c, number);
    return ANSWERED;
}

int
answer_fd_closed(struct call *c, int fd, bool cloexec)
{
    return answer_number(c, fd, add_fd(c, fd, cloexec));
}

static int
answer_fd_near(struct call *c, int fd, bool cloexec)
{
    struct near_hold hold;
    int number;

    near_begin(c, &hold);
    number = add_fd(c, fd, cloexec);
    near_end(c, &hold);
    return answer_number(c, fd, number);
}

int
answer_fd(struct call *c, int fd, bool cloexec)
{
    struct gs_addfd add = { .id = c->id, .flags = GS_ADDFD_SEND, .srcfd = (uint32_t)fd,
                            .newfd_flags = cloexec ? O_CLOEXEC : 0 };
    long rc;
    int saved;

    if (near_is_worth(c))
        return answer_fd_near(c, fd, cloexec);
    rc = syscall(SYS_ioctl, c->listener, GS_NOTIF_ADDFD, &add);
    saved = errno;
    near_look(c->g);
    close(fd);
    if (rc >= 0 || saved == ENOENT)
        return ANSWERED;
    /* EMFILE is the caller's own limit; EINVAL a kernel without SEND, which guard_probe() refuses */
    return saved == EINVAL ? -EACCES : -saved;
}

/* --- serving */

static int
serve(struct call *c)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        int rc;

        if (calls[i].nr != c->nr)
            continue;
        c->op = calls[i].op;
        /* nothing is done for him, and they must not fail */
        if (c->nr == SYS_umask || c->nr == SYS_unshare)
            return calls[i].serve(c);
        rc = caller_look(c);
        if (rc == 0)
            return calls[i].serve(c);
        deny_text(c->g, c->op, "?", "caller cannot be looked into");
        return rc;
    }
    return -ENOSYS;
}

/* 1: served; 0: there was nothing after all; -1 with errno. */
static int
serve_one(struct guard *g, int listener)
{
    struct gs_notif n;
    struct call c;
    int result;

    rules_next_call(&g->rules);
    if (g->n_later > 0) {
        later_settle(g, false);
        rules_next_call(&g->rules);
    }
    (void)held_settle(g);
    memset(&n, 0, sizeof(n));       /* the kernel insists */
    if (syscall(SYS_ioctl, listener, GS_NOTIF_RECV, &n) < 0)
        return errno == ENOENT || errno == EINTR ? 0 : -1;
    c = (struct call){ .g = g, .listener = listener, .id = n.id, .tid = (pid_t)n.pid, .nr = n.nr, .cwd = -1 };
    memcpy(c.args, n.args, sizeof(c.args));
    result = n.arch == GS_ARCH ? serve(&c) : -ENOSYS;
    caller_done(&c);
    if (result != ANSWERED)
        answer(&c, result);
    text_done(g);
    return 1;
}

int
guard_on_notify(struct guard *g, int listener, int revents)
{
    /* RECV would wait when there is nothing to receive. After POLLIN there is: the kernel counts the calls that came,
     * also those whose callers died since, and only we take them from it. */
    if ((revents & POLLIN) == 0) {
        if ((revents & (POLLHUP | POLLERR | POLLNVAL)) == 0)
            return 0;
        later_settle(g, false);
        return 1;
    }
    return serve_one(g, listener) < 0 ? -1 : 0;
}
