/* What is left to a keeper whose sandbox is made, tried from inside as a guest would that took it over (R26, R61) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "keeper/keeper.h"

/* another program */
static void try_exec(void) { (void)execl("/bin/true", "true", NULL); }
static void try_execveat(void) { (void)syscall(SYS_execveat, 0, "", NULL, NULL, AT_EMPTY_PATH); }
static void try_code(void) { (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void
try_make_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

/* another namespace, another tree, another user */
static long clone_with(unsigned long f) { return syscall(SYS_clone, f | SIGCHLD, NULL, NULL, NULL, NULL); }
static void try_unshare(void) { (void)unshare(CLONE_NEWNS); }
static void try_setns(void) { (void)setns(0, 0); }
static void try_clone_user(void) { if (clone_with(CLONE_NEWUSER) == 0) _exit(0); }
static void try_clone_mine(void) { if (clone_with(CLONE_PARENT) == 0) _exit(0); }
static void try_clone3(void) { (void)syscall(SYS_clone3, NULL, 0); }
static void try_mount(void) { (void)mount("none", "/nowhere", "tmpfs", 0, NULL); }
static void try_chroot(void) { (void)!chroot("/nowhere"); }
static void try_setuid(void) { (void)!setresuid(getuid(), getuid(), getuid()); }
static void try_capset(void) { (void)syscall(SYS_capset, NULL, NULL); }
static void try_mknod(void) { (void)mknod("/nowhere/x", S_IFIFO | 0600, 0); }
static void try_chown(void) { (void)!chown("/nowhere/x", 0, 0); }
static void try_link(void) { (void)!link("/nowhere/x", "/nowhere/y"); }
static void try_symlink(void) { (void)!symlink("/nowhere/x", "/nowhere/y"); }
static void try_by_handle(void) { (void)syscall(SYS_open_by_handle_at, -1, NULL, 0); }

/* sockets by name or address */
static void try_inet(void) { (void)socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_unix(void) { (void)socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_netlink(void) { (void)socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0); }
static void try_connect(void) { (void)connect(0, NULL, 0); }
static void try_bind(void) { (void)bind(0, NULL, 0); }
static void try_datagram(void) { int pair[2]; (void)socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair); }

/* other processes */
static void try_ptrace(void) { (void)ptrace(PTRACE_PEEKUSER, getppid(), NULL, NULL); }
static void try_read_memory(void) { (void)process_vm_readv(getppid(), NULL, 0, NULL, 0, 0); }
static void try_limit(void) { struct rlimit l; (void)prlimit(getppid(), RLIMIT_CORE, NULL, &l); }
static void try_take(void) { (void)syscall(438, -1, 0, 0); }           /* pidfd_getfd */
static void try_terminal(void) { char c = 'x'; (void)ioctl(0, TIOCSTI, &c); }
static void try_loop(void) { (void)ioctl(0, 0x4c00, 0); }       /* LOOP_SET_FD */
static void try_owner(void) { (void)fcntl(0, F_SETOWN, getppid()); }
static void try_dumpable(void) { (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static void try_subreaper(void) { (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

/* much of the kernel at once */
static void try_bpf(void) { (void)syscall(SYS_bpf, 0, NULL, 0); }
static void try_keys(void) { (void)syscall(SYS_keyctl, 0, -2, 0); }
static void try_uring(void) { (void)syscall(425, 1, NULL); }            /* io_uring_setup */
static void try_perf(void) { (void)syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0); }
static void try_faults(void) { (void)syscall(SYS_userfaultfd, 0); }
static void try_module(void) { (void)syscall(SYS_init_module, NULL, 0, ""); }
static void try_reboot(void) { (void)syscall(SYS_reboot, 0, 0, 0, NULL); }

static void
confined(void **state)
{
    static void (*const attempts[])(void) = {
        try_exec, try_execveat, try_code, try_make_code, try_unshare, try_setns, try_clone_user,
        try_clone_mine, try_clone3, try_mount, try_chroot, try_setuid, try_capset, try_mknod, try_chown, try_link,
        try_symlink, try_by_handle, try_inet, try_unix, try_netlink, try_connect, try_bind, try_datagram, try_ptrace,
        try_read_memory, try_limit, try_take, try_terminal, try_loop, try_owner, try_dumpable, try_subreaper, try_bpf,
        try_keys, try_uring, try_perf, try_faults, try_module, try_reboot,
    };

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    attack(keeper_confine, attempts, ARRAY_LEN(attempts));
}

/* A process that it makes has the same list. */
static void
its_child(void **state)
{
    static void (*const attempts[])(void) = { try_exec, try_unix, try_mount, try_ptrace };
    int status;

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();
#endif
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        pid_t pid = fork(), inner;
        if (pid == 0) {
            if (keeper_confine(NULL) < 0 || (inner = fork()) < 0)
                _exit(2);
            if (inner == 0) {
                attempts[i]();
                _exit(0);
            }
            _exit(waitpid(inner, &status, 0) == inner && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? 0 : 3);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* What it does all the time. */
static void
what_is_left(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        char c = 'x';
        int pair[2], fd;
        if (keeper_confine(NULL) < 0 || prctl(PR_SET_NAME, "renamed") < 0 || prctl(PR_SET_PDEATHSIG, 0) < 0)
            _exit(2);
        fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &c, 1) != 1 || close(fd) < 0 || pipe2(pair, O_CLOEXEC) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
            send(pair[0], &c, 1, MSG_NOSIGNAL) != 1 || read(pair[1], &c, 1) != 1)
            _exit(3);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confined), cmocka_unit_test(its_child), cmocka_unit_test(what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
