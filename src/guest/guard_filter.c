/* guest/guard_filter.c: which calls trap, and how a command gets its filter (see guard.h)
 *
 * Conditions look at register arguments only. What a filter cannot judge because it lies in memory is either trapped
 * whole (connect) or closed (openat2), and so are the ways around: io_uring, file handles, subvolume ioctls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "guest/guard.h"
#include "guest/guard_sys.h"

/* classic BPF */
#define BPF_LD_ABS  0x20        /* A = data[k] */
#define BPF_JEQ     0x15
#define BPF_JGE     0x35
#define BPF_JSET    0x45
#define BPF_AND     0x54
#define BPF_RET     0x06

#define OFF_NR      0u
#define OFF_ARCH    4u
#define OFF_ARG(n)  (16u + 8u * (n))    /* low half: both architectures are little-endian */

#define ANSWER_ERRNO(e) (GS_RET_ERRNO | (uint32_t)(e))

struct trap {
    int nr;
    uint32_t flags;             /* traps when any of these is set in the plan */
};

/* Calls that trap whatever their arguments are. */
static const struct trap traps[] = {
#ifdef SYS_open
    { SYS_creat, GUARD_NAMES },
    { SYS_mkdir, GUARD_NAMES },
    { SYS_mknod, GUARD_NAMES },
    { SYS_rename, GUARD_NAMES },
    { SYS_link, GUARD_NAMES },
    { SYS_symlink, GUARD_NAMES },
    { SYS_unlink, GUARD_REMOVES },
    { SYS_rmdir, GUARD_REMOVES },
    { SYS_chmod, GUARD_WRITES },
    { SYS_chown, GUARD_WRITES },
    { SYS_lchown, GUARD_WRITES },
    { SYS_utime, GUARD_WRITES },
    { SYS_utimes, GUARD_WRITES },
    { SYS_futimesat, GUARD_WRITES },
#endif
#ifdef SYS_renameat
    { SYS_renameat, GUARD_NAMES },
#endif
    { SYS_mkdirat, GUARD_NAMES },
    { SYS_mknodat, GUARD_NAMES },
    { SYS_renameat2, GUARD_NAMES },
    { SYS_linkat, GUARD_NAMES },
    { SYS_symlinkat, GUARD_NAMES },
    { SYS_bind, GUARD_NAMES | GUARD_CONNECT },
    { SYS_connect, GUARD_CONNECT },
    { SYS_unlinkat, GUARD_REMOVES },
    { SYS_truncate, GUARD_WRITES },
    { SYS_fchmod, GUARD_WRITES },
    { SYS_fchmodat, GUARD_WRITES },
    { SYS_fchown, GUARD_WRITES },
    { SYS_fchownat, GUARD_WRITES },
    { SYS_setxattr, GUARD_WRITES },
    { SYS_lsetxattr, GUARD_WRITES },
    { SYS_fsetxattr, GUARD_WRITES },
    { SYS_removexattr, GUARD_WRITES },
    { SYS_lremovexattr, GUARD_WRITES },
    { SYS_fremovexattr, GUARD_WRITES },
    { SYS_utimensat, GUARD_WRITES },
    { SYS_umask, GUARD_NAMES },         /* nothing of it is ours, but the guard makes what the caller's umask is for */
};

struct answer {
    int nr;
    int error;
    uint32_t flags;
};

/* Ways around, closed. Another root directory, or mounts of one's own (in a nested user namespace), would make paths
 * mean something else to the caller than to us, and an overlay writes where no call of ours named anything. Landlock: a
 * caller that confined itself further would be served with the guard's wider rights, so it is told that there is no
 * Landlock instead of being given one that does not hold. */
static const struct answer answers[] = {
    { GS_NR_openat2, ENOSYS, GUARD_NAMES },
    { SYS_open_by_handle_at, EPERM, GUARD_NAMES },
    { SYS_chroot, EPERM, GUARD_FLAGS_ALL },
    { SYS_pivot_root, EPERM, GUARD_FLAGS_ALL },
    { SYS_setns, EPERM, GUARD_FLAGS_ALL },
    { SYS_mount, EPERM, GUARD_FLAGS_ALL },
    { SYS_umount2, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_open_tree, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_move_mount, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_fsopen, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_fsmount, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_fspick, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_mount_setattr, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_open_tree_attr, EPERM, GUARD_FLAGS_ALL },
    { GS_NR_io_uring_setup, ENOSYS, GUARD_FLAGS_ALL },
    { GS_NR_io_uring_enter, ENOSYS, GUARD_FLAGS_ALL },
    { GS_NR_io_uring_register, ENOSYS, GUARD_FLAGS_ALL },
    { GS_NR_landlock_create_ruleset, EOPNOTSUPP, GUARD_FLAGS_ALL },
    { GS_NR_landlock_restrict_self, EOPNOTSUPP, GUARD_FLAGS_ALL },
    { GS_NR_fchmodat2, ENOSYS, GUARD_WRITES },
    { GS_NR_setxattrat, ENOSYS, GUARD_WRITES },
    { GS_NR_removexattrat, ENOSYS, GUARD_WRITES },
    { GS_NR_file_setattr, ENOSYS, GUARD_WRITES },
};

