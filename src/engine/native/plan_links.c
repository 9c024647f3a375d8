/* engine/native/plan_links.c: see plan_links.h */
#include "engine/native/plan_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "match/path.h"

/* Said about one rule: refused, or left out. 0 when it was left out. */
static int
not_followed(struct native_plan *plan, const struct plan_named *n, const char *at, const char *reason, struct err *err)
{
    const char *shown = n->rule != NULL ? n->rule->written : n->name;

    if (n->rule != NULL && n->what == NULL && (plan->real.srt || n->from->kind == ORIGIN_BUILTIN)) {
        plan_warn(plan, "%s is not %s: the link %s leads to %s, %s", shown, n->write ? "writable" : "opened", at,
                  n->way.real, reason);
        return 0;
    }
    err_set(err, ERR_POLICY, "policy.link", "%s %s: the link %s on its way leads to %s, %s",
            n->what != NULL ? n->what : n->write ? "allow-write" : "allow-read", shown, at, n->way.real, reason);
    return err_hint(err, "name %s itself if it is meant; if not, remove the link", n->way.real);
}

/* A link may lead anywhere; what nobody would name is not shown because of one. */
static int
check_fit(const struct plan_named *n, struct err *err)
{
    bool workspace = n->what != NULL && strcmp(n->what, "workspace") == 0;
    const char *unfit = strcmp(n->name, n->way.real) == 0 ? NULL : policy_source_unfit(n->way.real, workspace);

    if (unfit == NULL)
        return 0;
    err_set(err, ERR_POLICY, workspace ? "policy.workspace.system" : "policy.bind.source", "%s leads to %s, %s",
            n->name, n->way.real, unfit);
    return err_hint(err, "name the folder itself if it is meant");
}

/* The first link that lies below the place that cloche's own default starts from, or NULL. */
static const char *
link_of_default(const struct native_plan *plan, const struct plan_named *n)
{
    char home[PATH_MAX];

    if (n->way.n_links == 0)
        return NULL;
    if (plan->real.home != NULL && plan_real_future(plan->real.home, home)) {
        for (size_t i = 0; i < n->way.n_links; i++)
            if (path_within(str_of(n->way.links[i].at), str_of(home)) ||
                path_within(str_of(n->way.links[i].at), STR_LIT("/tmp")))
                return n->way.links[i].at;
        return NULL;
    }
    return n->way.links[0].at;
}

/* A link in "/" or "/var" is the system's own (/var/run). */
static bool
systems_link(const struct plan_link *link)
{
    size_t n = (size_t)(strrchr(link->at, '/') - link->at);

    return link->owner == 0 && (n == 0 || (n == 4 && memcmp(link->at, "/var", 4) == 0));
}

/* The folder that somebody works in is what runs usually may write, whatever the rules of this one are: a link in it
 * that leads out may have been left by another. Not so a whole home. */
static const char *
link_out_of_project(const struct native_plan *plan, const struct plan_named *n)
{
    const struct policy *p = &plan->real;

    if (p->home != NULL && path_within(str_of(p->home), str_of(p->cwd)))
        return NULL;
    for (size_t i = 0; i < n->way.n_links; i++)
        if (path_within(str_of(n->way.links[i].at), str_of(p->cwd)) &&
            !path_within(str_of(n->way.real), str_of(p->cwd)))
            return n->way.links[i].at;
    return NULL;
}

static int
check_target(struct native_plan *plan, const struct plan_named *n, struct err *err)
{
    struct stat st;

    for (size_t i = 0; i < n->way.n_links; i++) {
        const struct plan_link *link = &n->way.links[i];
        const char *unfit = systems_link(link) ? NULL : policy_source_unfit(n->way.real, true);

        if (unfit != NULL)
            return not_followed(plan, n, link->at, unfit, err);
        if (geteuid() == 0 && link->owner != 0 && stat(n->way.real, &st) == 0 && st.st_uid == 0)
            return not_followed(plan, n, link->at, "which is root's, and the link is not", err);
    }
    return 1;
}

int
plan_links_note(struct native_plan *plan, const struct plan_named *named, struct err *err)
{
    struct plan_named *bigger;
    const char *link;
    int r;

    if (named->rule != NULL && named->from->kind == ORIGIN_BUILTIN &&
        (link = link_of_default(plan, named)) != NULL)
        return not_followed(plan, named, link, "and it is not a rule of yours", err);
    if (check_fit(named, err) < 0)
        return -1;
    if (named->write && (r = check_target(plan, named, err)) <= 0)
        return r;
    bigger = reallocarray(plan->named, plan->n_named + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    plan->named = bigger;
    plan->named[plan->n_named++] = *named;
    return 1;
}

/* The link on the way to @n that lies in what another rule lets be written, and leads out of that, or, of what is to be
 * written, out of the caller's folder; or NULL. */
static const char *
leaves(const struct native_plan *plan, const struct plan_named *n)
{
    for (size_t i = 0; i < n->way.n_links; i++) {
        for (size_t k = 0; k < plan->n_named; k++) {
            const struct plan_named *other = &plan->named[k];
            if (other == n || !other->write || strcmp(n->way.links[i].at, other->way.real) == 0 ||
                !path_within(str_of(n->way.links[i].at), str_of(other->way.real)))
                continue;
            if (!path_within(str_of(n->way.real), str_of(other->way.real)))
                return n->way.links[i].at;
        }
    }
    return n->write ? link_out_of_project(plan, n) : NULL;
}

/* Whether what @n leads to is opened, to be written where that is asked, by a rule with no such link on its way. */
static bool
opened_anyway(const struct native_plan *plan, const struct plan_named *n)
{
    for (size_t k = 0; k < plan->n_named; k++) {
        const struct plan_named *other = &plan->named[k];
        if (other != n && (other->write || !n->write) && path_within(str_of(n->way.real), str_of(other->way.real)) &&
            leaves(plan, other) == NULL)
            return true;
    }
    return false;
}

static void
take_out(struct policy_list *list, const struct plan_named *n)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].written, n->rule->written) != 0 || strcmp(list->v[i].value, n->way.real) != 0)
            list->v[kept++] = list->v[i];
    list->n = kept;
}

int
plan_links_check(struct native_plan *plan, struct policy *real, struct err *err)
{
    for (size_t i = 0; i < plan->n_named; i++) {
        const struct plan_named *n = &plan->named[i];
        const char *link = leaves(plan, n);

        if (link == NULL || opened_anyway(plan, n))
            continue;
        if (not_followed(plan, n, link, "and lies where sandboxes may write: it may have been planted", err) < 0)
            return -1;
        if (n->what == NULL)
            take_out(n->write ? &real->allow_write : &real->allow_read, n);
    }
    return 0;
}
