/* tests/unit/test_guard_sock.c: unix sockets of the host open only when the plan names them (GUARD_CONNECT) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/time.h>
#include <sys/un.h>

#include "test_guard_run.h"

static int
open_socket(int type)
{
    return socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

static int
bind_un(int sock, const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    strcpy(un.sun_path, path);
    return bind(sock, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1));
}

static int
connect_un(int sock, const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    strcpy(un.sun_path, path);
    return connect(sock, (struct sockaddr *)&un, sizeof(un));
}

/* One connection attempt on a fresh socket. */
static int
try_connect(const char *path)
{
    int sock = open_socket(SOCK_STREAM), rc = connect_un(sock, path), saved = errno;

    close(sock);
    errno = saved;
    return rc;
}

/* As the host: something that listens below @dir. The descriptor lives as long as the test program. */
static void
host_listens(const char *dir, const char *name)
{
    char path[512];
    int sock = open_socket(SOCK_STREAM);

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (bind_un(sock, path) < 0 || listen(sock, 16) < 0)
        abort();
}

static void
host_made(const char *dir)
{
    run_dir(dir, "host");
    host_listens(dir, "host/agent");
    host_listens(dir, "host/other");
    run_dir(dir, "own");
}

static void
plan(struct guard_plan *p, const char *dir)
{
    struct err err = ERR_INIT;
    char path[512];

    snprintf(path, sizeof(path), "%s/host", dir);
    assert_int_equal(guard_plan_socket_tree(p, path, &err), 0);
    snprintf(path, sizeof(path), "%s/host/agent", dir);
    assert_int_equal(guard_plan_socket(p, path, &err), 0);
    assert_int_equal(guard_plan_socket(p, "/nowhere/absent", &err), 0);
}

/* One end of a pair of datagrams would reach whoever is bound to an address; here only the other end. */
static void
pair_leads_nowhere(void)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "host/other" };
    struct iovec iov = { (char[]){ "b" }, 1 };
    struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov, .msg_iovlen = 1 };
    int pair[2] = { -1, -1 }, type = 0;
    socklen_t n = sizeof(type);
    char got[8];

    WANT(0, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
    WANT(0, getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &type, &n));
    CHECK(type == SOCK_SEQPACKET && (fcntl(pair[1], F_GETFL) & O_NONBLOCK) != 0 && fcntl(pair[1], F_GETFD) == 0);
    CHECK(sendto(pair[0], "a", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1 && sendmsg(pair[0], &m, 0) == 1);
    CHECK(recv(pair[1], got, sizeof(got), 0) == 1 && got[0] == 'a');
    CHECK(recv(pair[1], got, sizeof(got), 0) == 1 && got[0] == 'b');
    WANT(EPROTOTYPE, connect_un(pair[0], "host/agent"));
    WANT(EFAULT, syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 8));
    WANT(EINVAL, syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM | 0x10000, 0, pair));
    WANT(EPROTONOSUPPORT, syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 6, pair));
}

static int
by_path(void *arg)
{
    const char *dir = arg;
    char path[512];
    int fd, sock;

    WANT(0, try_connect("host/agent"));
    WANT(EACCES, try_connect("host/other"));
    snprintf(path, sizeof(path), "%s/host/other", dir);
    WANT(EACCES, try_connect(path));
    WANT(EACCES, try_connect("own/../host/./other"));
    WANT(0, symlink("../host/other", "own/link"));
    WANT(EACCES, try_connect("own/link"));
    WANT(EACCES, try_connect("/proc/self/cwd/host/other"));
    fd = open("host/other", O_PATH);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    WANT(EACCES, try_connect(path));
    fd = open("host", O_PATH);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/other", fd);
    WANT(EACCES, try_connect(path));
    CHECK(chdir("host") == 0);
    WANT(EACCES, try_connect("other"));
    WANT(0, try_connect("agent"));
    CHECK(chdir("..") == 0);
    WANT(ENOENT, try_connect("host/absent"));
    WANT(ECONNREFUSED, try_connect("."));
    /* without waiting, too */
    sock = open_socket(SOCK_STREAM | SOCK_NONBLOCK);
    WANT(EACCES, connect_un(sock, "host/other"));
    WANT(0, connect_un(sock, "host/agent"));
    WANT(EPROTOTYPE, connect_un(open_socket(SOCK_SEQPACKET), "host/agent"));
    /* sockets that need no connect() */
    WANT(EPERM, open_socket(SOCK_DGRAM));
    WANT(EPERM, open_socket(SOCK_RAW));
    WANT(EPERM, open_socket(SOCK_DGRAM | SOCK_NONBLOCK));
    pair_leads_nowhere();
    WANT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0, 0 }));
    WANT(EBADF, connect_un(999, "host/agent"));
    WANT(ENOTSOCK, connect_un(fd = open("/dev/null", O_RDONLY), "host/agent"));
    WANT(EFAULT, syscall(SYS_connect, sock, 8, sizeof(struct sockaddr_un)));
    WANT(EINVAL, syscall(SYS_connect, sock, dir, 4000));
    WANT(EINVAL, syscall(SYS_connect, sock, dir, 0));
    return run_failures;
}

