/* engine/engine.c: from what cloche asks to the engine that does it (see engine.h, ops.h) */
#include "engine/engine.h"

#include <string.h>
#include <unistd.h>

#include "engine/ops.h"
#include "policy/place.h"
#include "wire/msg.h"

#define ENGINES_MAX 16
#define WATCHDOG_SAMPLE_MS 50
#define START_S 30              /* of which a guest that is a process of the host's needs milliseconds */

static const struct { const char *name, *description; } promises[PROMISE_N] = {
    [PROMISE_OWN_ROOT] = { "own-root", "own root file system" },
    [PROMISE_OWN_NETWORK] = { "own-network", "own network, closed" },
    [PROMISE_OWN_PIDS] = { "own-pids", "own process numbers" },
    [PROMISE_UID_MAPPING] = { "uid-mapping", "a user without privilege on the host" },
    [PROMISE_NO_CAPABILITIES] = { "no-capabilities", "no capabilities" },
    [PROMISE_SYSCALL_FILTER] = { "syscall-filter", "system call allow-list" },
    [PROMISE_LANDLOCK] = { "landlock", "Landlock rules" },
    [PROMISE_MEMORY_LIMIT] = { "memory-limit", "memory limit" },
    [PROMISE_CPU_LIMIT] = { "cpu-limit", "CPU limit" },
    [PROMISE_PIDS_LIMIT] = { "pids-limit", "process count limit" },
    [PROMISE_DISK_QUOTA] = { "disk-quota", "disk limit (one sized tmpfs)" },
    [PROMISE_READONLY_ROOT] = { "read-only-root", "read-only root (mode max)" },
    [PROMISE_NAME_GUARD] = { "name-guard", "absent protected names cannot be created" },
    [PROMISE_KERNEL_BOUNDARY] = { "kernel-boundary", "own kernel" },
};

const char *
promise_name(enum promise p)
{
    return p < PROMISE_N ? promises[p].name : "?";
}

const char *
promise_describe(enum promise p)
{
    return p < PROMISE_N ? promises[p].description : "?";
}

const struct engine_place engine_places[ENGINE_PLACES] = {
    { "workspace", PLACE_WORKSPACE }, { "home", "/home/agent" }, { "tmp", "/tmp" },
};

/* --- which engine ------------------------------------------------------------------------------------------------- */

const char *const *
engine_names(void)
{
    static const char *names[ENGINES_MAX + 1];

    for (size_t i = 0; i < ENGINES_MAX && engine_registry[i] != NULL; i++)
        names[i] = engine_registry[i]->name;
    return names;
}

/* The one of that name, or else the one that has @runtime (NULL: none is meant), or else the first. */
static const struct engine *
engine_named(const char *name, const char *runtime)
{
    const struct engine *by_runtime = NULL;

    for (size_t i = 0; engine_registry[i] != NULL; i++) {
        if (strcmp(engine_registry[i]->name, name) == 0)
            return engine_registry[i];
        if (by_runtime == NULL && runtime != NULL && engine_has_runtime(engine_registry[i], runtime))
            by_runtime = engine_registry[i];
    }
    return by_runtime != NULL ? by_runtime : engine_registry[0];
}

/* A policy names one of them, or "auto" (policy/set.c). Where none has the boundary that it asks for nothing is made:
 * then it is the one that it names. */
static const struct engine *
engine_of(const struct policy *p)
{
    struct engine_choice choice;
    const struct engine *e = NULL;

    if (p == NULL || p->engine.p == NULL)
        return engine_registry[0];
    if (p->boundary.v != BOUNDARY_PROCESS)
        e = engine_pick(p, &choice, NULL);
    return e != NULL ? e : engine_named(p->engine.p, p->runtime.p);
}

const char *
engine_name(const struct policy *p)
{
    return engine_of(p)->name;
}

/* --- what it can do ----------------------------------------------------------------------------------------------- */

enum need
feature_need(const struct feature_info *info, enum policy_mode mode)
{
    return mode == MODE_OFF ? NEED_NONE : mode == MODE_LIGHT ? info->light
           : mode == MODE_STANDARD ? info->standard : info->max;
}

bool
engine_allows(const struct engine_report *r, enum policy_mode mode, size_t *missing)
{
    *missing = 0;
    while (*missing < r->n_features && (feature_need(&r->info[*missing], mode) != NEED_MUST ||
                                        r->features[*missing].status == FEATURE_YES))
        ++*missing;
    return *missing == r->n_features;
}

static int
probe(const struct engine *e, const char *runtime, struct engine_report *out, struct err *err)
{
    size_t missing;

    memset(out, 0, sizeof(*out));
    if (e->probe(runtime, out, err) < 0)
        return -1;
    out->engine = e->name;
    out->boundary = engine_boundary(e, out->runtime != NULL ? out->runtime : runtime);
    out->usable = engine_allows(out, MODE_STANDARD, &missing);
    out->usable_light = engine_allows(out, MODE_LIGHT, &missing);
    return 0;
}

