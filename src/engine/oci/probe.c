/* engine/oci/probe.c: what an OCI runtime's walls promise here */
#include <stdio.h>

#include "engine/native/built_on.h"
#include "engine/oci/oci.h"

enum { OCI_ROOT, OCI_RUNTIME, OCI_LIGHT, OCI_FEATURES };

static const struct feature_info info[OCI_FEATURES] = {
    { "oci-root", "root that can give a sandbox a user of its own", "namespaces", NEED_NONE, NEED_MUST, NEED_MUST },
    { "oci-runtime", "an OCI runtime", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "oci-light", "a light mode", "root", NEED_MUST, NEED_NONE, NEED_NONE },
};

/* What differs from an engine that sets every wall itself. */
static void
promises(const struct oci_runtime *r, struct engine_report *out)
{
    struct promise_state *kernel = &out->promises[PROMISE_KERNEL_BOUNDARY];
    bool own = r != NULL && r->own_kernel;

    built_on_not_kept(out, PROMISE_LANDLOCK, "an OCI runtime sets no Landlock: mounts, the user and the name guard are "
                      "the walls around files", "--engine native has it");
    if (!own) {
        built_on_not_kept(out, PROMISE_KERNEL_BOUNDARY, "crun and runc share the host's kernel",
                          "install runsc (gVisor)");
        return;
    }
    *kernel = (struct promise_state){ .state = ENFORCED, .how = "gVisor" };
    out->promises[PROMISE_PIDS_LIMIT].state = SUPERVISED;
    built_on_not_kept(out, PROMISE_NAME_GUARD, "runsc's kernel has no supervision of system calls: folders of the host "
                      "that are writable are refused", "--runtime crun, or --engine native");
}

int
oci_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    char path[PATH_MAX];
    struct err why = ERR_INIT;
    const struct oci_runtime *r = oci_runtime_find(runtime, NULL, path, &why);

    if (built_on_probe(info, OCI_FEATURES, "no OCI runtime has a light mode", out, err) < 0)
        return -1;
    promises(r, out);
    if (r == NULL) {
        built_on_missing(&out->features[OCI_RUNTIME], why.msg, why.hint);
    } else {
        out->runtime = r->name;
        snprintf(out->program, sizeof(out->program), "%.255s", path);
        snprintf(out->features[OCI_RUNTIME].detail, sizeof(out->features[0].detail), "%.120s", path);
    }
    return 0;
}