static void
guard_filter_put(struct guard_filter *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    /* The program is fixed but for the flags; test_guard builds all of them. */
    if (f->n < GUARD_FILTER_MAX)
        f->insn[f->n++] = (struct guard_insn){ code, jt, jf, k };
}

static void
ret(struct guard_filter *f, uint32_t answer)
{
    guard_filter_put(f, BPF_RET, answer, 0, 0);
}

/* With the number in A: when it is @nr run the next @n instructions, which must end in a return. */
static void
when_nr(struct guard_filter *f, int nr, uint8_t n)
{
    guard_filter_put(f, BPF_JEQ, (uint32_t)nr, 0, n);
}

/* The open flags that make an open a matter of ours. */
static uint32_t
open_mask(uint32_t flags)
{
    if ((flags & GUARD_EXISTING) != 0)
        return O_CREAT | O_TRUNC | O_ACCMODE | GS_OPEN_TMPFILE;
    return (flags & GUARD_WRITES) != 0 ? O_CREAT | O_TRUNC | O_ACCMODE : O_CREAT;
}

/* The open flags that make it none. O_PATH opens nothing and creates nothing; a file without a name is new, and to give
 * it one is linkat's business. */
static uint32_t
open_passes(uint32_t flags)
{
    const uint32_t o_path = 010000000u;

    return (flags & (GUARD_WRITES | GUARD_EXISTING)) == GUARD_WRITES ? o_path | GS_OPEN_TMPFILE : o_path;
}

static void
trap_open(struct guard_filter *f, int nr, unsigned arg, uint32_t flags)
{
    when_nr(f, nr, 5);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(arg), 0, 0);
    guard_filter_put(f, BPF_JSET, open_passes(flags), 1, 0);
    guard_filter_put(f, BPF_JSET, open_mask(flags), 1, 0);
    ret(f, GS_RET_ALLOW);
    ret(f, GS_RET_USER_NOTIF);
}

/* Subvolume ioctls make directory entries without any name-creating call: btrfs (of its numbers only the three clone
 * calls that every file system shares stay) and bcachefs. Where writes pass through the guard, the flags of an inode
 * (chattr, fs-verity) do not change: a descriptor for reading is enough for that, and a guard that looked at every
 * ioctl would be dear. */
static void
close_ioctls(struct guard_filter *f, uint32_t flags)
{
    bool writes = (flags & GUARD_WRITES) != 0;

    when_nr(f, SYS_ioctl, writes ? 13 : 10);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(1), 0, 0);
    guard_filter_put(f, BPF_AND, 0xffffu, 0, 0);
    if (writes) {
        guard_filter_put(f, BPF_JEQ, 0x6602u /* FS_IOC_SETFLAGS */, 9, 0);
        guard_filter_put(f, BPF_JEQ, 0x5820u /* FS_IOC_FSSETXATTR */, 8, 0);
        guard_filter_put(f, BPF_JEQ, 0x6685u /* FS_IOC_ENABLE_VERITY */, 7, 0);
    }
    guard_filter_put(f, BPF_JEQ, 0x9409u /* FICLONE */, 5, 0);
    guard_filter_put(f, BPF_JEQ, 0x940du /* FICLONERANGE */, 4, 0);
    guard_filter_put(f, BPF_JEQ, 0x9436u /* FIDEDUPERANGE */, 3, 0);
    guard_filter_put(f, BPF_AND, 0xff00u, 0, 0);
    guard_filter_put(f, BPF_JEQ, 0x9400u, 2, 0);
    guard_filter_put(f, BPF_JEQ, 0xbc00u, 1, 0);
    ret(f, GS_RET_ALLOW);
    ret(f, ANSWER_ERRNO(ENOTTY));
}

/* Who does not share a umask any more: said to the guard (guard_seen.c). What makes a namespace of mounts or users does
 * it too. */
static void
tell_unshare(struct guard_filter *f)
{
    const uint32_t clone_fs = 0x200u, clone_newns = 0x20000u, clone_newuser = 0x10000000u;

    when_nr(f, SYS_unshare, 4);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(0), 0, 0);
    guard_filter_put(f, BPF_JSET, clone_fs | clone_newns | clone_newuser, 0, 1);
    ret(f, GS_RET_USER_NOTIF);
    ret(f, GS_RET_ALLOW);
}

