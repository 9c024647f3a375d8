/* engine/choose.c: which engine makes a sandbox, and why not another one (see engine.h, ops.h)
 *
 * The registry, each row with each runtime that it has, is gone through in its order. What the policy names is never
 * replaced; where it names nothing and asks for no boundary the first row is taken, whatever it lacks: to take another
 * one then would be to fall back. Only to have a boundary is the host looked at, and the first is taken that has it.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "engine/ops.h"

_Static_assert(ENGINE_ROWS_MAX >= 8, "the engines' rows");

/* What an agent may have: what is in @named, and what the settings take. */
struct permitted {
    const struct policy_list *named;    /* "crun", or "crun@ID" for one agent alone */
    const char *agent;
    const struct engine_row *usual;     /* NULL: they take none here */
};

/* --- what an engine is for ---------------------------------------------------------------------------------------- */

bool
engine_has_runtime(const struct engine *e, const char *name)
{
    for (size_t i = 0; e->runtimes != NULL && e->runtimes[i] != NULL; i++)
        if (strcmp(e->runtimes[i], name) == 0)
            return true;
    return false;
}

static bool
is_named(const struct policy_string *s)
{
    return s->p != NULL && strcmp(s->p, "auto") != 0;
}

static int
check_runtime(const struct engine *e, const struct policy *p, struct err *err)
{
    if (!is_named(&p->runtime) || engine_has_runtime(e, p->runtime.p))
        return 0;
    err_set(err, ERR_POLICY, "policy.runtime.engine", "the engine %s does not run %s", e->name, p->runtime.p);
    return err_hint(err, "leave --engine out: the runtime says which it is");
}

static int
check_containers(const struct engine *e, const struct policy *p, struct err *err)
{
    if (p->container_prefix.p == NULL || e->containers)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "engine.container-prefix", "the engine %s has no containers to name", e->name);
    return err_hint(err, "leave container-prefix out, or use --engine docker");
}

/* Where the boundary is not the kernel that it would be root of. */
static int
check_user(const struct engine *e, const struct policy *p, struct err *err)
{
    if (p->user.uid != 0 || p->mode.v == MODE_OFF || p->mode.v == MODE_LIGHT || e->root_inside)
        return 0;
    err_set(err, ERR_POLICY, "policy.user.root", "nothing runs as root inside with the engine %s", e->name);
    return err_hint(err, "leave user out (1000:1000), name an ordinary user and group, or take an engine whose sandbox "
                         "is a machine of its own");
}

/* Who may ask a Docker Engine is root of what it runs on, so that has to be a machine. */
static int
check_private_docker(const struct engine *e, const struct policy *p, struct err *err)
{
    if (!p->private_docker.v || (e->docker_inside && p->user.uid == 0))
        return 0;
    if (e->docker_inside) {
        err_set(err, ERR_POLICY, "policy.private-docker.user", "who may use a Docker Engine is root: user %u cannot",
                p->user.uid);
        return err_hint(err, "leave --user out, or say --user 0");
    }
    err_set(err, ERR_POLICY, "policy.private-docker.engine", "the engine %s has no machine to run a Docker Engine in",
            e->name);
    return err_hint(err, "use --engine microvm, with an image that has dockerd (docs/engines.md)");
}

static int
check_image(const struct engine *e, const struct policy *p, struct err *err)
{
    if (p->image.p == NULL || e->images)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "engine.image", "the engine %s runs no images", e->name);
    return err_hint(err, "leave image out: the sandbox then has the host's own system");
}

int
engine_suits(const struct engine *e, const struct policy *p, struct err *err)
{
    return check_runtime(e, p, err) < 0 || check_private_docker(e, p, err) < 0 || check_user(e, p, err) < 0 ||
           check_image(e, p, err) < 0 ? -1 : check_containers(e, p, err);
}

enum policy_boundary
engine_boundary(const struct engine *e, const char *runtime)
{
    return e->boundary != NULL ? e->boundary(runtime) : BOUNDARY_PROCESS;
}

