/* cli/peer.c: see peer.h */
#include "cli/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The number behind "NAME:" in the status of the process @pid (0: ourselves), or -1. */
static int64_t
status_number(pid_t pid, const char *name)
{
    cleanup_buf struct buf text = BUF_INIT(16384);
    char path[64];
    const char *at;
    uint64_t v;

    snprintf(path, sizeof(path), pid != 0 ? "/proc/%d/status" : "/proc/self/status", (int)pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0 || buf_nul(&text) < 0)
        return -1;
    at = strstr((const char *)text.p, name);
    if (at == NULL || (at = strchr(at, ':')) == NULL)
        return -1;
    at += 1 + strspn(at + 1, " \t");
    return str_parse_u64((struct str){ at, strspn(at, "0123456789") }, INT64_MAX, &v) ? (int64_t)v : -1;
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

/* Not confined more than we are: a sandbox in mode light shares our namespaces, but has filters of its own. */
static bool
as_free_as_we(pid_t pid)
{
    static const char *const counts[] = { "\nSeccomp_filters", "\nSeccomp", "\nNoNewPrivs" };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int64_t theirs = status_number(pid, counts[i]), ours = status_number(0, counts[i]);
        if (theirs > ours || (theirs < 0 && ours >= 0))
            return false;
    }
    return true;
}

bool
peer_may_ask(int fd, uid_t *uid)
{
    cleanup_close int pidfd = -1;
    struct ucred who;
    struct pollfd gone = { .events = POLLIN };
    socklen_t n = sizeof(who), m = sizeof(pidfd);

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
    if (!same_namespace(who.pid, "user") || !same_namespace(who.pid, "pid") || !as_free_as_we(who.pid))
        return false;
    /* its number may have become another's while we looked: then the one that connected has ended */
    gone.fd = pidfd;
    return pidfd < 0 || poll(&gone, 1, 0) == 0;
}
