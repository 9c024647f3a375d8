/* cli/doctor_text.c: the report for people (see doctor.h) */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/kernel.h"
#include "cli/doctor.h"
#include "program/helper.h"
#include "program/say.h"

struct look {
    bool utf8, colour;
};

enum mark { MARK_YES, MARK_PARTIAL, MARK_NO, MARK_NONE };

static void
put_mark(const struct look *look, enum mark m)
{
    static const char *const utf8[] = { "✓", "~", "✗", "-" };
    static const char *const ascii[] = { "+", "~", "x", "-" };
    static const char *const colour[] = { "\033[32m", "\033[33m", "\033[31m", "\033[2m" };

    printf("  %s%s%s ", look->colour ? colour[m] : "", look->utf8 ? utf8[m] : ascii[m], look->colour ? "\033[0m" : "");
}

static void
heading(const struct look *look, const char *text)
{
    printf("\n%s%s%s\n", look->colour ? "\033[1m" : "", text, look->colour ? "\033[0m" : "");
}

/* A feature that the host lacks but no mode must have is a "~": something works less well, nothing is refused. */
static enum mark
mark_of(const struct feature_info *info, const struct feature_state *s)
{
    switch (s->status) {
    case FEATURE_YES: return MARK_YES;
    case FEATURE_PARTIAL: return MARK_PARTIAL;
    case FEATURE_UNUSED: return MARK_NONE;
    default:
        return info->light == NEED_MUST || info->standard == NEED_MUST || info->max == NEED_MUST ? MARK_NO
                                                                                                 : MARK_PARTIAL;
    }
}

/* A group that has no words here is said by its name. */
static const char *
group_title(const char *group)
{
    static const struct { const char *group, *title; } groups[] = {
        { "namespaces", "Namespaces" },
        { "root", "A root of its own (inside the user namespace)" },
        { "access", "Access control" },
        { "calls", "System calls that the construction uses" },
        { "limits", "Limits" },
    };

    for (size_t g = 0; g < ARRAY_LEN(groups); g++)
        if (strcmp(groups[g].group, group) == 0)
            return groups[g].title;
    return group;
}

static void
print_features(const struct look *look, const struct doctor *d)
{
    const char *group = "";

    for (size_t i = 0; i < d->engine.n_features; i++) {
        const struct feature_info *info = &d->engine.info[i];
        const struct feature_state *s = &d->engine.features[i];

        if (strcmp(info->group, group) != 0)
            heading(look, group_title(info->group));
        group = info->group;
        put_mark(look, mark_of(info, s));
        printf("%-36s %s\n", info->title, s->detail);
        if (s->why_not[0] != '\0')
            printf("      why: %s\n", s->why_not);
        if (s->remedy[0] != '\0')
            printf("      fix: %s\n", s->remedy);
    }
}

static void
print_limit(const char *name, int which)
{
    struct rlimit r;

    if (kernel_prlimit(which, NULL, &r) < 0)
        return;
    if (r.rlim_max == RLIM_INFINITY)
        printf("  %s unlimited", name);
    else
        printf("  %s %llu", name, (unsigned long long)r.rlim_max);
}

static void
print_host(const struct look *look, const struct doctor *d)
{
    const struct host_facts *f = &d->host;

    printf("cloche %s on Linux %s, %s, as %s\n", CLOCHE_VERSION, f->kernel, f->machine,
           f->uid == 0 ? "root" : "an ordinary user");
    heading(look, "Host");
    if (f->container[0] != '\0')
        printf("  inside a container: %s (%s)\n", f->container, f->container_sign);
    else
        printf("  no sign of an outer container\n");
    if (f->seccomp_mode == 2)
        printf("  an outer system call filter is on this process\n");
    if (f->proc_masked)
        printf("  /proc is partly covered: %s\n", f->proc_mask_example);
    printf("  security modules: %s\n", f->lsm[0] != '\0' ? f->lsm : "unknown (/sys/kernel/security is not readable)");
    printf("  AppArmor: %s; SELinux: %s; Yama: ", f->apparmor[0] != '\0' ? f->apparmor : "off",
           f->selinux_enforcing < 0 ? "off" : f->selinux_enforcing == 1 ? "enforcing" : "permissive");
    if (f->yama < 0)
        printf("off\n");
    else
        printf("ptrace_scope=%lld\n", (long long)f->yama);
    printf("  hard limits:");
    print_limit("open files", RLIMIT_NOFILE);
    print_limit(" processes", RLIMIT_NPROC);
    print_limit(" locked memory", RLIMIT_MEMLOCK);
    print_limit(" file size", RLIMIT_FSIZE);
    printf("\n");
}

static void
print_programs(const struct look *look, const struct doctor *d)
{
    heading(look, "Languages of `cloche code`");
    for (size_t i = 0; i < d->n_programs; i++) {
        const struct doctor_program *p = &d->programs[i];
        const struct language *l = p->language;

        put_mark(look, p->enough ? MARK_YES : MARK_PARTIAL);
        if (i >= LANGUAGES)
            printf("%-10s %s (runtimes.d)\n", l->name, p->path[0] != '\0' ? p->path : "not found on this host");
        else if (p->path[0] == '\0')
            printf("%-10s not found in /usr or /bin; install %s %u.%u or newer\n", l->name, l->program, l->major,
                   l->minor);
        else
            printf("%-10s %s %s%s\n", l->name, p->path,
                   p->version[0] != '\0' ? p->version : "does not say its version",
                   p->enough ? "" : " (older than what is promised)");
    }
    if (d->runtimes.code[0] != '\0') {
        put_mark(look, MARK_NO);
        printf("%s [%s]\n", d->runtimes.msg, d->runtimes.code);
    }
}

