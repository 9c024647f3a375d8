/* guest/guard_caller.c: what the guard learns about a caller
 *
 * Everything is read through /proc/TID and process_vm_readv while the thread waits in its trapped call. A thread
 * that died meanwhile may have lent its number to another; so whatever was read here counts only after caller_waits()
 * said that the notification is still the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guest/guard_priv.h"

static struct seen *
seen_before(const struct call *c)
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
    s->tid = 0;
}

void
caller_forget(struct guard *g)
{
    for (size_t i = 0; i < SEEN_MAX; i++)
        forget(&g->seen[i]);
}

/* Keep what is asked for again and again. */
static void
remember(struct call *c)
{
    struct guard *g = c->g;
    struct seen *s = &g->seen[g->next_seen];
    char path[32];

    g->next_seen = (g->next_seen + 1) % SEEN_MAX;
    forget(s);
    snprintf(path, sizeof(path), "%d", (int)c->tid);
    s->dir = openat(g->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->status = s->dir < 0 ? -1 : openat(s->dir, "status", O_RDONLY | O_CLOEXEC);
    s->tid = c->tid;
    if (s->status < 0)
        forget(s);
}

int
caller_proc_open(const struct call *c, const char *name, int flags)
{
    struct seen *s = seen_before(c);
    char path[64];
    int fd;

    if (s != NULL) {
        fd = openat(s->dir, name, flags | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
            return fd;
        /* another thread by this number now, perhaps */
        forget(s);
    }
    snprintf(path, sizeof(path), "%d/%s", (int)c->tid, name);
    return openat(c->g->proc, path, flags | O_CLOEXEC | O_NOCTTY);
}

int
caller_look(struct call *c)
{
    struct stat st;
    char path[16];

    /* Looking into a process needs its ids to be ours; unless we are allowed to look into everything. */
    if (c->tid <= 0)
        return -EPERM;
    if (c->tid == c->g->last_tid && seen_before(c) == NULL)
        remember(c);
    c->g->last_tid = c->tid;
    if (!c->g->privileged)
        return 0;
    snprintf(path, sizeof(path), "%d", (int)c->tid);
    if (fstatat(c->g->proc, path, &st, 0) < 0 || st.st_uid != c->g->uid || st.st_gid != c->g->gid)
        return -EPERM;
    return 0;
}

bool
caller_waits(const struct call *c)
{
    return syscall(SYS_ioctl, c->listener, GS_NOTIF_ID_VALID, &c->id) == 0;
}

/* One piece of memory, whole or not at all. */
static int
read_memory(struct call *c, uint64_t addr, void *out, size_t n)
{
    cleanup_close int mem = -1;
    struct iovec local = { out, n };
    struct iovec remote = { (void *)(uintptr_t)addr, n };
    ssize_t got;

    if (n == 0)
        return 0;
    if (addr != (uintptr_t)addr || addr + n < addr)
        return -EFAULT;
    if (!c->g->no_vm_readv) {
        got = syscall(SYS_process_vm_readv, c->tid, &local, 1UL, &remote, 1UL, 0UL);
        if (got >= 0 || errno == EFAULT)
            return got == (ssize_t)n ? 0 : -EFAULT;
        if (errno != EPERM && errno != ENOSYS)
            return -EPERM;
    }
    if (addr > INT64_MAX - n)
        return -EFAULT;
    mem = caller_proc_open(c, "mem", O_RDONLY);
    if (mem < 0)
        return -EPERM;
    c->g->no_vm_readv = true;
    return pread(mem, out, n, (off_t)addr) == (ssize_t)n ? 0 : -EFAULT;
}

int
caller_bytes(struct call *c, uint64_t addr, void *out, size_t n)
{
    return read_memory(c, addr, out, n);
}

/* Where process_vm_writev(2) is left out of the list, as a debugger's, by /proc, which a Landlock of its own keeps from
 * being written in mode light. That way also writes where the caller itself may not: into its own copy of a page, which
 * is nobody else's. */
int
caller_put(struct call *c, uint64_t addr, const void *p, size_t n)
{
    struct iovec local = { (void *)(uintptr_t)p, n };
    struct iovec remote = { (void *)(uintptr_t)addr, n };
    cleanup_close int mem = -1;
    ssize_t done;

    if (addr != (uintptr_t)addr || addr > INT64_MAX - n)
        return -EFAULT;
    done = syscall(SYS_process_vm_writev, c->tid, &local, 1UL, &remote, 1UL, 0UL);
    if (done >= 0 || errno == EFAULT)
        return done == (ssize_t)n ? 0 : -EFAULT;
    mem = caller_proc_open(c, "mem", O_RDWR);
    if (mem < 0)
        return -EPERM;
    return pwrite(mem, p, n, (off_t)addr) == (ssize_t)n ? 0 : -EFAULT;
}

/* Page by page: the next page may not exist, and a byte that was copied is never read again. */
static int
read_string(struct call *c, uint64_t addr, char *out, size_t room, int too_long)
{
    size_t page = 4096, at = 0;

    while (at < room) {
        size_t n = page - (size_t)((addr + at) % page);
        int rc;

        if (n > room - at)
            n = room - at;
        rc = read_memory(c, addr + at, out + at, n);
        if (rc < 0)
            return rc;
        if (memchr(out + at, '\0', n) != NULL)
            return 0;
        at += n;
    }
    return too_long;
}

int
caller_string(struct call *c, uint64_t addr, char out[PATH_MAX])
{
    return read_string(c, addr, out, PATH_MAX, -ENAMETOOLONG);
}

int
caller_short_string(struct call *c, uint64_t addr, char *out, size_t room)
{
    return read_string(c, addr, out, room, -ERANGE);
}

/* The number behind "\n@name:\t" in a status file. */
static bool
status_field(const char *text, const char *name, unsigned base, uint64_t *out)
{
    const char *p = strstr(text, name);
    uint64_t v = 0;

    if (p == NULL)
        return false;
    for (p += strlen(name); *p == '\t' || *p == ' '; p++)
        ;
    for (; *p >= '0' && (unsigned)(*p - '0') < base; p++)
        v = v * base + (unsigned)(*p - '0');
    *out = v;
    return true;
}

int
caller_status(struct call *c)
{
    cleanup_close int fd = -1;
    struct seen *s = seen_before(c);
    char text[512];
    uint64_t mask, tgid;
    ssize_t n = -1;

    if (c->tgid != 0)
        return 0;
    if (s != NULL && (n = pread(s->status, text, sizeof(text) - 1, 0)) <= 0)
        forget(s);
    if (n <= 0) {
        fd = caller_proc_open(c, "status", O_RDONLY);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    }
    if (n <= 0)
        return -EPERM;
    text[n] = '\0';
    /* The first line is the program's name; a newline in it is shown escaped. */
    if (!status_field(text, "\nUmask:", 8, &mask) || !status_field(text, "\nTgid:", 10, &tgid) || tgid == 0)
        return -EPERM;
    c->umask = (mode_t)(mask & 0777);
    c->tgid = (pid_t)tgid;
    return 0;
}

int
caller_dir(struct call *c, int dirfd, int *owned)
{
    char name[32];
    int fd;

    *owned = -1;
    if (dirfd == AT_FDCWD) {
        if (c->cwd < 0)
            c->cwd = caller_proc_open(c, "cwd", O_PATH);
        return c->cwd >= 0 ? c->cwd : -EPERM;
    }
    if (dirfd < 0)
        return -EBADF;
    snprintf(name, sizeof(name), "fd/%d", dirfd);
    fd = caller_proc_open(c, name, O_PATH);
    if (fd >= 0)
        return *owned = fd;
    return errno == ENOENT ? -EBADF : -EPERM;
}

void
caller_done(struct call *c)
{
    close_fd(&c->cwd);
}

int
caller_fd(struct call *c, int fd)
{
    cleanup_close int pidfd = -1;
    long got;

    if (fd < 0)
        return -EBADF;
    pidfd = (int)syscall(GS_NR_pidfd_open, c->tid, GS_PIDFD_THREAD);
    if (pidfd < 0 && errno == EINVAL) {
        /* Before 6.9 only whole processes; threads share their descriptors but for rare ones that asked not to. */
        if (caller_status(c) < 0)
            return -EPERM;
        pidfd = (int)syscall(GS_NR_pidfd_open, c->tgid, 0U);
    }
    if (pidfd < 0)
        return -EPERM;
    got = syscall(GS_NR_pidfd_getfd, pidfd, fd, 0U);
    if (got < 0)
        return errno == EBADF ? -EBADF : -EPERM;
    return (int)got;
}

unsigned
caller_tty(struct call *c)
{
    cleanup_close int fd = caller_proc_open(c, "stat", O_RDONLY);
    char text[512];
    const char *p;
    uint64_t tty;
    size_t len;
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    /* "pid (name) state ppid pgrp session tty_nr": the name may hold anything, so count from its end. */
    p = strrchr(text, ')');
    for (int i = 0; p != NULL && i < 5; i++)
        p = strchr(p + 1, ' ');
    if (p == NULL)
        return 0;
    len = strcspn(p + 1, " ");
    return str_parse_u64((struct str){ p + 1, len }, UINT32_MAX, &tty) ? (unsigned)tty : 0;
}
