/* front/main.c: cloche-front: start, give everything up, then one loop (see front.h)
 *
 * Started by cloche serve with the warden's edge at descriptor 3 and at 4
 * the socket on which connections come, each of them accepted by the launcher, which has judged whose it is. With a
 * argument "strangers" it has not: then each request needs a credential, and the warden's end of the edge knows
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
#include "front/preview.h"
#include "proto/languages.h"
#include "wall/service.h"

#define FD_WARDEN 3
#define FD_DOOR   4
#define AT_ONCE   64
#define MEMORY    (1024UL * 1024 * 1024)

static int
told_of_export(struct front *f, const struct frame *message, int fd)
{
    struct wire_in in = wire_in_of(message->payload, message->length);
    struct launch_export m;

    if (!launch_export_get(&in, &m)) {
        close_fd(&fd);
        return -1;
    }
    teller_open(&f->tell, &m, fd);
    return 0;
}

static int
numbers(const void *f, struct buf *b)
{
    return metrics_put(f, b);
}

static void
on_door(struct watch *w, uint32_t events)
{
    struct front *f = w->owner;

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame message;
        int fd = -1, r = packet_receive(f->door.fd, f->in, sizeof(f->in), &message, &fd, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0 && message.type == EDGE_CONNECTION) {
            r = doors_connection(f, &message, take_fd(&fd)) < 0 ? -1 : 1;
        } else if (r > 0 && message.type == EDGE_SETTINGS) {
            r = doors_settings(f, &message, fd) < 0 ? -1 : 1;
        } else if (r > 0 && message.type == EDGE_NO_LANGUAGE) {
            languages_none();
        } else if (r > 0 && message.type == EDGE_LANGUAGE) {
            r = languages_add(&message) < 0 ? -1 : 1;
        } else if (r > 0 && message.type == EDGE_ADAPTER && message.length == 0 && fd >= 0) {
            visit_adapter(f, take_fd(&fd));
        } else if (r > 0 && message.type == EDGE_EXPORT && fd >= 0) {
            r = told_of_export(f, &message, take_fd(&fd)) < 0 ? -1 : 1;
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
on_warden(struct watch *w, uint32_t events)
{
    struct front *f = w->owner;

    if ((events & EPOLLOUT) != 0) {
        (void)packet_queue_flush(&f->to_warden, w->fd);
        if (!packet_queue_waits(&f->to_warden))
            (void)loop_watch(&f->loop, w, EPOLLIN);
    }
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && ask_hear(f) < 0)
        f->ended = true;
}

static void
on_second(struct timer *t)
{
    struct front *f = t->owner;

    if (f->requests == NULL)
        return;
    upgrade_time(f);
    preview_time(f);
    desk_waits(f);
    late_time(f);
    loop_at(&f->loop, t, f->loop.now_ms + FRONT_SECOND_MS);
}

static void
serve(struct front *f)
{
    while (!f->ended) {
        (void)loop_round(&f->loop, http_timeout(f), NULL);
        visit_time(f);
        http_run(f);
        http_bury(f);
        waits_turn(f);
    }
}

#define FILES (128 + FRONT_LINGERS)     /* that are no connection's, or not any more */

/* How many connections there may be: each is a descriptor, and its operation another one. Without one for what the
 * warden or the launcher passes to us we would end. */
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
    room = files.rlim_cur > 2 * (64 + FRONT_PASSING) + FILES
               ? ((size_t)files.rlim_cur - FILES) / 2 - FRONT_PASSING : 64;
    return room < most ? room : most;
}

int
main(int argc, char **argv)
{
    static struct front f = { .warden = { .fd = FD_WARDEN, .ready = on_warden, .owner = &f },
                              .door = { .fd = FD_DOOR, .ready = on_door, .owner = &f },
                              .idle = { .due = doors_expire, .owner = &f },
                              .second = { .due = on_second, .owner = &f },
                              .run = WATCH_INIT, .adapter = WATCH_INIT, .to_warden = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX),
                              .bodies = { .max = FRONT_BODIES_MAX }, .waits = { .max = FRONT_WAITS_MAX } };
    const struct rlimit memory = { MEMORY, MEMORY };
    struct err err = ERR_INIT;

    f.strangers = argc >= 2 && strcmp(argv[1], "strangers") == 0;
    f.tls = argc == 3 && f.strangers && strcmp(argv[2], "tls") == 0;
    if (argc != 1 + f.strangers + f.tls || fcntl(FD_WARDEN, F_GETFD) < 0 || fcntl(FD_DOOR, F_GETFD) < 0) {
        fprintf(stderr, "cloche-front is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-front");
    teller_init(&f.tell, &f.loop, numbers, &f);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    f.max_links = f.places.max = room_for_links(f.strangers);
    if (!SERVICE_SANITIZED)         /* a sanitizer's shadow would count */
        (void)setrlimit(RLIMIT_DATA, &memory);
    if (getrandom(f.rate.secret, sizeof(f.rate.secret), 0) != (ssize_t)sizeof(f.rate.secret) ||
        getrandom(f.known.secret, sizeof(f.known.secret), 0) != (ssize_t)sizeof(f.known.secret))
        return 1;
    json_object_seed(0);        /* while its file can be opened */
    if (loop_init(&f.loop, &err) < 0 || metrics_open(&f) < 0 || io_set_nonblock(f.warden.fd, true) < 0 ||
        io_set_nonblock(f.door.fd, true) < 0 || http_open(&f, &err) < 0 ||
        loop_watch(&f.loop, &f.warden, EPOLLIN) < 0 ||
        loop_watch(&f.loop, &f.door, EPOLLIN) < 0 || front_confine(&err) < 0) {
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
        return 1;
    }
    serve(&f);
    return 0;
}
