/* engine/native/probe.c: orchestration of the probe and the table of features (see probe.h) */
#include "engine/native/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "engine/ops.h"

#define GROUP_NS "namespaces"
#define GROUP_ROOT "root"
#define GROUP_ACCESS "access"
#define GROUP_CALLS "calls"
#define GROUP_LIMITS "limits"

/* light needs no namespaces; standard and max are the same construction with a tighter policy. */
const struct feature_info feature_info[FEATURE_N] = {
    [FEATURE_USERNS] = { "user-namespace", "user namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_USERNS_MAP] = { "user-namespace-map", "uid map with privilege inside", GROUP_NS, NEED_NONE, NEED_MUST,
                             NEED_MUST },
    [FEATURE_OWN_UID] = { "own-host-uid", "a host uid of its own", GROUP_NS, NEED_NONE, NEED_WANT, NEED_WANT },
    [FEATURE_MOUNTNS] = { "mount-namespace", "mount namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_PIDNS] = { "pid-namespace", "process namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_NETNS] = { "network-namespace", "network namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_IPCNS] = { "ipc-namespace", "IPC namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_UTSNS] = { "uts-namespace", "host name namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_CGROUPNS] = { "cgroup-namespace", "cgroup namespace", GROUP_NS, NEED_NONE, NEED_MUST, NEED_MUST },

    [FEATURE_FSOPEN] = { "fsopen", "new file systems (fsopen)", GROUP_ROOT, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_OPEN_TREE] = { "open-tree", "detached binds (open_tree)", GROUP_ROOT, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_MOVE_MOUNT] = { "move-mount", "attaching them (move_mount)", GROUP_ROOT, NEED_NONE, NEED_MUST,
                             NEED_MUST },
    [FEATURE_MOUNT_SETATTR] = { "mount-setattr", "read-only trees (mount_setattr)", GROUP_ROOT, NEED_NONE, NEED_MUST,
                                NEED_MUST },
    [FEATURE_PIVOT_ROOT] = { "pivot-root", "leaving the outer root (pivot_root)", GROUP_ROOT, NEED_NONE, NEED_WANT,
                             NEED_WANT },
    [FEATURE_PROC_MOUNT] = { "proc", "own /proc", GROUP_ROOT, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_PROC_SUBSET] = { "proc-subset", "/proc reduced to processes", GROUP_ROOT, NEED_NONE, NEED_NONE,
                              NEED_MUST },
    [FEATURE_DEVPTS] = { "devpts", "own terminals (devpts)", GROUP_ROOT, NEED_NONE, NEED_MUST, NEED_MUST },
    [FEATURE_OVERLAY] = { "overlay", "copy-on-write workspace (overlay)", GROUP_ROOT, NEED_NONE, NEED_WANT,
                          NEED_WANT },
    [FEATURE_IDMAP] = { "idmapped-mounts", "binds owned by the own uid (idmap)", GROUP_ROOT, NEED_NONE, NEED_WANT,
                        NEED_WANT },

    [FEATURE_LANDLOCK] = { "landlock", "Landlock", GROUP_ACCESS, NEED_MUST, NEED_WANT, NEED_WANT },
    [FEATURE_LANDLOCK_TRUNCATE] = { "landlock-truncate", "Landlock: truncation", GROUP_ACCESS, NEED_MUST, NEED_WANT,
                                    NEED_WANT },
    [FEATURE_LANDLOCK_SCOPE] = { "landlock-scope", "Landlock: signals, abstract sockets", GROUP_ACCESS, NEED_MUST,
                                 NEED_WANT, NEED_WANT },
    [FEATURE_SECCOMP] = { "seccomp", "system call filter", GROUP_ACCESS, NEED_MUST, NEED_MUST, NEED_MUST },
    [FEATURE_USER_NOTIFY] = { "seccomp-notify", "calls decided by the guest (user notify)", GROUP_ACCESS, NEED_MUST,
                              NEED_WANT, NEED_WANT },
    [FEATURE_ADDFD_SEND] = { "seccomp-addfd-send", "answers with a descriptor (ADDFD_SEND)", GROUP_ACCESS, NEED_MUST,
                             NEED_WANT, NEED_WANT },

    [FEATURE_OPENAT2] = { "openat2", "openat2", GROUP_CALLS, NEED_WANT, NEED_WANT, NEED_WANT },
    [FEATURE_CLONE3] = { "clone3", "clone3", GROUP_CALLS, NEED_WANT, NEED_WANT, NEED_WANT },
    [FEATURE_START] = { "start-process", "a process with a pidfd (clone3, or clone)", GROUP_CALLS, NEED_MUST, NEED_MUST,
                        NEED_MUST },
    [FEATURE_PIDFD] = { "pidfd", "pidfd", GROUP_CALLS, NEED_WANT, NEED_WANT, NEED_WANT },
    [FEATURE_MEMFD_EXEC] = { "memfd-exec", "executing a sealed memfd", GROUP_CALLS, NEED_MUST, NEED_MUST, NEED_MUST },
    [FEATURE_CLOSE_RANGE] = { "close-range", "close_range", GROUP_CALLS, NEED_WANT, NEED_WANT, NEED_WANT },

    [FEATURE_LIMIT_MEMORY] = { "limit-memory", "memory limit", GROUP_LIMITS, NEED_WANT, NEED_WANT, NEED_WANT },
    [FEATURE_LIMIT_CPU] = { "limit-cpu", "CPU limit", GROUP_LIMITS, NEED_WANT, NEED_WANT, NEED_WANT },
    [FEATURE_LIMIT_PIDS] = { "limit-pids", "process count limit", GROUP_LIMITS, NEED_WANT, NEED_WANT, NEED_WANT },
};

bool
probe_note(struct feature_state *s, const char *call, long rc)
{
    if (rc >= 0) {
        s->status = FEATURE_YES;
        s->sys_errno = 0;
        return true;
    }
    s->status = FEATURE_NO;
    s->sys_errno = errno;
    snprintf(s->call, sizeof(s->call), "%s", call);
    return false;
}

/* Start a child that runs @fn on the shared array and cannot outlive us or hang. */
static pid_t
start(void (*fn)(struct feature_state *), struct feature_state *f)
{
    const struct sigaction fatal = { .sa_handler = SIG_DFL };
    pid_t parent = getpid();
    pid_t pid = fork();
    sigset_t alarms;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigaction(SIGALRM, &fatal, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(PROBE_CHILD_SECONDS);
    fn(f);
    _exit(0);
}

static void
mark_unused(struct feature_state *f, const struct host_facts *facts)
{
    if (facts->uid == 0)
        return;
    f[FEATURE_OWN_UID].status = FEATURE_UNUSED;
    snprintf(f[FEATURE_OWN_UID].detail, sizeof(f[FEATURE_OWN_UID].detail), "as an ordinary user: uid %u, no privilege",
             (unsigned)facts->uid);
    f[FEATURE_IDMAP].status = FEATURE_UNUSED;
    snprintf(f[FEATURE_IDMAP].detail, sizeof(f[FEATURE_IDMAP].detail), "not needed as an ordinary user");
}

/* The name guard reads the arguments of the calls that it decides from the memory of the sandbox's processes. */
static void
judge_yama(struct feature_state *s, const struct host_facts *facts)
{
    if (facts->yama < 2 || s->status != FEATURE_YES)
        return;
    s->status = FEATURE_NO;
    s->sys_errno = 0;
    snprintf(s->call, sizeof(s->call), "%s", YAMA_SIGN);
}

/* What stands in for it as root, in a container that gives CAP_SYS_ADMIN: the same forms that a run takes and names. */
static void
judge_container(struct feature_state *f, const struct host_facts *facts)
{
    struct feature_state *idmap = &f[FEATURE_IDMAP], *pivot = &f[FEATURE_PIVOT_ROOT], *own = &f[FEATURE_OWN_UID];

    if (facts->uid == 0 && facts->init_userns && own->status == FEATURE_NO && own->sys_errno == EPERM &&
        f[FEATURE_USERNS_MAP].status == FEATURE_YES) {
        own->status = FEATURE_PARTIAL;
        snprintf(own->detail, sizeof(own->detail), "weaker form \"root\"");
    }
    if (facts->uid != 0 || !facts->cap_sys_admin)
        return;
    if (idmap->status == FEATURE_NO && idmap->sys_errno == EINVAL) {
        idmap->status = FEATURE_PARTIAL;
        snprintf(idmap->detail, sizeof(idmap->detail), "weaker form \"owner\"");
    }
    if (pivot->status == FEATURE_NO && pivot->sys_errno != 0) {
        pivot->status = FEATURE_PARTIAL;
        snprintf(pivot->detail, sizeof(pivot->detail), "weaker form \"chroot\"");
    }
}

static void
reap(pid_t pid)
{
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

int
features_probe(struct host_features *out, struct err *err)
{
    static void (*const tries[])(struct feature_state *) = {
        probe_try_namespaces, probe_try_root, probe_try_calls, probe_try_landlock, probe_try_seccomp, probe_try_notify,
        probe_try_cgroups,
    };
    enum { TRIES = ARRAY_LEN(tries) };
    struct feature_state *shared;
    size_t size = sizeof(out->f);
    pid_t pids[TRIES];

    memset(out, 0, sizeof(*out));
    fflush(NULL);   /* or the children would hold copies of what is buffered */
    host_facts_read(&out->facts);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_sys(err, errno, "probe.memory", "shared memory for the host probe");
    for (size_t i = 0; i < TRIES; i++)
        pids[i] = out->facts.uid != 0 && tries[i] == probe_try_root ? 0 : start(tries[i], shared);
    for (size_t i = 0; i < TRIES; i++)
        reap(pids[i]);
    if (out->facts.uid == 0 && out->facts.proc_masked && shared[FEATURE_PROC_MOUNT].status == FEATURE_NO)
        reap(start(probe_try_proc_outside, shared));
    memcpy(out->f, shared, size);
    munmap(shared, size);
    for (size_t i = 0; i < TRIES; i++)
        if (pids[i] < 0)
            return err_set(err, ERR_SYSTEM, "probe.fork", "the host probe cannot start a process");
    mark_unused(out->f, &out->facts);
    judge_container(out->f, &out->facts);
    judge_yama(&out->f[FEATURE_USER_NOTIFY], &out->facts);
    for (int i = 0; i < FEATURE_N; i++)
        probe_explain((enum feature)i, &out->facts, &out->f[i]);
    return 0;
}

bool
feature_lacks(const struct host_features *h, enum feature which)
{
    const struct feature_state *s = &h->f[which];

    if (s->status != FEATURE_NO)
        return false;
    /* what is read off Landlock's version; without Landlock itself that is the answer, or there is none */
    if (which == FEATURE_LANDLOCK_TRUNCATE || which == FEATURE_LANDLOCK_SCOPE)
        return h->f[FEATURE_LANDLOCK].status == FEATURE_YES;
    if (s->call[0] == '\0')
        return false;       /* never tried, or not to the end */
    switch (s->sys_errno) {
    case 0:                 /* it was accepted and does nothing */
    case EPERM:
    case EACCES:
    case ENOSYS:
    case EINVAL:
    case EOPNOTSUPP:
    case ENODEV:
    case ENOTTY:
        return true;
    case ENOSPC:            /* a number of namespaces is used up, unless none was to be had */
    case EUSERS:
        return which <= FEATURE_CGROUPNS && h->facts.max_namespaces[which] == 0;
    default:
        return false;
    }
}

bool
features_lack(const struct host_features *h, enum policy_mode mode, enum feature *which)
{
    for (int i = 0; i < FEATURE_N; i++) {
        if (feature_need(&feature_info[i], mode) != NEED_MUST || !feature_lacks(h, (enum feature)i))
            continue;
        *which = (enum feature)i;
        return true;
    }
    return false;
}
