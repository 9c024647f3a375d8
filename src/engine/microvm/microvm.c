/* engine/microvm/microvm.c: the microvm engine: a kernel of its own around a tree of ours (see microvm.h) */
#include "engine/microvm/microvm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/kernel.h"
#include "engine/native/built_on.h"
#include "wire/msg.h"

#define MIB          (1024UL * 1024)
#define KERNEL_MIB   96         /* what the machine's kernel takes of its memory before anybody else */
#define LEAST_MIB    160
#define DEFAULT_MIB  2048       /* without a limit */
#define MOST_MIB     (1024UL * 1024)
#define OUTSIDE      (512UL * 1024 * 1024)      /* what QEMU (translated code, too) and virtiofsd take beside it */
#define TASKS        512        /* their threads */
#define CPUS_MAX     16
#define FILES_MAX    1000000UL
#define START_S      120        /* emulated, a kernel starts in seconds of a processor that others want too */
#define START_ALL_S  280        /* and a Docker Engine in a minute; who waits for it gives up after 300 */
#define INITRD_MAX   (64UL * 1024 * 1024)

static const struct built_on words = {
    .name = "microvm",
    .network = "has no network device, so it does not share the host's network",
    .no_network = "use --engine native",
    .no_root = "run it as root, or use --engine native, which an ordinary user can",
};

static int
check_policy(const struct policy *p, struct err *err)
{
#ifndef __x86_64__
    return built_on_refuse(&words, "microvm.processor", "is for x86-64 in this release", "use --engine native", err);
#endif
    return built_on_check(&words, p, err);
}

/* What of the finished plan it cannot keep. */
static int
check(struct native *native, const struct policy *p, struct err *err)
{
    struct microvm *sb = (struct microvm *)native;
    struct native_plan *plan = &native->plan;

    if (built_on_check_plan(&words, plan, err) < 0)
        return -1;
    if (!sb->kvm)
        plan_warn(plan, "the machine is emulated (QEMU's TCG), for want of KVM: it is slow, and to QEMU's developers "
                  "no security boundary; the walls around QEMU are");
    for (size_t i = 0; p->user.uid == 0 && i < plan->n_trees; i++)
        if (plan->trees[i].writable && !plan->trees[i].cow)
            return built_on_refuse(&words, "microvm.root-user", "cannot guard names from a user who is root of the "
                                   "machine", "use :ro or :cow for folders of the host, or leave --user out", err);
    if (p->user.uid == 0 && plan->n_denied > 0)
        return built_on_refuse(&words, "microvm.root-user", "keeps no system call from a user who is root of the "
                               "machine, whose kernel does what root says",
                               "leave syscalls.deny out, or leave --user out", err);
    if (plan->n_sockets > 0)
        return built_on_refuse(&words, "microvm.sockets", "reaches no unix socket of the host",
                               "allow none, or use --engine native", err);
    return holder_add_guest(plan, err) < 0 ? -1 : microvm_initrd(sb, p, err);
}

/* The machine cannot take more than it was given; the cgroup holds what is around it. */
static void
limits(const struct native *native, struct cgroup_limits *out)
{
    const struct microvm *sb = (const struct microvm *)native;

    if (out->memory > 0)
        out->memory += sb->memory_mib * MIB - native->memory_limit + OUTSIDE;
    out->sockets = out->memory;
    out->pids = TASKS;
    out->pids_counted = true;   /* the machine's kernel counts them */
}

static const struct native_way way = {
    .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
    .limits = limits,
    .check = check,
    .child = microvm_child,
};

static void
destroy(struct sandbox *base)
{
    buf_free(&microvm_of(base)->initrd);
    native_destroy(base);
}

static void
size(struct microvm *sb, const struct policy *p)
{
    uint64_t milli = p->limits.cpu_milli.v, mib = p->limits.memory.v / MIB + KERNEL_MIB;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct rlimit files = { 0, 0 };

    mib = p->limits.memory.v == 0 ? DEFAULT_MIB : mib;
    sb->memory_mib = mib < LEAST_MIB ? LEAST_MIB : mib > MOST_MIB ? MOST_MIB : mib;
    sb->cpus = milli == 0 ? 1 : milli > CPUS_MAX * 1000 ? CPUS_MAX : (unsigned)((milli + 999) / 1000);
    if (kernel_prlimit(RLIMIT_NOFILE, NULL, &files) < 0 || files.rlim_max > FILES_MAX)
        files.rlim_max = FILES_MAX;
    sb->files = files.rlim_max;
    if (online > 0 && sb->cpus > (unsigned long)online)
        sb->cpus = (unsigned)online;
}

