/* cli/launcher_door.c: the daemon's socket: its name, and who comes in
 *
 * Who a connection is from is decided here, where nothing of what it says is read; then it is the front's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/launcher.h"
#include "cli/peer.h"

#define BACKLOG 512
#define AT_ONCE 64

/* A folder may have a longer path than an address of a socket. */
static struct sockaddr_un
address(const struct launcher *l)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", l->dir, strrchr(l->plan->socket, '/') + 1);
    return at;
}

/* A socket that nobody answers on is what a killed daemon left. */
static int
remove_old(const struct launcher *l, struct err *err)
{
    const struct sockaddr_un at = address(l);
    const char *name = strrchr(l->plan->socket, '/') + 1;
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "serve.listen", "%s", l->plan->socket);
    if (!S_ISSOCK(st.st_mode)) {
        err_set(err, ERR_USAGE, "serve.listen", "%s is there and no socket", l->plan->socket);
        return err_hint(err, "name another path with --listen, or remove it");
    }
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 || errno != ECONNREFUSED) {
        err_set(err, ERR_DENIED, "serve.listen.busy", "another process listens on %s", l->plan->socket);
        return err_hint(err, "end it, or name another path with --listen");
    }
    return unlinkat(l->dir, name, 0) < 0 ? err_sys(err, errno, "serve.listen", "%s", l->plan->socket) : 0;
}

int
door_bind(struct launcher *l, struct err *err)
{
    char folder[PATH_MAX];
    struct sockaddr_un at;
    mode_t old;
    int r;

    snprintf(folder, sizeof(folder), "%s", l->plan->socket);
    strrchr(folder, '/')[1] = '\0';
    if (strlen(strrchr(l->plan->socket, '/') + 1) > 64 || l->plan->socket[strlen(folder)] == '\0')
        return err_set(err, ERR_USAGE, "serve.listen", "%s: the socket's own name has 1 to 64 bytes", l->plan->socket);
    l->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (l->dir < 0) {
        err_sys(err, errno, "serve.listen", "%s", folder);
        return err_hint(err, "make the folder first; nobody else should be able to write there");
    }
    if (remove_old(l, err) < 0)
        return -1;
    at = address(l);
    l->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    old = umask(0177);
    r = l->listener < 0 ? -1 : bind(l->listener, (const struct sockaddr *)&at, sizeof(at));
    umask(old);
    l->bound = r == 0;
    if (r < 0 || listen(l->listener, BACKLOG) < 0 || launcher_watch(l, l->listener) < 0)
        return err_sys(err, errno, "serve.listen", "%s", l->plan->socket);
    return 0;
}

void
door_unbind(struct launcher *l)
{
    if (l->bound)
        (void)unlinkat(l->dir, strrchr(l->plan->socket, '/') + 1, 0);
    l->bound = false;
    close_fd(&l->listener);
    close_fd(&l->dir);
}

static void
turn_away(int fd)
{
    static const char body[] = "{\"error\":\"this socket is its owner's\",\"code\":\"serve.peer\",\"detail\":\"only "
                               "the user who started cloche serve may connect, and from no sandbox\"}\n";
    char text[512];
    int n = snprintf(text, sizeof(text), "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: "
                     "%zu\r\nConnection: close\r\n\r\n%s", sizeof(body) - 1, body);

    (void)send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
}

static void
rest(struct launcher *l)
{
    l->resting = l->resting || epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->listener, NULL) == 0;
}

void
door_wake(struct launcher *l)
{
    if (l->resting && !packet_queue_waits(&l->to_front) && launcher_watch(l, l->listener) == 0)
        l->resting = false;
}

void
door_accept(struct launcher *l)
{
    for (int i = 0; i < AT_ONCE; i++) {
        /* each connection that waits for the front is a descriptor of ours */
        if (packet_queue_waits(&l->to_front))
            return rest(l);
        cleanup_close int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        uint8_t room[64];
        struct buf frame = BUF_INIT_IN(room, sizeof(room));
        uid_t uid;
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                rest(l);        /* the listener stays readable: without this we would turn for nothing */
            return;
        }
        if (!peer_may_ask(fd, &uid)) {
            turn_away(fd);
            continue;
        }
        if (l->connections >= 0 && frame_end(&frame, frame_begin(&frame, EDGE_CONNECTION, 0, 0)) == 0)
            (void)packet_queue_send(&l->to_front, l->connections, &frame, take_fd(&fd));
    }
}
