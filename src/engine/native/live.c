/* engine/native/live.c: what is true of a sandbox that lives, what it uses, and what can be changed of it */
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/native/native.h"
#include "match/path.h"
#include "wall/cgroup_live.h"
#include "wall/sockmem.h"
#include "wire/msg.h"

_Static_assert(sizeof(((struct native_plan *)0)->warnings[0]) == sizeof(((struct sandbox_facts *)0)->warnings[0]),
               "warnings are handed on as they are");

#define SOCKMEM_BLIND_MAX 3

static bool
looks(const struct native *sb)
{
    return sb->memory_limit > 0 && (sb->cgroup.memory || sb->sockmem >= 0);
}

/* A pin shows what it lies on. */
static bool
is_covered(const struct native_plan *plan)
{
    const char *root = plan->workspace_inside;

    for (size_t i = 0; root != NULL && i < plan->n_items; i++) {
        const struct root_item *item = &plan->items[i];
        if (item->op != ROOT_PIN && strcmp(item->dest, root) != 0 && path_within(str_of(item->dest), str_of(root)))
            return true;
    }
    return false;
}

void
native_fill_facts(struct native *sb)
{
    const struct native_plan *plan = &sb->plan;
    const struct policy_limits *limits = &plan->real.limits;
    const char *cgroup = cgroup_name(&sb->cgroup);

    sb->base.facts = (struct sandbox_facts){
        .id = sb->id,
        .cow_id = plan->cow.id,
        .pid = sb->pid,
        .root = plan->workspace_inside != NULL ? plan->workspace_inside : "",
        .workdir = plan->workdir,
        .env = plan->env,
        .other_user = plan_other_user(plan),
        .uid = plan->ids.outside_uid,
        .gid = plan->ids.outside_gid,
        .memory_by = sb->cgroup.memory ? cgroup : sb->supervise_memory ? "supervised" : "none",
        .cpu_by = sb->cgroup.cpu ? cgroup : "none",
        .pids_by = sb->cgroup.pids ? cgroup : limits->pids.v == 0 ? "none" : plan->light ? "supervised" : "rlimit",
        .disk_by = !plan->light && limits->disk.v > 0 ? "tmpfs" : "none",
        .pause_by = sb->cgroup.kind >= CGROUP_V2 ? cgroup : NULL,
        .look_at_memory = looks(sb),
        .own_net = plan->own_net,
        .captured = plan->capture,
        .ports = plan->ports,
        .n_ports = plan->n_ports,
        .listeners = sb->listeners,
        .net_cgroup = &sb->net_cgroup,
        .own_files = sb->way == NULL && !plan->light && !plan->root.host_view,
        .own_mounts = sb->way == NULL && !plan->light,
        .covered = is_covered(plan),
        .own = sb->own,
        .n_own = plan->n_own,
        .warnings = (const char(*)[256])plan->warnings,
        .n_warnings = plan->n_warnings,
    };
}

void
native_denied(const struct native *sb, struct msg_setup *out)
{
    out->denied = sb->plan.denied;
    out->n_denied = sb->plan.n_denied;
}

int
native_setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err)
{
    const struct native *sb = native_of(base);

    native_denied(sb, out);
    out->flags = sb->plan.light ? MSG_SETUP_LIGHT : 0;
    out->memory_limit = sb->supervise_memory ? sb->memory_limit : 0;
    /* outside a user namespace of its own RLIMIT_NPROC would count the caller's other processes */
    out->pids_limit = sb->plan.light && !sb->cgroup.pids ? (uint32_t)sb->plan.real.limits.pids.v : 0;
    return native_guard_plan(sb, guard, err);
}

void
native_usage(struct sandbox *base, struct sandbox_usage *out)
{
    const struct native *sb = native_of(base);
    struct cgroup_usage usage;

    cgroup_read(&sb->cgroup, &usage);
    out->peak_memory = usage.peak_memory > sb->last.peak_memory ? usage.peak_memory : sb->last.peak_memory;
    out->oom_kills = usage.oom_kills > sb->last.oom_kills ? usage.oom_kills : sb->last.oom_kills;
    out->cpu_us = sb->cpu_us;
}

void
native_now(struct sandbox *base, struct sandbox_now *out)
{
    struct cgroup_now now;

    cgroup_now(&native_of(base)->cgroup, &now);
    *out = (struct sandbox_now){ .memory = now.memory, .cpu_us = now.cpu_us, .pids = now.pids };
}

/* Bytes of its files in memory. */
static uint64_t
files_of(const struct native *sb)
{
    struct statfs st;

    if (sb->disk < 0 || fstatfs(sb->disk, &st) < 0)
        return 0;
    return ((uint64_t)st.f_blocks - (uint64_t)st.f_bfree) * (uint64_t)st.f_bsize;
}

