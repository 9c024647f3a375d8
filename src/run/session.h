/* run/session.h: one command in one sandbox, from start to report
 *
 * The supervisor behind run, code, shell and srt: builds the sandbox, starts the command, carries its streams,
 * forwards signals, keeps time, output and memory limits, and tears everything down before it returns.
 */
#ifndef CLOCHE_RUN_SESSION_H
#define CLOCHE_RUN_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "engine/engine.h"
#include "match/publish.h"
#include "policy/policy.h"
#include "workspace/cow.h"

#define SESSION_DENIED_MAX 64       /* distinct denials kept for the report; the rest are counted */
#define SESSION_CAPTURE_MAX (256UL * 1024 * 1024)

enum session_io {
    SESSION_PASS,       /* the caller's stdin, stdout and stderr */
    SESSION_STREAM,     /* pipes, relayed: output can be counted, cut and captured */
    SESSION_PTY,        /* a terminal of the sandbox's own, relayed to the caller's */
};

/* A file to put into the sandbox before the command starts (cloche code). */
struct session_file {
    const char *folder;         /* absolute, inside, in the sandbox's own file system */
    const char *name;
    const void *data;
    size_t n;
};

struct session {
    const struct policy *policy;
    const char *const *argv;    /* NULL-terminated */
    enum session_io io;
    bool capture;               /* output into the result's buffers instead of the caller's streams (not with PASS) */
    const struct session_file *file;    /* or NULL */
    int control_fd;             /* SRT's control descriptor, from 3 on; 0: none */
    bool quiet;                 /* no warnings but those about a missing wall */
    bool no_stdin;              /* stdin is /dev/null */
    /* The same policy in the weaker mode @mode, for `fallback` (run/fallback.h); NULL: there is none. @out is the
     * caller's to free, also after -1. */
    int (*weaker)(void *ctx, enum policy_mode mode, struct policy *out, struct err *err);
    void *weaker_ctx;
};

enum session_reason {
    REASON_EXITED, REASON_SIGNALED, REASON_TIMEOUT, REASON_MEMORY, REASON_CANCELLED, REASON_REFUSED,
};

struct session_denied {
    char op[64], target[512], rule[256];
    uint64_t count;
};

struct session_result {
    char id[33];
    const char *engine;
    struct engine_choice choice;        /* why it is that one; n 0: none made anything */
    enum session_reason reason;
    int exit_code;              /* of the command when it exited, else -1 */
    int signal;                 /* that ended it, else 0 */
    bool ran;                   /* the command was started, whatever came of it */
    bool timed_out, oom_killed;
    struct timespec started;    /* wall clock */
    uint64_t duration_us, setup_us;
    struct sandbox_usage usage;
    uint64_t out_bytes, err_bytes;      /* what the command wrote; valid when @counted */
    bool counted;
    bool out_truncated, err_truncated;
    struct buf out, err;        /* with capture */
    struct session_denied denied[SESSION_DENIED_MAX];
    size_t n_denied;
    uint64_t denied_more;
    const char *memory_by, *cpu_by, *pids_by, *disk_by;     /* "cgroup v1", "supervised", "none" ... */
    char cow_id[COW_ID_MAX + 1];
    bool network;               /* it had one by name */
    char published[PUBLISH_MAX][PUBLISH_TEXT_MAX];    /* ports that the host reached (match/publish.h) */
    size_t n_published;
    uint64_t connections;       /* to them */
    uint64_t egress_deaths;     /* of the process that carried it; it is started again */
    char warnings[8][256];
    size_t n_warnings;
    struct policy weaker;       /* what it ran by, when @weakened: the wall that was asked for cannot be built here */
    bool weakened;
};

/* @r is all zero. 0: the command ran (whatever its end) and @r is filled. -1 with @err: it did not, or the wall
 * failed. */
int session_run(const struct session *s, struct session_result *r, struct err *err);
void session_result_free(struct session_result *r);

/* @set becomes the signals that are meant for the command when they come to cloche. */
void session_passed_signals(sigset_t *set);
/* They, and that the terminal's size changed, come to @s. @old as signals_open(). SIGPIPE is ignored from here on: a
 * reader of ours that goes away is the command's affair, as in a plain pipe. 0 or -1 with @err. */
int session_signals(struct signals *s, sigset_t *old, struct err *err);

/* What cloche exits with for @r. */
int session_exit_code(const struct session_result *r);

/* run/direct.c: the command without any wall (mode off, fallback). Says so on stderr and records it in
 * $XDG_STATE_HOME/cloche/unsandboxed.log. */
int direct_run(const struct session *s, const char *why, struct session_result *r, struct err *err);

/* run/report.c */
struct json_t;
struct planted_roots;
/* @planted (run/planted.h): what the run left, or NULL. */
int report_write(const struct session *s, const struct session_result *r, const struct planted_roots *planted,
                 bool captured, int fd, struct err *err);
const char *report_reason(enum session_reason reason);
/* "KILL" for SIGKILL; "?" for a number without a name (a real-time signal). */
const char *report_signal(int number);

#endif
