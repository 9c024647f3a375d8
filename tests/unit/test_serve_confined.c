/* What is left to the daemon's confined processes, tried from inside (R61) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/host.h"
#include "attack.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "front/front.h"
#include "wall/service.h"
#include "warden/warden.h"

static char root[] = "/tmp/cloche-unit-confined-XXXXXX";

static void try_open(void) { (void)open("/etc/passwd", O_RDONLY | O_CLOEXEC); }
static void try_create(void) { (void)open("/tmp/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }
static void try_inet(void) { (void)socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_unix(void) { (void)socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_connect(void) { (void)connect(0, NULL, 0); }
static void try_fork(void) { (void)fork(); }
static void try_exec(void) { (void)execl("/bin/true", "true", NULL); }
static void try_kill(void) { (void)kill(getppid(), 0); }
static void try_ptrace(void) { (void)ptrace(PTRACE_PEEKUSER, getppid(), NULL, NULL); }
static void try_dumpable(void) { (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static void try_unlink(void) { (void)unlink("/tmp/x"); }
static void try_chdir(void) { (void)!chdir("/"); }
static void try_owner(void) { (void)fcntl(0, F_SETOWN, getppid()); }
static void try_async(void) { (void)fcntl(0, F_SETSIG, SIGKILL); }
static void try_code(void) { (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* What connect(2) and socket(2) are refused for, without either. */
static void
try_datagram(void)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int pair[2];

    snprintf(to.sun_path, sizeof(to.sun_path), "%s/taken", root);
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0)
        (void)sendto(pair[0], "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
}

/* A signal to a process that is not ours, by what is on every list. */
static void
try_signal(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || fcntl(pair[0], F_SETFL, O_ASYNC) < 0 ||
        fcntl(pair[0], F_SETSIG, SIGUSR1) < 0 || fcntl(pair[0], F_SETOWN, getppid()) < 0)
        _exit(1);
    (void)!write(pair[1], "x", 1);
}

static volatile sig_atomic_t signals;

static void
on_signal(int signo)
{
    (void)signo;
    signals++;
}

/* Both reach somebody where there is no wall; the filter alone stops them, for not every kernel's Landlock does. */
static void
calls_that_are_more_than_they_seem(void **state)
{
    static const unsigned calls[] = { SYS_fcntl, SYS_socketpair, SYS_sendto, SYS_write, SYS_getppid, SYS_exit_group };
    static const struct service_plan plan = { .calls = calls, .n_calls = 6 };
    static void (*const attempts[])(void) = { try_signal, try_datagram };
    struct sockaddr_un own = { .sun_family = AF_UNIX };
    cleanup_close int heard = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char c;

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    snprintf(own.sun_path, sizeof(own.sun_path), "%s/taken", root);
    assert_int_equal(bind(heard, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART }, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        bool walled = i >= 2;
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            if (walled && service_filter(&plan, NULL) < 0)
                _exit(2);
            attempts[i % 2]();
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(walled ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS : WIFEXITED(status));
        assert_int_equal(signals > 0, i % 2 == 0 && !walled);
        assert_int_equal(recv(heard, &c, 1, 0), i % 2 == 1 && !walled ? 1 : -1);
        signals = 0;
    }
    (void)unlink(own.sun_path);
}

/* A list of what is denied leaves everything else, by whichever number it is asked for. */
static void
what_is_denied(void **state)
{
    static const unsigned denied[] = { SYS_ptrace, SYS_keyctl };
    int status;
    pid_t pid;

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    pid = fork();
    if (pid == 0) {
        if (service_deny(denied, 2, NULL) < 0)
            _exit(2);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != -1 || errno != EPERM)
            _exit(3);
        if (syscall(SYS_keyctl, 0, -2, 0) != -1 || errno != EPERM)
            _exit(4);
#if defined(__x86_64__)
        if (syscall(0x40000000 + 521, PTRACE_TRACEME, 0, NULL, NULL) != -1 || errno != EPERM)   /* x32's */
            _exit(5);
#endif
        _exit(fork() < 0 || open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* As an emulation around this process does: seccomp(2) is answered with a success that is none. */
static bool
pretend(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) == 0;
}

/* Neither kind of filter is taken for one that is there when it is not; nor one for the other, of the starter's. */
static void
a_filter_that_is_none(void **state)
{
    static const unsigned calls[] = { SYS_write, SYS_exit_group };
    static const struct service_plan plan = { .calls = calls, .n_calls = 2 };

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            struct err err = ERR_INIT;
            if ((i == 2 && service_deny(calls, 1, NULL) < 0) || !pretend())
                _exit(2);
            if ((i == 0 ? service_deny(calls, 1, &err) : service_filter(&plan, &err)) == 0)
                _exit(3);
            _exit(strcmp(err.code, "service.filter") != 0 || err.kind != ERR_UNSUPPORTED);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void
confined(void **state)
{
    static void (*const attempts[])(void) = { try_open, try_create, try_inet, try_unix, try_connect, try_fork, try_exec,
                                              try_kill, try_ptrace, try_dumpable, try_unlink, try_chdir,
                                              try_owner, try_async, try_datagram, try_code };
    const size_t n = ARRAY_LEN(attempts);

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    attack(front_confine, attempts, n);
    attack(adapters_confine, attempts, n);
    attack(warden_confine, attempts, n);
}

static int
group_begin(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int
group_end(void **state)
{
    (void)state;
    return rmdir(root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confined), cmocka_unit_test(what_is_denied),
        cmocka_unit_test(calls_that_are_more_than_they_seem), cmocka_unit_test(a_filter_that_is_none),
    };

    return cmocka_run_group_tests(tests, group_begin, group_end);
}
