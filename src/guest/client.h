/* guest/client.h: the host's side of the guest protocol
 *
 * Theory: a struct guest_client is a state machine over one connected stream (the engine's transport). It never
 * blocks and owns no thread: the caller polls the descriptor for guest_client_poll_events(), calls
 * guest_client_pump(), and takes events with guest_client_next() until there are none. Requests are queued at
 * once; nothing waits for the guest's HELLO, so SETUP and the first EXEC are in the socket before the guest is
 * even running (one send, no round trip).
 *
 * The guest lives beside code that nobody has read and is treated as hostile: each message is judged by a table
 * (state, ceiling), each channel must be one that this side opened, credits are counted. The first thing that
 * is not permitted is ERR_PROTOCOL ("guest.protocol"); after that the client refuses to be used and the caller
 * destroys the sandbox. What the guest *says* (exit status, usage, denials) is a claim by the sandbox: show it
 * to people, never decide on it.
 *
 * Not thread safe: one client, one thread.
 */
#ifndef CLOCHE_GUEST_CLIENT_H
#define CLOCHE_GUEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/frame.h"
#include "wire/msg.h"

struct guest_client;

/* One command. Zero-initialise with GUEST_EXEC_INIT, so that "keep" is kept. */
struct guest_exec {
    const char *const *argv;        /* NULL-terminated, at least one; argv[0] is looked up in the PATH of @env */
    const char *const *env;         /* NULL-terminated; the command's whole environment */
    const char *cwd;                /* "" or NULL: the guest's own */
    enum exec_stdio stdio;
    int fds[3];                     /* EXEC_STDIO_FDS: borrowed; unix transports only */
    int joins[MSG_JOINS_MAX];       /* STREAM and PTY: @n_joins files of cgroups that it joins; borrowed likewise */
    size_t n_joins;
    int note;                       /* STREAM, without @joins: a file that it has as its stderr; borrowed; -1 none */
    uint8_t flags;                  /* MSG_EXEC_QUIET ... */
    uint16_t rows, cols;            /* EXEC_STDIO_PTY */
    uint32_t umask, uid, gid;       /* MSG_KEEP: as the guest's */
    uint32_t window;                /* output under way per stream before guest_client_window(); 0: no such limit */
    const struct msg_rlimit *rlimits;
    size_t n_rlimits;
};

#define GUEST_EXEC_INIT \
    { .stdio = EXEC_STDIO_STREAM, .fds = { -1, -1, -1 }, .note = -1, .umask = MSG_KEEP, .uid = MSG_KEEP, \
      .gid = MSG_KEEP }

enum guest_event_type {
    GUEST_HELLO,            /* .hello */
    GUEST_STARTED,          /* .pid (inside the sandbox); 0 of a connection, which is there */
    GUEST_EXEC_FAILED,      /* .exec_failed; the channel is free again */
    GUEST_STDOUT,           /* .data */
    GUEST_STDERR,           /* .data */
    GUEST_STDIN_READY,      /* more room for stdin; .stdin_gone: the command closed it */
    GUEST_EXIT,             /* .exit; the channel is free again; of a connection: it is over */
    GUEST_DENIED,           /* .denied */
    GUEST_NOTICE,           /* .notice */
    GUEST_FILE_DATA,        /* .data */
    GUEST_FILE_ENTRIES,     /* .entries: walk with msg_next_entry() (already checked) */
    GUEST_FILE_CHANGE,      /* .change: checked; WATCHING first, before it UNWATCHED only */
    GUEST_FILE_INFO,        /* .info; the request is over */
    GUEST_FILE_DONE,        /* .count: bytes read or written, entries listed or removed; the request is over */
    GUEST_FILE_FAILED,      /* .file_error; the request is over */
    GUEST_CLOSED,           /* the transport reached its end; every open channel is lost */
};

/* Everything that it points to is borrowed and valid until the next guest_client_pump(). */
struct guest_event {
    enum guest_event_type type;
    uint16_t channel;       /* exec channel or file request, 0 where it concerns the whole guest */
    union {
        struct msg_hello hello;
        uint32_t pid;
        struct msg_exec_failed exec_failed;
        struct { const uint8_t *p; size_t n; } data;
        bool stdin_gone;
        struct msg_exit exit;
        struct msg_denied denied;
        struct msg_notice notice;
        struct wire_in entries;
        struct msg_file_info info;
        struct msg_change change;
        uint64_t count;
        struct msg_file_error file_error;
    };
};

/* @fd is borrowed and becomes non-blocking. 0 or -1. */
int guest_client_new(int fd, struct guest_client **out, struct err *err);
void guest_client_free(struct guest_client *c);
void guest_client_freep(struct guest_client **c);
#define cleanup_guest_client __attribute__((cleanup(guest_client_freep)))