/* --- the rows ----------------------------------------------------------------------------------------------------- */

const char *
engine_row_name(const struct engine_row *row, char out[64])
{
    snprintf(out, 64, "%s%s%s", row->engine, row->runtime != NULL ? " " : "", row->runtime != NULL ? row->runtime : "");
    return out;
}

static bool
names(const struct policy_string *s, const char *name)
{
    return !is_named(s) || (name != NULL && strcmp(s->p, name) == 0);
}

static bool
may_be_had(const struct permitted *only, const struct engine_row *row)
{
    const struct engine_row *usual = only->usual;

    for (size_t i = 0; i < only->named->n; i++) {
        const char *what = only->named->v[i].value;
        struct str name = { what, strcspn(what, "@") };

        if ((str_eq_c(name, row->engine) || (row->runtime != NULL && str_eq_c(name, row->runtime))) &&
            (what[name.n] == '\0' || strcmp(what + name.n + 1, only->agent) == 0))
            return true;
    }
    return usual != NULL && usual->engine == row->engine && usual->runtime == row->runtime;
}

struct search {
    const struct policy *p;
    const struct permitted *only;       /* NULL: everything may be had */
    const struct engine *engine[ENGINE_ROWS_MAX];       /* of each row */
    bool meant[ENGINE_ROWS_MAX];
    size_t n_meant;
    bool near, barred;                  /* one lacks nothing but the boundary; one has it, and may not be asked for */
    bool first_only;                    /* that, or none */
    struct err no;                      /* of the first that was looked at and cannot */
    struct engine_choice *out;
};

/* Whether the policy means the row; if not, its reason is set. */
static bool
is_meant(struct search *s, struct engine_row *row)
{
    const struct policy *p = s->p;

    if (!names(&p->engine, row->engine)) {
        snprintf(row->why, sizeof(row->why), "the engine %.64s is named", p->engine.p);
        return false;
    }
    if (!names(&p->runtime, row->runtime)) {
        snprintf(row->why, sizeof(row->why), "the runtime %.64s is named", p->runtime.p);
        return false;
    }
    if (row->boundary < p->boundary.v) {
        s->near = true;
        snprintf(row->why, sizeof(row->why), "its boundary is %s, and %s is asked for",
                 policy_boundary_name(row->boundary), policy_boundary_name(p->boundary.v));
        return false;
    }
    if (s->only != NULL && !may_be_had(s->only, row)) {
        s->barred = true;
        snprintf(row->why, sizeof(row->why), "agents may not ask for it");
        return false;
    }
    return true;
}

static void
add_row(struct search *s, const struct engine *e, const char *runtime)
{
    struct engine_choice *out = s->out;
    struct engine_row *row = &out->v[out->n];

    if (out->n == ENGINE_ROWS_MAX)
        return;
    *row = (struct engine_row){ .engine = e->name, .runtime = runtime, .boundary = engine_boundary(e, runtime) };
    s->engine[out->n] = e;
    s->meant[out->n] = is_meant(s, row);
    s->n_meant += s->meant[out->n];
    out->n++;
}

static void
collect(struct search *s)
{
    s->out->n = 0;
    for (size_t i = 0; engine_registry[i] != NULL; i++) {
        const struct engine *e = engine_registry[i];

        if (e->runtimes == NULL)
            add_row(s, e, NULL);
        for (size_t k = 0; e->runtimes != NULL && e->runtimes[k] != NULL; k++)
            add_row(s, e, e->runtimes[k]);
    }
    s->out->taken = s->out->n;
}

static bool
can(struct search *s, size_t i)
{
    struct engine_row *row = &s->out->v[i];
    const struct engine *e = s->engine[i];
    struct err why = ERR_INIT;

    if (engine_suits(e, s->p, &why) == 0 && (e->can == NULL || e->can(s->p, row->runtime, &why) == 0))
        return true;
    snprintf(row->why, sizeof(row->why), "%.200s [%.40s]", why.msg, why.code);
    if (s->no.kind == ERR_NONE)
        s->no = why;
    return false;
}

