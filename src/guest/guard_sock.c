/* guest/guard_sock.c: connect and bind, performed for the caller on a duplicate of its socket; pairs of datagrams
 *
 * A unix socket that lies in a tree of the host is a door to a program outside (an agent holding keys, a container
 * daemon). It opens only when the plan names it, compared by what it is, not by how it is called; or when the sandbox
 * bound it itself. The address is copied once; addresses of other families and abstract names pass through.
 *
 * bind() makes a name, and the kernel keeps the address as it was written. So it is made with the caller's own bytes,
 * from the caller's directory: nothing can move between our look and the kernel's, because all moving is ours.
 *
 * One end of a pair of datagram sockets could send to any socket whose name it knows, and a filter cannot see where to
 * (sendmsg). So the caller gets a pair of sequenced packets: messages with their bounds, in order, none lost, as
 * between two datagram sockets of a host, and no way to another address (unix(7)). What differs: SO_TYPE, and a peer's
 * end is told, as a message without a byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

#define ADDRESS_MAX 128         /* struct sockaddr_storage, as in the kernel */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        char bytes[ADDRESS_MAX + 1];
    } u;
    socklen_t n;
    bool path;                  /* a unix socket by path; u.un.sun_path is NUL-terminated */
};

struct connect_job {
    int sock;
    struct address to;
};

static int
copy_address(struct call *c, struct address *a)
{
    int64_t n = (int32_t)c->args[2];
    int rc;

    memset(a, 0, sizeof(*a));
    if (n < 0 || n > ADDRESS_MAX)
        return -EINVAL;
    if ((rc = caller_bytes(c, c->args[1], a->u.bytes, (size_t)n)) < 0)
        return rc;
    a->n = (socklen_t)n;
    a->path = a->n > (socklen_t)offsetof(struct sockaddr_un, sun_path) && a->u.any.sa_family == AF_UNIX &&
              a->u.un.sun_path[0] != '\0' && a->n <= (socklen_t)sizeof(struct sockaddr_un);
    return 0;
}

/* --- connect */

static bool
own_socket(const struct guard *g, struct ident id)
{
    for (size_t i = 0; i < g->n_own_sockets; i++)
        if (ident_eq(g->own_sockets[i].id, id))
            return true;
    return false;
}

static bool
listed_socket(const struct guard *g, struct ident id)
{
    struct stat st;

    for (size_t i = 0; i < g->n_sockets; i++)
        if (stat(g->sockets[i], &st) == 0 && S_ISSOCK(st.st_mode) && ident_eq(ident_of(&st), id))
            return true;
    return false;
}

const char *
socket_tree_of(const struct guard *g, int dir)
{
    struct stat st;

    for (size_t i = 0; i < g->n_socket_trees; i++) {
        /* a tree that is not there holds nothing; one that cannot be looked at may */
        if (stat(g->socket_trees[i], &st) < 0) {
            if (errno == ENOENT || errno == ENOTDIR)
                continue;
            return g->socket_trees[i];
        }
        if (dir < 0 || rules_on_the_way(dir, ident_of(&st)) != 0)
            return g->socket_trees[i];
    }
    return NULL;
}

static int
may_connect(struct call *c, const struct place *at, int object, bool placed)
{
    const char *tree;
    struct stat st;

    if (fstat(object, &st) < 0)
        return -errno;
    /* the kernel says what is wrong with connecting to something else */
    if (!S_ISSOCK(st.st_mode) || own_socket(c->g, ident_of(&st)) || listed_socket(c->g, ident_of(&st)))
        return 0;
    tree = socket_tree_of(c->g, placed ? at->dir : -1);
    if (tree == NULL)
        return 0;
    if (placed)
        return deny(c, at, tree, EACCES);
    deny_object(c, object, tree);
    return -EACCES;
}

static int
connect_job(struct call *c, const void *p)
{
    const struct connect_job *job = p;

    (void)c;
    return connect(job->sock, &job->to.u.any, job->to.n) < 0 ? -errno : 0;
}

/* connect() on a stream that may block, without waiting: -EAGAIN when it has to. Its file is told not to wait
 * meanwhile; who shares a socket that is not connected yet has nothing to do on it. */
