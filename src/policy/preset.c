/* policy/preset.c: what a mode means before anybody says more
 *
 * A preset never touches a value that a file or a flag has set. Changing the mode is therefore the same operation as
 * choosing it, and the order in which a settings file's `mode:` and `--mode` are read does not matter.
 */
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"

#define ARENA_FIRST (24 * 1024)     /* a preset with its lists fits */
#define MEMORY_WHEN_UNKNOWN ((uint64_t)512 << 20)

/* Which column of the table's defaults. */
static enum profile
profile_of(enum policy_mode mode, enum policy_verb verb)
{
    if (mode == MODE_MAX)
        return FOR_MAX;
    if (mode == MODE_OFF)
        return verb == VERB_CODE ? FOR_OFF_CODE : FOR_OFF;
    return verb == VERB_SRT ? FOR_SRT : verb == VERB_CODE ? FOR_CODE : FOR_TOOL;
}

static void
put_defaults(struct policy *p, enum policy_mode mode, const struct origin *from)
{
    enum profile profile = profile_of(mode, p->verb);
    uint64_t half = p->memory_total > 0 ? p->memory_total / 2 : MEMORY_WHEN_UNKNOWN;

    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++)
        if (!origin_explicit(policy_spec_origin(p, s)))
            (void)spec_put(p, s, s->preset[profile] == HALF_OF_RAM ? half : s->preset[profile], from);
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

int
preset_apply(struct policy *p, enum policy_mode mode, const struct origin *mode_from, struct err *err)
{
    const struct origin from = { .kind = ORIGIN_MODE, .name = policy_mode_name(mode) };
    const struct origin said = *mode_from;      /* may be the field's own */
    bool own_root = (mode == MODE_STANDARD || mode == MODE_MAX) && !p->srt;

    put_defaults(p, mode, &from);
    p->mode.v = mode;
    p->mode.from = said;
    if (!origin_explicit(&p->view.from))
        p->view.v = own_root ? VIEW_PRIVATE : VIEW_HOST;
    /* somebody's code finds what languages have of their own (R64) */
    if (!origin_explicit(&p->contents.from) && p->verb == VERB_CODE && own_root)
        p->contents.v = CONTENTS_MINIMAL;
    if (!origin_explicit(&p->env_inherit.from))
        p->env_inherit.v = mode == MODE_OFF || p->srt;
    if (!origin_explicit(&p->workspace.from)) {
        p->workspace.kind = WORKSPACE_TMPFS;
        p->workspace.dir = NULL;
        p->workspace.from = from;
    }
    if (!origin_explicit(&p->user.from)) {
        p->user.uid = p->user.gid = 1000;
        p->user.from = from;
    }
    if (put_string(p, &p->engine, "auto", &from, err) < 0 || put_string(p, &p->runtime, "auto", &from, err) < 0 ||
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

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
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
    p->engines = host->engines;
    if (path_normalise(str_of(host->cwd), STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK)
        return err_set(err, ERR_SYSTEM, "policy.cwd", "the current directory is not known");
    p->cwd = arena_copy(p->arena, (struct str){ normal, n });
    if (p->cwd == NULL)
        return policy_no_memory(err);
    /* one that cannot be named cannot be used by the vault either */
    if (host->store != NULL && path_normalise(str_of(host->store), STR_LIT(""), false, normal, sizeof(normal), &n) ==
                                   PATH_OK && (p->store = arena_copy(p->arena, (struct str){ normal, n })) == NULL)
        return policy_no_memory(err);
    if (host->state != NULL && path_normalise(str_of(host->state), STR_LIT(""), false, normal, sizeof(normal), &n) ==
            PATH_OK && (p->images = arena_join(p->arena, (struct str){ normal, n }, STR_LIT("/images"))) == NULL)
        return policy_no_memory(err);
    if (host->kept_home != NULL && (p->kept_home = arena_copy(p->arena, str_of(host->kept_home))) == NULL)
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
        r = builtin_protect_more(p, host->protect, err);
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
