/* guest/guard_seen.c: what is kept of callers that come again and again
 *
 * Three things are dear to ask for: the directory of a caller below /proc, its working directory, and its umask, for
 * which the kernel writes a whole page of text. They are kept for callers that came before. What is kept belongs to the
 * thread and not to its number, so it can become useless, but never another's.
 *
 * The working directory is asked for each time all the same, for chdir() does not pass through the guard; but to ask
 * which directory it is (device, inode and mount) costs less than to open it, and when it is the one that is held, the
 * call is done there. Inode numbers of some file systems name more than one directory: only those are held that do not.
 *
 * The umask changes by umask(2) alone, which traps for this. It is the one call, with unshare(2), that goes on in the
 * kernel: its argument is a number in a register, which nobody can change any more, and it decides nothing. When it
 * will have gone on is not known. Whoever shares the umask (threads do) may create a file meanwhile, and what is read
 * for him then may be the former one: so nothing that differs from the mask that was asked for is kept until the thread
 * calls again, or is gone. A thread that no longer shares its umask could become the process by execve, with all that
 * is kept of that; so nothing is kept after the first unshare(CLONE_FS). (A thread that was made without CLONE_FS,
 * calls umask() and then execve() is not caught: no library makes such.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"
#include "guest/guard_priv.h"

#define WANTED (STATX_BASIC_STATS | STATX_MNT_ID)

struct seen *
seen_of(const struct call *c)
{
    for (size_t i = 0; i < SEEN_MAX; i++)
        if (c->g->seen[i].tid == c->tid)
            return &c->g->seen[i];
    return NULL;
}

static void
forget(struct seen *s)
{
    if (s->tid == 0)
        return;
    close_fd(&s->dir);
    close_fd(&s->status);
    close_fd(&s->pidfd);
    close_fd(&s->cwd);
    *s = (struct seen){ .tid = 0 };
}

void
seen_forget(struct call *c, struct seen *s)
{
    if (c->cwd_lent && c->cwd == s->cwd) {
        c->cwd_lent = false;
        s->cwd = -1;
    }
    forget(s);
}

void
seen_forget_all(struct guard *g)
{
    for (size_t i = 0; i < SEEN_MAX; i++)
        forget(&g->seen[i]);
    for (size_t i = 0; i < g->n_umask_calls; i++)
        close_fd(&g->umask_calls[i].dir);
    g->n_umask_calls = 0;
}

void
seen_drop(struct guard *g)
{
    for (size_t i = 0; i < SEEN_MAX; i++)
        g->seen[i].tid = 0;
    g->n_umask_calls = 0;
}

static int
open_dir(const struct guard *g, pid_t tid)
{
    char path[16];

    snprintf(path, sizeof(path), "%d", (int)tid);
    return openat(g->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* No call holds anything of the former one yet: it is closed. */
void
seen_note(struct call *c)
{
    struct guard *g = c->g;
    struct seen *s;
    bool again = false;

    if (seen_of(c) != NULL)
        return;
    for (size_t i = 0; i < RECENT_MAX && !again; i++)
        again = g->recent[i] == c->tid;
    if (!again) {
        g->recent[g->next_recent] = c->tid;
        g->next_recent = (g->next_recent + 1) % RECENT_MAX;
        return;
    }
    s = &g->seen[g->next_seen];
    g->next_seen = (g->next_seen + 1) % SEEN_MAX;
    forget(s);
    *s = (struct seen){ .tid = c->tid, .dir = open_dir(g, c->tid), .status = -1, .pidfd = -1, .cwd = -1 };
    if (s->dir < 0)
        s->tid = 0;
}

/* --- the working directory */

/* The same number for two directories would make the guard act in the wrong one. */
static bool
numbers_are_unique(int fd)
{
    static const uint32_t types[] = { 0xef53 /* ext2 to ext4 */, 0x58465342 /* XFS */, 0x9123683e /* btrfs */,
                                      0xf2f52010 /* F2FS */, GS_TMPFS_MAGIC };
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if ((uint32_t)fs.f_type == types[i])
            return true;
    return false;
}

/* What the guard asks of a directory's status. */
static struct stat
statx_stat(const struct statx *sx)
{
    struct ident id = statx_ident(sx);

    return (struct stat){ .st_dev = id.dev, .st_ino = id.ino, .st_mode = sx->stx_mode, .st_uid = sx->stx_uid,
                          .st_gid = sx->stx_gid, .st_nlink = sx->stx_nlink };
}

