/* prove/prove_defaults.c: is what nobody set what docs/policy.md says of the mode? (see prove.h)
 *
 * Everything else is measured against the policy; a slip in a preset would be believed there. So the presets are said
 * here again, and what no file and no flag has set is held to them.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "prove/prove.h"

#define MIB ((uint64_t)1 << 20)

/* Was it the mode that said so? */
static bool
by_mode(const struct origin *from)
{
    return from->kind == ORIGIN_MODE || from->kind == ORIGIN_DEFAULT;
}

/* The name of the first one that is wider than its mode says; NULL: none. */
static const char *
wider(const struct policy *p)
{
    bool max = p->mode.v == MODE_MAX, light = p->mode.v == MODE_LIGHT;
    const struct { const char *name; const struct policy_bool *is; bool may; } switches[] = {
        { "allow-git-config", &p->allow_git_config, false }, { "all-unix-sockets", &p->all_unix_sockets, false },
        { "local binding", &p->allow_local_binding, false }, { "env: inherit", &p->env_inherit, false },
        { "nested user namespaces", &p->nested_userns, false }, { "ptrace", &p->ptrace, !max },
    };

    for (size_t i = 0; i < ARRAY_LEN(switches); i++)
        if (by_mode(&switches[i].is->from) && switches[i].is->v && !switches[i].may)
            return switches[i].name;
    if (by_mode(&p->view.from) && p->view.v != VIEW_PRIVATE && !light)
        return "view";
    if (by_mode(&p->network.from) && p->network.v != NETWORK_NONE)
        return "network";
    if (by_mode(&p->workspace.from) && p->workspace.kind != WORKSPACE_TMPFS)
        return "workspace";
    if (by_mode(&p->fallback.from) && p->fallback.v != FALLBACK_REFUSE)
        return "fallback";
    if (by_mode(&p->read_only_root.from) && max && !p->read_only_root.v)
        return "read-only-root";
    if (by_mode(&p->protect_depth.from) && p->protect_depth.v < 3)
        return "protect-depth";
    return by_mode(&p->user.from) && (p->user.uid == 0 || p->user.gid == 0) ? "user" : NULL;
}

/* The same of the limits of `cloche run`. 0: none is promised. */
static const char *
looser(const struct policy *p)
{
    bool max = p->mode.v == MODE_MAX;
    uint64_t half = p->memory_total > 0 ? p->memory_total / 2 : 512 * MIB;
    const struct { const char *name; const struct policy_u64 *is; uint64_t most; } rows[] = {
        { "limits.memory", &p->limits.memory, max ? 512 * MIB : half },
        { "limits.cpus", &p->limits.cpu_milli, max ? 500 : 0 },
        { "limits.pids", &p->limits.pids, max ? 64 : 4096 },
        { "limits.disk", &p->limits.disk, (max ? 256 : 1024) * MIB },
        { "limits.time", &p->limits.time_ms, max ? 30000 : 0 },
        { "limits.grace", &p->limits.grace_ms, 2000 },
        { "limits.output", &p->limits.output, max ? MIB : 0 },
        { "limits.open-files", &p->limits.nofile, max ? 256 : 65536 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].most > 0 && by_mode(&rows[i].is->from) && (rows[i].is->v == 0 || rows[i].is->v > rows[i].most))
            return rows[i].name;
    return NULL;
}

void
defaults_check(struct proof *p)
{
    const char *wide = wider(p->policy), *loose = looser(p->policy);

    proof_add(p, "policy.defaults", "files", "R40", "what nobody set is as narrow as the mode says", "before",
              wide == NULL ? CHECK_HELD : CHECK_SURPRISE, "%s", wide == NULL ? "all of it" : wide);
    proof_add(p, "policy.limits", "limits", "R65", "limits that nobody set are those of the mode", "before",
              loose == NULL ? CHECK_HELD : CHECK_SURPRISE, "%s", loose == NULL ? "all of them" : loose);
}
