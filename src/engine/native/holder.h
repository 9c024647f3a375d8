/* engine/native/holder.h: what engines share whose child holds a program that makes the walls (oci/, microvm/)
 *
 * The child is process 1 of a pid namespace in which that program, and what it starts, is. It has root's rights, as the
 * program needs them, and reads nothing of the sandbox. Over /sys, in its own mount namespace, lies a tmpfs with the
 * tree and whatever the program writes: nothing is ever made on the host, and all of it goes with the child.
 */
#ifndef CLOCHE_ENGINE_NATIVE_HOLDER_H
#define CLOCHE_ENGINE_NATIVE_HOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "engine/native/launch.h"
#include "engine/native/native.h"
#include "engine/native/plan.h"
#include "policy/policy.h"

#define HOLDER_WORK   "/sys"
#define HOLDER_BUNDLE HOLDER_WORK "/bundle"     /* where the tree is built: root, scratch */
#define HOLDER_ROOT   HOLDER_BUNDLE "/root"
#define HOLDER_LOG    HOLDER_WORK "/log"        /* what the program says */
#define HOLDER_BROKEN 125                       /* the status of what could not even be started */

/* Where the guest lies in the sandbox, and its filter. */
#define HOLDER_FOLDER  "/.cloche"
#define HOLDER_GUEST   HOLDER_FOLDER "/cloche-guest"
#define HOLDER_FILTER  HOLDER_FOLDER "/filter"
#define HOLDER_WORKDIR HOLDER_FOLDER "/workdir" /* a link: a path may be no text that the program can be told */

/* @name below an absolute folder of the caller's PATH, to @out: root starts it, so nobody else may have written it, nor
 * is it in the workspace of @p (NULL: there is none). */
bool holder_find(const struct policy *p, const char *name, char out[PATH_MAX]);
/* That of one file. */
bool holder_trusts(const struct policy *p, const char *path);

/* The guest and the filter, as files of the tree, on a mount of their own that nobody inside writes to. */
int holder_add_guest(struct native_plan *plan, struct err *err);

/* The operation (engine.h: sandbox_gone()). */
int holder_gone(const struct native *sb, const char *program, struct err *err);

/* In the child: its mounts to itself, /proc of its own, the work folder, and in it the @n @folders too. */
int holder_work_folder(const char *const *folders, size_t n, struct err *err);
/* In a child of that one: 0 is at its end, 1 and 2 are @log, from 3 on the @n of @fds, at most 8; nothing else is
 * left. None of the first three is a file of the host's: crun gives them to the sandbox's user (fchown(2)), who would
 * then own the host's /dev/null. 0, or -1 with errno. */
int holder_descriptors(int log, const int *fds, size_t n);
/* Become that program, with no signal blocked. Returns where that fails, with errno. */
void holder_exec(const char *program, const char *const *argv, char *const *env);
/* Of what it has from its maker, whose sockets are among it, the child keeps 0 to 2 and the @n of @fds, at most 8,
 * which are moved: these are there as long as the sandbox. 0, or -1 with errno. */
int holder_keep(int *const *fds, size_t n);
/* Until @pid has ended; others that become ours are reaped. Its exit status. */
int holder_wait(pid_t pid);
/* The last line of the log of @program, which ended with @status, if there is any, as @err with @code. */
bool holder_said(const char *code, const char *program, int status, struct err *err);

/* A child of @pid by its name, or by the first word of its command line; -1: it has none. */
pid_t holder_child_named(pid_t pid, const char *name);
pid_t holder_child_calling_itself(pid_t pid, const char *name);

#endif
