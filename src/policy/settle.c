/* policy/settle.c: what the values mean together
 *
 * Rules may be written with the host's names or the sandbox's, and may repeat what a mode does anyway. Here they are
 * brought to one form, so that the engine meets no second meaning:
 *
 *   - paths of rules are host paths: below a workspace or bind, the sandbox's names are translated;
 *   - under a private root, allow-write within what is shown read-only becomes a writable bind at that place; within
 *     the sandbox's own folders it holds already and goes; anywhere else it stays, and shows that host path at its
 *     own place, as allow-read does;
 *   - in the host view, what is bound read-only below something writable becomes a deny-write rule.
 */
#include <string.h>

#include "base/array.h"
#include "policy/internal.h"
#include "policy/place.h"

/* A variable that was set to a value is wanted, whatever the list of names to drop says. */
static void
settle_env(struct policy *p)
{
    for (size_t i = 0; i < p->n_env; i++) {
        size_t kept = 0;
        if (p->env[i].value == NULL)
            continue;
        for (size_t j = 0; j < p->env_deny.n; j++)
            if (strcmp(p->env_deny.v[j].value, p->env[i].name) != 0)
                p->env_deny.v[kept++] = p->env_deny.v[j];
        p->env_deny.n = kept;
    }
}

static void
settle_git_config(struct policy *p)
{
    size_t kept = 0;

    if (!p->allow_git_config.v)
        return;
    for (size_t i = 0; i < p->protect.n; i++) {
        const struct policy_entry *entry = &p->protect.v[i];
        if (entry->from.kind != ORIGIN_BUILTIN || (strcmp(entry->value, ".git/config") != 0 &&
                                                   strcmp(entry->value, ".git/config.worktree") != 0))
            p->protect.v[kept++] = *entry;
    }
    p->protect.n = kept;
}

/* A workspace that keeps its path has no other: where /workspace is written, it is meant. What is in its own path is no
 * part of a pattern. */
static int
kept_name(struct policy *p, char *path, bool pattern, const struct origin *from, char **out, struct err *err)
{
    const struct where w = { .from = *from };
    char *rest;

    *out = path;
    if (p->workspace.at == NULL || !path_within(str_of(path), STR_LIT(PLACE_WORKSPACE)))
        return 0;
    rest = arena_join(p->arena, STR_LIT("."), str_of(path + strlen(PLACE_WORKSPACE)));
    return rest != NULL ? resolve_path(p, str_of(rest), str_of(p->workspace.at), pattern, &w, out, err)
                        : policy_no_memory(err);
}

static int
kept_names(struct policy *p, struct policy_list *list, bool deny, struct err *err)
{
    for (size_t i = 0, n = list->n; p->workspace.at != NULL && i < n; i++) {
        const struct policy_entry entry = list->v[i];
        if (entry.written[0] != '/' || !path_within(str_of(entry.value), STR_LIT(PLACE_WORKSPACE)))
            continue;
        if (kept_name(p, entry.value, !entry.literal, &entry.from, &list->v[i].value, err) < 0 ||
            (deny && list_push(p, list, entry, err) < 0))
            return -1;
    }
    return 0;
}

/* Every rule's name for it. */
static int
settle_kept(struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->n_binds; i++)
        if (kept_name(p, p->binds[i].dest, false, &p->binds[i].from, &p->binds[i].dest, err) < 0)
            return -1;
    return kept_names(p, &p->deny_read, true, err) < 0 || kept_names(p, &p->deny_write, true, err) < 0 ||
                   kept_names(p, &p->allow_read, false, err) < 0 || kept_names(p, &p->allow_write, false, err) < 0
               ? -1 : 0;
}

static bool
is_host_name(const struct policy_entry *entry)
{
    return entry->from.kind == ORIGIN_BUILTIN || entry->written[0] != '/';
}

/* The part of a rule's path that is no pattern: where the rule lies. */
static void
rule_root(const struct policy_entry *entry, char out[PATH_TEXT_MAX + 1])
{
    size_t n = entry->literal ? strlen(entry->value) : path_glob_prefix(str_of(entry->value));

    memcpy(out, entry->value, n);
    out[n] = '\0';
    if (n == 0)
        memcpy(out, "/", 2);
}

/* The sandbox's name for a shown place becomes the host's. A path that was written relative, or below `~`, is the
 * host's already; one that could be either is refused under both names. */
