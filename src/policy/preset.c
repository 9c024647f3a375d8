/* policy/preset.c: what a mode means before anybody says more
 *
 * A preset never touches a value that a file or a flag has set. Changing the mode is therefore the same operation as
 * choosing it, and the order in which a settings file's `mode:` and `--mode` are read does not matter.
 */
#include <string.h>

#include "match/path.h"
#include "policy/internal.h"

#define MIB ((uint64_t)1 << 20)
#define ARENA_FIRST (24 * 1024)     /* a preset with its lists fits */
#define MEMORY_WHEN_UNKNOWN (512 * MIB)

struct preset_limits {
    uint64_t memory, cpu_milli, pids, disk, time_ms, grace_ms, output, nofile;
};

#define HALF_OF_RAM UINT64_MAX

/* The source's own limits for running somebody's code (R65), and those of an interactive tool on a developer's
 * machine, where a build may take an hour and print a gigabyte. docs/policy.md prints this table. */
static const struct preset_limits limits_code = { 512 * MIB, 500, 256, 1024 * MIB, 30000, 2000, MIB, 1024 };
static const struct preset_limits limits_tool = { HALF_OF_RAM, 0, 4096, 1024 * MIB, 0, 2000, 0, 65536 };
static const struct preset_limits limits_max = { 512 * MIB, 500, 64, 256 * MIB, 30000, 2000, MIB, 256 };
/* Without a wall only the caller's own means are left: a clock, and not reading further. */
static const struct preset_limits limits_off_code = { 0, 0, 0, 0, 30000, 2000, MIB, 0 };
static const struct preset_limits limits_none = { 0, 0, 0, 0, 0, 2000, 0, 0 };

static const struct preset_limits *
limits_for(enum policy_mode mode, enum policy_verb verb)
{
    if (mode == MODE_MAX)
        return &limits_max;
    if (mode == MODE_OFF)
        return verb == VERB_CODE ? &limits_off_code : &limits_none;
    if (verb == VERB_SRT)
        return &limits_none;        /* SRT limits nothing, and its settings cannot ask for it */
    return verb == VERB_CODE ? &limits_code : &limits_tool;
}

static void
put_u64(struct policy_u64 *field, uint64_t v, const struct origin *from)
{
    if (!origin_explicit(&field->from))
        *field = (struct policy_u64){ .v = v, .from = *from };
}

static void
put_bool(struct policy_bool *field, bool v, const struct origin *from)
{
    if (!origin_explicit(&field->from))
        *field = (struct policy_bool){ .v = v, .from = *from };
}

static int
put_string(struct policy *p, struct policy_string *field, const char *v, const struct origin *from, struct err *err)
{
    if (origin_explicit(&field->from))
        return 0;
    field->from = *from;
    field->p = NULL;
    if (v == NULL)
        return 0;
    field->p = arena_copy(p->arena, str_of(v));
    return field->p != NULL ? 0 : policy_no_memory(err);
}

static void
put_limits(struct policy *p, enum policy_mode mode, const struct origin *from)
{
    const struct preset_limits *l = limits_for(mode, p->verb);
    uint64_t half = p->memory_total > 0 ? p->memory_total / 2 : MEMORY_WHEN_UNKNOWN;

    put_u64(&p->limits.memory, l->memory == HALF_OF_RAM ? half : l->memory, from);
    put_u64(&p->limits.cpu_milli, l->cpu_milli, from);
    put_u64(&p->limits.pids, l->pids, from);
    put_u64(&p->limits.disk, l->disk, from);
    put_u64(&p->limits.time_ms, l->time_ms, from);
    put_u64(&p->limits.grace_ms, l->grace_ms, from);
    put_u64(&p->limits.output, l->output, from);
    put_u64(&p->limits.nofile, l->nofile, from);
}

