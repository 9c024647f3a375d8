/* guest/look.c: see look.h */
#include "guest/look.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "guest/guard_sys.h"
#include "guest/own_domain.h"

#define FILTER_MAX 512

#define LOOK_NR_process_madvise  440
#define LOOK_NR_memfd_secret     447
#define LOOK_NR_process_mrelease 448

#define OFF_NR      0u
#define OFF_ARCH    4u
#define OFF_ARG(n)  (16u + 8u * (n))    /* low half: both architectures are little-endian */

/* What changes something: a file, its name, its attributes; another process; memory or a queue that others have too.
 * What only says so of a descriptor that cannot be had is here as well. */
static const int closed[] = {
#ifdef SYS_open
    SYS_creat, SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_rename, SYS_link, SYS_symlink, SYS_unlink, SYS_chmod, SYS_chown,
    SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_mkdirat, SYS_mknodat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_unlinkat, SYS_truncate, SYS_ftruncate,
    SYS_fallocate, SYS_fchmod, SYS_fchmodat, GS_NR_fchmodat2, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr,
    SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, GS_NR_setxattrat,
    GS_NR_removexattrat, GS_NR_file_setattr, GS_NR_openat2, SYS_open_by_handle_at, SYS_flock, SYS_quotactl,
    SYS_fanotify_init,
    /* other processes */
    SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_ptrace, SYS_process_vm_readv,
    SYS_process_vm_writev, SYS_kcmp, SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_sched_setaffinity, SYS_migrate_pages, SYS_move_pages, GS_NR_pidfd_send_signal,
    GS_NR_pidfd_open, GS_NR_pidfd_getfd, LOOK_NR_process_madvise, LOOK_NR_process_mrelease,
    SYS_setsid, SYS_setpgid,    /* so that all of it ends with its group */
    /* nobody is spoken to; socketpair() is below */
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    /* shared memory, queues, and files that are none */
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd,
    SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_mq_notify, SYS_memfd_create, LOOK_NR_memfd_secret,
    SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, GS_NR_io_uring_setup,
    GS_NR_io_uring_enter, GS_NR_io_uring_register,
    /* another view of the files; and a program from a descriptor */
    SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2, GS_NR_open_tree, GS_NR_move_mount,
    GS_NR_fsopen, GS_NR_fsmount, GS_NR_fspick, GS_NR_mount_setattr, GS_NR_open_tree_attr, SYS_execveat,
};

struct filter {
    unsigned short n;
    struct sock_filter insn[FILTER_MAX];
};

static void
put(struct filter *f, unsigned code, uint32_t k, uint8_t jt, uint8_t jf)
{
    if (f->n < FILTER_MAX)
        f->insn[f->n++] = (struct sock_filter){ (uint16_t)code, jt, jf, k };
}

static void
ret(struct filter *f, int error)
{
    put(f, BPF_RET | BPF_K, error == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)error, 0, 0);
}

/* With the number in A: when it is @nr go on, with its argument in A; @n instructions further when it is not. */
static void
when(struct filter *f, int nr, unsigned arg, uint8_t n)
{
    put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, (uint8_t)(n + 1));
    put(f, BPF_LD | BPF_W | BPF_ABS, OFF_ARG(arg), 0, 0);
}

/* One of @values, or it is refused. */
static void
when_one_of(struct filter *f, int nr, unsigned arg, const uint32_t *values, uint8_t n)
{
    when(f, nr, arg, (uint8_t)(n + 2));
    for (uint8_t i = 0; i < n; i++)
        put(f, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(n - i), 0);
    ret(f, EPERM);
    ret(f, 0);
}

/* What an open makes, empties, or does without a name is no look. Whether it may write is the domain's to say. */
static void
refuse_opens(struct filter *f, int nr, unsigned arg)
{
    when(f, nr, arg, 3);
    put(f, BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC | GS_OPEN_TMPFILE, 1, 0);
    ret(f, 0);
    ret(f, EROFS);
}

static void
build(struct filter *f)
{
    static const uint32_t commands[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL };
    static const uint32_t own[] = { 0 };

    put(f, BPF_LD | BPF_W | BPF_ABS, OFF_ARCH, 0, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, GS_ARCH, 1, 0);
    ret(f, ENOSYS);
    put(f, BPF_LD | BPF_W | BPF_ABS, OFF_NR, 0, 0);
#ifdef GS_X32_BIT
    put(f, BPF_JMP | BPF_JGE | BPF_K, GS_X32_BIT, 0, 1);
    ret(f, ENOSYS);
#endif
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)closed[i], 0, 1);
        ret(f, EPERM);
    }
#ifdef SYS_open
    refuse_opens(f, SYS_open, 1);
#endif
    refuse_opens(f, SYS_openat, 2);
    /* no locks, leases, and no signals by way of F_SETOWN */
    when_one_of(f, SYS_fcntl, 1, commands, ARRAY_LEN(commands));
    when_one_of(f, SYS_prlimit64, 0, own, ARRAY_LEN(own));
    /* of what a descriptor for reading is enough for, only a terminal's questions */
    when(f, SYS_ioctl, 1, 4);
    put(f, BPF_ALU | BPF_AND | BPF_K, 0xffffff00u, 0, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, 0x5400u, 1, 0);
    ret(f, EPERM);
    ret(f, 0);
    /* one of datagrams reaches every socket that has a path, without connect(2) */
    when(f, SYS_socketpair, 1, 5);
    put(f, BPF_ALU | BPF_AND | BPF_K, 0xfu, 0, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0);
    ret(f, EPERM);
    ret(f, 0);
    ret(f, 0);
}

int
look_enter(void)
{
    static struct filter f;     /* one child at a time, and the guest waits */
    struct sock_fprog prog = { .filter = f.insn };
    int domain;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || own_domain_look(&domain) < 0 || own_domain_enter(domain) < 0)
        return -1;
    f.n = 0;
    build(&f);
    prog.len = f.n;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -1 : 0;
}