/* A process that cannot be looked into could not be served; the wish is swallowed. */
static void
swallow_dumpable(struct guard_filter *f)
{
    when_nr(f, SYS_prctl, 4);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(0), 0, 0);
    guard_filter_put(f, BPF_JEQ, PR_SET_DUMPABLE, 0, 1);
    ret(f, ANSWER_ERRNO(0));
    ret(f, GS_RET_ALLOW);
}

/* A unix socket that needs no connect() would never pass the guard: refused, or made by us as one that does. */
static void
close_datagrams(struct guard_filter *f, int nr, uint32_t answer)
{
    when_nr(f, nr, 8);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(0), 0, 0);
    guard_filter_put(f, BPF_JEQ, AF_UNIX, 0, 4);
    guard_filter_put(f, BPF_LD_ABS, OFF_ARG(1), 0, 0);
    guard_filter_put(f, BPF_AND, 0xfu, 0, 0);
    guard_filter_put(f, BPF_JEQ, SOCK_STREAM, 1, 0);
    guard_filter_put(f, BPF_JEQ, SOCK_SEQPACKET, 0, 1);
    ret(f, GS_RET_ALLOW);
    ret(f, answer);
}

void
guard_filter_build(uint32_t flags, struct guard_filter *f)
{
    f->n = 0;
    flags = guard_flags_whole(flags);
    if ((flags & GUARD_FLAGS_ALL) == 0)
        return;
    guard_filter_put(f, BPF_LD_ABS, OFF_ARCH, 0, 0);
    guard_filter_put(f, BPF_JEQ, GS_ARCH, 1, 0);
    ret(f, ANSWER_ERRNO(ENOSYS));
    guard_filter_put(f, BPF_LD_ABS, OFF_NR, 0, 0);
#ifdef GS_X32_BIT
    guard_filter_put(f, BPF_JGE, GS_X32_BIT, 0, 1);
    ret(f, ANSWER_ERRNO(ENOSYS));
#endif
    /* the most frequent ones first: what opens for reading should not notice */
    if ((flags & GUARD_NAMES) != 0) {
        trap_open(f, SYS_openat, 2, flags);
#ifdef SYS_open
        trap_open(f, SYS_open, 1, flags);
#endif
        close_ioctls(f, flags);
        tell_unshare(f);
    }
    for (size_t i = 0; i < ARRAY_LEN(traps); i++) {
        if ((traps[i].flags & flags) == 0)
            continue;
        when_nr(f, traps[i].nr, 1);
        ret(f, GS_RET_USER_NOTIF);
    }
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        if ((answers[i].flags & flags) == 0)
            continue;
        when_nr(f, answers[i].nr, 1);
        ret(f, ANSWER_ERRNO(answers[i].error));
    }
    if ((flags & GUARD_CONNECT) != 0) {
        close_datagrams(f, SYS_socket, ANSWER_ERRNO(EPERM));
        close_datagrams(f, SYS_socketpair, GS_RET_USER_NOTIF);
    }
    swallow_dumpable(f);
    ret(f, GS_RET_ALLOW);
}

static int
send_descriptor(int sock, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 'g';
    struct iovec iov = { &byte, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
                        .msg_controllen = sizeof(control.room) };
    struct cmsghdr *c;

    memset(&control, 0, sizeof(control));
    c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    while (sendmsg(sock, &m, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

int
guard_child_install(const struct guard_filter *f, int sock)
{
    const struct gs_prog prog = { f->n, f->insn };
    long listener;
    int failed;

    listener = syscall(SYS_seccomp, GS_SET_MODE_FILTER, GS_FLAG_NEW_LISTENER | GS_FLAG_WAIT_KILLABLE, &prog);
    /* Before 5.19 signals may interrupt a call that is being served: slower programs, the same wall. */
    if (listener < 0 && errno == EINVAL)
        listener = syscall(SYS_seccomp, GS_SET_MODE_FILTER, GS_FLAG_NEW_LISTENER, &prog);
    if (listener < 0)
        return errno;
    failed = send_descriptor(sock, (int)listener);
    (void)close((int)listener);
    return failed;
}

int
guard_listener_take(int sock)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec iov = { &byte, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
                        .msg_controllen = sizeof(control.room) };
    const struct cmsghdr *c;
    ssize_t n;
    int fd;

    while ((n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC)) < 0)
        if (errno != EINTR)
            return -1;
    c = CMSG_FIRSTHDR(&m);
    if (n != 1 || c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int)) || (m.msg_flags & MSG_CTRUNC) != 0) {
        errno = EPIPE;
        return -1;
    }
    memcpy(&fd, CMSG_DATA(c), sizeof(int));
    /* The caller sleeps while it is served: run on its processor instead of waking another. A hint (Linux 6.6). */
    (void)syscall(SYS_ioctl, fd, GS_NOTIF_SET_FLAGS, GS_SYNC_WAKE_UP);
    return fd;
}