int
preset_apply(struct policy *p, enum policy_mode mode, const struct origin *mode_from, struct err *err)
{
    const struct origin from = { .kind = ORIGIN_MODE, .name = policy_mode_name(mode) };
    bool own_root = (mode == MODE_STANDARD || mode == MODE_MAX) && !p->srt;

    p->mode.v = mode;
    p->mode.from = *mode_from;
    put_limits(p, mode, &from);
    if (!origin_explicit(&p->view.from)) {
        p->view.v = own_root ? VIEW_PRIVATE : VIEW_HOST;
        p->view.from = from;
    }
    if (!origin_explicit(&p->fallback.from)) {
        p->fallback.v = FALLBACK_REFUSE;
        p->fallback.from = from;
    }
    if (!origin_explicit(&p->audit.from)) {
        p->audit.v = RECORD_TRY;
        p->audit.from = from;
    }
    if (!origin_explicit(&p->network.from)) {
        p->network.v = mode == MODE_OFF ? NETWORK_HOST : NETWORK_NONE;
        p->network.from = from;
    }
    if (!origin_explicit(&p->workspace.from)) {
        p->workspace.kind = WORKSPACE_TMPFS;
        p->workspace.dir = NULL;
        p->workspace.from = from;
    }
    if (!origin_explicit(&p->user.from)) {
        p->user.uid = p->user.gid = 1000;
        p->user.from = from;
    }
    if (!origin_explicit(&p->ask_ms.from))
        p->ask_ms = (struct policy_u64){ .v = POLICY_ASK_MS, .from = from };
    put_bool(&p->ask, false, &from);
    put_bool(&p->read_only_root, mode == MODE_MAX, &from);
    put_bool(&p->allow_git_config, false, &from);
    put_bool(&p->deny_hard_links, false, &from);
    put_bool(&p->all_unix_sockets, mode == MODE_OFF, &from);
    put_bool(&p->allow_local_binding, mode == MODE_OFF, &from);
    put_bool(&p->env_inherit, mode == MODE_OFF || p->srt, &from);
    put_bool(&p->nested_userns, false, &from);
    put_bool(&p->ptrace, mode != MODE_MAX, &from);
    put_u64(&p->protect_depth, 3, &from);
    if (put_string(p, &p->engine, "auto", &from, err) < 0 ||
        put_string(p, &p->fallback_url, NULL, &from, err) < 0 ||
        put_string(p, &p->hostname, own_root ? "cloche" : NULL, &from, err) < 0 ||
        put_string(p, &p->workdir, own_root ? "/workspace" : p->cwd, &from, err) < 0)
        return -1;
    return 0;
}

/* SRT makes these writable in every configuration; stdio devices are in every /dev of ours. */
static int
srt_writable(struct policy *p, struct err *err)
{
    static const char *const places[] = { "/tmp/claude", "~/.npm/_logs", "~/.claude/debug" };
    static const struct where w = { .from = { .kind = ORIGIN_BUILTIN, .name = "SRT writable places" } };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (places[i][0] == '~' && p->home == NULL)
            continue;
        if (list_add(p, &p->allow_write, ENTRY_LITERAL, str_of(places[i]), &w, err) < 0)
            return -1;
    }
    p->allow_write.set = false;
    return 0;
}

int
preset_srt(struct policy *p, struct err *err)
{
    if (p->srt)
        return 0;
    p->srt = true;
    p->env_deny.n = 0;      /* SRT hands the caller's environment on as it is */
    if (builtin_protect(p, true, err) < 0 || srt_writable(p, err) < 0)
        return -1;
    return preset_apply(p, p->mode.v, &p->mode.from, err);
}

static int
keep_facts(struct policy *p, const struct policy_host *host, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1];
    size_t n;

    p->memory_total = host->memory_total;
    p->home_of_owner = host->home_of_owner;
    if (path_normalise(str_of(host->cwd), STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK)
        return err_set(err, ERR_SYSTEM, "policy.cwd", "the current directory is not known");
    p->cwd = arena_copy(p->arena, (struct str){ normal, n });
    if (p->cwd == NULL)
        return policy_no_memory(err);
    /* one that cannot be named cannot be used by the vault either */
    if (host->store != NULL && path_normalise(str_of(host->store), STR_LIT(""), false, normal, sizeof(normal), &n) ==
                                   PATH_OK && (p->store = arena_copy(p->arena, (struct str){ normal, n })) == NULL)
        return policy_no_memory(err);
    if (host->home == NULL)
        return 0;
    if (path_normalise(str_of(host->home), STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK) {
        err_set(err, ERR_USAGE, "policy.home", "HOME is not an absolute path: \"%s\"", host->home);
        return err_hint(err, "set HOME to the home directory, or unset it");
    }
    p->home = arena_copy(p->arena, (struct str){ normal, n });
    return p->home != NULL ? 0 : policy_no_memory(err);
}

int
policy_init(struct policy *p, enum policy_mode mode, enum policy_verb verb, const struct policy_host *host,
            struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_DEFAULT, .name = "default" };
    int r;

    memset(p, 0, sizeof(*p));
    p->verb = verb;
    p->arena = arena_new(ARENA_FIRST);
    if (p->arena == NULL)
        return policy_no_memory(err);
    r = keep_facts(p, host, err);
    if (r == 0)
        r = builtin_credentials(p, host, err);
    if (r == 0 && verb != VERB_SRT)
        r = builtin_protect(p, false, err);
    if (r == 0)
        r = builtin_env_deny(p, err);
    if (r == 0)
        r = preset_apply(p, mode, &from, err);
    if (r == 0 && verb == VERB_SRT)
        r = preset_srt(p, err);
    if (r < 0)
        policy_free(p);
    return r;
}

void
policy_free(struct policy *p)
{
    arena_free(p->arena);
    memset(p, 0, sizeof(*p));
}
