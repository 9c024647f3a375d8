/* launcher/launcher_docker.c: whether a Docker or Podman daemon is here, for adapters, which tell clients
 *
 * Who may speak to its socket is root on the host, so adapters, which parse what strangers say, may not: they ask us
 * with a message that says nothing else. One daemon is asked once in KEPT_MS whoever asks how often, in our loop, which
 * never waits for it; and no more is read of its answer than the status.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "launcher/launcher.h"

#define KEPT_MS   3000
#define ANSWER_MS 2000
#define STATUS    12        /* bytes of "HTTP/1.1 200" */

static bool
is_installed(void)
{
    static const char *const programs[] = { "/usr/bin/docker", "/usr/local/bin/docker", "/snap/bin/docker",
                                            "/usr/bin/podman", "/usr/local/bin/podman" };
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (stat(programs[i], &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
            return true;
    return false;
}

static void
tell(struct launcher *l)
{
    for (enum which_front which = 0; which < FRONTS; which++) {
        struct adapter_end *adapter = &l->fronts[which].adapter;

        if (!l->docker.wanted[which])
            continue;
        l->docker.wanted[which] = false;
        /* one that is gone is noticed where it is read */
        if (adapter->pid > 0 && adapter->door.fd >= 0)
            (void)launcher_queue(l, &adapter->door, &adapter->out, EDGE_DOCKER_IS, EDGE_DOCKER_IS_SHAPE(),
                                 &(struct launch_docker){ .is = l->docker.is }, -1);
    }
}

static void
settle(struct launcher *l, bool answered)
{
    struct docker_known *d = &l->docker;

    if (d->watch.fd >= 0)
        loop_drop(&l->loop, &d->watch);
    loop_at(&l->loop, &d->late, 0);
    d->is = answered ? d->is | LAUNCH_DOCKER_RUNNING | LAUNCH_DOCKER_INSTALLED
                     : d->is & (uint8_t)~LAUNCH_DOCKER_OURS;
    d->asking = false;
    d->at_ms = clock_ms();
    tell(l);
}

static void
on_late(struct timer *t)
{
    settle(t->owner, false);
}

static void
on_answer(struct watch *w, uint32_t events)
{
    struct launcher *l = w->owner;
    struct docker_known *d = &l->docker;
    ssize_t n = read(w->fd, d->said + d->n_said, STATUS - d->n_said);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        d->n_said += (size_t)n;
    if (n <= 0 || d->n_said == STATUS)
        settle(l, d->n_said == STATUS && memcmp(d->said, "HTTP/1.", 7) == 0 && memcmp(d->said + 8, " 200", 4) == 0);
}

/* The question is on its way over the descriptor that is returned; -1: nobody listens. */
static int
ask(struct docker_known *d)
{
    static const char question[] = "GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n";
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct ucred who = { .uid = (uid_t)-1 };
    cleanup_close int fd = -1;
    socklen_t n = sizeof(who);

    if (engine_docker_socket(to.sun_path, NULL) < 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
        send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(question) - 1)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == 0)
        d->is |= LAUNCH_DOCKER_OURS;
    return take_fd(&fd);
}

void
docker_wanted(struct launcher *l, enum which_front which)
{
    struct docker_known *d = &l->docker;

    d->wanted[which] = true;
    if (d->asking)
        return;
    if (d->at_ms != 0 && clock_since(clock_ms(), d->at_ms) < KEPT_MS) {
        tell(l);
        return;
    }
    d->asking = true;
    d->is = is_installed() ? LAUNCH_DOCKER_INSTALLED : 0;
    d->n_said = 0;
    d->late = (struct timer){ .due = on_late, .owner = l };
    d->watch = (struct watch){ .fd = ask(d), .ready = on_answer, .owner = l };
    if (d->watch.fd < 0 || loop_watch(&l->loop, &d->watch, EPOLLIN) < 0)
        settle(l, false);
    else
        loop_at(&l->loop, &d->late, clock_ms() + ANSWER_MS);
}