int
engine_probe(const struct policy *p, struct engine_report *out, struct err *err)
{
    bool named = p != NULL && p->runtime.p != NULL && strcmp(p->runtime.p, "auto") != 0;

    return probe(engine_of(p), named ? p->runtime.p : NULL, out, err);
}

int
engine_probe_named(const char *engine, const char *runtime, struct engine_report *out, struct err *err)
{
    return probe(engine_named(engine, NULL), runtime, out, err);
}

const char *const *
engine_runtimes(const char *engine)
{
    static const char *const none[] = { NULL };
    const struct engine *e = engine_named(engine, NULL);

    return e->runtimes != NULL ? e->runtimes : none;
}

size_t
engine_holes(const char *engine, const char *runtime, const char *version, struct engine_hole out[ENGINE_HOLES_MAX])
{
    const struct engine *e = engine_named(engine, NULL);

    return e->holes != NULL ? e->holes(runtime, version, out, ENGINE_HOLES_MAX) : 0;
}

enum lack
engine_lacks(const struct policy *p, enum policy_mode mode, const char *code, char text[256])
{
    const struct engine *e = engine_of(p);

    return e->lacks != NULL ? e->lacks(mode, code, text) : LACK_NONE;
}

int
engine_makers(const struct policy *p, struct engine_makers *out, struct err *err)
{
    const struct engine *e = engine_of(p);

    for (size_t i = 0; i < ENGINE_MAKERS; i++)
        out->programs[i][0] = '\0';
    out->daemon[0] = '\0';
    return e->makers != NULL ? e->makers(p, out, err) : 0;
}

int
engine_prepare(const struct policy *p)
{
    const struct engine *e = engine_of(p);

    return e->prepare != NULL ? e->prepare() : 0;
}

int
engine_image(void)
{
    const struct engine *e = engine_of(NULL);

    return e->image != NULL ? e->image(NULL) : -1;
}

void
engine_have_image(int fd)
{
    const struct engine *e = engine_of(NULL);

    if (e->have_image != NULL)
        e->have_image(fd);
    else
        close(fd);
}

bool
engine_left(void)
{
    bool left = false;

    for (size_t i = 0; engine_registry[i] != NULL; i++)
        left = left || (engine_registry[i]->left != NULL && engine_registry[i]->left());
    return left;
}

void
engine_sweep(void)
{
    for (size_t i = 0; engine_registry[i] != NULL; i++)
        if (engine_registry[i]->sweep != NULL)
            engine_registry[i]->sweep();
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

int
engine_rules_make(const struct policy *p, struct engine_rules **out, struct err *err)
{
    const struct engine *e = engine_of(p);

    *out = NULL;
    return e->rules != NULL ? e->rules(p, out, err) : 0;
}

const struct policy *
engine_rules_policy(const struct engine_rules *rules)
{
    return rules->policy;
}

bool
engine_rules_place(const struct engine_rules *rules, const char *path, struct place *out)
{
    return rules->place(rules, path, out);
}

void
engine_rules_free(struct engine_rules *rules)
{
    if (rules != NULL)
        rules->free(rules);
}

/* --- a sandbox ---------------------------------------------------------------------------------------------------- */

int
sandbox_create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct engine_choice choice;
    const struct engine *e = engine_pick(p, &choice, err);

    if (e == NULL || engine_suits(e, p, err) < 0 || e->create(p, id, out, err) < 0)
        return -1;
    (*out)->engine = e;
    (*out)->choice = choice;
    (*out)->facts.choice = &(*out)->choice;
    if ((*out)->facts.start_s == 0)
        (*out)->facts.start_s = START_S;
    if ((*out)->facts.boundary >= p->boundary.v)
        return 0;
    /* what was looked for and what was found are two moments */
    sandbox_abandon(*out);
    sandbox_destroy(*out);
    *out = NULL;
    err_set(err, ERR_SYSTEM, "engine.boundary", "the sandbox that was made has less than the boundary asked for");
    return err_hint(err, "a runtime was removed or replaced meanwhile: try again");
}

const struct sandbox_facts *
sandbox_facts(const struct sandbox *sb)
{
    return &sb->facts;
}

pid_t
sandbox_guest(const struct sandbox *sb)
{
    return sb->engine->guest != NULL ? sb->engine->guest(sb) : sb->facts.pid;
}

int
sandbox_connect(struct sandbox *sb, int *guest_fd, struct err *err)
{
    return sb->engine->connect(sb, guest_fd, err);
}

