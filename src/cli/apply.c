/* cli/apply.c: cloche apply */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/cow_common.h"
#include "match/path.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/verb.h"
#include "run/session_audit.h"
#include "workspace/apply.h"
#include "workspace/quote.h"

struct apply_args {
    bool json, dry_run, keep, include_protected, allow_outside_links, force;
    const char *which;      /* NULL: the newest of the current directory */
    char **paths;           /* as written */
    size_t n_paths;
};

/* Whether the first operand says which state, and is no path of the project. */
static bool
names_a_state(const char *operand)
{
    char id[COW_ID_MAX + 1];
    struct policy_host host;

    return cli_host(&host, NULL) == 0 && cow_find(operand, host.cwd, id, NULL) == 0;
}

/* --- paths ------------------------------------------------------------------------------------------------------ */

/* @written below the project: taken relative to the current directory when that lies in the project, else to it. */
static int
project_path(const char *project, const char *written, char out[PATH_TEXT_MAX + 1], struct err *err)
{
    struct policy_host host;
    size_t n, root = strlen(project);

    if (cli_host(&host, err) < 0)
        return -1;
    const char *base = path_within(str_of(host.cwd), str_of(project)) ? host.cwd : project;
    enum path_fault fault = path_normalise(str_of(written), str_of(base), false, out, PATH_TEXT_MAX + 1, &n);
    if (fault != PATH_OK)
        return err_set(err, ERR_USAGE, "workspace.apply.path", "%s: %s", written, path_fault_text(fault));
    if (!path_within((struct str){ .p = out, .n = n }, str_of(project))) {
        err_set(err, ERR_USAGE, "workspace.apply.path", "%s is not below the project %s", written, project);
        return err_hint(err,
                        "paths are relative to the current directory when it lies in the project, else to the project");
    }
    size_t skip = n > root ? root + 1 : root;
    if (project[1] == '\0')
        skip = 1;
    memmove(out, out + skip, n - skip + 1);
    return 0;
}