static int
connect_at_once(int sock, const struct address *to, int flags)
{
    int rc;

    if (fcntl(sock, F_SETFL, flags | O_NONBLOCK) < 0)
        return -EAGAIN;
    rc = connect(sock, &to->u.any, to->n) < 0 ? -errno : 0;
    /* the sandbox's own network has answered by now, which the second call tells */
    if (rc == -EINPROGRESS)
        rc = connect(sock, &to->u.any, to->n) < 0 ? -errno : 0;
    (void)fcntl(sock, F_SETFL, flags);
    return rc == -EALREADY || rc == -EINPROGRESS ? -EAGAIN : rc;
}

/* Only streams wait, and only when the socket may block. A worker costs two processes: it is the last resort. */
static int
connect_to(struct call *c, int sock, const struct address *to, int object)
{
    struct connect_job job = { .sock = sock, .to = *to };
    int fds[2] = { sock, object }, flags = fcntl(sock, F_GETFL), type = 0, rc = -EAGAIN;
    socklen_t n = sizeof(type);

    if (!caller_waits(c))
        return ANSWERED;
    if (flags >= 0 && (flags & O_NONBLOCK) != 0)
        return connect_job(c, &job);
    if (getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_DGRAM)
        return connect_job(c, &job);
    if (flags >= 0 && type == SOCK_STREAM)
        rc = connect_at_once(sock, to, flags);
    return rc == -EAGAIN ? worker_start(c, fds, object >= 0 ? 2 : 1, connect_job, &job) : rc;
}

static int
connect_path(struct call *c, int sock, const struct address *a)
{
    cleanup_place struct place at = PLACE_INIT;
    cleanup_close int object = -1;
    struct address to;
    int found = -1, rc = walk_object(c, AT_FDCWD, a->u.un.sun_path, true, &at, &found);
    bool placed = found < 0;

    if (rc < 0)
        return rc;
    object = placed ? openat(at.dir, at.name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : found;
    if (object < 0)
        return -errno;
    if ((rc = may_connect(c, &at, object, placed)) < 0)
        return rc;
    memset(&to, 0, sizeof(to));
    to.u.un.sun_family = AF_UNIX;
    memcpy(to.u.un.sun_path, fd_path(object).text, sizeof(struct fd_path));
    to.n = sizeof(to.u.un);
    return connect_to(c, sock, &to, object);
}

int
call_connect(struct call *c)
{
    cleanup_close int sock = -1;
    struct address a;
    int family = 0, fd = caller_fd(c, (int)c->args[0]), rc;
    socklen_t n = sizeof(family);

    if (fd < 0)
        return fd;
    sock = fd;
    /* as the kernel: first what the descriptor is, then the address */
    if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0)
        return -errno;
    if ((rc = copy_address(c, &a)) < 0)
        return rc;
    if (family == AF_UNIX && a.path)
        return connect_path(c, sock, &a);
    return connect_to(c, sock, &a, -1);
}

/* --- bind */

/* Remember a socket that the sandbox made in a tree of the host: what it made it may use. Another sandbox of the same
 * tree may have put one of its own in the place of that name by now, and would pass descriptors through it. */
static void
remember_own(struct guard *g, const struct place *at, struct bind_watch *watch)
{
    struct own_socket *slot = &g->own_sockets[g->next_own_socket];
    struct stat st;
    int fd;

    if (watch->name < 0)
        return;
    fd = openat(at->dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || !bind_watch_told_once(g, watch, at)) {
        close(fd);
        return;
    }
    if (g->n_own_sockets < OWN_SOCKETS_MAX)
        g->n_own_sockets++;
    else
        close(slot->fd);
    *slot = (struct own_socket){ fd, ident_of(&st) };
    g->next_own_socket = (g->next_own_socket + 1) % OWN_SOCKETS_MAX;
}

/* With the caller's bytes, in the caller's directory. Where that might not lead the kernel to the same place (another
 * root, a way through magic links) the held directory is named instead: getsockname() then shows that name. */
