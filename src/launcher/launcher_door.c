/* launcher/launcher_door.c: the daemon's sockets: their names, and who comes in
 *
 * Over a unix socket, who a connection is from is decided here, where nothing of what it says is read; over TCP nobody
 * is known, and the front for strangers asks for a credential. Sockets may be ours, or passed in (sd_listen_fds(3)).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "launcher/launcher.h"
#include "program/peer.h"
#include "wall/sockaddr.h"

#define BACKLOG     512
#define AT_ONCE     64
#define PASSED_FROM 3       /* sd_listen_fds(3) */
#define REST_MS     100     /* of who found no descriptor, or no memory, for a connection */
#define LINGER_MS   100     /* for one who was refused over the spare place to say the rest */

/* Any address that we listen on or hear from. */
union door_address {
    struct sockaddr any;
    union address ip;
    struct sockaddr_un un;
    struct sockaddr_storage room;
};

static watch_fn on_door;

/* --- unix --------------------------------------------------------------------------------------------------------- */

/* A folder may have a longer path than an address of a socket. */
static struct sockaddr_un
address_in(int dir, const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", dir, name);
    return at;
}

/* A socket that nobody answers on is what a killed daemon left. */
static int
remove_old(int dir, const char *path, struct err *err)
{
    const char *name = strrchr(path, '/') + 1;
    const struct sockaddr_un at = address_in(dir, name);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "serve.listen", "%s", path);
    if (!S_ISSOCK(st.st_mode)) {
        err_set(err, ERR_USAGE, "serve.listen", "%s is there and no socket", path);
        return err_hint(err, "name another path with --listen, or remove it");
    }
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 || errno != ECONNREFUSED) {
        err_set(err, ERR_DENIED, "serve.listen.busy", "another process listens on %s", path);
        return err_hint(err, "end it, or name another path with --listen");
    }
    return unlinkat(dir, name, 0) < 0 ? err_sys(err, errno, "serve.listen", "%s", path) : 0;
}

static int
open_unix(struct listener *o, struct err *err)
{
    const char *path = o->at.path, *name = strrchr(path, '/') + 1;
    cleanup_close int dir = -1;
    char folder[PATH_MAX];
    struct sockaddr_un at;
    mode_t old;
    int r;

    snprintf(folder, sizeof(folder), "%s", path);
    folder[name - path] = '\0';
    if (strlen(name) > 64 || name[0] == '\0')
        return err_set(err, ERR_USAGE, "serve.listen", "%s: the socket's own name has 1 to 64 bytes", path);
    dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        err_sys(err, errno, "serve.listen", "%s", folder);
        return err_hint(err, "make the folder first; nobody else should be able to write there");
    }
    if (remove_old(dir, path, err) < 0)
        return -1;
    at = address_in(dir, name);
    o->watch.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    old = umask(0177);
    r = o->watch.fd < 0 ? -1 : bind(o->watch.fd, (const struct sockaddr *)&at, sizeof(at));
    umask(old);
    if (r == 0)
        o->dir = take_fd(&dir);     /* the name is ours from here on */
    return r < 0 || listen(o->watch.fd, BACKLOG) < 0 ? err_sys(err, errno, "serve.listen", "%s", path) : 0;
}

/* --- TCP ---------------------------------------------------------------------------------------------------------- */

