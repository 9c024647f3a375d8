/* engine/oci/oci.c: the oci engine: an OCI runtime's walls around a tree of ours (see oci.h) */
#include "engine/oci/oci.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/native/built_on.h"
#include "wire/msg.h"

/* A task of the sandbox is several of the host's where the runtime has a kernel of its own, which has some itself. */
#define TASKS_EACH 4
#define TASKS_OWN  512

static const struct built_on words = {
    .name = "oci",
    .network = "does not share the host's network",
    .no_network = "use --allow-domain HOST, or --engine native: its Landlock keeps the host's abstract sockets away",
    .no_root = "run it as root, or use --engine native, which an ordinary user can",
};

static int
refuse_guard(struct err *err)
{
    return built_on_refuse(&words, "oci.name-guard", "cannot guard names in runsc: its kernel has no such supervision "
                           "of system calls", "use :ro for folders of the host, allow no unix sockets; or --runtime "
                           "crun; or --engine native", err);
}

static int
refuse_cow(struct err *err)
{
    return built_on_refuse(&words, "oci.cow", "has no copy-on-write workspace in runsc",
                           "use :ro, --runtime crun, or --engine native", err);
}

/* What of the finished plan the runtime cannot keep. */
static int
check(struct native *native, const struct policy *p, struct err *err)
{
    struct oci *sb = (struct oci *)native;
    struct native_plan *plan = &native->plan;
    /* sockets of the host's are out of reach in runsc whatever lies in a folder, so none has to be guarded */
    bool guarded = plan->guard_names || plan->n_sockets > 0;

    for (size_t i = 0; i < plan->n_trees; i++)
        guarded = guarded || plan->trees[i].writable;
    if (built_on_check_plan(&words, plan, err) < 0)
        return -1;
    if (guarded && sb->runtime->own_kernel)
        return refuse_guard(err);
    if (plan->cow.id[0] != '\0' && sb->runtime->own_kernel)
        return refuse_cow(err);
    return holder_add_guest(&sb->native.plan, err) < 0 ? -1 : oci_config(sb, p, err);
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
    uint32_t *const root_id = &sb->root_id;

    native_init(&sb->native, id);
    sb->config = (struct buf)BUF_INIT(65536);
    sb->native.way = &way;
    sb->native.plan.by_runtime = true;
    sb->native.plan.root.place = HOLDER_BUNDLE;
    if (built_on_check(&words, p, err) == 0 &&
        (sb->runtime = oci_runtime_find(p->runtime.p, p, sb->program, err)) != NULL &&
        plan_own_ids(&root_id, 1, err) == 0)
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
    if (built_on_check_memory(&words, &sb->native, err) < 0) {      /* nothing has run yet */
        native_abandon(&sb->native.base);
        destroy(&sb->native.base);
        return -1;
    }
    sb->native.base.facts.differs = sb->runtime->differs;
    sb->native.base.facts.boundary = oci_boundary(sb->runtime->name);
    if (sb->runtime->own_kernel && p->limits.pids.v > 0)
        sb->native.base.facts.pids_by = "supervised";
    buf_free(&sb->config);
    *out = &sb->native.base;
    return 0;
}

/* What check() will refuse, as far as the policy says it. */
static int
can(const struct policy *p, const char *runtime, struct err *err)
{
    char path[PATH_MAX];
    const struct oci_runtime *r;
    bool guarded = p->workspace.kind == WORKSPACE_RW || p->allow_write.n > 0 || p->unix_sockets.n > 0;

    if (built_on_check(&words, p, err) < 0 || (r = oci_runtime_find(runtime, p, path, err)) == NULL)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++)
        guarded = guarded || p->binds[i].writable;
    if (!r->own_kernel || p->boundary.v == BOUNDARY_PROCESS)    /* no other runtime stands in for one that is there */
        return 0;
    return guarded ? refuse_guard(err) : p->workspace.kind == WORKSPACE_COW ? refuse_cow(err) : 0;
}

static pid_t
guest(const struct sandbox *base)
{
    const struct oci *sb = (const struct oci *)base;

    pid_t runtime = holder_child_named(sb->native.pid, sb->runtime->name);

    return sb->runtime->own_kernel ? holder_child_calling_itself(runtime, "runsc-sandbox")
                                   : holder_child_named(runtime, "cloche-guest");
}

static int
setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err)
{
    const struct oci *sb = oci_of(base);

    if (!sb->runtime->own_kernel)
        return native_setup(base, guard, out, err);
    native_denied(&sb->native, out);
    out->pids_limit = (uint32_t)sb->native.plan.real.limits.pids.v;
    return 0;       /* check() has refused what needs a guard */
}

/* What the runtime holds is the sandbox's too. */
static int
command_begin(struct sandbox *base, const struct sandbox_command_limits *wanted, struct sandbox_command **out,
              int joins[SANDBOX_JOINS], size_t *n, struct err *err)
{
    if (oci_of(base)->runtime->own_kernel)
        return built_on_refuse(&words, "limits.no-cgroup", "cannot hold one command in runsc to limits of its own",
                               "leave the command's limits out, or use --runtime crun", err);
    return native_command_begin(base, wanted, out, joins, n, err);
}

static int
change(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err)
{
    if (oci_of(base)->runtime->own_kernel)
        return built_on_refuse(&words, "limits.no-cgroup", "cannot change limits in runsc while a sandbox lives",
                               "stop it, change its policy, and recover it: it is made again, empty", err);
    return native_limits(base, from, to, err);
}

static int
change_back(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err)
{
    return oci_of(base)->runtime->own_kernel ? 0 : native_limits_back(base, from, to, err);
}

static int
gone(struct sandbox *base, struct err *err)
{
    return holder_gone(&oci_of(base)->native, oci_of(base)->runtime->name, err);
}

static int
makers(const struct policy *p, struct engine_makers *out, struct err *err)
{
    return oci_runtime_find(p->runtime.p, p, out->programs[0], err) != NULL ? 0 : -1;
}

static const char *const names[] = { "runsc", "crun", "runc", NULL };

const struct engine engine_oci = {
    .name = "oci",
    .images = true,
    .runtimes = names,
    .boundary = oci_boundary,
    .can = can,
    .probe = oci_probe,
    .holes = oci_holes,
    .rules = native_rules,
    .makers = makers,
    .create = create,
    .guest = guest,
    .connect = native_connect,
    .setup = setup,
    .usage = native_usage,
    .now = native_now,
    .over_memory = native_over_memory,
    .limits = change,
    .limits_back = change_back,
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
