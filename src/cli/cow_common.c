/* cli/cow_common.c: see cow_common.h */
#include "cli/cow_common.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "engine/led.h"
#include "policy/judge.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/words.h"
#include "workspace/apply.h"
#include "workspace/quote.h"
#include "workspace/tree.h"

static const struct {
    unsigned flag;
    const char *word;       /* in JSON */
    const char *text;
} reasons[] = {
    { CHANGE_SPECIAL, "special-file", "a FIFO, socket or device is never applied" },
    { CHANGE_TOO_DEEP, "too-deep", "its path is too long" },
    { CHANGE_UNREADABLE, "unreadable", "the project's side of it cannot be read" },
    { CHANGE_OTHER_FS, "other-file-system", "another file system is mounted there" },
    { CHANGE_GIT, "git-runs-it", "git would run what it says: apply --include-protected PATH takes it over" },
    { CHANGE_PROTECTED, "protected", "protected: apply --include-protected PATH takes it over" },
    { CHANGE_OUTSIDE, "outside-link",
      "the symlink may lead out of the project: apply --allow-outside-links takes it over" },
    { CHANGE_HOST, "conflict", "changed in the project since the run began" },
    { CHANGE_SETID, "set-id-dropped", "applied without its set-user-id, set-group-id or sticky bit" },
    { CHANGE_ATTRS_LOST, "attributes-dropped", "applied without its access control list or capabilities" },
    { CHANGE_TOOL, "tool-runs-it", "another program runs what it says, or obeys it, by itself: look at it" },
};

#define LED_PLACES_MAX 8192
#define SHOWN_MAX 100       /* bytes of a path that is too long */
#define N_REASONS ARRAY_LEN(reasons)

const char *
cow_reason(unsigned flag)
{
    for (size_t i = 0; i < N_REASONS; i++)
        if (reasons[i].flag == flag)
            return reasons[i].text;
    return "";
}

const char *
cow_first_reason(unsigned flags)
{
    for (size_t i = 0; i < N_REASONS; i++)
        if ((flags & reasons[i].flag) != 0)
            return reasons[i].text;
    return "what it lies in, or what lies in it, is not applied";
}

/* --- the state -------------------------------------------------------------------------------------------------- */

