/* Where connections of a network with bridges of its own arrive: a machine with containers in it (CAPTURE_LAST). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "wall/capture.h"
#include "wall/ns.h"

#define WAIT_MS 20000       /* ends a hang */
#define OTHER_PORT 8443

static int machine = -1, container = -1, listeners[CAPTURE_LISTENERS];

/* `ip @words`, which end with NULL; whether it did. */
static bool
ip(const char *const *words)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execvp("ip", (char *const *)(uintptr_t)words);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
enter(int network)
{
    assert_int_equal(setns(network, CLONE_NEWNET), 0);
}

/* A machine in which a bridge came to be after its network was made, and a container at it. */
static int
begin(void **state)
{
    const uint16_t ports[] = { OTHER_PORT };
    char into[64];
    struct err err = ERR_INIT;

    (void)state;
    if (geteuid() != 0 || !ip((const char *const[]){ "ip", "-V", NULL }))
        return 0;
    machine = ns_network(&err);
    assert_true(machine >= 0);
    assert_int_equal(capture_open(ports, ARRAY_LEN(ports), CAPTURE_LAST, listeners, &err), 0);
    container = ns_network(&err);
    assert_true(container >= 0);
    enter(machine);
    snprintf(into, sizeof(into), "/proc/%d/fd/%d", getpid(), container);
    assert_true(ip((const char *const[]){ "ip", "link", "add", "docker0", "type", "veth", "peer", "name", "eth0", "netns",
                                          into, NULL }));
    assert_true(ip((const char *const[]){ "ip", "addr", "add", "172.17.0.1/16", "dev", "docker0", NULL }));
    assert_true(ip((const char *const[]){ "ip", "link", "set", "docker0", "up", NULL }));
    enter(container);
    assert_true(ip((const char *const[]){ "ip", "addr", "add", "172.17.0.2/16", "dev", "eth0", NULL }));
    assert_true(ip((const char *const[]){ "ip", "link", "set", "eth0", "up", NULL }));
    assert_true(ip((const char *const[]){ "ip", "route", "add", "default", "via", "172.17.0.1", NULL }));
    return 0;
}

static int
end(void **state)
{
    (void)state;
    for (size_t i = 0; machine >= 0 && i < CAPTURE_LISTENERS; i++)
        close_fd(&listeners[i]);
    close_fd(&machine);
    close_fd(&container);
    return 0;
}

static struct sockaddr_in
at(const char *address, uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

    assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
    return to;
}

/* From @network: a connection's descriptor, or -1 with errno. */
static int
dial(int network, const char *address, uint16_t port)
{
    const struct sockaddr_in to = at(address, port);
    struct pollfd p = { .events = POLLOUT };
    socklen_t size = sizeof(errno);
    int why = 0;

    enter(network);
    p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(p.fd >= 0);
    if (connect(p.fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
        return p.fd;
    if (errno == EINPROGRESS)
        why = poll(&p, 1, WAIT_MS) == 1 && getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &why, &size) == 0 ? why : ETIMEDOUT;
    else
        why = errno;
    if (why == 0)
        return p.fd;
    close(p.fd);
    errno = why;
    return -1;
}

/* It arrived, and says where it was meant to go. */
static void
arrives(int network, const char *address, uint16_t port, enum capture_listener which)
{
    union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; } to;
    struct in_addr wanted = at(address, port).sin_addr;
    struct pollfd p = { .fd = listeners[which], .events = POLLIN };
    cleanup_close int fd = dial(network, address, port), got = -1;
    socklen_t size = sizeof(to);
    char byte;

    if (fd < 0)
        fail_msg("%s:%u: %s", address, port, strerror(errno));
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    got = accept(listeners[which], NULL, NULL);
    assert_true(got >= 0);
    assert_int_equal(getsockname(got, &to.any, &size), 0);
    assert_int_equal(ntohs(to.any.sa_family == AF_INET ? to.four.sin_port : to.six.sin6_port), port);
    assert_memory_equal(to.any.sa_family == AF_INET ? &to.four.sin_addr : (void *)(to.six.sin6_addr.s6_addr + 12),
                        &wanted, sizeof(wanted));
    assert_int_equal(write(got, "x", 1), 1);
    p = (struct pollfd){ .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(read(fd, &byte, 1), 1);
}

static void
test_connections_of_a_container_and_of_the_machine_arrive(void **state)
{
    const int networks[] = { machine, container };

    (void)state;
    if (machine < 0)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
        arrives(networks[i], "198.18.1.0", 80, CAPTURE_HTTP);
        arrives(networks[i], "203.0.113.9", 443, CAPTURE_TLS);
        arrives(networks[i], "203.0.113.9", OTHER_PORT, CAPTURE_PORT);
        arrives(networks[i], "203.0.113.53", 53, CAPTURE_DNS_TCP);
        arrives(networks[i], CAPTURE_SERVICE_ADDRESS, CAPTURE_PROXY_PORT, CAPTURE_PROXY);
    }
}

/* Not after minutes without an answer. */
static void
test_where_nobody_listens_it_is_refused_at_once(void **state)
{
    (void)state;
    if (machine < 0)
        skip();
    assert_int_equal(dial(machine, "203.0.113.9", 22), -1);
    assert_int_equal(errno, ENETUNREACH);
    assert_int_equal(dial(container, "203.0.113.9", 22), -1);
    assert_true(errno == ENETUNREACH || errno == EHOSTUNREACH);
    assert_int_equal(dial(container, "172.17.0.1", 22), -1);       /* the machine itself */
    assert_int_equal(errno, ECONNREFUSED);
}

/* A name server that a container was told is asked, and answers itself. */
static void
test_a_question_to_any_name_server_is_answered(void **state)
{
    const int networks[] = { machine, container };
    const struct sockaddr_in to = at("203.0.113.53", 53);
    union { char bytes[256]; struct cmsghdr align; } control;
    char text[16];

    (void)state;
    if (machine < 0)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
        struct sockaddr_in6 from;
        struct iovec iov = { text, sizeof(text) };
        struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &control, .msg_controllen = sizeof(control) };
        struct pollfd p = { .fd = listeners[CAPTURE_DNS_UDP], .events = POLLIN };
        cleanup_close int fd = -1;

        enter(networks[i]);
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(send(fd, "question", 8, 0), 8);
        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        assert_int_equal(recvmsg(listeners[CAPTURE_DNS_UDP], &m, MSG_DONTWAIT), 8);
        assert_int_equal(CMSG_FIRSTHDR(&m)->cmsg_level, IPPROTO_IPV6);
        memset(CMSG_DATA(CMSG_FIRSTHDR(&m)) + offsetof(struct in6_pktinfo, ipi6_ifindex), 0, sizeof(int));
        iov.iov_len = 8;
        m.msg_controllen = CMSG_SPACE(sizeof(struct in6_pktinfo));
        assert_int_equal(sendmsg(listeners[CAPTURE_DNS_UDP], &m, 0), 8);
        p.fd = fd;
        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        assert_int_equal(recv(fd, text, sizeof(text), 0), 8);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_of_a_container_and_of_the_machine_arrive),
        cmocka_unit_test(test_where_nobody_listens_it_is_refused_at_once),
        cmocka_unit_test(test_a_question_to_any_name_server_is_answered),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
