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
caller_proc_open(struct call *c, const char *name, int flags)
{
    struct seen *s = seen_of(c);
    char path[64];
    int fd;

    c->looked = true;
    if (s != NULL) {
        fd = openat(s->dir, name, flags | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
            return fd;
        /* another thread by this number now, perhaps */
        seen_forget(c, s);
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
    seen_note(c);
    if (!c->g->privileged)
        return 0;
    snprintf(path, sizeof(path), "%d", (int)c->tid);
    if (fstatat(c->g->proc, path, &st, 0) < 0 || st.st_uid != c->g->uid || st.st_gid != c->g->gid)
        return -EPERM;
    return 0;
}

bool
caller_waits(struct call *c)
{
    c->looked = syscall(SYS_ioctl, c->listener, GS_NOTIF_ID_VALID, &c->id) < 0;
    return !c->looked;
}

bool
caller_still_waits(struct call *c)
{
    return !c->looked || caller_waits(c);
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
    c->looked = true;
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

#define PAGE_BYTES 4096
#define MOST_PATHS 256          /* bytes that hold most of them, so that no more is copied */

static size_t
to_page_end(uint64_t addr)
{
    return PAGE_BYTES - (size_t)(addr % PAGE_BYTES);
}

/* Page by page: the next page may not exist, and a byte that was copied is never read again. */
static int
read_string(struct call *c, uint64_t addr, char *out, size_t room, int too_long)
{
    size_t at = 0;

    while (at < room) {
        size_t n = to_page_end(addr + at);
        int rc;

        if (n > room - at)
            n = room - at;
        if (at == 0 && n > MOST_PATHS)
            n = MOST_PATHS;
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

bool
caller_strings(struct call *c, uint64_t a, char out_a[PATH_MAX], uint64_t b, char out_b[PATH_MAX])
{
    const uint64_t addr[2] = { a, b };
    char *const out[2] = { out_a, out_b };
    struct iovec local[2], remote[2];
    size_t total = 0;

    for (size_t i = 0; i < 2; i++) {
        size_t n = to_page_end(addr[i]);

        n = n < MOST_PATHS ? n : MOST_PATHS;
        if (addr[i] != (uintptr_t)addr[i])
            return false;
        local[i] = (struct iovec){ out[i], n };
        remote[i] = (struct iovec){ (void *)(uintptr_t)addr[i], n };
        total += n;
    }
    c->looked = true;
    return !c->g->no_vm_readv &&
           syscall(SYS_process_vm_readv, c->tid, local, 2UL, remote, 2UL, 0UL) == (long)total &&
           memchr(out_a, '\0', local[0].iov_len) != NULL && memchr(out_b, '\0', local[1].iov_len) != NULL;
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
    struct seen *s = seen_of(c);
    char text[512];
    uint64_t mask, tgid;
    bool settled;
    ssize_t n = -1;

    if (c->tgid != 0)
        return 0;
    settled = seen_umask_settled(c);
    c->looked = true;
    if (s != NULL && s->status < 0)
        s->status = openat(s->dir, "status", O_RDONLY | O_CLOEXEC);
    if (s != NULL && (n = pread(s->status, text, sizeof(text) - 1, 0)) <= 0)
        seen_forget(c, s);
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
    c->umask_read = true;
    seen_umask_is(c, settled);
    return 0;
}

int
caller_umask(struct call *c)
{
    struct seen *s = seen_of(c);

    if (!c->umask_read)
        c->umask_read = s != NULL && seen_umask(c, s);
    return c->umask_read ? 0 : caller_status(c);
}

void
caller_umask_begin(const struct call *c)
{
    if (c->umask != c->g->own_umask)
        (void)umask(c->umask);
}

void
caller_umask_end(const struct call *c)
{
    if (c->umask != c->g->own_umask)
        (void)umask(c->g->own_umask);
}

int
caller_dir(struct call *c, int dirfd, int *owned)
{
    struct seen *s;
    char name[32];
    int fd;

    *owned = -1;
    if (dirfd == AT_FDCWD) {
        if (c->cwd < 0 && ((s = seen_of(c)) == NULL || !seen_cwd(c, s)))
            c->cwd = caller_proc_open(c, "cwd", O_PATH);
        return c->cwd >= 0 ? c->cwd : -EPERM;
    }
    if (dirfd < 0)
        return -EBADF;
    /* who calls again: his own descriptor, for a third of the price of an entry in /proc */
    c->looked = true;
    s = seen_of(c);
    if (s != NULL && seen_pidfd(s) >= 0 && (fd = (int)syscall(GS_NR_pidfd_getfd, s->pidfd, dirfd, 0U)) >= 0)
        return *owned = fd;
    snprintf(name, sizeof(name), "fd/%d", dirfd);
    fd = caller_proc_open(c, name, O_PATH);
    if (fd >= 0)
        return *owned = fd;
    return errno == ENOENT ? -EBADF : -EPERM;
}

void
caller_done(struct call *c)
{
    if (!c->cwd_lent)
        close_fd(&c->cwd);
}

int
caller_fd(struct call *c, int fd)
{
    cleanup_close int pidfd = -1;
    struct seen *s = seen_of(c);
    long got;

    if (fd < 0)
        return -EBADF;
    c->looked = true;
    if (s != NULL && seen_pidfd(s) >= 0 && (got = syscall(GS_NR_pidfd_getfd, s->pidfd, fd, 0U)) >= 0)
        return (int)got;
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