/* @look: at the host, for each that is meant until one can. */
static void
take(struct search *s, bool look, const char *why)
{
    struct engine_choice *out = s->out;
    size_t first = out->n;
    char name[64];

    for (size_t i = 0; i < out->n; i++) {
        struct engine_row *row = &out->v[i];
        bool later = out->taken < out->n || (s->first_only && first < out->n);

        if (!s->meant[i])
            continue;
        if (later) {
            snprintf(row->why, sizeof(row->why), "%s comes first",
                     engine_row_name(&out->v[out->taken < out->n ? out->taken : first], name));
        } else if (!look || can(s, i)) {
            out->taken = i;
            snprintf(row->why, sizeof(row->why), "taken: %s", why);
        }
        first = first < out->n ? first : i;
    }
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

/* "oci runsc, microvm" */
static void
put_stronger(const struct search *s, char *out, size_t cap)
{
    size_t used = 0;
    char name[64];

    out[0] = '\0';
    for (size_t i = 0; i < s->out->n && used < cap; i++)
        if (s->out->v[i].boundary >= s->p->boundary.v)
            used += (size_t)snprintf(out + used, cap - used, "%s%s", used > 0 ? ", " : "",
                                     engine_row_name(&s->out->v[i], name));
}

/* What it names has less than the boundary that it asks for. */
static int
refuse_weaker(const struct search *s, struct err *err)
{
    const struct policy *p = s->p;
    bool runtime = is_named(&p->runtime);
    char stronger[128];

    put_stronger(s, stronger, sizeof(stronger));
    err_set(err, ERR_POLICY, "engine.boundary", "the %s %s has not the boundary %s", runtime ? "runtime" : "engine",
            runtime ? p->runtime.p : p->engine.p, policy_boundary_name(p->boundary.v));
    return err_hint(err, "leave engine and runtime out, name one that has it (%s), or ask for a weaker boundary",
                    stronger[0] != '\0' ? stronger : "there is none");
}

/* None of those that have it can be used here. */
static int
refuse_absent(const struct search *s, struct err *err)
{
    char text[640] = "", name[64];
    size_t used = 0;

    for (size_t i = 0; i < s->out->n && used < sizeof(text); i++)
        if (s->meant[i])
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s: %s", used > 0 ? "; " : "",
                                     engine_row_name(&s->out->v[i], name), s->out->v[i].why);
    err_set(err, ERR_UNSUPPORTED, "engine.boundary", "no engine with the boundary %s can make this sandbox here: %s",
            policy_boundary_name(s->p->boundary.v), text);
    return err_hint(err, "%s; `cloche why --engines --boundary %s` has the reasons", s->no.hint,
                    policy_boundary_name(s->p->boundary.v));
}

/* An engine and a runtime are named that do not go together. */
static int
check_names(const struct search *s, struct err *err)
{
    for (size_t i = 0; is_named(&s->p->engine) && engine_registry[i] != NULL; i++)
        if (strcmp(engine_registry[i]->name, s->p->engine.p) == 0)
            return check_runtime(engine_registry[i], s->p, err);
    return 0;
}

static int
refuse(const struct search *s, struct err *err)
{
    bool named = is_named(&s->p->engine) || is_named(&s->p->runtime);

    if (s->n_meant > 0 && !named && s->p->boundary.v > BOUNDARY_PROCESS)
        return refuse_absent(s, err);
    if (s->n_meant > 0 && err != NULL)
        *err = s->no;
    if (s->n_meant > 0)
        return -1;
    if (s->near)
        return refuse_weaker(s, err);
    if (check_names(s, err) == 0)
        err_set(err, ERR_POLICY, "policy.engine.unknown", "there is no engine %s, with a runtime %s", s->p->engine.p,
                s->p->runtime.p);
    return -1;
}

