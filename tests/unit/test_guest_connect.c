/* cloche-guest: CONNECT, in the real program without namespaces (R23) */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest_run.h"

static struct run r;

/* A socket at @port (0: any free one) of that loopback address, at which nobody listens yet: nor can anybody else. The
 * guest sees it too: there are no namespaces here. */
static int
bound(int family, uint16_t *port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(*port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(*port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    bool is_six = family == AF_INET6;
    socklen_t n = is_six ? sizeof(six) : sizeof(four);
    struct sockaddr *at = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, at, n) < 0)
        skip();
    assert_int_equal(getsockname(fd, at, &n), 0);
    *port = ntohs(is_six ? six.sin6_port : four.sin_port);
    return fd;
}

static int
listener(int family, uint16_t *port)
{
    int fd;

    *port = 0;
    fd = bound(family, port);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static uint16_t
connected(int fd, uint16_t port, int *peer)
{
    uint16_t channel;

    assert_int_equal(guest_client_connect(r.c, port, 65536, &channel, &r.err), 0);
    run_until(&r, &r.started);
    *peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(*peer >= 0);
    return channel;
}

static void
both_ways(int family)
{
    uint16_t port, channel;
    int fd = listener(family, &port), peer, other = family == AF_INET6 ? bound(AF_INET, &port) : -1;
    char room[16];
    size_t taken;

    channel = connected(fd, port, &peer);
    assert_int_equal(guest_client_stdin(r.c, channel, "ping", 4, &taken, &r.err), 0);
    assert_int_equal(taken, 4);
    assert_int_equal(recv(peer, room, sizeof(room), 0), 4);
    assert_memory_equal(room, "ping", 4);
    assert_int_equal(guest_client_close_stdin(r.c, channel, &r.err), 0);
    assert_int_equal(recv(peer, room, sizeof(room), 0), 0);         /* half closed: it can still answer */
    assert_int_equal(send(peer, "pong", 4, 0), 4);
    close(peer);
    run_until(&r, &r.exited);
    assert_string_equal(run_text(&r.out), "pong");
    assert_int_equal(r.exit.status, 0);
    close(fd);
    close(other);
}

static void
test_ipv4(void **state)
{
    (void)state;
    both_ways(AF_INET);
}

static void
test_ipv6_where_nobody_listens_on_ipv4(void **state)
{
    (void)state;
    both_ways(AF_INET6);
}

static void
test_nobody_listens(void **state)
{
    uint16_t port = 0, channel;
    int fd = bound(AF_INET, &port), six = bound(AF_INET6, &port);

    (void)state;
    assert_int_equal(guest_client_connect(r.c, port, 65536, &channel, &r.err), 0);
    run_until(&r, &r.failed);
    assert_int_equal(r.exec_failed.stage, EXEC_STAGE_CONNECT);
    assert_int_equal(r.exec_failed.sys_errno, ECONNREFUSED);
    close(fd);
    close(six);
}

/* A server that resets is told from one that has said everything. */
static void
test_reset(void **state)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    uint16_t port;
    int fd = listener(AF_INET, &port), peer;

    (void)state;
    (void)connected(fd, port, &peer);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(peer);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, ECONNRESET);
    close(fd);
}

static void
test_broken_off_by_the_host(void **state)
{
    uint16_t port, channel;
    int fd = listener(AF_INET, &port), peer;
    char room[16];

    (void)state;
    channel = connected(fd, port, &peer);
    /* other signals mean nothing, and reach nobody */
    assert_int_equal(guest_client_signal(r.c, channel, SIGTERM, SIGNAL_GROUP, &r.err), 0);
    assert_int_equal(guest_client_signal(r.c, channel, SIGKILL, SIGNAL_GROUP, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(recv(peer, room, sizeof(room), 0), 0);
    run_sh(&r, "echo alive");
    assert_string_equal(run_text(&r.out), "alive\n");
    close(peer);
    close(fd);
}

/* No more comes than the host gave credit for. */
static void
test_credit(void **state)
{
    static char block[65536];
    uint16_t port, channel;
    int fd = listener(AF_INET, &port), peer;

    (void)state;
    assert_int_equal(guest_client_connect(r.c, port, 1000, &channel, &r.err), 0);
    run_until(&r, &r.started);
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(send(peer, block, sizeof(block), 0), sizeof(block));
    close(peer);
    for (size_t given = 1000; !r.exited;) {
        assert_true(run_pump(&r, RUN_PATIENCE));
        assert_true(r.out.n <= given);
        if (r.out.n < given)
            continue;
        assert_int_equal(guest_client_window(r.c, channel, MSG_STREAM_OUT, 1000, &r.err), 0);
        given += 1000;
    }
    assert_int_equal(r.out.n, sizeof(block));
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_ipv4, &r),
        RUN_TEST(test_ipv6_where_nobody_listens_on_ipv4, &r),
        RUN_TEST(test_nobody_listens, &r),
        RUN_TEST(test_reset, &r),
        RUN_TEST(test_broken_off_by_the_host, &r),
        RUN_TEST(test_credit, &r),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