/* Queue SETUP; once, before anything else. It is sent with the next request or pump. */
int guest_client_setup(struct guest_client *c, const struct msg_setup *m, struct err *err);

/* The root that it named, where the paths of file requests are; "" none. */
const char *guest_client_root(const struct guest_client *c);

/* Queue and send EXEC. @channel names the command from here to its GUEST_EXIT or GUEST_EXEC_FAILED. The three
 * descriptors of EXEC_STDIO_FDS may be closed as soon as this returns. ERR_LIMIT: arguments too long, or
 * MSG_EXECS_MAX commands run already. */
int guest_client_exec(struct guest_client *c, const struct guest_exec *x, uint16_t *channel, struct err *err);

/* Connect to @port of the sandbox's own loopback address. From here on the channel is used as a command's: stdin goes
 * to the server, its close is the end of what is sent; stdout is what it says, at most @window (not 0) bytes of it
 * under way; a signal SIGKILL breaks it off. Who answers there is the sandbox's business. */
int guest_client_connect(struct guest_client *c, uint16_t port, uint32_t window, uint16_t *channel, struct err *err);

/* Bytes of stdin that would be taken now. 0 also when the command is gone or has stdin of its own. */
size_t guest_client_stdin_room(const struct guest_client *c, uint16_t channel);
/* Queue stdin; @taken says how much (at most the room). The caller keeps the rest and waits for GUEST_STDIN_READY. */
int guest_client_stdin(struct guest_client *c, uint16_t channel, const void *p, size_t n, size_t *taken,
                       struct err *err);
/* The calls below are no-ops (0) on a channel whose command has ended: that is a race, not an error. */
int guest_client_close_stdin(struct guest_client *c, uint16_t channel, struct err *err);
int guest_client_resize(struct guest_client *c, uint16_t channel, uint16_t rows, uint16_t cols, struct err *err);
int guest_client_signal(struct guest_client *c, uint16_t channel, int signo, enum signal_target target,
                        struct err *err);
/* With @window set in guest_exec: @bytes of that stream were consumed, send as many more. */
int guest_client_window(struct guest_client *c, uint16_t channel, enum msg_stream stream, uint32_t bytes,
                        struct err *err);
/* Signal every process in the sandbox but the guest. */
int guest_client_kill_all(struct guest_client *c, int signo, struct err *err);

/* A file request: @type is MSG_FILE_READ, _WRITE, _LIST, _STAT, _REMOVE, _MKDIR, _RENAME or _WATCH. Paths are absolute
 * below SETUP's root or relative to it; their shape is refused here already ("files.path-escapes", message
 * "Path escapes workspace."), and the guest checks again where they really lead. */
int guest_client_file(struct guest_client *c, uint8_t type, const struct msg_file *m, uint16_t *request,
                      struct err *err);
/* MSG_FILE_WRITE: contents, as much as fits (@taken), then the end. No-ops once the request is over. */
int guest_client_file_chunk(struct guest_client *c, uint16_t request, const void *p, size_t n, size_t *taken,
                            struct err *err);
int guest_client_file_end(struct guest_client *c, uint16_t request, struct err *err);
int guest_client_file_cancel(struct guest_client *c, uint16_t request, struct err *err);
/* MSG_FILE_WATCH: @bytes of what its changes hold (guest_change_bytes) were consumed, send as many more. A no-op once
 * it is over. */
int guest_client_file_more(struct guest_client *c, uint16_t request, uint32_t bytes, struct err *err);
uint32_t guest_change_bytes(const struct msg_change *m);

/* POLLIN, and POLLOUT while something waits to be sent. */
short guest_client_poll_events(const struct guest_client *c);
/* Send what waits and read what is there; at most one read, so that events stay bounded. 0 or -1 with @err. */
int guest_client_pump(struct guest_client *c, struct err *err);
/* Take the next event. 1 with @ev, 0 when there is none (pump first), -1 with @err. */
int guest_client_next(struct guest_client *c, struct guest_event *ev, struct err *err);

/* What a shell would exit with: 127 not found, 126 found but not runnable, 125 anything before execve. */
int guest_exec_failed_code(const struct msg_exec_failed *m);
/* Say it: codes "exec.not-found", "exec.no-interpreter", "exec.not-runnable", "exec.cwd", ... Always returns -1. */
int guest_exec_failed_err(const struct msg_exec_failed *m, const char *argv0, const char *cwd, struct err *err);
/* "files.path-escapes", "files.not-found", "files.exists", ... Always returns -1. */
int guest_file_err(const struct msg_file_error *m, const char *path, struct err *err);

#endif