static bool
is_held(const struct seen *s, const struct statx *sx)
{
    return s->cwd >= 0 && ident_eq(s->cwd_id, statx_ident(sx)) && s->cwd_mount == sx->stx_mnt_id;
}

bool
seen_cwd(struct call *c, struct seen *s)
{
    struct statx sx;
    int fd;

    c->looked = true;
    if (kernel_statx(s->dir, "cwd", 0, WANTED, &sx) < 0)
        return false;
    if ((sx.stx_mask & STATX_MNT_ID) == 0)
        return false;
    if (!is_held(s, &sx)) {
        fd = openat(s->dir, "cwd", O_PATH | O_CLOEXEC);
        if (fd < 0)
            return false;
        if (kernel_statx(fd, "", AT_EMPTY_PATH, WANTED, &sx) < 0 || !numbers_are_unique(fd)) {
            close(fd);
            return false;
        }
        close_fd(&s->cwd);
        s->cwd = fd;
        s->cwd_id = statx_ident(&sx);
        s->cwd_mount = sx.stx_mnt_id;
    }
    c->cwd = c->g->lent = s->cwd;
    c->cwd_lent = true;
    c->cwd_st = statx_stat(&sx);
    return true;
}

/* --- the umask */

/* A thread that is gone, or that has only its end before it, has no working directory. */
static bool
has_ended(int dir)
{
    struct statx sx;

    return kernel_statx(dir, "cwd", 0, STATX_TYPE, &sx) < 0 && (errno == ENOENT || errno == ESRCH);
}

int
seen_pidfd(struct seen *s)
{
    if (s->pidfd >= 0)
        return s->pidfd;
    s->pidfd = (int)syscall(GS_NR_pidfd_open, s->tid, GS_PIDFD_THREAD);
    /* it is of who has the number; that is still the thread, if the thread is there after that */
    if (s->pidfd >= 0 && has_ended(s->dir))
        close_fd(&s->pidfd);
    return s->pidfd;
}

/* Does what is kept still belong to who has the number? */
static bool
is_alive(const struct call *c, struct seen *s)
{
    return c->cwd_lent || (seen_pidfd(s) >= 0 && syscall(GS_NR_pidfd_send_signal, s->pidfd, 0, NULL, 0U) == 0);
}

bool
seen_umask(struct call *c, struct seen *s)
{
    if (!s->umask_known || c->g->umask_untold || !is_alive(c, s))
        return false;
    c->umask = s->umask;
    return true;
}

static void
settle(struct guard *g, size_t i)
{
    close_fd(&g->umask_calls[i].dir);
    g->umask_calls[i] = g->umask_calls[--g->n_umask_calls];
}

/* A thread is through with its umask() when it calls again, or is gone. */
bool
seen_umask_settled(struct call *c)
{
    struct guard *g = c->g;

    for (size_t i = g->n_umask_calls; i-- > 0;)
        if (g->umask_calls[i].tid == c->tid || has_ended(g->umask_calls[i].dir))
            settle(g, i);
    return g->n_umask_calls == 0;
}

void
seen_umask_is(struct call *c, bool settled)
{
    const struct guard *g = c->g;
    struct seen *s = seen_of(c);

    for (size_t i = 0; !settled && i < g->n_umask_calls; i++)
        if (g->umask_calls[i].mask != c->umask)
            return;
    if (s == NULL || g->umask_untold)
        return;
    s->umask = c->umask;
    s->umask_known = true;
}

static void
forget_umasks(struct guard *g)
{
    for (size_t i = 0; i < SEEN_MAX; i++)
        g->seen[i].umask_known = false;
}

int
call_umask(struct call *c)
{
    struct guard *g = c->g;
    struct umask_call u = { .tid = c->tid, .dir = open_dir(g, c->tid), .mask = (mode_t)(c->args[0] & 0777) };

    forget_umasks(g);
    (void)seen_umask_settled(c);
    if (u.dir >= 0 && g->n_umask_calls < UMASK_CALLS_MAX) {
        g->umask_calls[g->n_umask_calls++] = u;
    } else {
        g->umask_untold = true;
        close_fd(&u.dir);
    }
    answer_go_on(c);
    return ANSWERED;
}

int
call_unshare(struct call *c)
{
    c->g->umask_untold = true;
    answer_go_on(c);
    return ANSWERED;
}
