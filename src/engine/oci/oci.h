/* engine/oci/oci.h: one sandbox of the oci engine, for its files
 *
 * Theory: the tree of a sandbox is built by cloche from the same plan as the native engine's, and so are its network
 * and its cgroup. The rest of the wall is an OCI runtime's (crun, runc, runsc): namespaces, the id map, /proc and /dev,
 * in runsc a kernel of its own. A child of ours holds the runtime (native/holder.h), and in its work folder lies the
 * bundle too. So nothing is ever made on the host, and whoever kills that child ends the runtime and everything that it
 * started; it dies with its maker. What lies outside, the cgroup, has the native engine's janitor.
 *
 * The guest is a file of the tree, read-only, and the container's only program. Its transport is descriptor 3, handed
 * on by the runtime. It sets our system call filter itself (guest/filter.h): a bundle could only say it in the words of
 * libseccomp, which has no order of rules.
 *
 * Of the native engine's files it takes the plan, the start of a child with its cgroup, and what a living sandbox
 * measures: native/native.h, whose struct native_way says how it differs.
 */
#ifndef CLOCHE_ENGINE_OCI_OCI_H
#define CLOCHE_ENGINE_OCI_OCI_H

#include <limits.h>

#include "base/buf.h"
#include "engine/native/holder.h"
#include "engine/native/native.h"
#include "engine/ops.h"

#define OCI_STATE  HOLDER_WORK "/state"
#define OCI_ARGS   20
#define OCI_PATH   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct oci_runtime {
    const char *name;
    bool own_kernel;            /* it has no supervision of system calls by a program (seccomp's user notification) */
    const struct sandbox_differs *differs;
    const char *const args[12];         /* before the verb; ended by NULL */
    const char *const run[4];           /* the verb and its own; the id follows */
};

struct oci {
    struct native native;       /* first */
    const struct oci_runtime *runtime;
    char program[PATH_MAX];
    uint32_t root_id;           /* the host's id of user 0 inside, which has /dev there; nobody becomes it */
    struct buf config;          /* config.json */
};

extern const struct engine engine_oci;

static inline struct oci *
oci_of(struct sandbox *base)
{
    return (struct oci *)base;
}

/* runtime.c: the strongest first, ended by one without a name. */
extern const struct oci_runtime oci_runtimes[];
/* Of that one; of no runtime (NULL) the least. */
enum policy_boundary oci_boundary(const char *runtime);
/* @wanted, or (NULL, "auto") the first that is installed and has the boundary of @p; its program, which may not lie in
 * the workspace of @p (NULL: there is none), goes to @path. NULL with @err. */
const struct oci_runtime *oci_runtime_find(const char *wanted, const struct policy *p, char path[PATH_MAX],
                                           struct err *err);
/* What it is started with, ended by NULL. */
void oci_runtime_argv(const struct oci *sb, const char *argv[OCI_ARGS]);

/* config.c: the bundle's config.json for the finished plan, into sb->config. */
int oci_config(struct oci *sb, const struct policy *p, struct err *err);

/* child.c */
_Noreturn void oci_child(const struct native *native, const struct launch *l);

/* probe.c */
int oci_probe(const char *runtime, struct engine_report *out, struct err *err);
/* holes.c: operation */
size_t oci_holes(const char *runtime, const char *version, struct engine_hole *out, size_t max);

#endif
