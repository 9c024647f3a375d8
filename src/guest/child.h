/* guest/child.h: from clone to execve
 *
 * The child is made with CLONE_VM | CLONE_VFORK: no page table is copied, and until execve it runs in the
 * guest's memory on a stack of its own while the guest stands still. It therefore allocates nothing, touches no
 * stdio, and tells the guest why it failed by writing to the struct that it was given.
 */
#ifndef CLOCHE_GUEST_CHILD_H
#define CLOCHE_GUEST_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "guest/guard.h"
#include "wire/msg.h"

struct child_plan {
    const struct msg_exec *exec;
    const char **argv;          /* with room for one entry before it: argv[-1] */
    const char **env;
    int stdio[3];
    int joins[MSG_JOINS_MAX];   /* files of the cgroups that it joins first */
    size_t n_joins;
    bool light;                 /* no pid namespace: the guest must be out of reach of its commands' signals */
    bool terminal;              /* stdio[0] becomes the controlling terminal */
    const struct guard_filter *guard;   /* the name guard's filter to install; NULL: none */
    int guard_sock;             /* where the filter's listener goes; -1: none */
    int failed_errno;           /* written by the child; 0: execve succeeded */
    enum exec_stage failed_stage;
};

/* The process, or -1 with errno. When @plan->failed_errno is set it has exited already and waits to be reaped. */
pid_t child_spawn(struct child_plan *plan);

#endif