/* One more place in the project, relative to it. */
static int
add_place(struct cow_view *view, const char *below, struct err *err)
{
    char **bigger;

    if (view->n_led == LED_PLACES_MAX)
        return err_set(err, ERR_LIMIT, "workspace.led.too-many", "more than %d places", LED_PLACES_MAX);
    bigger = reallocarray(view->led, view->n_led + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    view->led = bigger;
    if ((view->led[view->n_led] = strdup(below)) == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    view->n_led++;
    return 0;
}

/* Called for what is run or obeyed because something outside, or protected, leads there (led.h). */
static int
add_led(void *ctx, const char *path, enum led_kind kind, struct err *err)
{
    struct cow_view *view = ctx;
    const char *below = kind == LED_TOP || kind == LED_EVERYWHERE ? NULL : expand_below(path, view->state.project);

    return below == NULL || below[0] == '\0' ? 0 : add_place(view, below, err);
}

/* A protected name that lies behind a link of the project's (`build -> gen`, and build/out) is protected where it
 * really would be, as the name guard has it. */
static int
add_behind_link(struct cow_view *view, const char *name, struct err *err)
{
    const char *slash = strrchr(name, '/');
    char parent[PATH_MAX], real[PATH_MAX], path[2 * PATH_MAX];
    int found;

    if (slash == NULL || (size_t)(slash - name) >= sizeof(parent))
        return 0;
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
    found = plan_real_below(view->project, view->state.project, parent, real, sizeof(real), err);
    if (found <= 0 || strcmp(real, parent) == 0)
        return found;
    snprintf(path, sizeof(path), "%s%s", real, slash);
    return add_place(view, path, err);
}

/* What cannot be looked at to its end is said, and does not keep the rest from being applied. */
static int
find_led(struct cow_view *view, struct err *err)
{
    const struct policy *p = &view->policy;
    struct err why = ERR_INIT;
    cleanup_led struct led *led = led_new(view->project, view->state.project, p, add_led, view, err);

    if (led == NULL)
        return -1;
    if (led_find(led, true, (unsigned)p->protect_depth.v - 1, &why) < 0)
        cli_warn("not all that git's configuration and links lead to in the project could be looked for: %s", why.msg);
    return 0;
}

/* The names of every policy, and after them those of the run's. They were written down with the copy (cow.h): the
 * settings file of the run may be another one by now, or none that this command is told of. */
static int
policy_fill(struct cow_view *view, const struct policy_host *caller, struct err *err)
{
    struct policy_host host = *caller;

    if (view->state.protect == NULL)
        cli_warn("an older cloche made this copy: what the settings of its run protect is not known");
    host.protect = (const char *const *)view->state.protect;
    for (size_t i = 0; host.protect != NULL && host.protect[i] != NULL; i++)
        view->protect.n_given++;
    return policy_init(&view->policy, MODE_STANDARD, VERB_RUN, &host, err);
}

/* Credential places are paths of the host: those inside the project, relative to it. So is what is left of the names
 * that the project's own path begins. */
static int
protect_fill(struct cow_view *view, const struct policy_host *host, struct err *err)
{
    struct policy *p = &view->policy;
    struct str project = str_of(view->state.project);
    const char *rest;

    if (policy_fill(view, host, err) < 0 || find_led(view, err) < 0)
        return -1;
    for (size_t i = 0; i < p->protect.n; i++)
        if (add_behind_link(view, p->protect.v[i].value, err) < 0)
            return -1;
    view->names = calloc(p->protect.n + 1, sizeof(*view->names));
    view->places = calloc(p->protect.n + p->credentials.n + view->n_led + 1, sizeof(*view->places));
    if (view->names == NULL || view->places == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    for (size_t i = 0; i < p->protect.n; i++) {
        view->names[view->protect.n_names++] = p->protect.v[i].value;
        if ((rest = policy_name_rest(project, p->protect.v[i].value)) != NULL)
            view->places[view->protect.n_places++] = rest;
    }
    for (size_t i = 0; i < p->credentials.n; i++) {
        struct str place = str_of(p->credentials.v[i].value);
        if (place.n > project.n + 1 && memcmp(place.p, project.p, project.n) == 0 && place.p[project.n] == '/')
            view->places[view->protect.n_places++] = place.p + project.n + 1;
    }
    for (size_t i = 0; i < view->n_led; i++)
        view->places[view->protect.n_places++] = view->led[i];
    view->protect.names = view->names;
    view->protect.places = view->places;
    return 0;
}

/* What the list of changes cannot show. */
static void
warn_of_marks(const struct marks *m)
{
    cleanup_buf struct buf name = BUF_INIT(65536);

    for (size_t i = 0; i < m->n_names; i++) {
        buf_reset(&name);
        quote_name(&name, "", str_of(m->names[i]));
        if (buf_put_u8(&name, 0) == 0)
            cli_warn("%s: carries an overlay's mark (user.overlay.*): a copy-on-write run does not see it as it is; "
                     "`setfattr -x` takes marks away", (const char *)name.p);
    }
    if (m->n > m->n_names)
        cli_warn("%zu more files of the project carry an overlay's mark", m->n - m->n_names);
    if (m->stopped)
        cli_warn("not all of the project was looked through for an overlay's marks: it is too deep or too large");
}

int
cow_view_open(struct cow_view *view, const char *which, struct err *err)
{
    char id[COW_ID_MAX + 1];
    struct policy_host host;

    if (cli_host(&host, err) < 0 || cow_find(which, host.cwd, id, err) < 0 ||
        cow_open(id, COW_LOCK_EXCLUSIVE, &view->state, err) < 0)
        return -1;
    view->project = cow_project_open(&view->state, err);
    if (view->project < 0 || protect_fill(view, &host, err) < 0)
        return -1;
    int undone = apply_recover(&view->state, view->project, err);
    if (undone < 0)
        return -1;
    if (undone > 0)
        cli_warn("an apply was interrupted; what it had done to the project is undone");
    view->in = (struct diff_input){ .project = view->project, .layers = view->state.dir_fd,
                                    .since = view->state.created,
                                    .protect = &view->protect };
    if (diff_scan(&view->in, &view->changes, err) < 0 || diff_renames(&view->in, &view->changes, err) < 0 ||
        marks_find(view->project, &view->marks, err) < 0)
        return -1;
    warn_of_marks(&view->marks);
    return 0;
}

void
cow_view_close(struct cow_view *view)
{
    marks_free(&view->marks);
    changes_free(&view->changes);
    free(view->names);
    free(view->places);
    for (size_t i = 0; i < view->n_led; i++)
        free(view->led[i]);
    free(view->led);
    policy_free(&view->policy);
    close_fd(&view->project);
    cow_close(&view->state);
}

/* --- text ------------------------------------------------------------------------------------------------------- */

char
cow_letter(const struct change *e)
{
    static const char letters[] = " AMDTM";

    return e->kind == CHANGE_ADDED && e->pair != CHANGE_NOT ? 'R' : letters[e->kind];
}

int
cow_quoted(const struct changes *c, size_t i, struct buf *out)
{
    cleanup_buf struct buf path = BUF_INIT(64UL * 1024 * 1024);

    buf_reset(out);
    if (change_path(c, i, &path) < 0)
        return buf_puts(out, "(a path too long to print)");
    /* what apply will not take for its length is shown by its beginning */
    size_t n = path.n > TREE_PATH_MAX ? SHOWN_MAX : path.n;
    quote_name(out, "", (struct str){ .p = (char *)path.p, .n = n });
    if (n < path.n)
        buf_puts(out, "...");
    else if (S_ISDIR(c->v[i].upper.mode != 0 ? c->v[i].upper.mode : c->v[i].lower.mode))
        buf_puts(out, "/");
    return buf_nul(out);
}

bool
cow_told_elsewhere(const struct change *e)
{
    return e->kind == CHANGE_DELETED && e->pair != CHANGE_NOT;
}

void
cow_print_change(const struct changes *c, size_t i)
{
    cleanup_buf struct buf name = BUF_INIT(65536);
    cleanup_buf struct buf from = BUF_INIT(65536);
    const struct change *e = &c->v[i];

    if (cow_told_elsewhere(e) || cow_quoted(c, i, &name) < 0)
        return;
    if (e->pair != CHANGE_NOT && cow_quoted(c, e->pair, &from) == 0)
        printf("%c\t%s -> %s\n", cow_letter(e), (const char *)from.p, (const char *)name.p);
    else
        printf("%c\t%s\n", cow_letter(e), (const char *)name.p);
}

/* --- JSON ------------------------------------------------------------------------------------------------------- */

static void
put_path(json_t *object, const char *key, const char *key_encoded, const struct changes *c, size_t i)
{
    cleanup_buf struct buf path = BUF_INIT(64UL * 1024 * 1024);
    cleanup_buf struct buf encoded = BUF_INIT(3 * TREE_PATH_MAX);

    if (change_path(c, i, &path) < 0)
        return;
    if (path.n > TREE_PATH_MAX) {
        path.n = TREE_PATH_MAX;
        path.p[path.n] = '\0';
    }
    json_t *plain = json_stringn((const char *)path.p, path.n);
    json_object_set_new(object, key, plain != NULL ? plain : cli_json_text((const char *)path.p));
    if (plain == NULL && quote_encode(&encoded, (struct str){ .p = (char *)path.p, .n = path.n }) == 0)
        json_object_set_new(object, key_encoded, json_stringn((const char *)encoded.p, encoded.n));
}

static void
put_side(json_t *object, const char *prefix, const struct change_side *side)
{
    char key[32], mode[8];

    if (side->mode == 0)
        return;
    snprintf(key, sizeof(key), "%smode", prefix);
    snprintf(mode, sizeof(mode), "%04o", (unsigned)side->mode & 07777);
    json_object_set_new(object, key, json_string(mode));
    snprintf(key, sizeof(key), "%stype", prefix);
    json_object_set_new(object, key, json_string(change_type_name(side->mode)));
    if (S_ISREG(side->mode)) {
        snprintf(key, sizeof(key), "%ssize", prefix);
        json_object_set_new(object, key, json_integer((json_int_t)side->size));
    }
    if (side->target != NULL) {
        snprintf(key, sizeof(key), "%starget", prefix);
        json_object_set_new(object, key, cli_json_text(side->target));
    }
}

json_t *
cow_json_change(const struct changes *c, size_t i)
{
    const struct change *e = &c->v[i];
    bool renamed = e->kind == CHANGE_ADDED && e->pair != CHANGE_NOT;
    json_t *out = json_object(), *notes = json_array();

    put_path(out, "path", "path_encoded", c, i);
    json_object_set_new(out, "change", json_string(renamed ? "renamed" : change_kind_name(e->kind)));
    if (renamed)
        put_path(out, "from", "from_encoded", c, e->pair);
    put_side(out, "", &e->upper);
    put_side(out, "old_", &e->lower);
    for (size_t k = 0; k < N_REASONS; k++)
        if ((e->flags & reasons[k].flag) != 0)
            json_array_append_new(notes, json_string(reasons[k].word));
    json_object_set_new(out, "notes", notes);
    return out;
}

void
cow_json_state(json_t *object, const struct cow_state *state)
{
    char created[40];
    struct tm tm;

    json_object_set_new(object, "id", json_string(state->id));
    json_object_set_new(object, "project", state->project != NULL ? cli_json_text(state->project) : json_null());
    if (gmtime_r(&state->created.tv_sec, &tm) == NULL ||
        strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        created[0] = '\0';
    json_object_set_new(object, "created", json_string(created));
}
