/* engine/oci/oci.c: the oci engine: an OCI runtime's walls around a tree of ours (see oci.h) */
#include "engine/oci/oci.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "guest/guest_image.h"
#include "wall/caps.h"
#include "wall/own_id.h"
#include "wire/msg.h"

/* A task of the sandbox is several of the host's where the runtime has a kernel of its own, which has some itself. */
#define TASKS_EACH 4
#define TASKS_OWN  512

static int
refuse(struct err *err, const char *code, const char *what, const char *instead)
{
    err_set(err, ERR_UNSUPPORTED, code, "the engine oci %s", what);
    return err_hint(err, "%s", instead);
}

bool
oci_is_root(void)
{
    return geteuid() == 0 && caps_give_identity();
}

/* What this engine does not do whatever the host is: said before anything is made. */
static int
check_policy(const struct policy *p, const char *id, struct err *err)
{
    if (id != NULL)
        return refuse(err, "oci.daemon", "is not for sandboxes of cloche serve in this release", "use --engine native");
    if (p->mode.v == MODE_LIGHT)
        return refuse(err, "oci.mode", "has no light mode", "use --mode standard or max, or --engine native");
    if (p->view.v != VIEW_PRIVATE)
        return refuse(err, "oci.view", "has only --view private", "use --engine native to show the host's tree");
    if (p->network.v == NETWORK_HOST)
        return refuse(err, "oci.network", "does not share the host's network", "use --allow-domain HOST, or --engine "
                      "native: its Landlock keeps the host's abstract sockets away");
    if (p->nested_userns.v)
        return refuse(err, "oci.nested", "lets no sandbox make user namespaces", "use --engine native for that");
    if (!oci_is_root())
        return refuse(err, "oci.root", "needs root, with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID",
                      "run it as root, or use --engine native, which an ordinary user can");
    return 0;
}

/* The guest and the filter, as files of the tree, on a mount of their own that nobody inside writes to. */
static int
add_guest(struct oci *sb, struct err *err)
{
    struct native_plan *plan = &sb->native.plan;
    const struct sock_fprog *program = seccomp_program(&plan->seccomp);
    struct root_item *guest, *filter;

    if (program == NULL)
        return err_set(err, ERR_POLICY, "wall.seccomp.plan", "there is no such system call filter");
    guest = plan_item(plan, ROOT_FILE, (const char *)guest_image, OCI_GUEST, err);
    filter = guest != NULL ? plan_item(plan, ROOT_FILE, (const char *)program->filter, OCI_FILTER, err) : NULL;
    if (filter == NULL || plan_item(plan, ROOT_SYMLINK, plan->workdir, OCI_WORKDIR, err) == NULL ||
        plan_item(plan, ROOT_PIN, NULL, OCI_FOLDER, err) == NULL)
        return -1;
    guest->size = guest_image_size;
    guest->mode = 0555;
    filter->size = program->len * sizeof(*program->filter);
    filter->mode = 0444;
    plan->root.n_items = plan->n_items;
    if (plan->root.tmpfs_bytes > 0)     /* what the policy gives is the sandbox's */
        plan->root.tmpfs_bytes += (guest->size + filter->size + 2 * 4096) & ~4095UL;
    return 0;
}

