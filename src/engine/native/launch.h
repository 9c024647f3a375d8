/* engine/native/launch.h: the child's way from clone to the guest */
#ifndef CLOCHE_ENGINE_NATIVE_LAUNCH_H
#define CLOCHE_ENGINE_NATIVE_LAUNCH_H

#include "base/err.h"
#include "engine/native/plan.h"
#include "wall/cgroup.h"
#include "wall/rlimit.h"

struct launch {
    const struct native_plan *plan;
    const struct cgroup *cgroup;
    struct rlimit_plan rlimits;
    int go;         /* read end: one byte when the id maps are written; end of file when the parent is gone */
    int status;     /* write end: a struct err when something failed; closed by exec */
    int guest;      /* executable to become */
    int transport;  /* becomes fd 3 */
};

/* Never returns. */
_Noreturn void launch_child(const struct launch *l);

/* The guest's executable as a sealed memfd (CVE-2019-5736: nothing inside can write what runs outside of it).
 * Returns an fd or -1. */
int launch_guest_image(struct err *err);

#endif
