/* base/io.h: whole reads and writes, and bounded files */
#ifndef CLOCHE_BASE_IO_H
#define CLOCHE_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Read exactly @n bytes (EINTR retried). 0 on success, -1 with errno; a short read at end of file is errno EPIPE. */
int io_read_full(int fd, void *p, size_t n);
/* Write exactly @n bytes (EINTR retried). 0 or -1 with errno. The descriptor must be blocking. */
int io_write_full(int fd, const void *p, size_t n);
/* Up to @n bytes from @offset on (EINTR retried): less only at the end of the file. How many, or -1 with errno. */
ssize_t io_pread(int fd, void *p, size_t n, uint64_t offset);
/* Append the whole of @fd to @b (up to its ceiling). 0 or -1 with errno (EFBIG past the ceiling). */
int io_read_all(int fd, struct buf *b);
/* Read the file @path relative to @dirfd (AT_FDCWD) into @b. 0 or -1 with errno. Follows symlinks: trusted paths
 * only. */
int io_read_file(int dirfd, const char *path, struct buf *b);
/* The same of a regular file; what is none (a FIFO, which nobody may write to) is refused at once: EINVAL, EISDIR. */
int io_read_regular(int dirfd, const char *path, struct buf *b);
/* Write @cstr to an existing file (a /proc or cgroup control file) in one write(2). 0 or -1 with errno. */
int io_write_file(int dirfd, const char *path, const char *cstr);
/* Whether @name is there, a symbolic link itself included; false with errno. It works on every kernel, faccessat with
 * AT_SYMLINK_NOFOLLOW in musl only from Linux 5.8 on. */
bool io_present(int dirfd, const char *name);
/* Whether a name that a listing of the folder @dir (not O_PATH) does not have, but for the case of ASCII letters,
 * cannot be opened in it: not where the folder takes other letters for the same (FS_CASEFOLD_FL), nor where nobody can
 * say. */
bool io_exact_names(int dir);
/* Close every descriptor from @first on; where the kernel has no close_range(2) or refuses it, one by one those that
 * /proc lists, or without it all below 65536. 0, or -1 with errno when it failed for another reason than being absent
 * (ENOSYS) or filtered (EPERM). */
int io_close_from(int first);
/* recvmsg(2) of one message from a connected SOCK_SEQPACKET socket, EINTR retried. What a peer says before it closes is
 * never passed over, which the system call alone does not promise: a peer that closed with something unread resets us
 * (ECONNRESET) before its last messages, and on Linux a message and the close that come while an empty queue is looked
 * at read as 0 (unix_dgram_recvmsg(), seen on 6.18). So 0 is its end, or a message without a byte; @m then says whether
 * a descriptor came with it. -1 with errno. */
ssize_t io_recvmsg(int socket, struct msghdr *m, int flags);
/* The same of bytes alone; more than @room is cut off, as by recv(2), MSG_TRUNC among @flags says how much it was. */
ssize_t io_recv(int socket, void *p, size_t room, int flags);
/* A descriptor that only keeps a place: whoever closes it can have one more where there is no other. -1 with errno. */
int io_keep_place(void);
int io_set_cloexec(int fd, bool on);
int io_set_nonblock(int fd, bool on);

#endif
