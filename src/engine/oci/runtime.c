/* engine/oci/runtime.c: which runtimes there are, and how each is started */
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "engine/oci/oci.h"

/* What they leave as it is, and why that is no hole. The names are those of `prove`. */
static const struct sandbox_differs shared_kernel[] = {
    { "posture.identity.map", "0", "a runtime sets a container up as 0: an id of the host's that owns nothing, and "
                                   "nobody inside becomes" },
    { "posture.securebits", "0", "a runtime sets none; all capability sets are empty, the bounding set too" },
    { "posture.mounts.known", "tmpfs /dev", "the runtime makes /dev" },
    { "posture.mounts.known", "tmpfs /.cloche", "the guest and its filter, which nobody inside can write to" },
    { "posture.mounts.nosuid", "proc /proc/*", "parts of /proc, bound without the flag: no program is there" },
    { "posture.mounts.nodev", "proc /proc/*", "parts of /proc, bound without the flag: no device is there" },
    { "posture.mounts.nosuid", "tmpfs /proc/pressure", "the runtime covers it without the flag: it is empty" },
    { "posture.mounts.nodev", "tmpfs /proc/pressure", "the runtime covers it without the flag: it is empty" },
    { NULL, NULL, NULL },
};
static const struct sandbox_differs own_kernel[] = {
    { "posture.identity.map", "0 0 4294967295", "gVisor has ids of its own; outside it is one other id" },
    { "posture.kernel.windows", "/dev/fuse", "it is gVisor's own" },
    { "posture.kernel.windows", "/dev/net/tun", "it is gVisor's own, for its own network" },
    { "posture.mounts.read-only", "9p /", "gVisor calls it writable; the host's mount is read-only" },
    { "posture.mounts.read-only", "9p /tmp", "it is the sandbox's own, and in gVisor a mount" },
    { "posture.mounts.read-only", "sysfs /sys", "it is gVisor's own" },
    { "posture.mounts.read-only", "dev /dev", "it is gVisor's own" },
    { "posture.mounts.known", "9p /", "it is the tree that cloche has built" },
    { "posture.mounts.known", "9p /tmp", "it is the sandbox's own, and in gVisor a mount" },
    { "posture.mounts.known", "sysfs /sys", "it is gVisor's own" },
    { "posture.mounts.known", "dev /dev", "it is gVisor's own" },
    { "posture.mounts.nosuid", "9p /", "gVisor does not tell the flag; no_new_privs holds" },
    { "posture.mounts.nosuid", "sysfs /sys", "it is gVisor's own; no_new_privs holds" },
    { "posture.mounts.nodev", "9p /", "gVisor does not tell the flag; devices are its own" },
    { "posture.mounts.nodev", "9p /tmp", "gVisor does not tell the flag; devices are its own" },
    { "posture.mounts.nodev", "sysfs /sys", "it is gVisor's own" },
    { "posture.mounts.nodev", "proc /proc", "it is gVisor's own" },
    { "posture.mounts.nodev", "tmpfs /dev/shm", "gVisor does not tell the flag; devices are its own" },
    { "posture.mounts.root", "9p /", "gVisor calls it writable; the host's mount is read-only" },
    { "posture.mounts.proc-sys", "/proc/sys", "it is gVisor's own, of a kernel that ends with the sandbox" },
    { "posture.mounts.proc-sys", "/proc/sysrq-trigger", "it is gVisor's own" },
    { "posture.proc.subset", "/proc/cmdline", "it is gVisor's own, and tells nothing of the host" },
    { "posture.namespace.cgroup", "none", "gVisor has no such namespaces; cgroups inside are its own" },
    { "posture.securebits", "0", "a runtime sets none; all capability sets are empty, the bounding set too" },
    { "attack.network-setup", "/dev/net/tun opens for writing", "it is gVisor's own, for its own network" },
    { "outside.privilege", "capabilities in a user namespace of its own", "gVisor's kernel has them for its files" },
    { NULL, NULL, NULL },
};

/* Each looks at no cgroup: the runtime is in the sandbox's own, which is made and held to its limits by us. crun and
 * runc of Debian 12 refuse hybrid hierarchies; what they see is one of version 2 that they may only read. */
const struct oci_runtime oci_runtimes[] = {
    { "runsc", true, own_kernel,
      { "--root", OCI_STATE, "--ignore-cgroups", "--overlay2=none", "--file-access=shared", "--log", HOLDER_LOG,
        "--network=none", NULL },
      { "run", "--pass-fd=3:3", "--bundle", HOLDER_BUNDLE } },
    { "crun", false, shared_kernel,
      { "--root", OCI_STATE, "--cgroup-manager=disabled", "--log", HOLDER_LOG, NULL },
      { "run", "--preserve-fds=1", "--no-new-keyring", "--bundle=" HOLDER_BUNDLE } },
    { "runc", false, shared_kernel,
      { "--root", OCI_STATE, "--rootless=true", "--log", HOLDER_LOG, NULL },
      { "run", "--preserve-fds=1", "--no-new-keyring", "--bundle=" HOLDER_BUNDLE } },
    { NULL, false, NULL, { NULL }, { NULL } },
};

enum policy_boundary
oci_boundary(const char *runtime)
{
    for (const struct oci_runtime *r = oci_runtimes; runtime != NULL && r->name != NULL; r++)
        if (strcmp(r->name, runtime) == 0 && r->own_kernel)
            return BOUNDARY_KERNEL;
    return BOUNDARY_PROCESS;
}

const struct oci_runtime *
oci_runtime_find(const char *wanted, const struct policy *p, char path[PATH_MAX], struct err *err)
{
    bool any = wanted == NULL || strcmp(wanted, "auto") == 0;
    enum policy_boundary least = p != NULL ? p->boundary.v : BOUNDARY_PROCESS;

    for (const struct oci_runtime *r = oci_runtimes; r->name != NULL; r++)
        if ((any || strcmp(r->name, wanted) == 0) && oci_boundary(r->name) >= least && holder_find(p, r->name, path))
            return r;
    err_set(err, ERR_UNSUPPORTED, "oci.runtime", "no OCI runtime%s is installed: %s",
            least > BOUNDARY_PROCESS ? " with the boundary asked for" : "",
            !any ? wanted : least > BOUNDARY_PROCESS ? "runsc" : "runsc, crun or runc");
    err_hint(err, "it has to be in a folder of PATH, root's own, and writable for nobody else; %s",
             least > BOUNDARY_PROCESS ? "gVisor's runsc is built from its source (docs/engines.md)"
                                      : "Debian has the packages crun and runc; --engine native needs none");
    return NULL;
}

void
oci_runtime_argv(const struct oci *sb, const char *argv[OCI_ARGS])
{
    static const char host[] = "--network=host";    /* the network that the runtime is in: the sandbox's, made by us */
    const struct oci_runtime *r = sb->runtime;
    bool closed = sb->native.plan.own_net && !sb->native.plan.capture;
    size_t n = 0;

    argv[n++] = r->name;
    for (size_t i = 0; r->args[i] != NULL; i++) {
        bool network = r->own_kernel && str_starts(str_of(r->args[i]), STR_LIT("--network"));
        argv[n++] = network && !closed ? host : r->args[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(r->run); i++)
        argv[n++] = r->run[i];
    argv[n++] = sb->native.id;
    argv[n] = NULL;
}
