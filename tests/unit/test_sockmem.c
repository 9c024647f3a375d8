/* wall/sockmem.c: what the kernel's answers about sockets add up to */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wall/sockmem.h"

struct answer {
    uint8_t bytes[2048];
    size_t n, message;
};

static void
put(struct answer *a, const void *p, size_t n)
{
    memcpy(a->bytes + a->n, p, n);
    a->n += NLMSG_ALIGN(n);
}

static void
begin(struct answer *a, uint16_t type)
{
    a->message = a->n;
    put(a, &(struct nlmsghdr){ .nlmsg_type = type }, sizeof(struct nlmsghdr));
}

static void
end(struct answer *a)
{
    uint32_t length = (uint32_t)(a->n - a->message);

    memcpy(a->bytes + a->message, &length, sizeof(length));
}

static void
attribute(struct answer *a, uint16_t type, const void *p, size_t n)
{
    put(a, &(struct nlattr){ .nla_len = (uint16_t)(sizeof(struct nlattr) + n), .nla_type = type },
        sizeof(struct nlattr));
    put(a, p, n);
}

/* A local socket: what its messages cost, what waits for it, and who it is connected to (0: nobody any more). */
static void
local(struct answer *a, uint8_t state, uint32_t wrote, uint32_t waits, uint32_t peer)
{
    const uint32_t memory[SK_MEMINFO_VARS] = { [SK_MEMINFO_SNDBUF] = 200000, [SK_MEMINFO_WMEM_ALLOC] = wrote };

    begin(a, SOCK_DIAG_BY_FAMILY);
    put(a, &(struct unix_diag_msg){ .udiag_family = AF_UNIX, .udiag_state = state }, sizeof(struct unix_diag_msg));
    attribute(a, UNIX_DIAG_PEER, &peer, sizeof(peer));
    attribute(a, UNIX_DIAG_RQLEN, &(struct unix_diag_rqlen){ .udiag_rqueue = waits }, sizeof(struct unix_diag_rqlen));
    attribute(a, UNIX_DIAG_MEMINFO, memory, sizeof(memory));
    end(a);
}

static void
inet(struct answer *a, uint32_t arrived, uint32_t wrote, uint32_t queued)
{
    const uint32_t memory[SK_MEMINFO_VARS] = { [SK_MEMINFO_RMEM_ALLOC] = arrived, [SK_MEMINFO_WMEM_ALLOC] = wrote,
                                               [SK_MEMINFO_WMEM_QUEUED] = queued };

    begin(a, SOCK_DIAG_BY_FAMILY);
    put(a, &(struct inet_diag_msg){ .idiag_family = AF_INET }, sizeof(struct inet_diag_msg));
    attribute(a, INET_DIAG_SKMEMINFO, memory, sizeof(memory));
    end(a);
}

static void
sockets_add_up(void **state)
{
    struct answer a = { .n = 0 };
    uint64_t bytes = 1;

    (void)state;
    local(&a, TCP_ESTABLISHED, 1000, 0, 7);
    local(&a, TCP_ESTABLISHED, 0, 900, 6);      /* charged to its sender */
    local(&a, TCP_ESTABLISHED, 0, 5, 0);        /* whose sender is gone: as much as one may send */
    local(&a, TCP_ESTABLISHED, 0, 300000, 0);
    local(&a, TCP_LISTEN, 0, 128, 0);           /* connections, not bytes */
    inet(&a, 40, 30, 20);
    inet(&a, 0, 30, 50);
    assert_int_equal(sockmem_add(a.bytes, a.n, &bytes), 1);
    assert_int_equal(bytes, 1 + 1000 + 200000 + 300000 + 70 + 50);
    begin(&a, NLMSG_DONE);
    end(&a);
    assert_int_equal(sockmem_add(a.bytes, a.n, &bytes), 0);
}

static void
refusals_and_broken_answers(void **state)
{
    struct answer a = { .n = 0 };
    uint64_t bytes = 0;

    (void)state;
    begin(&a, NLMSG_ERROR);
    put(&a, &(struct nlmsgerr){ .error = -ENOENT }, sizeof(struct nlmsgerr));
    end(&a);
    assert_int_equal(sockmem_add(a.bytes, a.n, &bytes), -1);
    assert_int_equal(errno, ENOENT);
    a.n = 0;
    local(&a, TCP_ESTABLISHED, 1000, 0, 7);
    for (size_t n = 1; n < a.n; n++) {          /* cut anywhere, it adds nothing */
        assert_int_equal(sockmem_add(a.bytes, n, &bytes), -1);
        assert_int_equal(errno, EPROTO);
    }
    assert_int_equal(bytes, 0);
}

/* This kernel's own answer: what lies in a pair is in it. */
static void
the_kernel_tells(void **state)
{
    struct err err = ERR_INIT;
    cleanup_close int fd = sockmem_open(&err);
    uint64_t before = 0, after = 0;
    char piece[4096] = "";
    int pair[2];

    (void)state;
    if (fd < 0 || sockmem_total(fd, &before, &err) < 0)
        skip();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(write(pair[0], piece, sizeof(piece)), sizeof(piece));
    assert_int_equal(sockmem_total(fd, &after, &err), 0);
    /* others' sockets come and go, but what is ours is there */
    assert_true(after >= 16 * sizeof(piece));
    close(pair[0]);
    close(pair[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_add_up),
        cmocka_unit_test(refusals_and_broken_answers),
        cmocka_unit_test(the_kernel_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
