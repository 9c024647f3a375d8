/* cli/doctor_json.c: the report for programs (see doctor.h, docs/doctor.md) */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/kernel.h"
#include "cli/doctor.h"
#include "program/choice_json.h"
#include "program/say.h"

/* A string that may hold anything: what is not UTF-8 becomes null rather than breaking the object. */
static json_t *
text(const char *s)
{
    json_t *out = s[0] != '\0' ? json_string(s) : NULL;

    return out != NULL ? out : json_null();
}

static json_t *
number_or_null(int64_t v)
{
    return v < 0 ? json_null() : json_integer(v);
}

static json_t *
hard_limit(int which)
{
    struct rlimit r;

    if (kernel_prlimit(which, NULL, &r) < 0 || r.rlim_max == RLIM_INFINITY)
        return json_null();
    return json_integer((json_int_t)r.rlim_max);
}

static json_t *
host_json(const struct host_facts *f)
{
    return json_pack("{s:o, s:o, s:i, s:o, s:o, s:b, s:b, s:o, s:o, s:s, s:o, s:{s:o, s:o, s:o, s:o}}", "kernel",
                     text(f->kernel), "machine", text(f->machine), "uid", (int)f->uid, "container", text(f->container),
                     "container_sign", text(f->container_sign), "outer_filter", f->seccomp_mode == 2, "proc_masked",
                     (int)f->proc_masked, "lsm", text(f->lsm), "apparmor", text(f->apparmor), "selinux",
                     f->selinux_enforcing < 0    ? "off"
                     : f->selinux_enforcing == 1 ? "enforcing"
                                                 : "permissive",
                     "yama_ptrace_scope", number_or_null(f->yama), "hard_limits", "nofile", hard_limit(RLIMIT_NOFILE),
                     "nproc", hard_limit(RLIMIT_NPROC), "memlock", hard_limit(RLIMIT_MEMLOCK), "fsize",
                     hard_limit(RLIMIT_FSIZE));
}

static json_t *
feature_json(const struct feature_info *info, const struct feature_state *s)
{
    static const char *const status[] = {
        [FEATURE_NO] = "no", [FEATURE_YES] = "yes", [FEATURE_PARTIAL] = "partial", [FEATURE_UNUSED] = "unused",
    };
    json_t *needed = json_array();

    if (info->light == NEED_MUST)
        json_array_append_new(needed, json_string("light"));
    if (info->standard == NEED_MUST)
        json_array_append_new(needed, json_string("standard"));
    if (info->max == NEED_MUST)
        json_array_append_new(needed, json_string("max"));
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "status", status[s->status], "title", info->title,
                     "group", info->group, "needed_by", needed, "detail", text(s->detail), "why", text(s->why_not),
                     "remedy", text(s->remedy), "errno", s->sys_errno);
}

static json_t *
features_json(const struct engine_report *r)
{
    json_t *out = json_object();

    for (size_t i = 0; i < r->n_features; i++)
        json_object_set_new(out, r->info[i].name, feature_json(&r->info[i], &r->features[i]));
    return out;
}

static json_t *
promises_json(const struct engine_report *r)
{
    static const char *const state[] = {
        [NOT_ENFORCED] = "not-enforced", [ENFORCED] = "enforced", [SUPERVISED] = "supervised",
    };
    json_t *out = json_object();

    for (int p = 0; p < PROMISE_N; p++)
        json_object_set_new(out, promise_name((enum promise)p),
                            json_pack("{s:s, s:s, s:o, s:o, s:o}", "state", state[r->promises[p].state], "title",
                                      promise_describe((enum promise)p), "how", text(r->promises[p].how), "why",
                                      text(r->promises[p].why_not), "remedy", text(r->promises[p].remedy)));
    return out;
}

static json_t *
programs_json(const struct doctor *d)
{
    json_t *out = json_object();
    char want[32];

    for (size_t i = 0; i < d->n_programs; i++) {
        const struct doctor_program *p = &d->programs[i];
        const struct language *l = p->language;

        snprintf(want, sizeof(want), "%u.%u", l->major, l->minor);
        json_object_set_new(out, l->name, json_pack("{s:s, s:s, s:o, s:o, s:b}", "program", l->program, "wanted",
                                                    i < LANGUAGES ? want : "any", "path", text(p->path), "found",
                                                    text(p->version), "ok", (int)p->enough));
    }
    return out;
}