/* By its cgroup: what is no file. Of what unix sockets hold sock_diag tells (@local). Files are looked at before and
 * after: what is written, or removed, meanwhile is no memory. */
static uint64_t
held_of(const struct native *sb, uint64_t local)
{
    uint64_t files = files_of(sb), later;
    struct cgroup_held h;

    cgroup_held(&sb->cgroup, &h);
    later = files_of(sb);
    files = later > files ? later : files;
    return h.own + (h.shared > files ? h.shared - files : 0) + h.sockets + local;
}

/* What is no file is above the limit; without a cgroup, what its sockets hold, since the guest looks at the rest. */
bool
native_over_memory(struct sandbox *base)
{
    struct native *sb = native_of(base);
    uint64_t held = 0;

    if (sb->memory_limit == 0 || (sb->supervise_memory ? sb->sockmem < 0 : !sb->cgroup.memory || sb->plan.light))
        return false;
    if (sb->sockmem >= 0) {
        bool told = sb->supervise_memory ? sockmem_total(sb->sockmem, &held, NULL) == 0
                                         : sockmem_unix(sb->sockmem, &held, NULL) == 0;
        /* it could be asked when the sandbox was made: who goes blind afterwards does not pretend to see */
        sb->sockmem_blind = told ? 0 : sb->sockmem_blind + 1;
        if (!told)
            return sb->sockmem_blind >= SOCKMEM_BLIND_MAX;
    }
    return (sb->supervise_memory ? held : held_of(sb, held)) > sb->memory_limit;
}

/* A command with limits of its own is in a cgroup below, until that is empty and removed. */
bool
native_alone(struct sandbox *base)
{
    const struct native *sb = native_of(base);

    return sb->commands == NULL && !sb->plan.light && cgroup_alone(&sb->cgroup);
}

int
native_limits(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err)
{
    struct native *sb = native_of(base);
    uint64_t memory = to->limits.memory.v, pids = to->limits.pids.v, used, local = 0;
    struct cgroup_limits old = { .memory = 0 }, new = { .memory = 0 };

    native_cgroup_limits(from, &old);
    native_cgroup_limits(to, &new);
    if (from->limits.pids.v != pids && sb->nproc > 0 && (!sb->cgroup.pids || pids == 0 || pids + 1 > sb->nproc)) {
        err_set(err, ERR_UNSUPPORTED, "limits.rlimit", "limits.pids cannot %s %llu while the sandbox lives: each of "
                "its processes was given RLIMIT_NPROC, which nobody changes",
                sb->cgroup.pids ? "be more than" : "differ from", (unsigned long long)sb->nproc - 1);
        return err_hint(err, "stop it, change its policy, and recover it: it is made again, empty");
    }
    /* the cgroup's limit has the disk's on top and would be taken; native_over_memory() would end the sandbox next */
    if (sb->sockmem >= 0)
        (void)sockmem_unix(sb->sockmem, &local, NULL);
    if (memory > 0 && from->limits.memory.v != memory && !sb->plan.light && (used = held_of(sb, local)) > memory) {
        err_set(err, ERR_DENIED, "limits.in-use", "%llu bytes of memory are in use: more than %llu",
                (unsigned long long)used, (unsigned long long)memory);
        return err_hint(err, "end what uses it first, or leave it more");
    }
    native_commands_lower(sb, new.cpu_milli);
    if (cgroup_change(&sb->cgroup, &old, &new, err) < 0)
        return -1;
    sb->memory_limit = memory;
    base->facts.look_at_memory = looks(sb);
    return 0;
}

int
native_limits_back(struct sandbox *base, const struct policy *from, const struct policy *to, struct err *err)
{
    struct native *sb = native_of(base);
    struct policy rest = *to;

    if (native_limits(base, from, to, err) == 0)
        return 0;
    /* the kernel may not let go of it: then its limit alone stays the new one there */
    rest.limits.memory = from->limits.memory;
    (void)native_limits(base, from, &rest, NULL);
    sb->memory_limit = to->limits.memory.v;
    base->facts.look_at_memory = looks(sb);
    return -1;
}

static int
freeze(struct sandbox *base, bool frozen, struct err *err)
{
    const struct native *sb = native_of(base);

    if (sb->cgroup.kind >= CGROUP_V2)
        return cgroup_freeze(&sb->cgroup, frozen, err);
    return err_set(err, ERR_UNSUPPORTED, "wall.pause.unsupported", "pausing needs a cgroup v2");
}

int
native_pause(struct sandbox *base, struct err *err)
{
    return freeze(base, true, err);
}

int
native_resume(struct sandbox *base, struct err *err)
{
    return freeze(base, false, err);
}
