/* engine/native/probe_explain.c: why an attempt failed, and what to do about it (see probe.h)
 *
 * Pure: from an errno and the facts of the host to words. Most specific reason first; a remedy is a command or a
 * setting that can be used as it stands. Where the remedy weakens the host for everyone, it says so.
 */
#include "engine/native/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIGHT_INSTEAD "or use --mode light, which needs no namespaces"

static void __attribute__((format(printf, 2, 3)))
why(struct feature_state *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->why_not, sizeof(s->why_not), fmt, ap);
    va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
remedy(struct feature_state *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->remedy, sizeof(s->remedy), fmt, ap);
    va_end(ap);
}

static bool
refused(const struct feature_state *s)
{
    return s->sys_errno == EPERM || s->sys_errno == EACCES;
}

static bool
absent(const struct feature_state *s)
{
    return s->sys_errno == ENOSYS || s->sys_errno == EINVAL || s->sys_errno == EOPNOTSUPP || s->sys_errno == ENODEV;
}

static void
remedy_container(struct feature_state *s, const struct host_facts *facts)
{
    if (strcmp(facts->container, "docker") == 0 || strcmp(facts->container, "podman") == 0)
        remedy(s, "start the outer container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
               "--security-opt systempaths=unconfined (this loosens the outer container only)%s, " LIGHT_INSTEAD,
               facts->uid == 0 && !facts->cap_sys_admin ? "; or, more, with --cap-add SYS_ADMIN" : "");
    else if (strcmp(facts->container, "kubernetes") == 0)
        remedy(s, "set hostUsers: false and securityContext: {procMount: Unmasked, seccompProfile: {type: Unconfined}} "
               "on the pod, " LIGHT_INSTEAD);
    else if (strcmp(facts->container, "lxc") == 0)
        remedy(s, "set security.nesting=true on the outer container, " LIGHT_INSTEAD);
    else
        remedy(s, "let the outer container or sandbox make user namespaces, " LIGHT_INSTEAD);
}

static void
remedy_apparmor(struct feature_state *s, const struct host_facts *facts)
{
    const char *exe = facts->self_exe[0] != '\0' ? facts->self_exe : "/usr/local/bin/cloche";

    why(s, "AppArmor lets only programs with a profile make user namespaces with privilege "
        "(kernel.apparmor_restrict_unprivileged_userns=1)");
    remedy(s,
           "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile cloche %s flags=(unconfined) {\\n  "
           "userns,\\n}\\n' "
           "| sudo tee /etc/apparmor.d/cloche && sudo apparmor_parser -r /etc/apparmor.d/cloche   "
           "(for every program instead, weaker: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0)",
           exe);
}

static void
explain_userns(const struct host_facts *facts, struct feature_state *s)
{
    if (facts->max_user_namespaces == 0) {
        why(s, "user namespaces are turned off (user.max_user_namespaces=0)");
        remedy(s,
               "echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/50-cloche.conf && sudo sysctl --system");
    } else if (s->sys_errno == ENOSPC || s->sys_errno == EUSERS) {
        why(s, "no user namespace is left: user.max_user_namespaces is used up, or 32 are nested");
        remedy(s, "raise user.max_user_namespaces (now %lld), or run less deeply nested",
               (long long)facts->max_user_namespaces);
    } else if (absent(s)) {
        why(s, "this kernel has no user namespaces (CONFIG_USER_NS), or an outer filter hides them");
        remedy(s, "use a kernel with CONFIG_USER_NS=y, " LIGHT_INSTEAD);
    } else if (facts->uid != 0 && facts->userns_clone == 0) {
        why(s, "ordinary users may not make user namespaces (kernel.unprivileged_userns_clone=0)");
        remedy(s, "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/50-cloche.conf && sudo sysctl "
                  "--system");
    } else if (facts->uid != 0 && facts->apparmor_restrict == 1) {
        remedy_apparmor(s, facts);
    } else if (facts->chrooted) {
        why(s, "this process lives in a chroot, where the kernel refuses user namespaces");
        remedy(s, "enter the tree with pivot_root (unshare --root does not; bubblewrap, systemd-nspawn "
                  "do), " LIGHT_INSTEAD);
    } else if (facts->seccomp_mode == 2) {
        why(s, "a system call filter that was put on this process from outside%s%s refuses it",
            facts->container[0] != '\0' ? " by " : "", facts->container);
        remedy_container(s, facts);
    } else if (facts->selinux_enforcing == 1) {
        why(s, "refused, most likely by SELinux (class user_namespace)");
        remedy(s, "ausearch -m AVC -c cloche | audit2allow -M cloche && semodule -i cloche.pp, " LIGHT_INSTEAD);
    } else {
        why(s, "%s: %s", s->call, strerror(s->sys_errno));
        remedy_container(s, facts);
    }
}

