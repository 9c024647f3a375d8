/* engine/oci/runtime.c: which runtimes there are, and how each is started */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "engine/oci/oci.h"
#include "match/path.h"

/* What they leave as it is. */
static const struct sandbox_differs shared_kernel[] = {
    { "posture.identity.map", "a second id is mapped: 0, which the runtime sets a container up as; another id of the "
                              "host's that owns nothing, and nobody inside becomes it" },
    { "posture.securebits", "a runtime sets none; all capability sets are empty, the bounding set too" },
    { "posture.mounts.known", "/dev is a mount of the runtime's" },
    { "posture.mounts.nosuid", "the runtime binds parts of /proc without the flag; nothing in them is a program" },
    { "posture.mounts.nodev", "the runtime binds parts of /proc without the flag; nobody inside makes devices" },
    { "posture.mounts.read-only", "the runtime binds /dev/null over files of /proc, writable" },
    { "posture.kernel.windows", "the runtime binds /dev/null over them: they open, and are empty" },
    { NULL, NULL },
};
static const struct sandbox_differs own_kernel[] = {
    { "posture.identity.map", "gVisor has its own ids; what holds the sandbox has another one of the host's" },
    { "posture.kernel.windows", "/dev/fuse and what else opens are gVisor's own" },
    { "posture.mounts.read-only", "/tmp is a mount of its own there, of the sandbox's own tree" },
    { "posture.mounts.known", "/dev and /sys are gVisor's own" },
    { "posture.mounts.nosuid", "gVisor's own mounts have not the flag; no_new_privs holds" },
    { "posture.mounts.nodev", "gVisor's own mounts have not the flag; there are no devices of the host's" },
    { "posture.mounts.root", "gVisor calls it writable; the host's mount is read-only" },
    { "posture.mounts.proc-sys", "it is gVisor's own, of a kernel that ends with the sandbox" },
    { "posture.proc.subset", "it is gVisor's own, and tells nothing of the host" },
    { "posture.namespace.cgroup", "gVisor has no such namespaces; cgroups inside are its own" },
    { "posture.securebits", "a runtime sets none; all capability sets are empty, the bounding set too" },
    { "attack.network-setup", "/dev/net/tun is gVisor's own, for its own network" },
    { "outside.identity", "what runs inside is no process of the host's" },
    { NULL, NULL },
};

/* Each looks at no cgroup: the runtime is in the sandbox's own, which is made and held to its limits by us. crun and
 * runc of Debian 12 refuse hybrid hierarchies; what they see is one of version 2 that they may only read. */
const struct oci_runtime oci_runtimes[] = {
    { "runsc", true, own_kernel,
      { "--root", OCI_STATE, "--ignore-cgroups", "--overlay2=none", "--file-access=shared", "--log", OCI_LOG,
        "--network=none", NULL },
      { "run", "--pass-fd=3:3", "--bundle", OCI_BUNDLE } },
    { "crun", false, shared_kernel,
      { "--root", OCI_STATE, "--cgroup-manager=disabled", "--log", OCI_LOG, NULL },
      { "run", "--preserve-fds=1", "--no-new-keyring", "--bundle=" OCI_BUNDLE } },
    { "runc", false, shared_kernel,
      { "--root", OCI_STATE, "--rootless=true", "--log", OCI_LOG, NULL },
      { "run", "--preserve-fds=1", "--no-new-keyring", "--bundle=" OCI_BUNDLE } },
    { NULL, false, NULL, { NULL }, { NULL } },
};

/* Root starts it, so nobody else may have written it; nor is it the sandbox's own affair. */
static bool
is_ours(const struct policy *p, const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 && (st.st_mode & 022) == 0 &&
           access(path, X_OK) == 0 &&
           (p == NULL || p->workspace.dir == NULL || !path_within(str_of(path), str_of(p->workspace.dir)));
}

/* Below an absolute folder of the caller's PATH. */
static bool
find(const struct policy *p, const char *name, char out[PATH_MAX])
{
    const char *said = getenv("PATH"), *path = said != NULL ? said : OCI_PATH;
    struct str folder;

    while (path_list_next(&path, &folder))
        if (folder.p[0] == '/' &&
            snprintf(out, PATH_MAX, "%.*s/%s", (int)folder.n, folder.p, name) < PATH_MAX && is_ours(p, out))
            return true;
    return false;
}

const struct oci_runtime *
oci_runtime_find(const struct policy *p, char path[PATH_MAX], struct err *err)
{
    const char *wanted = p != NULL && p->runtime.p != NULL ? p->runtime.p : "auto";
    bool any = strcmp(wanted, "auto") == 0;

    for (const struct oci_runtime *r = oci_runtimes; r->name != NULL; r++)
        if ((any || strcmp(r->name, wanted) == 0) && find(p, r->name, path))
            return r;
    err_set(err, ERR_UNSUPPORTED, "oci.runtime", "no OCI runtime is installed: %s",
            any ? "runsc, crun or runc" : wanted);
    err_hint(err, "it has to be in a folder of PATH, root's own, and writable for nobody else; Debian has the packages "
                  "crun and runc; --engine native needs none");
    return NULL;
}

void
oci_runtime_argv(const struct oci *sb, char *argv[OCI_ARGS])
{
    static const char host[] = "--network=host";    /* the network that the runtime is in: the sandbox's, made by us */
    const struct oci_runtime *r = sb->runtime;
    bool closed = sb->native.plan.own_net && !sb->native.plan.capture;
    size_t n = 0;

    argv[n++] = (char *)(uintptr_t)r->name;
    for (size_t i = 0; r->args[i] != NULL; i++) {
        bool network = r->own_kernel && str_starts(str_of(r->args[i]), STR_LIT("--network"));
        argv[n++] = (char *)(uintptr_t)(network && !closed ? host : r->args[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(r->run); i++)
        argv[n++] = (char *)(uintptr_t)r->run[i];
    argv[n++] = (char *)(uintptr_t)sb->native.id;
    argv[n] = NULL;
}