static int
open_tcp(struct listener *o, struct err *err)
{
    const int on = 1;
    union door_address at;
    socklen_t n = sockaddr_of(&o->at.ip, o->at.port, &at.ip);
    char room[SERVE_VALUE_MAX];

    o->watch.fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (o->watch.fd < 0 || setsockopt(o->watch.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (o->at.ip.family == 6 && setsockopt(o->watch.fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(o->watch.fd, &at.any, n) < 0 || listen(o->watch.fd, BACKLOG) < 0 ||
        (n = sizeof(at), getsockname(o->watch.fd, &at.any, &n) < 0)) {
        int why = errno;
        err_sys(err, why, "serve.listen", "%s", serve_listen_text(&o->at, room));
        return err_hint(err, why == EADDRINUSE ? "another process listens there: end it, or take another port (0: any)"
                                               : "name another address");
    }
    return sockaddr_ip(&at.any, n, &o->at.ip, &o->at.port) ? 0 : err_set(err, ERR_SYSTEM, "serve.listen", "no address");
}

/* --- passed in ---------------------------------------------------------------------------------------------------- */

static int
option(int fd, int name)
{
    int value = -1;
    socklen_t n = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0 ? -1 : value;
}

static int
take_passed(struct launcher *l, int fd, struct err *err)
{
    struct listener *o = &l->listeners[l->n_listeners];
    int domain = option(fd, SO_DOMAIN);
    union door_address at;
    socklen_t n = sizeof(at);

    if (option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_ACCEPTCONN) != 1 ||
        (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) || getsockname(fd, &at.any, &n) < 0) {
        err_set(err, ERR_USAGE, "serve.passed", "descriptor %d, which was passed in, is not a listening stream socket",
                fd);
        return err_hint(err, "ListenStream= of the socket unit, with Accept=no");
    }
    if (io_set_cloexec(fd, true) < 0 || io_set_nonblock(fd, true) < 0)
        return err_sys(err, errno, "serve.passed", "descriptor %d", fd);
    *o = (struct listener){ .watch = { .fd = fd, .ready = on_door, .owner = l }, .dir = -1,
                            .at = { .tcp = domain != AF_UNIX } };
    if (o->at.tcp)
        (void)sockaddr_ip(&at.any, n, &o->at.ip, &o->at.port);
    else if (n > offsetof(struct sockaddr_un, sun_path) && at.un.sun_path[0] != '\0')
        snprintf(o->at.path, sizeof(o->at.path), "%.*s", (int)(n - offsetof(struct sockaddr_un, sun_path)),
                 at.un.sun_path);
    l->n_listeners++;
    return serve_check_door(l->plan, &o->at, err);
}

int
doors_take(struct launcher *l, struct err *err)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t who = 0, n = 0;
    int r = 0;

    if (pid != NULL && fds != NULL && str_parse_u64(str_of(pid), INT32_MAX, &who) && who == (uint64_t)getpid() &&
        !str_parse_u64(str_of(fds), SERVE_LISTEN_MAX, &n))
        r = err_set(err, ERR_USAGE, "serve.passed", "LISTEN_FDS=%s is not a number up to %d", fds, SERVE_LISTEN_MAX);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    l->spare = io_keep_place();
    for (uint64_t i = 0; i < n && r == 0; i++)
        r = take_passed(l, PASSED_FROM + (int)i, err);
    return r;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int
open_one(struct launcher *l, const struct serve_listen *at, struct err *err)
{
    struct listener *o = &l->listeners[l->n_listeners];

    *o = (struct listener){ .watch = { .fd = -1, .ready = on_door, .owner = l }, .dir = -1, .at = *at };
    l->n_listeners++;
    return at->tcp ? open_tcp(o, err) : open_unix(o, err);
}

int
doors_open(struct launcher *l, struct err *err)
{
    struct serve_listen usual = { .tcp = false };

    if (l->n_listeners == 0 && l->plan->n_listen == 0) {
        if (snprintf(usual.path, sizeof(usual.path), "%s/api.sock", l->plan->state) >= (int)sizeof(usual.path))
            return err_set(err, ERR_USAGE, "serve.path", "the socket's path is too long");
        if (open_one(l, &usual, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < l->plan->n_listen; i++)
        if (open_one(l, &l->plan->listen[i], err) < 0)
            return -1;
    for (size_t i = 0; i < l->n_listeners; i++)
        if (loop_watch(&l->loop, &l->listeners[i].watch, EPOLLIN) < 0)
            return err_sys(err, errno, "serve.listen", "epoll");
    l->open = true;
    return 0;
}

void
doors_close(struct launcher *l)
{
    for (size_t i = 0; i < l->n_listeners; i++) {
        struct listener *o = &l->listeners[i];
        if (o->dir >= 0)
            (void)unlinkat(o->dir, strrchr(o->at.path, '/') + 1, 0);
        loop_drop(&l->loop, &o->watch);
        close_fd(&o->dir);
    }
    l->n_listeners = 0;
    loop_drop(&l->loop, &l->refused);
    loop_at(&l->loop, &l->refused_end, 0);
    close_fd(&l->spare);
}

static bool
no_room(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

static void
turn_away(int fd, bool unseen)
{
    static const char no[] = "{\"error\":\"this socket is its owner's\",\"code\":\"serve.peer\",\"detail\":\"only "
                             "the user who started cloche serve may connect, and from no sandbox\"}\n";
    static const char late[] = "{\"error\":\"no room for a connection: too many open files, or no memory\",\"code\":"
                               "\"serve.full\",\"detail\":\"try again; LimitNOFILE= or ulimit -n is the limit\"}\n";
    const char *body = unseen ? late : no;
    char text[512];
    int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: "
                     "%zu\r\n%sConnection: close\r\n\r\n%s", unseen ? "503 Service Unavailable" : "403 Forbidden",
                     strlen(body), unseen ? "Retry-After: 2\r\n" : "", body);

    (void)send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
}

static int
watch_doors(struct launcher *l, enum which_front which, uint32_t events)
{
    int r = 0;

    for (size_t i = 0; i < l->n_listeners; i++)
        if (l->listeners[i].at.tcp == (which == FRONT_STRANGERS))
            r |= loop_watch(&l->loop, &l->listeners[i].watch, events);
    return r;
}

static void
on_rested(struct timer *t)
{
    struct launcher *l = t->owner;

    doors_wake(l, t == &l->fronts[FRONT_OWNER].rest ? FRONT_OWNER : FRONT_STRANGERS);
}

/* All that lead to one front rest together, until @until_ms (0: no time) and what waits is taken: it is the front that
 * has no room. */
static void
rest(struct launcher *l, enum which_front which, uint64_t until_ms)
{
    struct timer *t = &l->fronts[which].rest;

    t->due = on_rested;
    t->owner = l;
    loop_at(&l->loop, t, until_ms);
    (void)watch_doors(l, which, 0);
}

void
doors_wake(struct launcher *l, enum which_front which)
{
    struct front_end *front = &l->fronts[which];

    if (l->open && front->rest.at_ms == 0 && !packet_queue_waits(&front->out) && watch_doors(l, which, EPOLLIN) < 0)
        rest(l, which, l->loop.now_ms + REST_MS);
}

/* The next one has the spare place. */
static void
refused_ends(struct launcher *l)
{
    loop_drop(&l->loop, &l->refused);
    loop_at(&l->loop, &l->refused_end, 0);
    l->spare = io_keep_place();
    for (enum which_front which = 0; which < FRONTS; which++) {
        loop_at(&l->loop, &l->fronts[which].rest, 0);
        doors_wake(l, which);
    }
}

static void
on_refused_end(struct timer *t)
{
    refused_ends(t->owner);
}

/* What it says goes unread; closed before that it would be cut off while it speaks, and might not read why. */
static void
on_refused(struct watch *w, uint32_t events)
{
    uint8_t room[4096];
    ssize_t n = read(w->fd, room, sizeof(room));

    (void)events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        refused_ends(w->owner);
}

/* There is no place for who waits at @door, who would wait for ever: over the spare one it is told. One at a time; the
 * doors rest meanwhile. */
static void
refuse_next(struct launcher *l, int door)
{
    if (l->spare < 0)
        return;
    close_fd(&l->spare);
    l->refused = (struct watch){ .fd = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), .ready = on_refused,
                                 .owner = l };
    if (l->refused.fd < 0) {
        l->spare = io_keep_place();
        return;
    }
    turn_away(l->refused.fd, true);
    l->refused_end.due = on_refused_end;
    l->refused_end.owner = l;
    loop_at(&l->loop, &l->refused_end, l->loop.now_ms + LINGER_MS);
    (void)loop_watch(&l->loop, &l->refused, EPOLLIN);
}

/* @from: whose it is, of TCP. */
static void
hand_on(struct launcher *l, struct front_end *front, int fd, const union door_address *from)
{
    struct launch_connection m;
    struct ip ip;

    (void)sockaddr_ip(&from->any, sizeof(*from), &ip, NULL);
    m.family = ip.family;
    memcpy(m.address, ip.b, sizeof(m.address));
    if (front->door.fd >= 0)
        (void)launcher_queue(l, &front->door, &front->out, EDGE_CONNECTION, EDGE_CONNECTION_SHAPE(), &m, fd);
    else
        close(fd);
}

static void
on_door(struct watch *w, uint32_t events)
{
    struct launcher *l = w->owner;
    const struct listener *o = (struct listener *)w;        /* it is the first of it */
    enum which_front which = o->at.tcp ? FRONT_STRANGERS : FRONT_OWNER;
    struct front_end *front = &l->fronts[which];

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        union door_address from = { .any = { .sa_family = AF_UNSPEC } };
        socklen_t n = sizeof(from);
        cleanup_close int fd = -1;
        uid_t uid;
        /* each connection that waits for the front is a descriptor of ours */
        if (packet_queue_waits(&front->out))
            return rest(l, which, 0);
        fd = accept4(w->fd, &from.any, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* the listener stays readable: without this we would turn for nothing */
            if (no_room()) {
                refuse_next(l, w->fd);
                rest(l, which, l->loop.now_ms + REST_MS);
            }
            return;
        }
        if (!o->at.tcp && !peer_may_ask(fd, &uid)) {
            turn_away(fd, no_room());
            continue;
        }
        hand_on(l, front, take_fd(&fd), &from);
    }
}