static int
resolve_paths(const struct apply_args *a, const char *project, char **out, struct err *err)
{
    char path[PATH_TEXT_MAX + 1];

    for (size_t i = 0; i < a->n_paths; i++) {
        if (project_path(project, a->paths[i], path, err) < 0)
            return -1;
        out[i] = strdup(path);
        if (out[i] == NULL)
            return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    }
    return 0;
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static json_t *
rows_of(const struct changes *c, const struct apply_plan *plan, enum fate fate)
{
    json_t *out = json_array();

    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        if (plan->fate[i] == fate)
            json_array_append_new(out, cow_json_change(c, i));
    return out;
}

static void
tell(const struct changes *c, const struct apply_plan *plan, enum fate fate, const char *what)
{
    cleanup_buf struct buf name = BUF_INIT(65536);

    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        if (plan->fate[i] == fate && cow_quoted(c, i, &name) == 0)
            fprintf(stderr, "cloche: %s: %s: %s\n", what, (const char *)name.p, cow_first_reason(c->v[i].flags));
}

static void
tell_notes(const struct changes *c, const struct apply_plan *plan)
{
    static const unsigned noted[] = { CHANGE_SETID, CHANGE_ATTRS_LOST, CHANGE_TOOL };
    cleanup_buf struct buf name = BUF_INIT(65536);

    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        for (size_t k = 0; k < ARRAY_LEN(noted); k++)
            if (plan->fate[i] == FATE_APPLIED && (c->v[i].flags & noted[k]) != 0 && cow_quoted(c, i, &name) == 0)
                fprintf(stderr, "cloche: note: %s: %s\n", (const char *)name.p, cow_reason(noted[k]));
}

static int
report(const struct apply_args *a, const struct cow_view *view, const struct apply_plan *plan, bool removed, int code,
       struct err *err)
{
    const struct changes *c = &view->changes;

    if (a->json) {
        json_t *out = json_pack("{s:i}", "version", 1);
        cow_json_state(out, &view->state);
        json_object_set_new(out, "dry_run", json_boolean(a->dry_run));
        json_object_set_new(out, "applied", plan->n_conflicts > 0 ? json_array() : rows_of(c, plan, FATE_APPLIED));
        json_object_set_new(out, "withheld", rows_of(c, plan, FATE_WITHHELD));
        json_object_set_new(out, "conflicts", rows_of(c, plan, FATE_CONFLICT));
        json_object_set_new(out, "discarded", json_boolean(removed));
        json_object_set_new(out, "exit_code", json_integer(code));
        return cli_json_print(out, err);
    }
    tell(c, plan, FATE_WITHHELD, "not applied");
    tell(c, plan, FATE_CONFLICT, "conflict");
    if (plan->n_conflicts > 0) {
        fprintf(stderr,
                "cloche: nothing was applied: %zu conflicts (--force takes the sandbox's version; PATH... applies only "
                        "some)\n", plan->n_conflicts);
        return 0;
    }
    tell_notes(c, plan);
    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        if (plan->fate[i] == FATE_APPLIED)
            cow_print_change(c, i);
    if (cli_flush(err) < 0)
        return -1;
    fprintf(stderr, "cloche: %s %zu changes%s\n", a->dry_run ? "would apply" : "applied", plan->n_applied,
            removed ? "; nothing is left to apply, the state is discarded" : "");
    return 0;
}

/* --- apply ------------------------------------------------------------------------------------------------------ */

/* Whether every change is in the project now. */
static bool
all_applied(const struct changes *c, const struct apply_plan *plan)
{
    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        if (plan->fate[i] != FATE_APPLIED)
            return false;
    return true;
}

static void
note(const struct cow_state *state, const struct apply_plan *plan)
{
    struct audit_entry e;

    audit_capability(&e, NULL, "workspace_apply", "changes of a sandbox were taken over into a project");
    audit_put_cstr(&e, "changes", state->id);
    audit_put_cstr(&e, "project", state->project);
    audit_put_number(&e, "applied", (int64_t)plan->n_applied);
    audit_put_number(&e, "withheld", (int64_t)plan->n_withheld);
    audit_put_number(&e, "by_uid", getuid());
    audit_note(&e);
}

static int
apply_chosen(const struct apply_args *a, struct cow_view *view, const struct apply_options *options, struct err *err)
{
    struct apply_plan plan;
    struct cow_state gone = COW_STATE_INIT;

    if (apply_decide(&view->changes, options, &plan, err) < 0)
        return -1;
    int code = plan.n_conflicts > 0 ? COW_CONFLICT : plan.n_withheld > 0 ? COW_WITHHELD : COW_DONE;
    bool act = !a->dry_run && plan.n_conflicts == 0, removed = false;
    int r = act && plan.n_applied > 0 ? apply_commit(&view->state, &view->in, &view->changes, &plan, err) : 0;
    if (r == 0 && act && plan.n_applied > 0)
        note(&view->state, &plan);
    if (r == 0 && act && !a->keep && all_applied(&view->changes, &plan)) {
        /* the report still needs the id and the project's name */
        gone = view->state;
        gone.project = gone.path = NULL;
        gone.protect = NULL;
        view->state.dir_fd = view->state.state_fd = view->state.lock_fd = -1;
        r = cow_discard(&gone, err);
        removed = r == 0;
        cow_close(&gone);
    }
    if (r == 0)
        r = report(a, view, &plan, removed, code, err);
    apply_plan_free(&plan);
    return r < 0 ? -1 : code;
}

static int
apply_those(const struct apply_args *a, struct err *err)
{
    struct cow_view view = COW_VIEW_INIT;
    char **paths = calloc(a->n_paths + 1, sizeof(*paths));
    int r = paths == NULL ? err_set(err, ERR_SYSTEM, "workspace.memory", "no memory")
                          : cow_view_open(&view, a->which, err);

    if (r == 0)
        r = resolve_paths(a, view.state.project, paths, err);
    if (r == 0) {
        const struct apply_options options = {
            .paths = (const char *const *)paths, .n_paths = a->n_paths,
            .include_protected = a->include_protected,
            .allow_outside_links = a->allow_outside_links, .force = a->force,
        };
        r = apply_chosen(a, &view, &options, err);
    }
    for (size_t i = 0; paths != NULL && i < a->n_paths; i++)
        free(paths[i]);
    free(paths);
    cow_view_close(&view);
    return r;
}

static int
apply(void *options, const struct verb_words *w, struct err *err)
{
    struct apply_args *a = options;
    bool selected = w->n_before > 0 && names_a_state(w->v[0]);

    a->which = selected ? w->v[0] : NULL;
    a->paths = w->v + selected;
    a->n_paths = w->n - selected;
    return apply_those(a, err);
}

int
cmd_apply(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[flags] [ID|DIR] [--] [PATH...]", 0, VERB_ANY, .run = apply } };
    static const struct verb_flag flags[] = {
        { "--dry-run", 0, NULL, "only show what would be done", FLAG_ON(struct apply_args, dry_run) },
        { "--json", 0, NULL, "one JSON object", FLAG_ON(struct apply_args, json) },
        { "--keep", 0, NULL, "keep the state even if everything was applied", FLAG_ON(struct apply_args, keep) },
        { "--force", 0, NULL, "if the project changed too, use the sandbox's version",
          FLAG_ON(struct apply_args, force) },
        { "--include-protected", 0, NULL, "also the protected files among PATH...",
          FLAG_ON(struct apply_args, include_protected) },
        { "--allow-outside-links", 0, NULL, "also symlinks that may lead out of the project",
          FLAG_ON(struct apply_args, allow_outside_links) },
    };
    static const struct verb verb = {
        .name = "apply", VERB_FORMS(forms), VERB_FLAGS(flags),
        .about = "Apply what a copy-on-write run changed: all of it, or what lies at PATH...\n"
                 "All chosen changes are applied, or none.\n"
                 "exit: 0 done; 1 conflicts, nothing applied; 2 done, but some changes were withheld; 125 failed",
    };
    struct apply_args a = { false };

    return verb_main(&verb, &a, argc, argv);
}
