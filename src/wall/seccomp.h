/* wall/seccomp.h: the system call filter of everything that runs in a sandbox
 *
 * Theory: an allow-list. Which call gets which answer is data (the .list files of src/wall/syscalls, a line per call,
 * with its reason); tools/gen_seccomp turns it, at build time, into one finished BPF program per useful combination
 * of the fields below. At run time nothing is compiled: one seccomp(2) call hands the kernel a program that lies
 * in .rodata. Installed once, before the guest starts, and inherited by everything below it; it cannot be
 * removed, only narrowed by further filters.
 *
 * Answers: another architecture's entry (int 0x80 and 32-bit programs) kills the process; a number that is in no
 * list (and so every x32 number) is ENOSYS, as on a kernel without it; a call that is known and refused is EPERM,
 * or ENOSYS where programs take that as "not there, use the older call". docs/syscalls.md has the whole story.
 */
#ifndef CLOCHE_WALL_SECCOMP_H
#define CLOCHE_WALL_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum seccomp_list {
    SECCOMP_LIST_STANDARD,      /* own namespaces around it; what developers' tools use */
    SECCOMP_LIST_LIGHT,         /* no namespaces: also closes what those would have kept apart */
    SECCOMP_LIST_MAX,           /* the smallest list that still runs Python, Node and a shell */
};

enum seccomp_unix {
    SECCOMP_UNIX_ALL,           /* AF_UNIX sockets of every type */
    SECCOMP_UNIX_CONNECTED,     /* only types that must connect() before they send (stream, seqpacket), so that
                                 * whoever supervises connect() sees every destination. The name guard, which does,
                                 * also makes the datagram pairs (guest/guard_sock.c): socketpair is left to it */
    SECCOMP_UNIX_PAIRS,         /* no AF_UNIX socket can be created; connected pairs can (SRT) */
};

#define SECCOMP_OPENED_MAX 64   /* calls that are let through beside the list; far more than may be (match/calls.h) */
#define SECCOMP_CODE_MAX   640 /* instructions of a finished program with them */

/* Plain arguments; any combination is valid. */
struct seccomp_plan {
    enum seccomp_list list;
    enum seccomp_unix unix_sockets;
    bool ptrace;                /* debuggers and tracers among the sandbox's own processes */
    bool nested_userns;         /* namespaces and mounts may be made inside (SRT allowNestedUserNamespaces) */
    bool network_closed;        /* LIGHT: no socket but AF_UNIX can be made. The other lists ignore it, because
                                 * there the network namespace closes the network and loopback stays useful */
    bool no_memfd;              /* no memory files: one that is open nowhere but in a message is counted by nobody but
                                 * a cgroup. Beside the program, not a field of it */
    uint16_t opened[SECCOMP_OPENED_MAX];    /* numbers of calls that pass whatever the list says */
    size_t n_opened;
};

/* A program with what @plan opens; @program lies in it, or in static storage where nothing is opened. */
struct seccomp_code {
    struct sock_fprog program;
    struct sock_filter at[SECCOMP_CODE_MAX];
};

/* The finished program of @plan's list: static storage, never freed. NULL when a field is out of range. */
const struct sock_fprog *seccomp_program(const struct seccomp_plan *plan);

/* The same, and what is opened beside it. False when a field is out of range. */
bool seccomp_build(const struct seccomp_plan *plan, struct seccomp_code *out);

/* Set no_new_privs and install the program of @plan on the calling thread, for good. Call it last, right before
 * exec, in a process with one thread. No allocation, async-signal-safe on success: fit for a clone child.
 * 0, or -1 with @err: wall.seccomp.unsupported (kernel without CONFIG_SECCOMP_FILTER), wall.seccomp.plan,
 * wall.seccomp.install. */
int seccomp_install(const struct seccomp_plan *plan, struct err *err);

#endif