static int
build(struct microvm *sb, const struct policy *p, const char *id, struct err *err)
{
    uint32_t *const ids[] = { &sb->root_id, &sb->qemu_id, &sb->net_id };
    char why[128];

    native_init(&sb->native, id);
    sb->initrd = (struct buf)BUF_INIT(INITRD_MAX);
    sb->native.way = &way;
    sb->native.plan.by_runtime = true;
    sb->native.plan.root.place = HOLDER_BUNDLE;
    sb->kvm = microvm_has_kvm(why);
    size(sb, p);
    if (check_policy(p, err) == 0 && microvm_programs(p, sb->qemu, sb->virtiofsd, err) == 0 &&
        microvm_kernel_find(&sb->kernel, p->private_docker.v, err) == 0 &&
        plan_own_ids(ids, ARRAY_LEN(ids), err) == 0) {
        /* virtiofsd renames and links as its root, for whom a mount has to have a number at all */
        sb->native.plan.also_id = p->user.uid != 0 ? sb->root_id : 0;
        return native_build(&sb->native, p, err);
    }
    destroy(&sb->native.base);
    return -1;
}

static enum policy_boundary
boundary(const char *runtime)
{
    (void)runtime;
    return BOUNDARY_VM;
}

static int
can(const struct policy *p, const char *runtime, struct err *err)
{
    static struct microvm_kernel kernel;    /* large */
    char qemu[PATH_MAX], virtiofsd[PATH_MAX];

    (void)runtime;
    return check_policy(p, err) < 0 || microvm_programs(p, qemu, virtiofsd, err) < 0
               ? -1 : microvm_kernel_find(&kernel, p->private_docker.v, err);
}

/* What this one finds and a sandbox that shares the host's kernel does not, and why that is no hole. */
static const struct sandbox_differs differs[] = {
    { "posture.mounts.read-only", "virtiofs /", "the machine calls it writable; the host's mounts behind it are not" },
    { "posture.mounts.root", "virtiofs /", "the machine calls it writable; the host's mounts behind it are not" },
    { "posture.mounts.known", "virtiofs /", "it is the tree that cloche has built" },
    { "posture.mounts.known", "tmpfs /dev", "it is the machine's own" },
    { "posture.proc.subset", "/proc/cmdline", "it is the machine's own, and tells nothing of the host" },
    { NULL, NULL, NULL },
};

/* Who is root of the machine's kernel is not counted by RLIMIT_NPROC (setrlimit(2)), and there is no cgroup in it. */
static int
check_pids(struct microvm *sb, const struct policy *p, struct err *err)
{
    struct sandbox_facts *facts = &sb->native.base.facts;
    struct native_plan *plan = &sb->native.plan;
    bool counted = plan->ids.inside_uid != 0;

    facts->pids_by = p->limits.pids.v > 0 && counted ? "rlimit" : "none";
    if (p->limits.pids.v == 0 || counted)
        return 0;
    if (p->fallback.v == FALLBACK_REFUSE && p->limits.pids.from.kind >= ORIGIN_FILE)
        return built_on_refuse(&words, "microvm.pids", "has no limit of processes for a user who is root in it",
                               "use no limit (--pids 0), another user, or --fallback warn", err);
    plan_warn(plan, "the limit of processes is not enforced: the sandbox's user is root of its machine, whose memory "
              "is the limit");
    facts->n_warnings = plan->n_warnings;
    return 0;
}

static int
create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct microvm *sb = calloc(1, sizeof(*sb));
    struct sandbox_facts *facts;

    if (sb == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (build(sb, p, id, err) < 0)
        return -1;
    buf_free(&sb->initrd);
    /* nothing has run yet */
    if (built_on_check_memory(&words, &sb->native, err) < 0 || check_pids(sb, p, err) < 0) {
        native_abandon(&sb->native.base);
        destroy(&sb->native.base);
        return -1;
    }
    facts = &sb->native.base.facts;
    facts->differs = differs;
    facts->boundary = BOUNDARY_VM;
    facts->streams_only = true;
    facts->start_s = p->private_docker.v ? START_ALL_S : START_S;
    facts->pause_by = facts->pause_by != NULL ? facts->pause_by : "machine";
    facts->memory_by = "machine";
    facts->look_at_memory = false;
    *out = &sb->native.base;
    return 0;
}

