/* guest/guest.h: the one small program inside every sandbox
 *
 * Theory: one process, one thread, one loop (main.c). It owns the transport (link.h), the commands (exec.c,
 * child.c, relay.c), their ends (reap.c), files below one root (files.c, walk.c), what changes there (changes.c)
 * and the supervised limits (watch.c). It is process 1 of the sandbox's pid namespace, or a plain subreaper where
 * there is none ("light").
 * It runs with the rights of the code beside it, behind the same Landlock domain and seccomp filter: it holds
 * nothing worth stealing, and it cannot be traced (not dumpable) or, as process 1, killed from inside.
 *
 * The host is trusted; a host that breaks the protocol is a bug, and the answer is to end everything. All rules
 * of the dialogue: dispatch.c and docs/guest-protocol.md.
 */
#ifndef CLOCHE_GUEST_GUEST_H
#define CLOCHE_GUEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "guest/link.h"
#include "wire/msg.h"
#include "wire/table.h"

enum guest_state { GUEST_FRESH = 1, GUEST_READY = 2 };

/* One direction of relayed output: a pipe's reading end, or a terminal's master. */
struct exec_out {
    int fd;                     /* -1: none, or at its end */
    uint8_t type;               /* MSG_STDOUT, MSG_STDERR */
    bool limited;
    bool hung;                  /* of a terminal: nobody holds it open just now */
    uint32_t room;              /* credit from the host, when @limited */
    uint32_t last;              /* after the command's end: how much of what is still there belongs to it */
};

struct guest_exec {
    uint16_t channel;           /* 0: free */
    pid_t pid;                  /* 0: of a socket, or it has ended */
    enum exec_stdio stdio;
    bool exited;                /* @end is filled; EXIT goes out when the output is drained */
    bool last;                  /* the guest ends with it */
    bool connecting;            /* of a socket: it is not there yet */
    uint16_t port;              /* likewise: tried at ::1 next; 0 not */
    bool stdin_close;           /* close stdin when @in is written */
    int in_fd;                  /* -1: none. Of a terminal or socket: the same as out[0].fd */
    struct buf in;              /* stdin that the command did not take yet; at most MSG_STDIN_WINDOW_START */
    struct exec_out out[2];
    uint64_t started_us;
    struct msg_exit end;
};

struct files;
struct guard;
struct changes;

#define GUEST_ORPHANS_MAX 128   /* pipes of ended commands that a background process still holds */

#define GUARD_LISTENERS_MAX 256

/* What every command touches comes first: a page that is not touched is not faulted in. */
struct guest {
    struct msg_gate gate;
    bool pid1;
    bool light;
    bool leaving;               /* the last command has ended: nothing but what waits is still sent */
    bool childless;             /* nothing runs: no command, no background process */
    bool any_hung;              /* a terminal is to be looked at again in a moment */
    int root;                   /* where file requests live; -1: nowhere */
    size_t n_execs;
    size_t n_ended;             /* of them: ended, with output still to send */
    size_t n_orphans;
    size_t n_listeners;
    uint64_t memory_limit;
    uint32_t pids_limit;
    uint32_t sample_ms;
    uint64_t next_sample_us;
    struct files *files;        /* made by the first file request */
    struct guard *guard;        /* NULL: no plan */
    size_t n_changes;           /* directories that the host watches */
    struct changes *changes[MSG_WATCHES_MAX];   /* NULL: free */
    struct link link;
    struct guest_exec execs[MSG_EXECS_MAX];     /* a free one has channel 0 */
    char root_path[MSG_PATH_MAX + 1];
    int orphans[GUEST_ORPHANS_MAX];
    int listeners[GUARD_LISTENERS_MAX];         /* of the filters that commands carry */
};

/* dispatch.c: the table; and take every whole frame that was read. -1: the guest must end (exit code in @code). */
void guest_gate_init(struct msg_gate *gate);
int guest_dispatch(struct guest *g, int *code);

/* exec.c */
struct guest_exec *exec_of(struct guest *g, uint16_t channel);
struct guest_exec *exec_slot(struct guest *g);   /* a free one; NULL none */
int exec_on_exec(struct guest *g, const struct frame *f);
void exec_free(struct guest *g, struct guest_exec *e);
int exec_failed(struct guest *g, uint16_t channel, int sys_errno, enum exec_stage stage);

/* connect.c: connections to servers in the sandbox */
int connect_on_connect(struct guest *g, const struct frame *f);
/* It can be written to: it is there, or is not going to be. As the relay's functions. */
int connect_ready(struct guest *g, struct guest_exec *e);
/* It is over: @why is 0 or an errno. */
void connect_over(struct guest *g, struct guest_exec *e, int why);

/* pty.c: a terminal of the sandbox's own; both ends CLOEXEC. 0 or an errno. */
int pty_open(uint16_t rows, uint16_t cols, int *master, int *slave);
int pty_resize(int master, uint16_t rows, uint16_t cols);
/* The process group in front, or 0. */
pid_t pty_foreground(int master);

/* relay.c */
int relay_on_stdin(struct guest *g, const struct frame *f);
int relay_on_stdin_close(struct guest *g, const struct frame *f);
int relay_on_window(struct guest *g, const struct frame *f);
int relay_on_resize(struct guest *g, const struct frame *f);
/* Move what can be moved. -1 when the transport cannot take a message (then the guest ends). */
int relay_stdin(struct guest *g, struct guest_exec *e);
int relay_output(struct guest *g, struct guest_exec *e, size_t i);
bool relay_wants_output(const struct guest *g, const struct guest_exec *e, size_t i);
/* After the command's end: note how much output is its own, and send EXIT once that is through. */
void relay_mark_end(struct guest_exec *e);
int relay_finish(struct guest *g, struct guest_exec *e);
/* A moment has passed: look at terminals again that nobody held open. */
void relay_retry_hung(struct guest *g);
void relay_orphan(struct guest *g, size_t i);

/* reap.c */
void reap_children(struct guest *g);
int reap_on_signal(struct guest *g, const struct frame *f);
int reap_on_kill_all(struct guest *g, const struct frame *f);
void reap_kill_all(struct guest *g, int signo);
void reap_forward(struct guest *g, int signo);
/* Leave nothing behind: as process 1 the kernel does it, in light mode this does. */
void reap_end_all(struct guest *g);

/* watch.c: look at memory and processes when it is time. Returns milliseconds until the next look, -1: none. */
int watch_step(struct guest *g);

/* files.c */
int files_on_request(struct guest *g, const struct frame *f);
int files_on_chunk(struct guest *g, const struct frame *f);
int files_on_end(struct guest *g, const struct frame *f);
int files_on_cancel(struct guest *g, const struct frame *f);
int changes_on_more(struct guest *g, const struct frame *f);
bool files_busy(const struct guest *g);         /* a read, listing or removal has a next step */
int files_step(struct guest *g);

#endif