static int
to_host(struct policy *p, struct policy_list *list, size_t at, bool deny, struct err *err)
{
    struct policy_entry entry = list->v[at];
    struct where w = { .from = entry.from };
    char root[PATH_TEXT_MAX + 1];
    struct place place;
    struct str rest;

    rule_root(&entry, root);
    if (!is_host_name(&entry) && strcmp(root, "/") != 0 && policy_place_mounted(p, root, false, &place) &&
        strcmp(place.inside, root) == 0 && strcmp(place.host, root) != 0) {
        rest = str_of(entry.value + strlen(root));
        if (rest.n == 0)
            entry.value = arena_copy(p->arena, str_of(place.host));
        else if (resolve_path(p, (struct str){ rest.p + 1, rest.n - 1 }, str_of(place.host), true, &w, &entry.value,
                              err) < 0)
            return -1;
        if (entry.value == NULL)
            return policy_no_memory(err);
        if (deny && policy_place_mounted(p, root, true, &place) && strcmp(place.host, root) == 0 &&
            list_push(p, list, list->v[at], err) < 0)
            return -1;
        list->v[at] = entry;
    }
    return 0;
}

static int
list_to_host(struct policy *p, struct policy_list *list, bool deny, struct err *err)
{
    size_t n = list->n;

    for (size_t i = 0; i < n; i++)
        if (to_host(p, list, i, deny, err) < 0)
            return -1;
    return 0;
}

static int
not_showable(const struct policy_entry *entry, const char *root, bool write, struct err *err)
{
    static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot" };

    if (strcmp(root, "/") == 0 || kernel_tree(root) != NULL) {
        REFUSE(&entry->from, NULL, "policy.path.reserved", "%s cannot be shown in a sandbox", entry->value);
        return err_hint(err, "name what is needed below it, or use --view host");
    }
    if (!entry->literal) {
        REFUSE(&entry->from, NULL, "policy.path.glob", "\"%s\" is a pattern over what is not in the sandbox",
               entry->written);
        return err_hint(err, "show its directory first: --bind %s, or use --view host", root);
    }
    for (size_t i = 0; write && i < ARRAY_LEN(system_dirs); i++) {
        if (!path_within(str_of(root), str_of(system_dirs[i])))
            continue;
        REFUSE(&entry->from, NULL, "policy.write.system", "%s belongs to the system", entry->value);
        return err_hint(err, "to let it be written for real, bind it elsewhere: --bind %s:/mnt/NAME:rw", root);
    }
    return 0;
}

static struct policy_bind *
bind_at(struct policy *p, const char *dest)
{
    for (size_t i = 0; i < p->n_binds; i++)
        if (strcmp(p->binds[i].dest, dest) == 0)
            return &p->binds[i];
    return NULL;
}

/* One entry of allow-write; *keep says whether it stays in the list. */
static int
settle_write(struct policy *p, const struct policy_entry *entry, bool *keep, struct err *err)
{
    struct where w = { .from = entry->from };
    char root[PATH_TEXT_MAX + 1];
    struct policy_bind *bind;
    struct place place;

    *keep = false;
    rule_root(entry, root);
    if (!policy_place_mounted(p, root, true, &place)) {
        struct policy bare = *p;
        bare.allow_read.n = bare.allow_write.n = 0;
        policy_place(&bare, root, is_host_name(entry), &place);
        if (place.kind == PLACE_OWN)
            return 0;
        *keep = true;
        return not_showable(entry, root, true, err);
    }
    if (place.writable)
        return 0;
    if (!entry->literal)
        return not_showable(entry, root, true, err);
    bind = bind_at(p, place.inside);
    if (bind != NULL) {
        bind->writable = true;
        bind->from = entry->from;
        return 0;
    }
    if (p->workspace.dir != NULL && strcmp(place.inside, policy_workspace_at(p)) == 0) {
        REFUSE(&entry->from, NULL, "policy.write.workspace", "the workspace %s is read-only", p->workspace.dir);
        return err_hint(err, "--workspace %s:rw", p->workspace.dir);
    }
    return set_bind_parts(p, str_of(place.host), str_of(place.inside), true, &w, err);
}

