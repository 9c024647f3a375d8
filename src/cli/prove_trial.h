/* cli/prove_trial.h: between prove_trial.c and prove_trial_outside.c, which looks at a trial from outside */
#ifndef CLOCHE_CLI_PROVE_TRIAL_H
#define CLOCHE_CLI_PROVE_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define TRIAL_README   "a project of cloche prove\n"
#define TRIAL_README_N ((off_t)sizeof(TRIAL_README) - 1)

/* Files @dir/linked and @dir/linked-too with a second name in @project, and sockets @project/door (a stream) and
 * @project/post (datagrams); @doors are the caller's. @owner of the files, (uid_t)-1: us. 0 or -1 with @err. */
int trial_outside_prepare(const char *dir, const char *project, uid_t owner, int doors[2], struct err *err);

/* Was @dir/linked changed? @detail, of @n bytes, says it. */
bool trial_outside_written(const char *dir, char *detail, size_t n);

/* Is @project, as prove_trial.c made it, another now: by what the trial of a copy does? */
bool trial_outside_changed(const char *project, char *detail, size_t n);

/* Is there a process called @name? It is ended then. */
bool trial_outside_left(const char *name, char *detail, size_t n);

/* With which rights runs the cloche-egress that is a child of @run? While it starts it has its caller's. When it has
 * none any more, @project/egress-seen tells the trial, which waits for that. */
struct egress_rights {
    bool seen, confined;
    char detail[200];
};
void trial_outside_egress(pid_t run, const char *project, struct egress_rights *r);

#endif
