/* engine/oci/config.c: the bundle's config.json
 *
 * Little of a policy is in it: the tree, the network and the cgroup are there when the runtime starts. Nothing that is
 * written here comes from outside but the host name, whose characters the policy has checked.
 */
#include <sys/resource.h>

#include "base/array.h"
#include "base/kernel.h"
#include "engine/oci/oci.h"

static void
rlimit(struct buf *out, const char *name, int which, uint64_t value)
{
    struct rlimit now;

    if (kernel_prlimit(which, NULL, &now) == 0 && now.rlim_max != RLIM_INFINITY && value > now.rlim_max)
        value = now.rlim_max;
    buf_printf(out, "%s{\"type\":\"%s\",\"hard\":%llu,\"soft\":%llu}", out->p[out->n - 1] == '[' ? "" : ",", name,
               (unsigned long long)value, (unsigned long long)value);
}

/* The sandbox's user, and the root that runtimes set a container up as: another id of the host's that owns nothing. */
static void
id_map(const struct oci *sb, const char *key, uint32_t inside, uint32_t outside, struct buf *out)
{
    buf_printf(out, ",\"%s\":[{\"containerID\":%u,\"hostID\":%u,\"size\":1}", key, inside, outside);
    if (inside != 0)
        buf_printf(out, ",{\"containerID\":0,\"hostID\":%u,\"size\":1}", sb->root_id);
    buf_puts(out, "]");
}

static void
proc_names(struct buf *out, const char *key, bool wanted)
{
    const char *name;
    bool masked, first = true;

    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; (name = root_proc_name(i, &masked)) != NULL; i++)
        if (masked == wanted) {
            buf_printf(out, "%s\"/proc/%s\"", first ? "" : ",", name);
            first = false;
        }
    buf_puts(out, "]");
}

static void
mounts(const struct oci *sb, struct buf *out)
{
    const char *hide = sb->runtime->own_kernel ? "" : ",\"hidepid=invisible\"";

    buf_printf(out, "\"mounts\":["
               "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\","
               "\"options\":[\"nosuid\",\"noexec\",\"nodev\"%s%s]},"
               "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
               "\"options\":[\"nosuid\",\"noexec\",\"mode=755\",\"size=64k\"]},"
               "{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\","
               "\"options\":[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0600\"]},"
               "{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\","
               "\"options\":[\"nosuid\",\"nodev\",\"noexec\",\"mode=1777\",\"size=64m\"]}",
               hide, !sb->runtime->own_kernel && sb->native.plan.root.proc_subset ? ",\"subset=pid\"" : "");
    /* it would put a tmpfs of its own there, without the disk's limit */
    if (sb->runtime->own_kernel)
        buf_puts(out, ",{\"destination\":\"/tmp\",\"type\":\"bind\",\"source\":\"" HOLDER_ROOT "/tmp\","
                 "\"options\":[\"rbind\",\"rw\",\"nosuid\",\"nodev\"]}");
    buf_puts(out, "]");
}

int
oci_config(struct oci *sb, const struct policy *p, struct err *err)
{
    static const char *const namespaces[] = { "pid", "mount", "ipc", "uts", "cgroup" };
    const struct native_plan *plan = &sb->native.plan;
    struct buf *out = &sb->config;

    buf_printf(out, "{\"ociVersion\":\"1.0.0\",\"hostname\":\"%s\","
               "\"root\":{\"path\":\"root\",\"readonly\":false},",
               plan->hostname);
    buf_printf(out, "\"process\":{\"terminal\":false,\"user\":{\"uid\":%u,\"gid\":%u},\"cwd\":\"/\","
               "\"args\":[\"" HOLDER_GUEST "\",\"" HOLDER_FILTER "\",\"" HOLDER_WORKDIR "\"],\"env\":[],"
               "\"capabilities\":{},\"noNewPrivileges\":true,\"rlimits\":[", plan->ids.inside_uid,
               plan->ids.inside_gid);
    if (p->limits.nofile.v > 0)
        rlimit(out, "RLIMIT_NOFILE", RLIMIT_NOFILE, p->limits.nofile.v);
    /* gVisor tells it and does not go by it: there the guest does (oci.c) */
    if (p->limits.pids.v > 0)
        rlimit(out, "RLIMIT_NPROC", RLIMIT_NPROC, p->limits.pids.v + 1);
    rlimit(out, "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, 0);
    rlimit(out, "RLIMIT_CORE", RLIMIT_CORE, 1);     /* wall/rlimit.c says why not 0 */
    buf_puts(out, "]},");
    mounts(sb, out);
    /* no network: the one that the runtime is in, which we made */
    buf_puts(out, ",\"linux\":{\"namespaces\":[{\"type\":\"user\"}");
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
        buf_printf(out, ",{\"type\":\"%s\"}", namespaces[i]);
    buf_puts(out, "]");
    id_map(sb, "uidMappings", plan->ids.inside_uid, plan->ids.outside_uid, out);
    id_map(sb, "gidMappings", plan->ids.inside_gid, plan->ids.outside_gid, out);
    proc_names(out, "maskedPaths", true);
    proc_names(out, "readonlyPaths", false);
    buf_puts(out, "}}");
    return buf_ok(out) ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}