static void
explain_namespace(const struct host_facts *facts, struct feature_state *s)
{
    if (refused(s) && facts->uid != 0 && facts->apparmor_restrict == 1)
        remedy_apparmor(s, facts);
    else if (s->sys_errno == ENOSPC || s->sys_errno == EUSERS) {
        why(s, "%s: the limit in /proc/sys/user is used up or 0", s->call);
        remedy(s, "raise the matching user.max_*_namespaces with sysctl");
    } else if (absent(s)) {
        why(s, "%s: not in this kernel (%s)", s->call, facts->kernel);
        remedy(s, "use a kernel with all namespaces built in, " LIGHT_INSTEAD);
    } else if (s->sys_errno != 0) {
        why(s, "%s: %s", s->call, strerror(s->sys_errno));
        remedy_container(s, facts);
    } else {
        why(s, "needs the user namespace, which is not there");
    }
}

static void
explain_proc(const struct host_facts *facts, struct feature_state *s)
{
    if (refused(s) && facts->proc_masked) {
        why(s, "the outer /proc is partly covered (%s%s%s), and the kernel gives no uncovered one inside",
            facts->proc_mask_example, facts->container[0] != '\0' ? ", by " : "", facts->container);
        remedy_container(s, facts);
    } else if (s->sys_errno == EINVAL) {
        why(s, "this kernel (%s) has no per-mount hidepid", facts->kernel);
        remedy(s, "Linux 5.8 or newer, " LIGHT_INSTEAD);
    } else {
        explain_namespace(facts, s);
    }
}

static void
explain_call(const struct host_facts *facts, const char *since, struct feature_state *s)
{
    if (absent(s) && facts->seccomp_mode == 2) {
        why(s, "%s: %s; the kernel is %s, so an outer filter may be hiding it", s->call, strerror(s->sys_errno),
            facts->kernel);
        remedy(s, "it came with Linux %s; if this kernel is newer, let the outer container's filter pass it", since);
    } else if (absent(s)) {
        why(s, "%s: %s (kernel %s)", s->call, strerror(s->sys_errno), facts->kernel);
        remedy(s, "Linux %s or newer", since);
    } else if (s->sys_errno != 0) {
        why(s, "%s: %s", s->call, strerror(s->sys_errno));
        remedy_container(s, facts);
    } else {
        why(s, "could not be tried: what it depends on is not there");
    }
}

static void
explain_landlock(const struct host_facts *facts, struct feature_state *s)
{
    if (s->sys_errno == EOPNOTSUPP) {
        why(s, "Landlock is built in but not started (lsm=%s)", facts->lsm[0] != '\0' ? facts->lsm : "unknown");
        remedy(s, "add landlock to the kernel command line and reboot: lsm=landlock,%s",
               facts->lsm[0] != '\0' ? facts->lsm : "lockdown,yama,integrity,apparmor,bpf");
    } else if (s->sys_errno == ENOSYS) {
        why(s, "this kernel (%s) was built without Landlock%s", facts->kernel,
            facts->seccomp_mode == 2 ? ", or an outer filter hides it" : "");
        remedy(s, "Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK=y (6.12 for all that mode light needs)");
    } else {
        explain_call(facts, "5.13", s);
    }
}

static void
explain_limit(enum feature which, const struct host_facts *facts, struct feature_state *s)
{
    const char *without = which == FEATURE_LIMIT_CPU ? "so CPU time is not limited"
                          : which == FEATURE_LIMIT_PIDS ? "so RLIMIT_NPROC counts instead (exact but in mode light)"
                                                        : "so the guest samples memory and kills: a burst can pass it";

    if (s->sys_errno != 0)
        why(s, "%s: %s; %s", s->call, strerror(s->sys_errno), without);
    else
        why(s, "no cgroup with this controller that this user may make, %s", without);
    if (facts->uid != 0 && facts->user_manager && facts->cgroup_v2)
        remedy(
            s,
            "systemd-run --user --scope -p Delegate=yes cloche run ...   (a delegated cgroup for this one command)");
    else if (facts->uid != 0 && facts->cgroup_v2)
        remedy(
            s,
            "log in through systemd (loginctl enable-linger %u) and use systemd-run --user --scope -p Delegate=yes",
            (unsigned)facts->uid);
    else if (facts->uid != 0)
        remedy(s,
               "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1) and a systemd user session, or run as root");
    else
        remedy(s, "mount the cgroup hierarchy writable (in a container: --cgroupns=private with a writable "
                  "/sys/fs/cgroup)");
}

