/* run/net_door.c: see net_door.h */
#include "run/net_door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "program/peer.h"
#include "run/net.h"
#include "run/net_state.h"

struct caller {
    int fd;                     /* -1: free */
    uid_t uid;
    uint64_t number;            /* grows; 0: never used */
};

struct net_door {
    struct net *n;
    int fd;
    char name[NET_ID_LENGTH + 8];
    uint64_t number;
    struct caller callers[DOOR_CALLERS_MAX];
};

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void
let_go(struct caller *c)
{
    close_fd(&c->fd);
    c->number = 0;
}

static void
admit(struct net_door *door)
{
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct epoll_event e = { .events = EPOLLIN, .data = { .fd = fd } };
    struct caller *slot = &door->callers[0];
    uid_t uid;

    if (fd < 0)
        return;
    for (size_t i = 1; i < DOOR_CALLERS_MAX; i++)
        if (door->callers[i].number < slot->number)
            slot = &door->callers[i];
    if (!peer_may_ask(fd, &uid) || epoll_ctl(door->n->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        close(fd);
        return;
    }
    let_go(slot);
    *slot = (struct caller){ .fd = fd, .uid = uid, .number = ++door->number };
}

static void
say(struct caller *c, json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT);

    json_decref(answer);
    if (text == NULL || strlen(text) > NET_MESSAGE_MAX ||
        send(c->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        let_go(c);
    free(text);
}

static void
serve(struct net_door *door, struct caller *c)
{
    char message[DOOR_REQUEST_MAX];
    ssize_t n = io_recv(c->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
    json_t *request, *answer;

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || (size_t)n > sizeof(message)) {
        let_go(c);
        return;
    }
    request = json_loadb(message, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
    answer = json_is_object(request) ? net_asked(door->n, request, c->uid, c->number)
                                     : json_pack("{s:s}", "error", "a request that is none");
    json_decref(request);
    if (answer != NULL)
        say(c, answer);
}

void
door_answer(struct net_door *door, uint64_t caller, json_t *answer)
{
    if (door != NULL && caller != 0)
        for (size_t i = 0; i < DOOR_CALLERS_MAX; i++) {
            if (door->callers[i].number != caller)
                continue;
            say(&door->callers[i], answer);
            return;
        }
    json_decref(answer);
}

bool
door_event(struct net_door *door, int fd)
{
    if (door == NULL)
        return false;
    if (fd == door->fd) {
        admit(door);
        return true;
    }
    for (size_t i = 0; i < DOOR_CALLERS_MAX; i++) {
        if (door->callers[i].fd != fd)
            continue;
        serve(door, &door->callers[i]);
        return true;
    }
    return false;
}

/* --- its life ---------------------------------------------------------------------------------------------------- */

struct net_door *
door_open(struct net *n, const char *id, struct err *err)
{
    struct net_door *door = calloc(1, sizeof(*door));
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct epoll_event e = { .events = EPOLLIN };
    mode_t old;
    int r;

    if (door == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    door->n = n;
    for (size_t i = 0; i < DOOR_CALLERS_MAX; i++)
        door->callers[i].fd = -1;
    snprintf(door->name, sizeof(door->name), "%.*s.sock", NET_ID_LENGTH, id);
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", n->dir, door->name);
    door->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    old = umask(0177);
    r = door->fd < 0 ? -1 : bind(door->fd, (const struct sockaddr *)&at, sizeof(at));
    umask(old);
    e.data.fd = door->fd;
    if (r == 0 && listen(door->fd, DOOR_CALLERS_MAX) == 0 && epoll_ctl(n->epoll, EPOLL_CTL_ADD, door->fd, &e) == 0)
        return door;
    err_sys(err, errno, "cli.net.socket", "the socket of the run in the state folder");
    door_close(door);
    return NULL;
}

void
door_close(struct net_door *door)
{
    if (door == NULL)
        return;
    for (size_t i = 0; i < DOOR_CALLERS_MAX; i++)
        close_fd(&door->callers[i].fd);
    unlinkat(door->n->dir, door->name, 0);
    close_fd(&door->fd);
    free(door);
}
