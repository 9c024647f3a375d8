/* The janitor does its job when its maker is gone, and holds what it was sent until then (R20) */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "wall/janitor.h"

#define ROUNDS 10000    /* of a millisecond */

static bool
remove_folder(void *folder)
{
    return rmdir(folder) == 0 || errno == ENOENT;
}

static void
wait_for(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

static void
send_descriptor(int socket, int fd)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = { { 0 } };
    struct iovec iov = { (char[]){ 's' }, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    assert_int_equal(sendmsg(socket, &m, MSG_NOSIGNAL), 1);
}

static void
wait_until_taken(int socket)
{
    int queued = 1;

    for (int i = 0; i < ROUNDS && queued > 0; i++) {
        assert_int_equal(ioctl(socket, SIOCOUTQ, &queued), 0);
        poll(NULL, 0, queued > 0);
    }
    assert_int_equal(queued, 0);
}

static void
job_at_the_end(void **state)
{
    char folder[] = "/tmp/cloche-janitor-XXXXXX";
    struct janitor j = JANITOR_INIT;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(janitor_start(&j, remove_folder, folder, NULL), 0);
    assert_int_equal(access(folder, F_OK), 0);
    pid = j.pid;
    janitor_dismiss(&j, false);
    wait_for(pid);
    assert_int_equal(access(folder, F_OK), -1);
}

static void
no_job_when_all_is_done(void **state)
{
    char folder[] = "/tmp/cloche-janitor-XXXXXX";
    struct janitor j = JANITOR_INIT;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(janitor_start(&j, remove_folder, folder, NULL), 0);
    pid = j.pid;
    janitor_dismiss(&j, true);
    wait_for(pid);
    assert_int_equal(rmdir(folder), 0);
}

/* What is held is still open after it was taken from the socket, and a message does not end the wait. */
static void
holds_what_it_is_sent(void **state)
{
    char folder[] = "/tmp/cloche-janitor-XXXXXX", byte;
    struct janitor j = JANITOR_INIT;
    struct pollfd reader = { .events = POLLIN };
    int ends[2];
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(janitor_start(&j, remove_folder, folder, NULL), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < 2; i++) {
        send_descriptor(j.end, ends[1]);
        wait_until_taken(j.end);
    }
    close(ends[1]);
    reader.fd = ends[0];
    assert_int_equal(poll(&reader, 1, 0), 0);
    assert_int_equal(access(folder, F_OK), 0);
    pid = j.pid;
    janitor_dismiss(&j, false);
    wait_for(pid);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    assert_int_equal(access(folder, F_OK), -1);
    close(ends[0]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_at_the_end),
        cmocka_unit_test(no_job_when_all_is_done),
        cmocka_unit_test(holds_what_it_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