/* The row that is taken, or NULL. @thorough: what is named is looked at too. */
static const struct engine *
search(struct search *s, bool thorough)
{
    bool named = is_named(&s->p->engine) || is_named(&s->p->runtime), above = s->p->boundary.v > BOUNDARY_PROCESS;
    const char *why = named ? "it is named" : above ? "the first here that has the boundary asked for"
                                                    : "it comes first";

    collect(s);
    s->first_only = !named && !above && s->only == NULL;
    take(s, thorough || (!named && above) || (named && s->n_meant > 1), why);
    if (named && !thorough && s->out->taken == s->out->n)       /* its create() says what it lacks */
        take(s, false, why);
    return s->out->taken < s->out->n ? s->engine[s->out->taken] : NULL;
}

const struct engine *
engine_pick(const struct policy *p, struct engine_choice *out, struct err *err)
{
    struct search s = { .p = p, .no = ERR_INIT, .out = out };
    const struct engine *e = search(&s, false);

    if (e == NULL)
        refuse(&s, err);
    return e;
}

int
engine_choose(const struct policy *p, struct engine_choice *out, struct err *err)
{
    struct search s = { .p = p, .no = ERR_INIT, .out = out };

    return search(&s, true) != NULL ? 0 : refuse(&s, err);
}

void
engine_choice_text(const struct engine_choice *choice, char *out, size_t cap)
{
    size_t used = 0;
    char name[64];

    out[0] = '\0';
    for (size_t i = 0; i < choice->n && used < cap; i++)
        used += (size_t)snprintf(out + used, cap - used, "%s%s (%s): %s", i > 0 ? "; " : "",
                                 engine_row_name(&choice->v[i], name), policy_boundary_name(choice->v[i].boundary),
                                 choice->v[i].why);
}

/* --- agents ------------------------------------------------------------------------------------------------------- */

static int
more(const char *key, struct err *err)
{
    err_set(err, ERR_DENIED, "policy.ceiling", "%s is more than the settings of cloche serve give to agents", key);
    return err_hint(err, "leave it out; or the operator adds the engine to agent-engines in --settings, or makes this "
                    "sandbox");
}

/* The first of the three that the agent said otherwise; NULL: none. */
static const char *
said_otherwise(const struct policy *ceiling, const struct policy *asked)
{
    return strcmp(ceiling->engine.p, asked->engine.p) != 0 ? "engine"
           : strcmp(ceiling->runtime.p, asked->runtime.p) != 0 ? "runtime"
           : ceiling->boundary.v != asked->boundary.v ? "boundary" : NULL;
}

int
engine_within(const struct policy *ceiling, struct policy *asked, const char *agent, struct err *err)
{
    const char *otherwise = said_otherwise(ceiling, asked);
    struct engine_choice usual, mine;
    struct permitted only = { .named = &ceiling->agent_engines, .agent = agent };
    struct search s = { .p = asked, .only = &only, .no = ERR_INIT, .out = &mine };

    if (otherwise == NULL)
        return 0;
    if (asked->boundary.v < ceiling->boundary.v)
        return more("boundary", err);
    if (ceiling->agent_engines.n == 0 && strcmp(otherwise, "boundary") != 0)
        return more(otherwise, err);
    if (engine_pick(ceiling, &usual, NULL) != NULL)
        only.usual = &usual.v[usual.taken];
    if (search(&s, true) != NULL)
        return policy_choose(asked, mine.v[mine.taken].engine, mine.v[mine.taken].runtime, err);
    /* where none is kept from it there is none, or it cannot be had here */
    return s.n_meant == 0 && s.barred ? more(otherwise, err) : refuse(&s, err);
}

int
engine_stays(const struct policy *made, struct policy *asked, struct err *err)
{
    if (!names(&asked->engine, made->engine.p) || !names(&asked->runtime, made->runtime.p))
        return 0;
    return policy_choose(asked, made->engine.p, made->runtime.p, err);
}