/* What of the finished plan the runtime cannot keep. */
static int
check(struct native *native, const struct policy *p, struct err *err)
{
    struct oci *sb = (struct oci *)native;
    struct native_plan *plan = &native->plan;
    /* sockets of the host's are out of reach in runsc whatever lies in a folder, so none has to be guarded */
    bool guarded = plan->guard_names || plan->n_sockets > 0;

    plan->root.uid = plan->ids.outside_uid;     /* it is built outside of the user namespace */
    plan->root.gid = plan->ids.outside_gid;

    for (size_t i = 0; i < plan->n_trees; i++)
        guarded = guarded || plan->trees[i].writable;
    if (!plan->privileged)
        return refuse(err, "oci.root", "needs a root that can give the sandbox a user of its own",
                      "use --engine native");
    if (guarded && sb->runtime->own_kernel)
        return refuse(err, "oci.name-guard", "cannot guard names in runsc: its kernel has no such supervision of "
                      "system calls", "use :ro for folders of the host, allow no unix sockets; or --runtime crun; or "
                      "--engine native");
    if (plan->cow.id[0] != '\0' && sb->runtime->own_kernel)
        return refuse(err, "oci.cow", "has no copy-on-write workspace in runsc", "use :ro, --runtime crun, or "
                      "--engine native");
    return add_guest(sb, err) < 0 ? -1 : oci_config(sb, p, err);
}

static void
limits(const struct native *native, struct cgroup_limits *out)
{
    if (!((const struct oci *)native)->runtime->own_kernel || out->pids == 0)
        return;
    /* the guest holds it to the limit; the cgroup holds the runtime to what that can take */
    out->pids = out->pids * TASKS_EACH + TASKS_OWN;
    out->pids_counted = false;
}

static const struct native_way way = {
    .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
    .limits = limits,
    .check = check,
    .child = oci_child,
};

static void
destroy(struct sandbox *base)
{
    buf_free(&oci_of(base)->config);
    native_destroy(base);
}

static int
build(struct oci *sb, const struct policy *p, const char *id, struct err *err)
{
    uint32_t random;

    native_init(&sb->native, id);
    sb->config = (struct buf)BUF_INIT(65536);
    sb->native.way = &way;
    sb->native.plan.by_runtime = true;
    sb->native.plan.root.place = OCI_BUNDLE;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        err_set(err, ERR_SYSTEM, "wall.random", "getrandom");
    else if (check_policy(p, id, err) == 0 &&
             (sb->runtime = oci_runtime_find(p->runtime.p, p, sb->program, err)) != NULL &&
             own_id(OWN_OF_SANDBOX, random, &sb->root_id, err) == 0)
        return native_build(&sb->native, p, err);
    destroy(&sb->native.base);
    return -1;
}

static int
create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct oci *sb = calloc(1, sizeof(*sb));

    if (sb == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (build(sb, p, id, err) < 0)
        return -1;
    if (sb->native.supervise_memory) {      /* nothing has run yet */
        native_abandon(&sb->native.base);
        destroy(&sb->native.base);
        return refuse(err, "oci.memory", "needs a cgroup for a memory limit, which is not there",
                      "use --engine native, or no limit (--memory 0)");
    }
    sb->native.base.facts.differs = sb->runtime->differs;
    sb->native.base.facts.own_kernel = sb->runtime->own_kernel;
    if (sb->runtime->own_kernel && p->limits.pids.v > 0)
        sb->native.base.facts.pids_by = "supervised";
    buf_free(&sb->config);
    *out = &sb->native.base;
    return 0;
}

static bool
is_named(uint64_t pid, const char *name)
{
    cleanup_buf struct buf comm = BUF_INIT(64);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
    return io_read_file(AT_FDCWD, path, &comm) == 0 && comm.n == strlen(name) + 1 &&
           memcmp(comm.p, name, comm.n - 1) == 0;
}

/* By the first word of its command line. */
static bool
calls_itself(uint64_t pid, const char *name)
{
    cleanup_buf struct buf line = BUF_INIT(65536);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%llu/cmdline", (unsigned long long)pid);
    return io_read_file(AT_FDCWD, path, &line) == 0 && line.n > strlen(name) &&
           memcmp(line.p, name, strlen(name) + 1) == 0;
}

