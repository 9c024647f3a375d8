/* wall/service.h: what cloche's own helper processes give up before they touch anything untrusted
 *
 * The opposite of the sandbox's filter (wall/seccomp.h): a short list for one program of ours, and whatever is not on
 * it ends the process, for it can only be an attacker's.
 */
#ifndef CLOCHE_WALL_SERVICE_H
#define CLOCHE_WALL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "wall/landlock.h"

#define SERVICE_CALLS_MAX 120

#if defined(CLOCHE_SANITIZED)
#define SERVICE_SANITIZED 1
#else
#define SERVICE_SANITIZED 0
#endif

/* What glibc makes of epoll_wait(2), poll(2) and mkdir(2): a newer architecture has the newer call alone. */
#if defined(SYS_epoll_wait)
#define SERVICE_EPOLL_WAIT SYS_epoll_wait
#else
#define SERVICE_EPOLL_WAIT SYS_epoll_pwait
#endif
#if defined(SYS_poll)
#define SERVICE_POLL SYS_poll
#else
#define SERVICE_POLL SYS_ppoll
#endif
#if defined(SYS_mkdir)
#define SERVICE_MKDIR SYS_mkdir
#else
#define SERVICE_MKDIR SYS_mkdirat
#endif

/* Of some calls a list lets less through than it names (service_filter.c): fcntl(2) sends no signals, socketpair(2)
 * makes no datagram sockets, mmap(2) and mprotect(2) no memory that is executed, clone(2) does nothing but what fork(2)
 * does, prctl(2) gives a name and the signal of the parent's end, ioctl(2) asks if something is a
 * terminal.
 * A call on a list is used in tests/conformance/test_service_calls.py, or has its reason in the table beside that. */
struct service_plan {
    const unsigned *calls;                  /* system calls that stay (SYS_*), at most SERVICE_CALLS_MAX */
    size_t n_calls;
    bool inet_sockets;                      /* socket(2) stays, for AF_INET and AF_INET6; */
    bool unix_sockets;                      /* for AF_UNIX; otherwise it goes */
    const struct landlock_rule *files;      /* what can still be opened, where the kernel has Landlock */
    size_t n_files;
    bool dies;                              /* with who started it, at once: it has nothing to end in order */
    bool keep_user;                         /* root stays root, though without any capability: for files of its own */
    bool all_files;                         /* no Landlock: a root of its own has to do */
};

/* What c-ares reads when a program that makes connections looks up names: for .files. */
#define SERVICE_RESOLVER_FILES 5
extern const struct landlock_rule service_resolver_files[SERVICE_RESOLVER_FILES];

/* As root become a user of its own (unless @keep_user); not dumpable, no core; no capability, no_new_privs; Landlock;
 * then the filter (not under AddressSanitizer, whose own calls are on no list). 0, or -1 with @err (service.rights,
 * service.filter ...). One thread. */
int service_confine(const struct service_plan *plan, struct err *err);
/* The same but for the filter, of a process that has another one (service_deny()); .calls and the sockets do not
 * count. */
int service_give_up(const struct service_plan *plan, struct err *err);
/* The filter alone, and no_new_privs, of a process that keeps its rights; .files and .keep_user do not count. A filter
 * that was accepted and is not there is an error, here and below. */
int service_filter(const struct service_plan *plan, struct err *err);
/* The opposite: all but @calls stays, and no_new_privs. They are EPERM, here and in what this process starts, which may
 * be a program of others' that goes on without; so is what is not this architecture's. */
int service_deny(const unsigned *calls, size_t n, struct err *err);
/* The same of a process that loads code of others: nor does it make processes, by clone(2), or namespaces, have the
 * kernel send a signal to others (fcntl(2), ioctl(2)), be dumpable or outlive its starter (prctl(2)), or change limits
 * of others. Threads stay. */
int service_deny_module(const unsigned *calls, size_t n, struct err *err);

#endif
