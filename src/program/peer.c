/* program/peer.c: see peer.h */
#include "program/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define STATUS_MAX 16384

/* The status of the process @pid (0: ourselves), as a string. */
static bool
read_status(pid_t pid, struct buf *text)
{
    char path[64];

    snprintf(path, sizeof(path), pid != 0 ? "/proc/%d/status" : "/proc/self/status", (int)pid);
    return io_read_file(AT_FDCWD, path, text) == 0 && buf_nul(text) == 0;
}

/* What stands behind "NAME:" in such a text; NULL: nothing does. */
static const char *
behind(const struct buf *text, const char *name)
{
    const char *at = strstr((const char *)text->p, name);

    if (at == NULL || (at = strchr(at, ':')) == NULL)
        return NULL;
    return at + 1 + strspn(at + 1, " \t");
}

/* The number there, or -1. */
static int64_t
number(const struct buf *text, const char *name)
{
    const char *at = behind(text, name);
    uint64_t v;

    return at != NULL && str_parse_u64((struct str){ at, strspn(at, "0123456789") }, INT64_MAX, &v) ? (int64_t)v : -1;
}

/* There is one word, and no more. */
static bool
one_word(const struct buf *text, const char *name)
{
    const char *at = behind(text, name);
    size_t n = at != NULL ? strcspn(at, " \t\n") : 0;

    return n > 0 && at[n + strspn(at + n, " \t")] == '\n';
}

static bool
same_namespace(pid_t pid, const char *which)
{
    struct stat ours, theirs;
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/ns/%s", which);
    if (stat(path, &ours) < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
    return stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/* Not confined more than we are: a sandbox in mode light shares our namespaces, but has filters of its own. A service
 * manager may have given us more filters than a sandbox has that was started elsewhere, and whoever is in one may add
 * to them until there are as many: then who asks has to have none. */
static bool
as_free_as_we(const struct buf *them, const struct buf *us)
{
    static const char *const counts[] = { "\nSeccomp_filters", "\nSeccomp", "\nNoNewPrivs" };
    bool managed = getenv("INVOCATION_ID") != NULL;     /* systemd.exec(5) */

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        int64_t theirs = number(them, counts[i]), ours = number(us, counts[i]);
        /* an older kernel counts no filters, theirs nor ours: -1 */
        if ((theirs != 0 && theirs != ours) || theirs > ours || (managed && theirs > 0))
            return false;
    }
    return true;
}

/* What /proc says in the file @name of @pid is what it says of us. */
static bool
same_text(pid_t pid, const char *name)
{
    cleanup_buf struct buf ours = BUF_INIT(16384), theirs = BUF_INIT(16384);
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/%s", name);
    if (io_read_file(AT_FDCWD, path, &ours) < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return io_read_file(AT_FDCWD, path, &theirs) == 0 && ours.n == theirs.n && memcmp(ours.p, theirs.p, ours.n) == 0;
}

/* Root, whose namespaces only root may look at. What anybody may read of it says as much: it is in no pid namespace
 * below ours, its users are our users, and it is not confined at all. A sandbox that root started has a pid namespace
 * of its own or a filter. */
static bool
root_outside(pid_t pid, const struct buf *them, const struct buf *us)
{
    /* in a pid namespace below ours it has one number more, of those that this /proc knows of */
    return one_word(them, "\nNSpid") && one_word(us, "\nNSpid") && same_text(pid, "uid_map") &&
           same_text(pid, "gid_map") && number(them, "\nSeccomp") == 0 && number(them, "\nNoNewPrivs") == 0;
}

static struct buf remembered = BUF_INIT(STATUS_MAX);

int
peer_remember(void)
{
    buf_reset(&remembered);
    return read_status(0, &remembered) ? 0 : -1;
}

static bool
one_of_us(const struct ucred *who)
{
    cleanup_buf struct buf them = BUF_INIT(STATUS_MAX), now = BUF_INIT(STATUS_MAX);
    const struct buf *us = remembered.n > 0 ? &remembered : &now;

    if (!read_status(who->pid, &them) || (us == &now && !read_status(0, &now)))
        return false;
    if (who->uid == 0 && geteuid() != 0)
        return root_outside(who->pid, &them, us);
    return same_namespace(who->pid, "user") && same_namespace(who->pid, "pid") && as_free_as_we(&them, us);
}

bool
peer_may_ask(int fd, uid_t *uid)
{
    cleanup_close int pidfd = -1;
    struct ucred who;
    struct pollfd gone = { .events = POLLIN };
    socklen_t n = sizeof(who), m = sizeof(pidfd);

    errno = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.pid <= 0)
        return false;
    *uid = who.uid;
    if (who.uid != geteuid() && who.uid != 0)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &m) < 0) {
        pidfd = -1;
        if (errno != ENOPROTOOPT)       /* before Linux 6.5; all else says that it has ended */
            return false;
    }
    if (!one_of_us(&who))
        return false;
    /* its number may have become another's while we looked: then the one that connected has ended */
    gone.fd = pidfd;
    return pidfd < 0 || poll(&gone, 1, 0) == 0;
}
