/* base/io.c: see io.h */
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "base/str.h"

#define CLOSE_FALLBACK_MAX 65536

int
io_read_full(int fd, void *p, size_t n)
{
    char *at = p;

    while (n > 0) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0) {
            errno = EPIPE;
            return -1;
        }
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int
io_write_full(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

ssize_t
io_pread(int fd, void *p, size_t n, uint64_t offset)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = pread(fd, (char *)p + have, n - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

int
io_read_all(int fd, struct buf *b)
{
    for (;;) {
        char chunk[8192];
        ssize_t got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            return 0;
        if (buf_append(b, chunk, (size_t)got) < 0) {
            errno = EFBIG;
            return -1;
        }
    }
}

int
io_read_file(int dirfd, const char *path, struct buf *b)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -1;
    return io_read_all(fd, b);
}

int
io_read_regular(int dirfd, const char *path, struct buf *b)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return -1;
    }
    return io_read_all(fd, b);
}

int
io_write_file(int dirfd, const char *path, const char *cstr)
{
    cleanup_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    size_t n = strlen(cstr);

    if (fd < 0)
        return -1;
    for (;;) {
        ssize_t put = write(fd, cstr, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        if ((size_t)put != n) {
            errno = EIO;
            return -1;
        }
        return 0;
    }
}

bool
io_present(int dirfd, const char *name)
{
    struct stat st;

    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
io_exact_names(int dir)
{
    unsigned flags = 0;

    return syscall(SYS_ioctl, dir, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL) == 0;
}

/* Those that /proc names: a limit that was lower later says nothing about those that were there. */
static int
close_listed(int first)
{
    cleanup_dir DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int why = 0;

    while (dir != NULL) {
        uint64_t fd;
        errno = 0;
        if ((entry = readdir(dir)) == NULL) {
            why = errno;
            break;
        }
        if (str_parse_u64(str_of(entry->d_name), INT_MAX, &fd) && (int)fd >= first && (int)fd != dirfd(dir))
            close((int)fd);
    }
    return dir == NULL || why != 0 ? -1 : 0;
}

int
io_close_from(int first)
{
    int why;

    if (kernel_close_range((unsigned)first, ~0U, 0) == 0)
        return 0;
    why = errno;
    if (why != ENOSYS && why != EPERM)
        return -1;
    if (close_listed(first) == 0)
        return 0;
    for (int fd = first; fd < CLOSE_FALLBACK_MAX; fd++)
        close(fd);
    return 0;
}

ssize_t
io_recvmsg(int socket, struct msghdr *m, int flags)
{
    socklen_t room = (socklen_t)m->msg_controllen;
    bool again = false;

    for (;;) {
        ssize_t n;
        m->msg_controllen = room;
        n = recvmsg(socket, m, flags | (again ? MSG_DONTWAIT : 0));
        if (n < 0 && (errno == EINTR || errno == ECONNRESET))
            continue;
        if (again && n < 0 && errno == EAGAIN) {
            m->msg_controllen = 0;
            m->msg_flags = 0;
            return 0;           /* it was a message without a byte, and nothing is behind it yet */
        }
        if (n != 0 || again || m->msg_controllen > 0)
            return n;
        again = true;           /* behind its end nothing comes any more: what is not there now never was */
    }
}

ssize_t
io_recv(int socket, void *p, size_t room, int flags)
{
    struct iovec iov = { .iov_base = p, .iov_len = room };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    return io_recvmsg(socket, &m, flags);
}

int
io_keep_place(void)
{
    return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
}

int
io_set_cloexec(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
}

int
io_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