/* One entry of allow-read: within what is shown it lifts denials; the sandbox's own and the system are open. */
static int
settle_read(struct policy *p, const struct policy_entry *entry, bool *keep, struct err *err)
{
    char root[PATH_TEXT_MAX + 1];
    struct policy bare = *p;
    struct place place;

    rule_root(entry, root);
    *keep = true;
    if (policy_place_mounted(p, root, true, &place))
        return 0;
    bare.allow_read.n = bare.allow_write.n = 0;
    policy_place(&bare, root, is_host_name(entry), &place);
    *keep = place.kind == PLACE_ABSENT || strcmp(root, "/") == 0;
    return *keep ? not_showable(entry, root, false, err) : 0;
}

static int
settle_private_view(struct policy *p, struct err *err)
{
    size_t kept = 0;
    bool keep;

    if (list_to_host(p, &p->deny_read, true, err) < 0 || list_to_host(p, &p->deny_write, true, err) < 0 ||
        list_to_host(p, &p->allow_read, false, err) < 0 || list_to_host(p, &p->allow_write, false, err) < 0)
        return -1;
    for (size_t i = 0; i < p->allow_read.n; i++) {
        if (settle_read(p, &p->allow_read.v[i], &keep, err) < 0)
            return -1;
        if (keep)
            p->allow_read.v[kept++] = p->allow_read.v[i];
    }
    p->allow_read.n = kept;
    kept = 0;
    for (size_t i = 0; i < p->allow_write.n; i++) {
        if (settle_write(p, &p->allow_write.v[i], &keep, err) < 0)
            return -1;
        if (keep)
            p->allow_write.v[kept++] = p->allow_write.v[i];
    }
    p->allow_write.n = kept;
    return 0;
}

static int
close_below(struct policy *p, char *path, const struct origin *from, struct err *err)
{
    struct policy_entry entry = { .value = path, .written = path, .literal = true, .from = *from };
    bool open = p->workspace.dir != NULL && p->workspace.kind == WORKSPACE_RW && strcmp(p->workspace.dir, path) != 0 &&
                path_within(str_of(path), str_of(p->workspace.dir));

    for (size_t i = 0; i < p->n_binds && !open; i++)
        open = p->binds[i].writable && strcmp(p->binds[i].source, path) != 0 &&
               path_within(str_of(path), str_of(p->binds[i].source));
    for (size_t i = 0; i < p->allow_write.n && !open; i++)
        open = path_covers(str_of(p->allow_write.v[i].value), p->allow_write.v[i].literal, str_of(path), NULL);
    return open ? list_push(p, &p->deny_write, entry, err) : 0;
}

static int
settle_host_view(struct policy *p, struct err *err)
{
    if (p->workspace.dir != NULL && p->workspace.kind == WORKSPACE_RO &&
        close_below(p, p->workspace.dir, &p->workspace.from, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++)
        if (!p->binds[i].writable && close_below(p, p->binds[i].source, &p->binds[i].from, err) < 0)
            return -1;
    return 0;
}

static int
settle_workdir(struct policy *p, struct err *err)
{
    const char *dir = policy_workspace_at(p);

    if (origin_explicit(&p->workdir.from))
        return kept_name(p, p->workdir.p, false, &p->workdir.from, &p->workdir.p, err);
    if (p->workspace.dir != NULL && (p->view.v == VIEW_HOST || p->workspace.at != NULL))
        p->workdir.from = p->workspace.from;
    p->workdir.p = arena_copy(p->arena, str_of(dir != NULL ? dir : p->cwd));
    return p->workdir.p != NULL ? 0 : policy_no_memory(err);
}

/* What is left out by default is where there is a root of our own. */
static void
settle_contents(struct policy *p)
{
    if (!origin_explicit(&p->contents.from) && p->view.v == VIEW_HOST)
        p->contents.v = CONTENTS_HOST;
}

/* Who has a Docker Engine is root of its machine, and says so. */
static void
settle_user(struct policy *p)
{
    if (!p->private_docker.v || origin_explicit(&p->user.from))
        return;
    p->user.uid = p->user.gid = 0;
    p->user.from = p->private_docker.from;
}

int
settle(struct policy *p, struct err *err)
{
    settle_user(p);
    settle_contents(p);
    settle_env(p);
    settle_git_config(p);
    if (settle_kept(p, err) < 0)
        return -1;
    if (p->mode.v != MODE_OFF && credentials_of_owners(p, err) < 0)
        return -1;
    if (p->mode.v != MODE_OFF &&
        (p->view.v == VIEW_HOST ? settle_host_view(p, err) : settle_private_view(p, err)) < 0)
        return -1;
    return settle_workdir(p, err);
}
