/* launcher/maker.h: cloche-maker, which starts the daemon's processes for a launcher that cannot
 *
 * A sandbox cannot be made with fewer rights than its user has. So the process that starts keepers has no system call
 * filter: keepers, and everything in the sandboxes, would inherit it. This process does nothing else. It reads from one
 * socket, whose other end only the launcher has: which of cloche's own programs to start, with which words and
 * descriptors; their paths were fixed before. So the launcher, which accepts clients and reads the configuration, can
 * have a filter that starts nothing (launcher_confine.c).
 *
 * A started process is a child of the launcher (CLONE_PARENT, clone(2)), which waits for it and signals it. When the
 * launcher is gone, the maker ensures that none of them outlives it by more than MAKER_LEFT_MS. Each ends by itself
 * when it sees the launcher's end. The kernel wakes one that was stopped (PR_SET_PDEATHSIG is SIGCONT). The maker
 * kills one that hangs, by a pidfd, which cannot refer to another process.
 */
#ifndef CLOCHE_LAUNCHER_MAKER_H
#define CLOCHE_LAUNCHER_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/edge.h"

#define MAKER_FAILED   "serve.maker"        /* the code of its own failures; */
#define MAKER_LATE     "serve.maker.late"   /* it owes an answer: that order failed, and others may not */
#define MAKER_LEFT_MS  15000                /* the audit record's writer may wait ten seconds for a lock */
#define MAKER_FDS      4
#define MAKER_WORDS    12           /* of a program, its name among them */
#define MAKER_WORD_MAX (64 * 1024)  /* bytes; all together have to fit one message of the daemon: */
#define MAKER_WORDS_BYTES (EDGE_MESSAGE_MAX - 128)
#define MAKER_LOG_MAX  64

enum maker_program {
    MAKE_KEEPER, MAKE_WARDEN, MAKE_FRONT, MAKE_ADAPTER, MAKE_SCRIBE, MAKE_WEBHOOK, MAKE_OTLP, MAKE_SIGNER, MAKE_PROGRAMS
};

/* A process that is wanted. It begins a session of its own, with nothing blocked, the descriptors @fds from 3 on,
 * stderr as the daemon's, and no other. */
struct maker_order {
    enum maker_program program;
    char *const *words;             /* argv, a NULL at its end; everybody can read it: no value of a policy */
    const char *log;                /* LOG_VARIABLE=SETTING: how it speaks (base/log.h). A keeper has the daemon's
                                     * environment too, the signer what of it says where the vault's store is, a scribe
                                     * none at all */
    int fds[MAKER_FDS];             /* borrowed */
    size_t n_fds;
    const struct rlimit *files;     /* its limit of descriptors; NULL: the daemon's */
};

/* The launcher's end of it. */
struct maker_link {
    int fd;
    pid_t pid;              /* 0: it has ended */
    unsigned late;          /* answers that nobody waits for any more, */
    uint64_t late_ms;       /* since then */
};

/* Start cloche-maker, a child; the programs' absolute paths, "" for one that is not there (a keeper is this program
 * itself). 0 or -1 with @err. The descriptors that we have now, but stdio, are not there. */
int maker_open(const char *const paths[MAKE_PROGRAMS], struct maker_link *m, struct err *err);
/* A process of that kind: a child of ours. It is waited for, five seconds for a keeper and thirty for one that the
 * daemon cannot be without; a maker that was stopped is told to go on. -1 with @err: MAKER_FAILED where the maker
 * itself has failed, MAKER_LATE where it does not answer, now or to an earlier order. */
pid_t maker_start(struct maker_link *m, const struct maker_order *order, struct err *err);
/* What was answered too late: what was started by that is killed. 0, or -1: the maker has failed. */
int maker_collect(struct maker_link *m);

/* maker_order.c, pure: an order's message but for its descriptors. */
#define MAKER_WANTED(F) \
    F(ENUM, maker_program, program, 0, MAKE_PROGRAMS - 1) \
    F(BOOL, has_files) \
    F(U64, soft)                        /* both 0 without files */ \
    F(U64, hard) \
    F(TEXT_IF, log, MAKER_LOG_MAX, maker_log_well) \
    F(WORDS, words, 2, MAKER_WORDS, MAKER_WORD_MAX, MAKER_WORDS_BYTES)      /* one at least */
PROTO_STRUCT(maker_wanted, MAKER_WANTED);

/* What `cloche-maker` is. The exit code. */
int maker_main(int argc, char **argv);

#endif