/* What the sandbox bound itself it may use, in the host's trees as well; and the address stays as it was written. */
static int
own_sockets(void *arg)
{
    struct sockaddr_un un;
    socklen_t n = sizeof(un);
    int sock = open_socket(SOCK_STREAM);
    struct stat st;

    (void)arg;
    umask(077);
    WANT(0, bind_un(sock, "host/mine"));
    WANT(0, listen(sock, 4));
    CHECK(stat("host/mine", &st) == 0 && (st.st_mode & 0777) == 0700);
    memset(&un, 0, sizeof(un));
    CHECK(getsockname(sock, (struct sockaddr *)&un, &n) == 0 && strcmp(un.sun_path, "host/mine") == 0);
    WANT(0, try_connect("host/mine"));
    WANT(EADDRINUSE, bind_un(open_socket(SOCK_STREAM), "host/mine"));
    WANT(0, unlink("host/mine"));
    WANT(ENOENT, try_connect("host/mine"));
    sock = open_socket(SOCK_STREAM);
    WANT(0, bind_un(sock, "own/mine"));
    WANT(0, listen(sock, 4));
    WANT(0, try_connect("own/mine"));
    return run_failures;
}

/* A place in /proc/self/fd is the caller's, not the guard's. */
static int
bind_through_links(void *arg)
{
    char text[64];

    (void)arg;
    for (int fd = 3; fd < 16; fd++) {
        dup2(open("own", O_PATH), fd);
        snprintf(text, sizeof(text), "/proc/self/fd/%d", fd);
        (void)unlink("l");
        CHECK(symlink(text, "l") == 0);
        WANT(0, bind_un(open_socket(SOCK_STREAM), "l/s"));
        WANT(0, unlink("own/s"));
    }
    return run_failures;
}

static int
other_families(void *arg)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    socklen_t n = sizeof(in);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client, udp;

    (void)arg;
    WANT(0, bind(server, (struct sockaddr *)&in, sizeof(in)));
    WANT(0, listen(server, 4));
    CHECK(getsockname(server, (struct sockaddr *)&in, &n) == 0);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    WANT(0, connect(client, (struct sockaddr *)&in, sizeof(in)));
    WANT(EISCONN, connect(client, (struct sockaddr *)&in, sizeof(in)));
    CHECK((fcntl(client, F_GETFL) & O_NONBLOCK) == 0);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    errno = 0;
    if (connect(client, (struct sockaddr *)&in, sizeof(in)) < 0)
        CHECK(errno == EINPROGRESS);
    close(server);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    WANT(ECONNREFUSED, connect(client, (struct sockaddr *)&in, sizeof(in)));
    udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    WANT(0, connect(udp, (struct sockaddr *)&in, sizeof(in)));
    WANT(0, connect(udp, &none, sizeof(none)));
    /* abstract names pass through */
    server = open_socket(SOCK_STREAM);
    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "cloche-guard-%d", getpid());
    WANT(0, bind(server, (struct sockaddr *)&un, sizeof(un)));
    WANT(0, listen(server, 1));
    WANT(0, connect(open_socket(SOCK_STREAM), (struct sockaddr *)&un, sizeof(un)));
    return run_failures;
}

static void
on_alarm(int signo)
{
    (void)signo;
}

/* A full backlog makes connect() wait: others are served, a signal ends it, and so does an accept. */
static int
waiting(void *arg)
{
    struct sigaction act = { .sa_handler = on_alarm };
    struct itimerval soon = { { 0, 0 }, { 0, 150000 } };
    int server = open_socket(SOCK_STREAM), status;
    pid_t pid;

    (void)arg;
    WANT(0, bind_un(server, "own/s"));
    WANT(0, listen(server, 0));
    WANT(0, connect_un(open_socket(SOCK_STREAM), "own/s"));
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    WANT(EINTR, connect_un(open_socket(SOCK_STREAM), "own/s"));
    pid = fork();
    if (pid == 0)
        _exit(connect_un(open_socket(SOCK_STREAM), "own/s") < 0);
    usleep(50000);
    for (int i = 0; i < 20; i++)
        WANT(0, make_file("busy"));
    CHECK(waitpid(pid, &status, WNOHANG) == 0);
    CHECK(accept(server, NULL, NULL) >= 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    alarm(300);
    return run_failures;
}

static void
denial_is_told(struct guard *g, const char *dir)
{
    struct guard_denial d;
    char other[512], tree[512];
    bool told = false;

    snprintf(other, sizeof(other), "%s/host/other", dir);
    snprintf(tree, sizeof(tree), "%s/host", dir);
    while (guard_next_denial(g, &d))
        told |= strcmp(d.op, "connect") == 0 && strcmp(d.target, other) == 0 && strcmp(d.rule, tree) == 0;
    assert_true(told);
}

#define CASE(fn, after)                                                                                     \
    static void test_##fn(void **state)                                                                     \
    {                                                                                                       \
        (void)state;                                                                                        \
        assert_true(run_one(&(struct run_case){ GUARD_CONNECT, NULL, host_made, fn, after, plan }));        \
        assert_true(run_one(&(struct run_case){ GUARD_FLAGS_ALL, NULL, host_made, fn, after, plan }));      \
    }

CASE(by_path, denial_is_told)
CASE(own_sockets, NULL)
CASE(bind_through_links, NULL)
CASE(other_families, NULL)
CASE(waiting, NULL)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_path),
        cmocka_unit_test(test_own_sockets),
        cmocka_unit_test(test_bind_through_links),
        cmocka_unit_test(test_other_families),
        cmocka_unit_test(test_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
