/* front/main.c: cloche-front: start, give everything up, then one loop (see front.h)
 *
 * Started by cloche serve with the name of the engine that makes sandboxes, the warden's edge at descriptor 3 and at 4
 * the socket on which connections come, each of them accepted by the launcher, which has judged whose it is. With a
 * second argument "strangers" it has not: then each request needs a credential, and the warden's end of the edge knows
 * that too (EDGE_STRANGERS). "strangers tls": and they speak TLS.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "front/front.h"
#include "front/live.h"
#include "front/mcp/mcp.h"
#include "front/preview.h"
#include "wall/service.h"

#define FD_WARDEN 3
#define FD_DOOR   4
#define AT_ONCE   64
#define MEMORY    (1024UL * 1024 * 1024)

int
front_watch(struct front *f, int fd, struct watch *w, uint32_t events, bool add)
{
    struct epoll_event event = { .events = events, .data.ptr = w };

    return epoll_ctl(f->epoll, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

static void
hear_door(struct front *f)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame message;
        int fd = -1, r = packet_receive(f->door, f->in, sizeof(f->in), &message, &fd, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0 && message.type == EDGE_CONNECTION) {
            r = doors_connection(f, &message, take_fd(&fd)) < 0 ? -1 : 1;
        } else if (r > 0 && message.type == EDGE_SETTINGS) {
            r = doors_settings(f, &message, fd) < 0 ? -1 : 1;
        } else if (r > 0) {
            r = message.type == EDGE_PING && message.length == 0 ? doors_say(f, EDGE_PONG, NULL) + 1 : -1;
        }
        close_fd(&fd);
        if (r <= 0) {
            f->ended = true;
            return;
        }
    }
}

static void
turn(struct front *f, struct watch *w, uint32_t events)
{
    switch (w->what) {
    case WATCH_WARDEN:
        if ((events & EPOLLOUT) != 0) {
            (void)packet_queue_flush(&f->to_warden, f->warden);
            if (!packet_queue_waits(&f->to_warden))
                (void)front_watch(f, f->warden, &f->watch_warden, EPOLLIN, false);
        }
        if ((events & ~(uint32_t)EPOLLOUT) != 0 && ask_hear(f) < 0)
            f->ended = true;
        break;
    case WATCH_DOOR:
        hear_door(f);
        break;
    case WATCH_HTTP:
        break;          /* run every round anyway */
    case WATCH_PEER:
        if (!w->r->dead)
            http_peer_gone(w->r);
        break;
    case WATCH_OP:
        if (!w->r->dead)
            op_hear(w->r, events);
        break;
    case WATCH_UPGRADED:
        if (!w->r->dead && w->r->up_fd >= 0)
            w->r->upgraded->hear(w->r, events);
        break;
    }
}

/* Of two times to wake up; -1 is none. */
static int
earlier(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void
serve(struct front *f)
{
    struct epoll_event events[AT_ONCE];

    while (!f->ended) {
        int ms = earlier(earlier(http_timeout(f), mcp_timeout(f)), earlier(upgrade_timeout(f), doors_expire(f)));
        int n = epoll_wait(f->epoll, events, AT_ONCE, earlier(ms, earlier(preview_timeout(f), late_timeout(f))));
        for (int i = 0; i < n && !f->ended; i++)
            turn(f, events[i].data.ptr, events[i].events);
        mcp_tick(f);
        upgrade_time(f);
        preview_time(f);
        late_time(f);
        http_run(f);
        http_bury(f);
        waits_turn(f);
    }
}

/* How many connections there may be: each is a descriptor, and its operation another one. */
static size_t
room_for_links(bool strangers)
{
    const size_t most = strangers ? FRONT_STRANGERS : FRONT_CONNECTIONS;
    struct rlimit files;
    size_t room;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return FRONT_CONNECTIONS;
    files.rlim_cur = files.rlim_max < 4 * most ? files.rlim_max : 4 * most;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    room = files.rlim_cur > 256 ? (size_t)files.rlim_cur / 2 - 64 : 64;
    return room < most ? room : most;
}

int
main(int argc, char **argv)
{
    static struct front f = { .epoll = -1, .warden = FD_WARDEN, .door = FD_DOOR,
                              .watch_warden = { WATCH_WARDEN, NULL }, .watch_door = { WATCH_DOOR, NULL },
                              .watch_http = { WATCH_HTTP, NULL }, .to_warden = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX),
                              .bodies = { .max = FRONT_BODIES_MAX }, .waits = { .max = FRONT_WAITS_MAX } };
    const struct rlimit memory = { MEMORY, MEMORY };
    struct err err = ERR_INIT;

    f.strangers = argc >= 3 && strcmp(argv[2], "strangers") == 0;
    f.tls = argc == 4 && f.strangers && strcmp(argv[3], "tls") == 0;
    if (argc != 2 + f.strangers + f.tls || fcntl(FD_WARDEN, F_GETFD) < 0 || fcntl(FD_DOOR, F_GETFD) < 0) {
        fprintf(stderr, "cloche-front is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-front");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    f.max_links = room_for_links(f.strangers);
    if (!SERVICE_SANITIZED)         /* a sanitizer's shadow would count */
        (void)setrlimit(RLIMIT_DATA, &memory);
    /* requests are told apart over restarts too */
    if (getrandom(&f.numbers, sizeof(f.numbers), 0) != (ssize_t)sizeof(f.numbers))
        f.numbers = 0;
    if (getrandom(f.rate.secret, sizeof(f.rate.secret), 0) != (ssize_t)sizeof(f.rate.secret) ||
        getrandom(f.known.secret, sizeof(f.known.secret), 0) != (ssize_t)sizeof(f.known.secret))
        return 1;
    f.epoll = epoll_create1(EPOLL_CLOEXEC);
    f.platform = platform_facts(argv[1]);
    if (f.epoll < 0 || metrics_open(&f) < 0 || io_set_nonblock(f.warden, true) < 0 ||
        io_set_nonblock(f.door, true) < 0 || mcp_open(&f) < 0 || http_open(&f, &err) < 0 ||
        front_watch(&f, f.warden, &f.watch_warden, EPOLLIN, true) < 0 ||
        front_watch(&f, f.door, &f.watch_door, EPOLLIN, true) < 0 || front_confine(&err) < 0) {
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
        return 1;
    }
    serve(&f);
    return 0;
}