static json_t *
helpers_json(const struct doctor *d)
{
    json_t *out = json_object();

    for (size_t i = 0; i < DOCTOR_HELPERS; i++)
        json_object_set_new(out, d->helpers[i].name, json_pack("{s:o, s:s, s:o}", "path", text(d->helpers[i].path),
                                                               "needed_by", d->helpers[i].needed_by, "lacks",
                                                               text(d->helpers[i].lacks)));
    return out;
}

static json_t *
holes_json(const struct doctor_engine *e)
{
    json_t *out = json_array();

    for (size_t i = 0; i < e->n_holes; i++)
        json_array_append_new(out, json_pack("{s:s, s:s, s:s, s:s}", "name", e->holes[i].name, "fixed_in",
                                             e->holes[i].fixed, "what", e->holes[i].what, "reached",
                                             e->holes[i].reach));
    return out;
}

static json_t *
engines_json(const struct doctor *d)
{
    json_t *out = json_array();

    for (size_t i = 0; i < d->n_engines; i++) {
        const struct doctor_engine *e = &d->engines[i];
        const struct engine_report *r = &e->report;
        bool lacks = e->missing < r->n_features;

        json_array_append_new(
            out, json_pack("{s:s, s:o, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "engine", r->engine, "runtime",
                           text(e->runtime != NULL ? e->runtime : ""), "boundary",
                           policy_boundary_name(r->boundary), "path", text(r->program), "version",
                           text(e->version), "usable", (int)r->usable, "missing",
                           text(lacks ? r->info[e->missing].name : ""), "why",
                           text(lacks ? r->features[e->missing].why_not : ""), "remedy",
                           text(lacks ? r->features[e->missing].remedy : ""), "promises", promises_json(r),
                           "known_holes", holes_json(e)));
    }
    return out;
}

static json_t *
boundaries_json(const struct doctor *d)
{
    json_t *out = json_object();

    for (unsigned i = 0; i < DOCTOR_BOUNDARIES; i++) {
        json_t *choice = json_object();
        choice_json(&d->boundaries[i], true, choice);
        json_object_set_new(out, policy_boundary_name((enum policy_boundary)i), choice);
    }
    return out;
}

static json_t *
modes_json(const struct doctor *d)
{
    json_t *out = json_object();

    for (size_t i = 0; i < DOCTOR_MODES; i++)
        json_object_set_new(
            out, policy_mode_name(d->modes[i].mode),
            json_pack("{s:b, s:o}", "usable", (int)d->modes[i].usable, "missing",
                      d->modes[i].usable ? json_null() : json_string(d->engine.info[d->modes[i].missing].name)));
    return out;
}

int
doctor_print_json(const struct doctor *d)
{
    json_t *missing = json_array(), *toolchains = json_array(), *out;

    for (size_t i = 0; i < d->toolchains.n; i++)
        json_array_append_new(toolchains, json_string(d->toolchains.names[i]));
    for (size_t i = 0; doctor_not_here[i] != NULL; i++)
        json_array_append_new(missing, json_string(doctor_not_here[i]));
    out = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1, "cloche",
                    CLOCHE_VERSION, "engine", d->engine.engine, "host", host_json(&d->host), "modes", modes_json(d),
                    "features", features_json(&d->engine), "promises", promises_json(&d->engine), "programs",
                    programs_json(d), "own_programs", helpers_json(d), "engines", engines_json(d), "boundaries",
                    boundaries_json(d), "toolchains", toolchains, "not_in_this_release", missing);
    if (out != NULL && d->runtimes.code[0] != '\0')
        json_object_set_new(out, "runtimes_error", json_pack("{s:s, s:s}", "code", d->runtimes.code, "message",
                                                             d->runtimes.msg));
    return cli_json(out, JSON_INDENT(2)) == 0 && fflush(stdout) == 0 ? 0 : -1;
}
