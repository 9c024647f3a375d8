/* probe/attack_arguments.c: arguments that a rule refuses, of calls that are let through
 *
 * The table of numbers (attack_calls.c) cannot see them: there every argument is -1. Descriptors are bad here too where
 * they can be, so that whoever reaches the kernel learns that (EBADF) and changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define COUNT(rows) ARRAY_LEN(rows)
#define SOL_TCP_LEVEL 6
#define TCP_ULP       31

static bool
in_max(const struct attempt *a)
{
    return a->p->mode != NULL && strcmp(a->p->mode, "max") == 0;
}

/* Protocols beside TCP, UDP and ICMP; where the kernel has none of them it says what the wall says. */
static bool
odd_protocols(struct attempt *a)
{
    static const struct { const char *name; int type, protocol; } rows[] = {
        { "SCTP", SOCK_STREAM, 132 }, { "MPTCP", SOCK_STREAM, 262 },   { "UDP-Lite", SOCK_DGRAM, 136 },
        { "DCCP", 6, 33 },            { "L2TP", SOCK_DGRAM, 115 },     { "SMC", SOCK_STREAM, 256 },
    };
    static const int families[] = { AF_INET, AF_INET6 };

    for (size_t i = 0; i < COUNT(rows) * 2; i++) {
        cleanup_close int fd = socket(families[i % 2], rows[i / 2].type | SOCK_CLOEXEC, rows[i / 2].protocol);

        if (fd >= 0) {
            outcome_of(a, SUCCEEDED, "a socket of %s was made", rows[i / 2].name);
            return true;
        }
    }
    return false;
}

/* @wall: the errno that only the wall says. */
static bool
option_reaches(struct attempt *a, const char *name, int level, int option, int wall)
{
    if (syscall(SYS_setsockopt, -1L, (long)level, (long)option, "", 0L) < 0 && (errno == wall || errno == ENOSYS))
        return false;
    outcome_of(a, SUCCEEDED, "setsockopt(%s) reaches the kernel: %s", name, strerror(errno));
    return true;
}

static bool
ioctl_reaches(struct attempt *a, int fd, const char *name, unsigned long request)
{
    if (fd < 0 || (syscall(SYS_ioctl, fd, request, -1L) < 0 &&
                   (errno == ENOTTY || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM)))
        return false;
    outcome_of(a, SUCCEEDED, "ioctl(%s) reaches the kernel: %s", name, strerror(errno));
    return true;
}

/* What mode standard lets through and mode max does not. */
static bool
more_than_max(struct attempt *a)
{
    static const struct { const char *name; int option; } options[] = {
        { "SO_ATTACH_FILTER", 26 }, { "SO_ATTACH_BPF", 50 }, { "SO_ATTACH_REUSEPORT_EBPF", 52 },
    };
    static const struct { const char *name; unsigned long request; } requests[] = {
        { "FS_IOC_SETFLAGS", 0x40086602 }, { "FS_IOC_FSGETXATTR", 0x801c581f }, { "FS_IOC_FSSETXATTR", 0x401c5820 },
        { "FS_IOC_GETVERSION", 0x80087601 }, { "FS_IOC_FIEMAP", 0xc020660b },
    };
    char path[300];

    for (size_t i = 0; i < COUNT(options); i++)
        if (option_reaches(a, options[i].name, SOL_SOCKET, options[i].option, EPERM))
            return true;
    cleanup_close int link = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (link >= 0) {
        outcome_of(a, SUCCEEDED, "a route socket of netlink was made");
        return true;
    }
    if (personality(UNAME26) >= 0) {
        outcome_of(a, SUCCEEDED, "personality(UNAME26) takes effect");
        return true;
    }
    snprintf(path, sizeof(path), "%s/flags", a->scratch);
    cleanup_close int file = a->scratch[0] != '\0' ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    for (size_t i = 0; i < COUNT(requests); i++)
        if (ioctl_reaches(a, file, requests[i].name, requests[i].request))
            return true;
    return false;
}

enum outcome
attack_call_arguments(struct attempt *a)
{
    int pair[2];

    if (a->p->bare)
        return outcome_of(a, NOT_APPLICABLE, "the rules say what a wall refuses");
    if (odd_protocols(a) || option_reaches(a, "TCP_ULP", SOL_TCP_LEVEL, TCP_ULP, ENOPROTOOPT))
        return SUCCEEDED;
    if (socketpair(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 || errno == EOPNOTSUPP)
        return outcome_of(a, SUCCEEDED, "socketpair of another family reaches the kernel");
    if (in_max(a) && more_than_max(a))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "none of them gets there");
}