static pid_t
guest(const struct sandbox *base)
{
    return holder_child_named(((const struct microvm *)base)->native.pid, "qemu-system-x86");     /* 15 letters of it */
}

static int
setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err)
{
    native_denied(&microvm_of(base)->native, out);
    if (microvm_of(base)->native.plan.ids.inside_uid == 0)
        return 0;               /* it has no filter, which the guard would be asked by */
    if (native_setup(base, guard, out, err) < 0)
        return -1;
    out->memory_limit = 0;      /* that of the machine */
    return 0;
}

/* Its processes are none that its holder waits for. */
static void
note_cpu(struct sandbox *base)
{
    struct sandbox_now now = { .memory = 0 };

    if (base->facts.pid <= 0)
        return;
    native_now(base, &now);
    if (now.cpu_us > microvm_of(base)->cpu_us)
        microvm_of(base)->cpu_us = now.cpu_us;
}

static void
end(struct sandbox *base)
{
    note_cpu(base);
    native_end(base);
}

static void
end_now(struct sandbox *base)
{
    note_cpu(base);
    native_kill(base);
}

static void
usage(struct sandbox *base, struct sandbox_usage *out)
{
    native_usage(base, out);
    if (out->cpu_us < microvm_of(base)->cpu_us)
        out->cpu_us = microvm_of(base)->cpu_us;
}

static void
now(struct sandbox *base, struct sandbox_now *out)
{
    native_now(base, out);
    out->pids = 0;              /* they are threads of QEMU's */
}

/* To QEMU, which is everything inside, whoever is root there. Its folder in /proc is that very process, also when its
 * number is another one's by then. */
static int
signal_machine(const struct sandbox *base, int number, struct err *err)
{
    cleanup_close int process = -1;
    pid_t pid = guest(base);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    process = pid > 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (process < 0 || guest(base) != pid)
        return err_set(err, ERR_SYSTEM, "guest.gone", "the machine has ended");
    return syscall(SYS_pidfd_send_signal, process, number, NULL, 0) < 0 ? err_sys(err, errno, "wall.pause", "QEMU") : 0;
}

static bool
freezes(const struct sandbox *base)
{
    return ((const struct microvm *)base)->native.cgroup.kind >= CGROUP_V2;
}

static int
pause_all(struct sandbox *base, struct err *err)
{
    return freezes(base) ? native_pause(base, err) : signal_machine(base, SIGSTOP, err);
}

static int
resume_all(struct sandbox *base, struct err *err)
{
    return freezes(base) ? native_resume(base, err) : signal_machine(base, SIGCONT, err);
}

/* The same machine is one of the same kernel, too. */
static int
makers(const struct policy *p, struct engine_makers *out, struct err *err)
{
    static struct microvm_kernel kernel;    /* large */

    _Static_assert(ENGINE_MAKERS == 3, "QEMU, virtiofsd, the kernel");
    if (microvm_programs(p, out->programs[0], out->programs[1], err) < 0 ||
        microvm_kernel_find(&kernel, p->private_docker.v, err) < 0)
        return -1;
    memcpy(out->programs[2], kernel.image, sizeof(out->programs[2]));
    return 0;
}

static int
gone(struct sandbox *base, struct err *err)
{
    return holder_gone(&microvm_of(base)->native, "the machine", err);
}

const struct engine engine_microvm = {
    .name = "microvm",
    .root_inside = true,
    .docker_inside = true,
    .images = true,
    .boundary = boundary,
    .can = can,
    .probe = microvm_probe,
    .rules = native_rules,
    .makers = makers,
    .create = create,
    .guest = guest,
    .connect = native_connect,
    .setup = setup,
    .usage = usage,
    .now = now,
    .pause = pause_all,
    .resume = resume_all,
    .tend = native_tend,
    .setup_failed = native_setup_failed,
    .gone = gone,
    .abandon = native_abandon,
    .end = end,
    .kill = end_now,
    .destroy = destroy,
};
