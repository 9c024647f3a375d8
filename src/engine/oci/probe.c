/* engine/oci/probe.c: what an OCI runtime's walls promise here */
#include <stdio.h>
#include <string.h>

#include "engine/oci/oci.h"

enum { OCI_ROOT, OCI_RUNTIME, OCI_LIGHT, OCI_FEATURES };

static const struct feature_info info[OCI_FEATURES] = {
    { "oci-root", "root that can give a sandbox a user of its own", "namespaces", NEED_NONE, NEED_MUST, NEED_MUST },
    { "oci-runtime", "an OCI runtime", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "oci-light", "a light mode", "root", NEED_MUST, NEED_NONE, NEED_NONE },
};

static void
missing(struct feature_state *f, const char *why, const char *remedy)
{
    *f = (struct feature_state){ .status = FEATURE_NO };
    snprintf(f->why_not, sizeof(f->why_not), "%s", why);
    snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

static void
not_kept(struct engine_report *out, enum promise p, const char *why, const char *remedy)
{
    struct promise_state *s = &out->promises[p];

    *s = (struct promise_state){ .state = NOT_ENFORCED };
    snprintf(s->why_not, sizeof(s->why_not), "%s", why);
    snprintf(s->remedy, sizeof(s->remedy), "%s", remedy);
}

/* What differs from an engine that sets every wall itself. */
static void
promises(const struct oci_runtime *r, struct engine_report *out)
{
    struct promise_state *kernel = &out->promises[PROMISE_KERNEL_BOUNDARY];
    bool own = r != NULL && r->own_kernel;

    not_kept(out, PROMISE_LANDLOCK, "an OCI runtime sets no Landlock: mounts, the user and the name guard are the "
             "walls around files", "--engine native has it");
    if (!own) {
        not_kept(out, PROMISE_KERNEL_BOUNDARY, "crun and runc share the host's kernel", "install runsc (gVisor)");
        return;
    }
    *kernel = (struct promise_state){ .state = ENFORCED, .how = "gVisor" };
    out->promises[PROMISE_PIDS_LIMIT].state = SUPERVISED;
    not_kept(out, PROMISE_NAME_GUARD, "runsc's kernel has no supervision of system calls: folders of the host that are "
             "writable are refused", "--runtime crun, or --engine native");
}

int
oci_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    static struct engine_report kernel;     /* large: what the host's kernel can do, as it is used here too */
    char path[PATH_MAX];
    struct err why = ERR_INIT;
    const struct oci_runtime *r = oci_runtime_find(runtime, NULL, path, &why);

    if (kernel.n_features == 0 && native_probe(NULL, &kernel, err) < 0)
        return -1;
    memcpy(out->promises, kernel.promises, sizeof(out->promises));
    promises(r, out);
    out->info = info;
    out->n_features = OCI_FEATURES;
    for (size_t i = 0; i < OCI_FEATURES; i++)
        out->features[i].status = FEATURE_YES;
    if (!holder_is_root())
        missing(&out->features[OCI_ROOT], "this is no root with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID",
                "run it as root; --engine native needs no root");
    if (r == NULL) {
        missing(&out->features[OCI_RUNTIME], why.msg, why.hint);
    } else {
        out->runtime = r->name;
        snprintf(out->program, sizeof(out->program), "%.255s", path);
        snprintf(out->features[OCI_RUNTIME].detail, sizeof(out->features[0].detail), "%.120s", path);
    }
    missing(&out->features[OCI_LIGHT], "no OCI runtime has a light mode", "--engine native has it");
    return 0;
}
