/* base/io: what a peer says before it closes is never passed over */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "loops.h"

#define ROUNDS 50000        /* recv(2) by itself loses some fifteen of them on two processors */

static atomic_int theirs = -1;
static atomic_bool over;
static atomic_uint pause_for;

static void
connect_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

/* To wait for the other thread: both have to be at it at once, but where one has no processor the other burns none. */
static void
spin(unsigned *turns)
{
    if (++*turns % 256 == 0)
        sched_yield();
}

static void *
say_and_close(void *none)
{
    unsigned turns = 0;

    while (!atomic_load(&over)) {
        int fd = atomic_load(&theirs);
        if (fd < 0) {
            spin(&turns);
            continue;
        }
        for (volatile unsigned i = 0, n = atomic_load(&pause_for); i < n; i++)
            ;
        (void)!send(fd, "x", 1, MSG_NOSIGNAL);
        close(fd);
        atomic_store(&theirs, -1);
    }
    return none;
}

static void
last_message_comes_before_the_end(void **state)
{
    unsigned lost = 0, ends = 0, turns = 0, rounds = loops(ROUNDS);
    pthread_t peer;

    (void)state;
    assert_int_equal(pthread_create(&peer, NULL, say_and_close, NULL), 0);
    for (unsigned i = 0; i < rounds; i++) {
        char byte;
        ssize_t n;
        int pair[2];
        connect_pair(pair);
        atomic_store(&pause_for, i % 97);
        atomic_store(&theirs, pair[1]);
        while ((n = io_recv(pair[0], &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
            spin(&turns);
        lost += n == 0;
        while (atomic_load(&theirs) >= 0)
            spin(&turns);
        ends += n == 1 && io_recv(pair[0], &byte, 1, 0) == 0;
        close(pair[0]);
    }
    atomic_store(&over, true);
    pthread_join(peer, NULL);
    assert_int_equal(lost, 0);
    assert_int_equal(ends, rounds);
}

static void
reset_comes_behind_the_last_message(void **state)
{
    char byte = 0;
    int pair[2];

    (void)state;
    connect_pair(pair);
    assert_int_equal(send(pair[0], "unread", 6, 0), 6);
    assert_int_equal(send(pair[1], "y", 1, 0), 1);
    close(pair[1]);
    assert_int_equal(io_recv(pair[0], &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(io_recv(pair[0], &byte, 1, MSG_DONTWAIT), 0);
    close(pair[0]);
}

static void
message_without_a_byte_hides_nothing(void **state)
{
    char byte = 0;
    int pair[2];

    (void)state;
    connect_pair(pair);
    assert_int_equal(send(pair[1], "", 0, 0), 0);
    assert_int_equal(io_recv(pair[0], &byte, 1, 0), 0);         /* nor does it make anybody wait */
    assert_int_equal(send(pair[1], "", 0, 0), 0);
    assert_int_equal(send(pair[1], "z", 1, 0), 1);
    assert_int_equal(io_recv(pair[0], &byte, 1, 0), 1);
    assert_int_equal(byte, 'z');
    close(pair[0]);
    close(pair[1]);
}

/* Nor does it bring what is not in it: nobody may take the room's content for descriptors. */
static void
message_without_a_byte_has_no_descriptor(void **state)
{
    char room[CMSG_SPACE(4 * sizeof(int))];
    struct msghdr m = { .msg_control = room, .msg_controllen = sizeof(room), .msg_flags = MSG_CTRUNC };
    int pair[2];

    (void)state;
    memset(room, 1, sizeof(room));
    connect_pair(pair);
    assert_int_equal(send(pair[1], "", 0, 0), 0);
    assert_int_equal(io_recvmsg(pair[0], &m, MSG_CMSG_CLOEXEC), 0);
    assert_int_equal(m.msg_controllen, 0);
    assert_int_equal(m.msg_flags, 0);
    close(pair[0]);
    close(pair[1]);
}

static void
descriptor_without_a_byte_is_kept(void **state)
{
    union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { .h = { .cmsg_len = 0 } };
    struct msghdr m = { .msg_control = control.room, .msg_controllen = sizeof(control.room) };
    int pair[2], got = -1;

    (void)state;
    connect_pair(pair);
    control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.h), &pair[0], sizeof(int));
    assert_int_equal(sendmsg(pair[1], &m, 0), 0);
    assert_int_equal(send(pair[1], "z", 1, 0), 1);
    m = (struct msghdr){ .msg_control = control.room, .msg_controllen = sizeof(control.room) };
    assert_int_equal(io_recvmsg(pair[0], &m, MSG_CMSG_CLOEXEC), 0);
    assert_non_null(CMSG_FIRSTHDR(&m));
    memcpy(&got, CMSG_DATA(&control.h), sizeof(int));
    assert_true(got >= 0);
    close(got);
    close(pair[0]);
    close(pair[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_message_comes_before_the_end),
        cmocka_unit_test(reset_comes_behind_the_last_message),
        cmocka_unit_test(message_without_a_byte_hides_nothing),
        cmocka_unit_test(message_without_a_byte_has_no_descriptor),
        cmocka_unit_test(descriptor_without_a_byte_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