/* A child of @thread, in the folder @tasks, by its name; -1: it has none. */
static pid_t
child_of_thread(int tasks, const char *thread, bool (*is)(uint64_t, const char *), const char *name)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char path[64];
    uint64_t child;

    snprintf(path, sizeof(path), "%.20s/children", thread);
    if (io_read_file(tasks, path, &list) < 0)
        return -1;
    for (size_t i = 0, start = 0; i < list.n; i++) {    /* "PID PID " */
        if (list.p[i] != ' ')
            continue;
        if (str_parse_u64((struct str){ (char *)list.p + start, i - start }, INT32_MAX, &child) &&
            is(child, name))
            return (pid_t)child;
        start = i + 1;
    }
    return -1;
}

static pid_t
child_of(pid_t pid, bool (*is)(uint64_t pid, const char *name), const char *name)
{
    char path[64];
    pid_t child = -1;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = pid > 0 ? opendir(path) : NULL;
    for (struct dirent *e; child < 0 && tasks != NULL && (e = readdir(tasks)) != NULL;)
        if (e->d_name[0] != '.')
            child = child_of_thread(dirfd(tasks), e->d_name, is, name);
    if (tasks != NULL)
        closedir(tasks);
    return child;
}

static pid_t
guest(const struct sandbox *base)
{
    const struct oci *sb = (const struct oci *)base;

    pid_t runtime = child_of(sb->native.pid, is_named, sb->runtime->name);

    return sb->runtime->own_kernel ? child_of(runtime, calls_itself, "runsc-sandbox")
                                   : child_of(runtime, is_named, "cloche-guest");
}

static int
setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err)
{
    const struct oci *sb = oci_of(base);

    if (!sb->runtime->own_kernel)
        return native_setup(base, guard, out, err);
    out->pids_limit = (uint32_t)sb->native.plan.real.limits.pids.v;
    return 0;       /* check() has refused what needs a guard */
}

/* What the runtime holds is the sandbox's too. */
static int
command_begin(struct sandbox *base, const struct sandbox_command_limits *wanted, struct sandbox_command **out,
              int joins[SANDBOX_JOINS], size_t *n, struct err *err)
{
    if (oci_of(base)->runtime->own_kernel)
        return refuse(err, "limits.no-cgroup", "cannot hold one command in runsc to limits of its own",
                      "leave the command's limits out, or use --runtime crun");
    return native_command_begin(base, wanted, out, joins, n, err);
}

static int
gone(struct sandbox *base, struct err *err)
{
    siginfo_t info = { .si_pid = 0 };
    const struct oci *sb = oci_of(base);

    waitid(P_PID, (id_t)sb->native.pid, &info, WEXITED | WNOWAIT);
    if (info.si_code == CLD_EXITED && info.si_status == GUEST_EXIT_WORKDIR) {
        err_set(err, ERR_SYSTEM, "wall.workdir", "working directory %s: it is not there", base->facts.workdir);
        return err_hint(err, "--workdir must name a folder that exists inside the sandbox");
    }
    if (info.si_code != CLD_EXITED)
        return err_set(err, ERR_SYSTEM, "guest.gone", "%s was ended by signal %d before the command was done",
                       sb->runtime->name, info.si_status);
    return err_set(err, ERR_SYSTEM, "guest.gone", "%s or the guest in it ended (%d) before the command was done",
                   sb->runtime->name, info.si_status);
}

static const char *const names[] = { "runsc", "crun", "runc", NULL };

const struct engine engine_oci = {
    .name = "oci",
    .runtimes = names,
    .probe = oci_probe,
    .holes = oci_holes,
    .rules = native_rules,
    .create = create,
    .guest = guest,
    .connect = native_connect,
    .setup = setup,
    .usage = native_usage,
    .now = native_now,
    .over_memory = native_over_memory,
    .command_begin = command_begin,
    .command_sent = native_command_sent,
    .command_look = native_command_look,
    .command_end = native_command_end,
    .pause = native_pause,
    .resume = native_resume,
    .tend = native_tend,
    .setup_failed = native_setup_failed,
    .gone = gone,
    .abandon = native_abandon,
    .end = native_end,
    .kill = native_kill,
    .destroy = destroy,
};
