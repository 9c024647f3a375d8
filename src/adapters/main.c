/* adapters/main.c: cloche-adapter: start, give everything up, then one loop
 *
 * Started by cloche serve for each front, with the name of the engine that makes sandboxes; at descriptor 3 the front's
 * edge, on which visits come (host.c), at 4 the launcher's, which says the languages of the user's own and asks whether
 * it is there. It parses what clients say in the words of MCP and of /api, and holds the sockets of these visits.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "adapters/adapters.h"
#include "adapters/host.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "proto/edge_launcher.h"
#include "proto/languages.h"
#include "wall/service.h"

#define FD_FRONT 3
#define FD_DOOR  4
#define AT_ONCE  64
#define FILES    16384                      /* two a visit, and a front has no more connections than half of that */
#define MEMORY   (1024UL * 1024 * 1024)

static void
on_front(struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct adapt_visit m;
        struct wire_in in;
        struct frame f;
        int fd = -1, r = packet_receive(w->fd, hosting.in, sizeof(hosting.in), &f, &fd, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        in = wire_in_of(r > 0 ? f.payload : NULL, r > 0 ? f.length : 0);
        if (r > 0 && f.type == EDGE_VISIT && fd == PACKET_FULL)
            continue;       /* its socket is closed, which says so */
        if (r <= 0 || f.type != EDGE_VISIT || fd < 0 || !adapt_visit_get(&in, &m) ||
            host_visit(&m, take_fd(&fd)) < 0)
            hosting.ended = true;
        close_fd(&fd);
        if (hosting.ended)
            return;
    }
}

static bool docker_asked;

void
visit_docker(struct visit *r, void (*told)(struct visit *r, uint8_t is))
{
    r->docker = told;
    if (docker_asked)
        return;
    docker_asked = true;
    if (proto_send(FD_DOOR, EDGE_DOCKER_ASK, EDGE_DOCKER_ASK_SHAPE(), NULL, -1) < 0)
        hosting.ended = true;
}

static int
docker_is(const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct launch_docker m;

    if (!launch_docker_get(&in, &m))
        return -1;
    docker_asked = false;
    for (struct visit *r = adapters_visits, *next; r != NULL; r = next) {
        void (*told)(struct visit *, uint8_t) = r->docker;
        next = r->next;
        r->docker = NULL;
        if (told == NULL)
            continue;
        told(r, m.is);
        host_flow(host_of(r));
    }
    return 1;
}

static void
on_door(struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame f;
        int r = packet_receive(w->fd, hosting.in, sizeof(hosting.in), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0 && f.type == EDGE_PING && f.length == 0) {
            r = proto_send(w->fd, EDGE_PONG, &nothing_shape, NULL, -1) < 0 ? -1 : 1;
        } else if (r > 0 && f.type == EDGE_NO_LANGUAGE && f.length == 0) {
            languages_none();
            r = adapters_languages() < 0 ? -1 : 1;
        } else if (r > 0 && f.type == EDGE_DOCKER_IS) {
            r = docker_is(&f);
        } else if (r > 0) {
            r = f.type == EDGE_LANGUAGE && languages_add(&f) == 0 && adapters_languages() == 0 ? 1 : -1;
        }
        if (r <= 0) {
            hosting.ended = true;
            return;
        }
    }
}

static void
raise_limits(void)
{
    const struct rlimit memory = { MEMORY, MEMORY };
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!SERVICE_SANITIZED)         /* a sanitizer's shadow would count */
        (void)setrlimit(RLIMIT_DATA, &memory);
}

int
main(int argc, char **argv)
{
    static struct watch front = { .fd = FD_FRONT, .ready = on_front }, door = { .fd = FD_DOOR, .ready = on_door };
    struct err err = ERR_INIT;

    if (argc != 2 || fcntl(FD_FRONT, F_GETFD) < 0 || fcntl(FD_DOOR, F_GETFD) < 0) {
        fprintf(stderr, "cloche-adapter is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-adapter");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    raise_limits();
    if (adapters_open(argv[1]) < 0 || adapters_languages() < 0)
        return 1;
    if (loop_init(&hosting.loop, &err) < 0 || io_set_nonblock(FD_FRONT, true) < 0 ||
        io_set_nonblock(FD_DOOR, true) < 0 || loop_watch(&hosting.loop, &front, EPOLLIN) < 0 ||
        loop_watch(&hosting.loop, &door, EPOLLIN) < 0 || adapters_confine(&err) < 0) {
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
        return 1;
    }
    while (!hosting.ended)
        (void)loop_round(&hosting.loop, -1, NULL);
    return 0;
}
