/* run/net_door.c: see net_door.h */
#include "run/net_door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "program/peer.h"
#include "run/net.h"
#include "run/net_state.h"

#define REST_MS 500             /* for want of a descriptor or memory */

struct caller {
    struct watch edge;          /* the first of it; none: free */
    uid_t uid;
    uint64_t number;            /* grows; 0: never used */
};

struct net_door {
    struct net *n;
    struct watch watch;
    struct timer rest;
    char name[NET_ID_LENGTH + 8];
    uint64_t number;
    struct caller callers[DOOR_CALLERS_MAX];
};

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void
let_go(struct net_door *door, struct caller *c)
{
    loop_drop(door->n->loop, &c->edge);
    c->number = 0;
}

static void
say(struct net_door *door, struct caller *c, json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT);

    json_decref(answer);
    if (text == NULL || strlen(text) > NET_MESSAGE_MAX ||
        send(c->edge.fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        let_go(door, c);
    free(text);
}

static void
on_caller(struct watch *w, uint32_t events)
{
    struct net_door *door = w->owner;
    struct caller *c = (struct caller *)w;
    char message[DOOR_REQUEST_MAX];
    ssize_t n = io_recv(w->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
    json_t *request, *answer;

    (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || (size_t)n > sizeof(message)) {
        let_go(door, c);
        return;
    }
    request = json_loadb(message, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
    answer = json_is_object(request) ? net_asked(door->n, request, c->uid, c->number)
                                     : json_pack("{s:s}", "error", "a request that is none");
    json_decref(request);
    if (answer != NULL)
        say(door, c, answer);
}

void
door_answer(struct net_door *door, uint64_t caller, json_t *answer)
{
    if (door != NULL && caller != 0)
        for (size_t i = 0; i < DOOR_CALLERS_MAX; i++) {
            if (door->callers[i].number != caller)
                continue;
            say(door, &door->callers[i], answer);
            return;
        }
    json_decref(answer);
}

static void
rested(struct timer *t)
{
    struct net_door *door = t->owner;

    (void)loop_watch(door->n->loop, &door->watch, EPOLLIN);
}

static void
on_door(struct watch *w, uint32_t events)
{
    struct net_door *door = w->owner;
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct caller *slot = &door->callers[0];
    uid_t uid;

    (void)events;
    /* who waits stays readable: without a rest we would turn for nothing */
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        (void)loop_watch(door->n->loop, w, 0);
        loop_at(door->n->loop, &door->rest, door->n->loop->now_ms + REST_MS);
    }
    if (fd < 0)
        return;
    if (!peer_may_ask(fd, &uid)) {
        close(fd);
        return;
    }
    for (size_t i = 1; i < DOOR_CALLERS_MAX; i++)
        if (door->callers[i].number < slot->number)
            slot = &door->callers[i];
    let_go(door, slot);
    *slot = (struct caller){ .edge = { .fd = fd, .ready = on_caller, .owner = door }, .uid = uid,
                             .number = ++door->number };
    if (loop_watch(door->n->loop, &slot->edge, EPOLLIN) < 0)
        let_go(door, slot);
}

/* --- its life ---------------------------------------------------------------------------------------------------- */

struct net_door *
door_open(struct net *n, const char *id, struct err *err)
{
    struct net_door *door = calloc(1, sizeof(*door));
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    mode_t old;
    int r;

    if (door == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    door->n = n;
    door->rest = (struct timer){ .due = rested, .owner = door };
    for (size_t i = 0; i < DOOR_CALLERS_MAX; i++)
        door->callers[i].edge.fd = -1;
    snprintf(door->name, sizeof(door->name), "%.*s.sock", NET_ID_LENGTH, id);
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/%s", n->dir, door->name);
    door->watch = (struct watch){ .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                                  .ready = on_door, .owner = door };
    old = umask(0177);
    r = door->watch.fd < 0 ? -1 : bind(door->watch.fd, (const struct sockaddr *)&at, sizeof(at));
    umask(old);
    if (r == 0 && listen(door->watch.fd, DOOR_CALLERS_MAX) == 0 &&
        loop_watch(n->loop, &door->watch, EPOLLIN) == 0)
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
        let_go(door, &door->callers[i]);
    unlinkat(door->n->dir, door->name, 0);
    loop_at(door->n->loop, &door->rest, 0);
    loop_drop(door->n->loop, &door->watch);
    free(door);
}