static void
explain_memfd(const struct host_facts *facts, struct feature_state *s)
{
    if (facts->memfd_noexec >= 2) {
        why(s, "executable memory files are forbidden (vm.memfd_noexec=%lld)", (long long)facts->memfd_noexec);
        remedy(s, "sudo sysctl vm.memfd_noexec=1");
    } else {
        explain_call(facts, "3.17", s);
    }
}

static const char *
since(enum feature which)
{
    switch (which) {
    case FEATURE_MOUNT_SETATTR:
    case FEATURE_IDMAP: return "5.12";
    case FEATURE_OVERLAY: return "5.11";
    case FEATURE_PROC_SUBSET: return "5.8";
    case FEATURE_OPENAT2: return "5.6";
    case FEATURE_CLONE3:
    case FEATURE_PIDFD: return "5.3";
    case FEATURE_CLOSE_RANGE: return "5.9";
    case FEATURE_USER_NOTIFY: return "5.0";
    case FEATURE_ADDFD_SEND: return "5.14";
    case FEATURE_LANDLOCK_TRUNCATE: return "6.2";
    case FEATURE_LANDLOCK_SCOPE: return "6.12";
    case FEATURE_SECCOMP: return "3.17 (CONFIG_SECCOMP_FILTER)";
    default: return "5.2";
    }
}

void
probe_explain(enum feature which, const struct host_facts *facts, struct feature_state *s)
{
    s->why_not[0] = s->remedy[0] = '\0';
    if (s->status == FEATURE_YES || s->status == FEATURE_UNUSED)
        return;
    switch (which) {
    case FEATURE_USERNS:
        explain_userns(facts, s);
        break;
    case FEATURE_USERNS_MAP: case FEATURE_OWN_UID: case FEATURE_MOUNTNS: case FEATURE_PIDNS: case FEATURE_NETNS:
    case FEATURE_IPCNS: case FEATURE_UTSNS: case FEATURE_CGROUPNS:
        explain_namespace(facts, s);
        break;
    case FEATURE_PROC_MOUNT:
        explain_proc(facts, s);
        break;
    case FEATURE_LANDLOCK:
        explain_landlock(facts, s);
        break;
    case FEATURE_LANDLOCK_TRUNCATE: case FEATURE_LANDLOCK_SCOPE:
        why(s, "needs a newer Landlock than this kernel's (%s)", facts->kernel);
        remedy(s, "Linux %s or newer; --fallback warn runs mode light without it", since(which));
        break;
    case FEATURE_USER_NOTIFY:
        if (strcmp(s->call, YAMA_SIGN) == 0) {
            why(s, "a process may not read the memory of its own children (kernel.yama.ptrace_scope=%lld)",
                (long long)facts->yama);
            remedy(s, "sudo sysctl kernel.yama.ptrace_scope=1%s",
                   facts->yama >= 3 ? " after a restart: 3 cannot be taken back while the system runs" : "");
            break;
        }
        explain_call(facts, since(which), s);
        break;
    case FEATURE_MEMFD_EXEC:
        explain_memfd(facts, s);
        break;
    case FEATURE_IDMAP:
        if (s->sys_errno == EINVAL) {
            why(s, "this directory's file system cannot be mounted with another owner%s", s->status == FEATURE_PARTIAL
                ? ": a sandbox that writes in it runs as its owner" : "");
            remedy(s, "keep projects on ext4, xfs, btrfs or tmpfs (Linux 6.3; in a container: on a volume)%s",
                   facts->uid != 0 ? ", or run as the project's owner" : "");
            break;
        }
        explain_call(facts, since(which), s);
        break;
    case FEATURE_PIVOT_ROOT:
        if (s->sys_errno == 0) {
            explain_call(facts, "5.2", s);
            break;
        }
        why(s, "%s: %s%s", s->call, strerror(s->sys_errno), s->status == FEATURE_PARTIAL
            ? ": the sandbox's root hides the outer one instead of replacing it, and no user namespace is made inside"
            : "");
        remedy(s, "start the outer container with --security-opt seccomp=unconfined");
        break;
    case FEATURE_LIMIT_MEMORY: case FEATURE_LIMIT_CPU: case FEATURE_LIMIT_PIDS:
        explain_limit(which, facts, s);
        break;
    default:
        explain_call(facts, since(which), s);
        break;
    }
}
