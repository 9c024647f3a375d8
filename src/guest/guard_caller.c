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

int
caller_proc_open(const struct call *c, const char *name, int flags)
{
    char path[64];

    snprintf(path, sizeof(path), "%d/%s", (int)c->tid, name);
    return openat(c->g->proc, path, flags | O_CLOEXEC | O_NOCTTY);
}

int
caller_look(struct call *c)
{
    struct stat st;
    char path[32];
    int n = snprintf(path, sizeof(path), "%d/root", (int)c->tid);

    c->root = -1;
    /* Who may not be looked into shows here as another user's; nor do we act for anyone but ourselves. */
    path[n - 5] = '\0';
    if (c->tid <= 0 || fstatat(c->g->proc, path, &st, 0) < 0 || st.st_uid != c->g->uid || st.st_gid != c->g->gid)
        return -EPERM;
    path[n - 5] = '/';
    if (fstatat(c->g->proc, path, &st, 0) < 0)
        return -EPERM;
    c->root_id = ident_of(&st);
    c->own_root = ident_eq(c->root_id, c->g->root_id);
    if (!c->own_root && (c->root = caller_proc_open(c, "root", O_PATH)) < 0)
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
    char text[512];
    uint64_t mask, tgid;
    ssize_t n;

    if (c->tgid != 0)
        return 0;
    fd = caller_proc_open(c, "status", O_RDONLY);
    if (fd < 0)
        return -EPERM;
    n = read(fd, text, sizeof(text) - 1);
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
caller_dir(struct call *c, int dirfd)
{
    char name[32];
    int fd;

    if (dirfd == AT_FDCWD) {
        fd = caller_proc_open(c, "cwd", O_PATH);
        return fd >= 0 ? fd : -EPERM;
    }
    if (dirfd < 0)
        return -EBADF;
    snprintf(name, sizeof(name), "fd/%d", dirfd);
    fd = caller_proc_open(c, name, O_PATH);
    if (fd >= 0)
        return fd;
    return errno == ENOENT ? -EBADF : -EPERM;
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
