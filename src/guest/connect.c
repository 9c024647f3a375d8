/* guest/connect.c: CONNECT: a connection to a server that listens in the sandbox
 *
 * Made here, in the sandbox's own network and with its own rights, so that it cannot lead anywhere else; to the host go
 * only bytes, relayed as those of a command's streams. Its end is the server's: when that sends no more, it is over.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/guest.h"

/* A socket on its way to that port of 127.0.0.1 or ::1; -1 with errno. */
static int
reach(uint16_t port, bool v6)
{
    const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port),
                                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port),
                                      .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    cleanup_close int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if ((v6 ? connect(fd, (const struct sockaddr *)&six, sizeof(six))
            : connect(fd, (const struct sockaddr *)&four, sizeof(four))) < 0 && errno != EINPROGRESS)
        return -1;
    return take_fd(&fd);
}

static void
take(struct guest_exec *e, int fd)
{
    e->in_fd = e->out[0].fd = fd;
    e->connecting = true;
}

int
connect_on_connect(struct guest *g, const struct frame *f)
{
    struct guest_exec *e = exec_slot(g);
    struct msg_connect m;
    uint16_t again;
    int fd;

    if (f->channel == 0 || exec_of(g, f->channel) != NULL || !msg_get_connect(f, &m))
        return -1;
    again = m.port;
    fd = e == NULL ? -1 : reach(m.port, false);
    if (fd < 0 && e != NULL) {
        again = 0;
        fd = reach(m.port, true);
    }
    if (fd < 0)
        return exec_failed(g, f->channel, e == NULL ? EAGAIN : errno, EXEC_STAGE_CONNECT);
    *e = (struct guest_exec){ .channel = f->channel, .stdio = EXEC_STDIO_SOCKET, .port = again,
                              .started_us = clock_us(), .in = BUF_INIT(MSG_STDIN_WINDOW_START) };
    e->out[0] = (struct exec_out){ .type = MSG_STDOUT, .limited = true, .room = m.window };
    e->out[1] = (struct exec_out){ .fd = -1 };
    take(e, fd);
    g->n_execs++;
    return 0;
}

int
connect_ready(struct guest *g, struct guest_exec *e)
{
    uint16_t channel = e->channel, port = e->port;
    int why = 0, fd;
    socklen_t n = sizeof(why);

    if (getsockopt(e->in_fd, SOL_SOCKET, SO_ERROR, &why, &n) < 0)
        why = errno;
    if (why == 0) {
        e->connecting = false;
        return msg_put_u32(&g->link.out, MSG_STARTED, channel, 0) < 0 ? -1 : relay_stdin(g, e);
    }
    e->port = 0;
    fd = port != 0 ? reach(port, true) : -1;
    if (fd >= 0) {
        close_fd(&e->out[0].fd);
        take(e, fd);
        return 0;
    }
    exec_free(g, e);
    return exec_failed(g, channel, why, EXEC_STAGE_CONNECT);
}

/* Freed, and EXIT sent, by the loop (relay_finish): this may be one of several things that happen to it in a round. */
void
connect_over(struct guest *g, struct guest_exec *e, int why)
{
    if (e->exited)
        return;
    e->in_fd = -1;
    close_fd(&e->out[0].fd);
    e->connecting = false;
    e->out[0].last = 0;
    e->end = (struct msg_exit){ .status = why > 0 && why <= 255 ? (uint32_t)why : why != 0,
                                .run_us = clock_us() - e->started_us };
    e->exited = true;
    g->n_ended++;
}