int
sandbox_setup(struct sandbox *sb, struct buf *guard, struct msg_setup *out, struct err *err)
{
    *out = (struct msg_setup){ .version = GUEST_PROTOCOL_VERSION, .sample_ms = WATCHDOG_SAMPLE_MS,
                               .root = sb->facts.root };
    if (sb->engine->setup(sb, guard, out, err) < 0)
        return -1;
    out->guard = guard->p;
    out->guard_n = (uint32_t)guard->n;
    return 0;
}

void
sandbox_usage(struct sandbox *sb, struct sandbox_usage *out)
{
    *out = (struct sandbox_usage){ .peak_memory = 0 };
    sb->engine->usage(sb, out);
}

void
sandbox_now(struct sandbox *sb, struct sandbox_now *out)
{
    *out = (struct sandbox_now){ .memory = 0 };
    if (sb->engine->now != NULL)
        sb->engine->now(sb, out);
}

bool
sandbox_over_memory(struct sandbox *sb)
{
    return sb->engine->over_memory != NULL && sb->engine->over_memory(sb);
}

bool
sandbox_alone(struct sandbox *sb)
{
    return sb->engine->alone != NULL && sb->engine->alone(sb);
}

static int
cannot(const struct sandbox *sb, const char *code, const char *what, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, code, "the engine %s cannot %s", sb->engine->name, what);
}

/* In those that the sandbox is held to from outside; the others are the supervisor's. */
static bool
limits_differ(const struct policy *a, const struct policy *b)
{
    return a->limits.memory.v != b->limits.memory.v || a->limits.cpu_milli.v != b->limits.cpu_milli.v ||
           a->limits.pids.v != b->limits.pids.v;
}

int
sandbox_limits(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err)
{
    if (!limits_differ(from, to))
        return 0;
    if (sb->engine->limits != NULL)
        return sb->engine->limits(sb, from, to, err);
    cannot(sb, "limits.no-cgroup", "change limits while a sandbox lives", err);
    return err_hint(err, "stop it, change its policy, and recover it: it is made again, empty");
}

int
sandbox_limits_back(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err)
{
    if (!limits_differ(from, to))
        return 0;
    return sb->engine->limits_back != NULL ? sb->engine->limits_back(sb, from, to, err) : 0;
}

int
sandbox_command_begin(struct sandbox *sb, const struct sandbox_command_limits *limits, struct sandbox_command **out,
                      int joins[SANDBOX_JOINS], size_t *n, struct err *err)
{
    return sb->engine->command_begin != NULL
               ? sb->engine->command_begin(sb, limits, out, joins, n, err)
               : cannot(sb, "limits.no-cgroup", "hold one command to limits of its own", err);
}

void
sandbox_command_sent(struct sandbox *sb, struct sandbox_command *c)
{
    sb->engine->command_sent(sb, c);
}

void
sandbox_command_look(struct sandbox *sb, struct sandbox_command *c, struct sandbox_command_end *out)
{
    sb->engine->command_look(sb, c, out);
}

void
sandbox_command_end(struct sandbox *sb, struct sandbox_command *c)
{
    sb->engine->command_end(sb, c);
}

int
sandbox_pause(struct sandbox *sb, struct err *err)
{
    return sb->engine->pause != NULL ? sb->engine->pause(sb, err)
                                     : cannot(sb, "wall.pause.unsupported", "pause", err);
}

int
sandbox_resume(struct sandbox *sb, struct err *err)
{
    return sb->engine->resume != NULL ? sb->engine->resume(sb, err)
                                      : cannot(sb, "wall.pause.unsupported", "pause", err);
}

void
sandbox_confined(struct sandbox *sb)
{
    if (sb->engine->confined != NULL)
        sb->engine->confined(sb);
}

void
sandbox_tend(struct sandbox *sb)
{
    if (sb->engine->tend != NULL)
        sb->engine->tend(sb);
}

int
sandbox_setup_failed(struct sandbox *sb, struct err *err)
{
    return sb->engine->setup_failed != NULL ? sb->engine->setup_failed(sb, err) : 0;
}

int
sandbox_gone(struct sandbox *sb, struct err *err)
{
    return sb->engine->gone(sb, err);
}

int
sandbox_lost(struct sandbox *sb, struct err *err)
{
    return sandbox_setup_failed(sb, err) < 0 ? -1 : sandbox_gone(sb, err);
}

void
sandbox_abandon(struct sandbox *sb)
{
    if (sb->engine->abandon != NULL)
        sb->engine->abandon(sb);
}

void
sandbox_end(struct sandbox *sb)
{
    if (sb->engine->end != NULL)
        sb->engine->end(sb);
}

void
sandbox_kill(struct sandbox *sb)
{
    sb->engine->kill(sb);
}

void
sandbox_destroy(struct sandbox *sb)
{
    sb->engine->destroy(sb);
}
