/* hosts/ask.h: ask a program of the host's for its configuration
 *
 * What it answers becomes policy, so nothing that a sandbox can write may have a say in it: the program, and what it
 * starts by PATH, is not taken from a folder that is writable inside or the workspace's, it starts in "/", and what its
 * environment holds of a project is left out. Only a process that asks and nothing else calls this (asker.h): what a
 * program leaves running ends with it.
 */
#ifndef CLOCHE_HOSTS_ASK_H
#define CLOCHE_HOSTS_ASK_H

#include <limits.h>

#include "base/buf.h"
#include "policy/policy.h"

#define ASK_OUT_MAX (8 * 1024 * 1024)
#define ASK_MS      120000

struct ask {
    char path[PATH_MAX];    /* of the program */
    struct buf out;         /* what it said, NUL-terminated */
    char last[200];         /* the last line of its stderr, for messages */
    int status;             /* its exit code; -1: killed, or not done in time, */
    bool late;              /* which it was: it took ASK_MS */
    bool both;              /* set by the caller: what it says on stderr goes into @out as well */
};

#define ASK_INIT { .out = BUF_INIT(ASK_OUT_MAX), .status = -1 }
void ask_free(struct ask *a);
#define cleanup_ask __attribute__((cleanup(ask_free)))

/* Whether @path, or what it leads to, can be written from inside under @p (which need not be validated), or is part of
 * its workspace. */
bool ask_writable(const struct policy *p, const char *path);

/* "PATH=..." as programs get it, NUL-terminated, into @path, and where the program @name is by it. 0, or -1 with @err:
 * there is none. */
int ask_find(const struct policy *p, const char *name, struct buf *path, char out[PATH_MAX], struct err *err);
/* Whether @entry ("NAME=value") of our environment is passed on. */
bool ask_passes(const struct policy *p, const char *entry);

/* Find argv[0] in PATH, run it and wait, at most ASK_MS. @set: "NAME=value" for its environment, "NAME" to leave a
 * variable out, ended by NULL; may be NULL. 0 when it ran, whatever it said; -1 with @err when there is none, or it
 * cannot be started. */
int ask_run(const struct policy *p, const char *const *argv, const char *const *set, struct ask *a, struct err *err);

#endif
