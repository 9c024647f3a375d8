/* guest/handed.c: see handed.h */
#include "guest/handed.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/kernel.h"
#include "guest/guest.h"

int
handed_connect(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(to.sun_path))
        return -1;
    memcpy(to.sun_path, path, strlen(path) + 1);
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        return -1;
    if (fd == GUEST_TRANSPORT_FD)
        return 0;
    return dup3(fd, GUEST_TRANSPORT_FD, O_CLOEXEC) < 0 || close(fd) < 0 ? -1 : 0;
}

static int
lower(const struct handed *h)
{
    for (size_t i = 0; i < HANDED_LIMITS; i++) {
        struct rlimit limit = { .rlim_cur = h->limits[i].most, .rlim_max = h->limits[i].most }, now;
        if (h->limits[i].used == 0)
            continue;
        if (kernel_prlimit((int)h->limits[i].resource, NULL, &now) < 0)
            return -1;
        if (limit.rlim_max > now.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (kernel_prlimit((int)h->limits[i].resource, &limit, NULL) < 0)
            return -1;
    }
    return 0;
}

/* -1: the other side is gone. */
static ssize_t
hear(struct handed *h, int *fd)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = { { 0 } };
    struct iovec iov = { h, sizeof(*h) - 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
    const struct cmsghdr *c;
    ssize_t n;

    do
        n = recvmsg(GUEST_TRANSPORT_FD, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -1;
    c = CMSG_FIRSTHDR(&m);
    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int)) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
        (size_t)n <= offsetof(struct handed, workdir))
        return 0;
    memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    return n;
}

int
handed_take(void)
{
    static struct handed h;
    int fd = -1;
    ssize_t n = hear(&h, &fd);

    if (n <= 0)
        return n < 0 ? GUEST_EXIT_DONE : GUEST_EXIT_SETUP;
    if (dup3(fd, GUEST_TRANSPORT_FD, O_CLOEXEC) < 0 || close(fd) < 0 || lower(&h) < 0)
        return GUEST_EXIT_SETUP;
    ((char *)&h)[n] = '\0';
    return chdir(h.workdir) < 0 ? GUEST_EXIT_WORKDIR : 0;
}