/* What the engine that `auto` takes promises here, and @r does not; and what @r alone promises. */
static void
print_promises(const struct engine_report *first, const struct engine_report *r)
{
    const char *apart = "      unlike the first: ";

    for (int i = 0; i < PROMISE_N; i++) {
        enum enforcement mine = r->promises[i].state, others = first->promises[i].state;

        if (mine == others)
            continue;
        printf("%s%s%s", apart, mine == NOT_ENFORCED ? "no " : "", promise_name((enum promise)i));
        if (mine == SUPERVISED)
            printf(" only supervised");
        if (i == PROMISE_KERNEL_BOUNDARY && mine != NOT_ENFORCED)
            printf(" (%s)", r->promises[i].how);
        apart = ", ";
    }
    if (apart[0] == ',')
        printf("\n");
}

static void
print_holes(const struct doctor_engine *e)
{
    char log[128];

    for (size_t i = 0; i < e->n_holes; i++)
        printf("      %s, fixed in %s: %s\n        reached: %s\n", e->holes[i].name, e->holes[i].fixed,
               e->holes[i].what, e->holes[i].reach);
    if (e->n_holes == 0)
        return;
    snprintf(log, sizeof(log), "/usr/share/doc/%s/changelog.Debian.gz", e->runtime);
    printf("      fix: a newer release. A distribution may have mended this one and kept its number");
    if (access(log, R_OK) == 0)
        printf(": zgrep CVE %s", log);
    printf("\n");
}

static void
print_engines(const struct look *look, const struct doctor *d)
{
    heading(look, "Engines (--engine, --runtime)");
    for (size_t i = 0; i < d->n_engines; i++) {
        const struct doctor_engine *e = &d->engines[i];
        const struct engine_report *r = &e->report;

        put_mark(look, !r->usable ? MARK_NONE : e->n_holes > 0 ? MARK_PARTIAL : MARK_YES);
        printf("%-7s %-6s %-7s %s %s\n", r->engine, e->runtime != NULL ? e->runtime : "",
               policy_boundary_name(r->boundary), r->program, e->version);
        if (e->missing < r->n_features)
            printf("      why: %s\n      fix: %s\n", r->features[e->missing].why_not, r->features[e->missing].remedy);
        if (e->runtime == NULL || r->runtime != NULL)
            print_promises(&d->engine, r);
        print_holes(e);
    }
}

static void
print_boundaries(const struct look *look, const struct doctor *d)
{
    char name[64];

    heading(look, "Boundaries (--boundary)");
    for (unsigned i = 0; i < DOCTOR_BOUNDARIES; i++) {
        const struct engine_choice *c = &d->boundaries[i];
        bool is = c->taken < c->n;

        put_mark(look, is ? MARK_YES : MARK_NONE);
        printf("%-7s %s\n", policy_boundary_name((enum policy_boundary)i),
               is ? engine_row_name(&c->v[c->taken], name) : "no engine here");
        for (size_t k = 0; k < c->n && !is; k++)
            if (c->v[k].boundary >= (enum policy_boundary)i)
                printf("      %s: %s\n", engine_row_name(&c->v[k], name), c->v[k].why);
    }
}

static void
print_toolchains(const struct look *look, const struct doctor *d)
{
    heading(look, "Toolchains of your home (cloche run --toolchains)");
    for (size_t i = 0; i < d->toolchains.n; i++) {
        put_mark(look, MARK_YES);
        printf("%s\n", d->toolchains.names[i]);
    }
    if (d->toolchains.n == 0)
        printf("  none\n");
}

static void
print_helpers(const struct look *look, const struct doctor *d)
{
    heading(look, "Programs of cloche");
    for (size_t i = 0; i < DOCTOR_HELPERS; i++) {
        const struct doctor_helper *h = &d->helpers[i];

        put_mark(look, h->path[0] != '\0' && h->lacks[0] == '\0' ? MARK_YES : MARK_PARTIAL);
        if (h->lacks[0] != '\0')
            printf("%-14s %s cannot start: it lacks %s; needed by: %s\n"
                   "      fix: install the package that has it (" HELPER_PACKAGES ")\n", h->name, h->path, h->lacks,
                   h->needed_by);
        else if (h->path[0] != '\0')
            printf("%-14s %s\n", h->name, h->path);
        else
            printf("%-14s not found beside cloche, nor in ../libexec/cloche; needed by: %s\n"
                   "      fix: install cloche whole\n", h->name, h->needed_by);
    }
}

static void
print_verdict(const struct look *look, const struct doctor *d)
{
    heading(look, "Verdict");
    for (size_t i = 0; i < DOCTOR_MODES; i++) {
        put_mark(look, d->modes[i].usable ? MARK_YES : MARK_NO);
        printf("%s mode: %s", policy_mode_name(d->modes[i].mode), d->modes[i].usable ? "yes" : "no");
        if (!d->modes[i].usable)
            printf(", for want of: %s", d->engine.info[d->modes[i].missing].title);
        printf("\n");
    }
    heading(look, "Not in this release");
    for (size_t i = 0; doctor_not_here[i] != NULL; i++)
        printf("  %s\n", doctor_not_here[i]);
}

int
doctor_print_text(const struct doctor *d)
{
    struct look look = { .utf8 = cli_utf8(), .colour = cli_colour(STDOUT_FILENO) };

    print_host(&look, d);
    print_features(&look, d);
    print_engines(&look, d);
    print_boundaries(&look, d);
    print_programs(&look, d);
    print_toolchains(&look, d);
    print_helpers(&look, d);
    print_verdict(&look, d);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : -1;
}