static int
bind_at(struct call *c, int sock, const struct address *a, const struct place *at, int cwd)
{
    cleanup_close int before = -1;
    struct address to = *a;
    int rc;

    if (!at->at_once) {
        char text[PATH_MAX];
        int n = snprintf(text, sizeof(text), "/proc/self/fd/%d/%s", at->dir, at->name);

        if (n < 0 || (size_t)n >= sizeof(to.u.un.sun_path))
            return -ENAMETOOLONG;
        memcpy(to.u.un.sun_path, text, (size_t)n + 1);
        to.n = sizeof(to.u.un);
    } else if (cwd >= 0) {
        before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fchdir(cwd) < 0)
            return -errno;
    }
    caller_umask_begin(c);
    rc = bind(sock, &to.u.any, to.n) < 0 ? -errno : 0;
    caller_umask_end(c);
    if (before >= 0 && fchdir(before) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* In a host's tree: remember to look what becomes of the name. Below such a tree's top another sandbox of the same tree
 * can exchange the directories on the way, while the kernel walks it: there the held one is named instead. */
static void
bind_in_tree(struct guard *g, struct bind_watch *watch, int cwd, const char *path, struct place *at)
{
    const char *tree = g->n_socket_trees > 0 ? socket_tree_of(g, at->dir) : NULL;
    struct stat st;

    if (tree == NULL)
        return;
    if (strchr(path, '/') != NULL)
        at->at_once = at->at_once && stat(tree, &st) == 0 && ident_eq(ident_of(&st), ident_of(&at->dir_st));
    bind_watch_begin(g, watch, cwd, path, at);
}

static int
bind_path(struct call *c, int sock, const struct address *a)
{
    cleanup_place struct place at = PLACE_INIT;
    cleanup_close int owned = -1;
    struct bind_watch watch = { .name = -1 };
    int cwd = -1;
    const char *rule = "";
    char name[PATH_MAX + 1];
    struct stat st;
    int rc = 0;

    if (a->u.un.sun_path[0] != '/') {
        cwd = caller_dir(c, AT_FDCWD, &owned);
        if (cwd < 0)
            return cwd;
    }
    if ((rc = walk_parent(c, AT_FDCWD, a->u.un.sun_path, &at)) < 0 || (rc = caller_umask(c)) < 0)
        return rc;
    (void)place_name(&at, name);
    if (judge_make(c, &at, false, &rule))
        return fstatat(at.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? -EADDRINUSE : deny(c, &at, rule, EACCES);
    if ((rc = git_call_make(c, &at, false, false)) < 0)
        return rc;
    if (!caller_waits(c))
        return ANSWERED;
    bind_in_tree(c->g, &watch, cwd, a->u.un.sun_path, &at);
    rc = bind_at(c, sock, a, &at, cwd);
    if (rc == 0 && rules_ambiguous(c->g, at.name, at.name_n) &&
        rules_aliased(c->g, at.dir, &at.dir_st, name, &rule)) {
        (void)unlinkat(at.dir, name, 0);
        rc = deny(c, &at, rule, EACCES);
    }
    if (rc == 0)
        rc = after_made(c, &at, S_IFSOCK);
    if (rc == 0)
        remember_own(c->g, &at, &watch);
    bind_watch_end(c->g, &watch);
    return rc;
}

int
call_bind(struct call *c)
{
    cleanup_close int sock = -1;
    struct address a;
    int family = 0, fd = caller_fd(c, (int)c->args[0]), rc;
    socklen_t n = sizeof(family);

    if (fd < 0)
        return fd;
    sock = fd;
    if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0)
        return -errno;
    if ((rc = copy_address(c, &a)) < 0)
        return rc;
    if (family == AF_UNIX && a.path)
        return bind_path(c, sock, &a);
    if (!caller_waits(c))
        return ANSWERED;
    return bind(sock, &a.u.any, a.n) < 0 ? -errno : 0;
}

/* --- socketpair */

int
call_socketpair(struct call *c)
{
    cleanup_close int one = -1, other = -1;
    int type = (int)c->args[1], theirs[2] = { -1, -1 }, ends[2], rc;

    if ((type & ~(0xf | SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0)
        return -EINVAL;
    if ((int)c->args[2] != 0 && (int)c->args[2] != AF_UNIX)
        return -EPROTONOSUPPORT;
    /* as the kernel: nothing is made for who cannot be told of it */
    if (!caller_waits(c))
        return ANSWERED;
    if ((rc = caller_put(c, c->args[3], theirs, sizeof(theirs))) < 0)
        return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (type & SOCK_NONBLOCK), 0, ends) < 0)
        return -errno;
    one = ends[0];
    other = ends[1];
    for (size_t i = 0; i < 2; i++) {
        theirs[i] = add_fd(c, ends[i], (type & SOCK_CLOEXEC) != 0);
        if (theirs[i] < 0)
            return theirs[i];
    }
    return caller_waits(c) ? caller_put(c, c->args[3], theirs, sizeof(theirs)) : ANSWERED;
}
