/* engine/native/plan_rules.c: the policy's paths as they really are, before anything is made of them
 *
 * Rules are written with names; walls stand on objects. So each path that a rule names is resolved here, once, and what
 * comes out is the same policy in plain real paths: patterns are what exists and fits them, a closed name that is a
 * link, or lies behind one, also closes what it leads to, and what is opened or shown is where the name leads. The plan
 * and `cloche why` both judge by that (policy/judge.h).
 *
 * A link that stands in the way of something opened may have been planted: what runs inside can put one at any place
 * that it may write, and wait for the next run to follow it. plan_links.c says which.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "engine/native/plan_known.h"
#include "engine/native/plan_links.h"
#include "engine/native/plan_real.h"
#include "match/path.h"

#define RULES_MAX 16384         /* of one list, when its patterns are what they fit */

struct gather {
    struct native_plan *plan;
    const struct policy_entry *rule;
    const char *host;           /* of the folder that is walked */
    struct policy_list *out;
    size_t cap, expected;       /* of @out: what there is room for, what is about to come */
    bool open;                  /* of what opens: where a name leads, not the name as well */
    bool write;                 /* ... to be written */
    bool absent;                /* what is put in is not there */
};

static int
no_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static int
plan_rules_put(struct gather *g, const char *path, struct err *err)
{
    struct policy_list *out = g->out;
    struct policy_entry entry = *g->rule;

    for (size_t i = out->n; i > 0 && i + 4 > out->n && !g->absent; i--)
        if (strcmp(out->v[i - 1].value, path) == 0)
            return 0;
    if (out->n == RULES_MAX) {
        err_set(err, ERR_LIMIT, "wall.rules.too-many", "the rule \"%s\" fits more than %d places", entry.written,
                RULES_MAX);
        return err_hint(err, "name a folder instead of what is in it");
    }
    if (out->n == g->cap) {
        size_t cap = g->cap == 0 ? g->expected + 16 : g->cap * 2;
        struct policy_entry *bigger = (struct policy_entry *)(void *)plan_room(g->plan, cap * sizeof(*bigger));
        if (bigger == NULL)
            return no_memory(err);
        if (out->n > 0)
            memcpy(bigger, out->v, out->n * sizeof(*bigger));
        out->v = bigger;
        g->cap = cap;
    }
    if (path != entry.value)
        entry.value = plan_printf(g->plan, "%s", path);
    entry.literal = true;
    entry.absent = g->absent;
    if (entry.value == NULL)
        return no_memory(err);
    out->v[out->n++] = entry;
    return 0;
}

/* What nobody may search now, its owner inside may open again (chmod): where the way to @path ends before such a
 * folder, or @path is one, what lies behind it cannot be told apart, and the folder is closed. */
static int
close_shut(struct gather *g, const char *path, struct err *err)
{
    char shut[PATH_MAX];

    if (!plan_real_shut(path, shut))
        return 0;
    for (size_t i = 0; i < g->out->n; i++)
        if (strcmp(g->out->v[i].value, shut) == 0)
            return 0;
    plan_warn(g->plan, "%s cannot be searched, and the rule \"%s\" leads into it: it is closed whole", shut,
              g->rule->written);
    return plan_rules_put(g, shut, err);
}

static int
on_shut(void *ctx, const char *relative, struct err *err)
{
    struct gather *g = ctx;
    char path[2 * PATH_MAX], inside[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s%s%s", strcmp(g->host, "/") == 0 ? "" : g->host, *relative != '\0' ? "/" : "",
             relative);
    snprintf(inside, sizeof(inside), "%s/.", path);
    /* as a folder that can be searched, but not listed */
    return close_shut(g, inside, err) < 0 ? -1 : plan_rules_put(g, path, err);
}

/* A closed name: it, the same behind the links on its way, and what it leads to. */
static int
close_name(struct gather *g, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX], real[PATH_MAX], name[2 * PATH_MAX];

    if (plan_rules_put(g, path, err) < 0 || close_shut(g, path, err) < 0)
        return -1;
    if (slash == NULL || strlen(path) >= sizeof(parent) || !plan_real_future(path, real))
        return 0;
    if (strcmp(real, path) == 0)
        return 0;
    if (plan_rules_put(g, real, err) < 0 || close_shut(g, real, err) < 0)
        return -1;
    snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (!plan_real_future(parent, real))
        return 0;
    snprintf(name, sizeof(name), "%s%s", strcmp(real, "/") == 0 ? "" : real, slash);
    return plan_rules_put(g, name, err);
}

/* Where the way to the home has no link, neither has the name of what is absent. */
static int
close_builtin(struct gather *g, struct plan_known *known, bool plain_home, struct err *err)
{
    cleanup_close int fd = -1;
    char real[PATH_MAX];

    g->absent = plain_home && plan_known_absent(known, g->rule->value);
    if (g->absent)
        return plan_rules_put(g, g->rule->value, err);
    if (plain_home)
        fd = open(g->rule->value, O_PATH | O_CLOEXEC);
    if (fd >= 0 && plan_real_path(fd, real, sizeof(real)) && strcmp(real, g->rule->value) == 0)
        return plan_rules_put(g, real, err);
    return close_name(g, g->rule->value, err);
}

/* A pattern opens what is there, never what a link leads to. */
static int
open_hit(struct gather *g, const char *path, struct err *err)
{
    const struct plan_named named = { .way = { .real = plan_printf(g->plan, "%s", path) }, .rule = g->rule,
                                      .from = &g->rule->from, .name = g->rule->value, .write = g->write };
    struct stat st;

    if (named.way.real == NULL)
        return no_memory(err);
    if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode))
        return 0;
    return plan_links_note(g->plan, &named, err) < 0 ? -1 : plan_rules_put(g, path, err);
}

static int
on_hit(void *ctx, const char *relative, struct err *err)
{
    struct gather *g = ctx;
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s%s%s", strcmp(g->host, "/") == 0 ? "" : g->host, *relative != '\0' ? "/" : "",
             relative);
    if (path[0] == '\0')
        return 0;       /* the whole tree: said by its own rule */
    return g->open ? open_hit(g, path, err) : close_name(g, path, err);
}

/* What fits the pattern: in the host's tree, or in the folders that a private root shows. */
static int
fit(struct gather *g, const struct policy *real, struct err *err)
{
    bool whole = g->plan->light || real->view.v == VIEW_HOST;
    struct policy_entry rule = *g->rule;

    rule.value = (char *)(uintptr_t)plan_real_pattern(g->plan, rule.value);
    if (rule.value == NULL)
        return no_memory(err);
    for (size_t i = 0; i < (whole ? 1 : g->plan->n_shown); i++) {
        const char *root = whole ? "/" : g->plan->shown[i];
        cleanup_close int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        g->host = root;
        if (fd >= 0 && expand_rule(fd, root, &rule, on_hit, g->open ? NULL : on_shut, g, err) < 0)
            return err_wrap(err, "%s", rule.written);
    }
    return 0;
}

/* "/" in the host view: what lies in it, but for what the sandbox has of its own. */
static int
all_of_root(struct gather *g, struct err *err)
{
    static const char *const own[] = { ".", "..", "proc", "dev", "lost+found" };
    cleanup_dir DIR *dir = opendir("/");
    struct dirent *entry;

    if (dir == NULL)
        return err_sys(err, errno, "wall.root", "/");
    while ((entry = readdir(dir)) != NULL) {
        bool skip = entry->d_type == DT_LNK || (g->open && strcmp(entry->d_name, "sys") == 0);
        char path[NAME_MAX + 2];
        for (size_t i = 0; i < ARRAY_LEN(own); i++)
            skip |= strcmp(entry->d_name, own[i]) == 0;
        snprintf(path, sizeof(path), "/%s", entry->d_name);
        if (!skip && (g->open ? open_hit(g, path, err) : plan_rules_put(g, path, err)) < 0)
            return -1;
    }
    return 0;
}

/* /proc and /dev are the sandbox's own, whatever rules say about the host's; in light mode they are the host's. */
static bool
own_kernel(const struct gather *g, const struct policy *real, bool *refuse)
{
    const char *path = g->rule->value;
    bool kernel = (path[1] == 'p' || path[1] == 'd') && (path_within(str_of(path), STR_LIT("/proc")) ||
                                                         path_within(str_of(path), STR_LIT("/dev")));


    *refuse = kernel && g->plan->light && (strcmp(path, "/proc") == 0 || strcmp(path, "/dev") == 0);
    return kernel && !g->plan->light && real->view.v == VIEW_HOST;
}

static int
close_list(struct native_plan *plan, const struct policy *p, struct policy *real, const struct policy_list *in,
           struct policy_list *out, struct err *err)
{
    __attribute__((cleanup(plan_known_forget))) struct plan_known known = { .n = 0 };
    bool host = real->view.v == VIEW_HOST || plan->light, plain_home = true, refuse;
    char home[PATH_MAX];
    struct policy_list made = { .from = in->from, .set = in->set };
    struct gather g = { .plan = plan, .out = &made, .expected = in->n };

    if (p->home != NULL)
        plain_home = plan_real_future(p->home, home) && strcmp(home, p->home) == 0;
    for (size_t i = 0; i < in->n; i++) {
        int r;
        g.rule = &in->v[i];
        g.absent = false;
        if (own_kernel(&g, real, &refuse)) {
            plan_warn(plan, "the rule \"%s\" closes nothing: the sandbox's /proc and /dev are its own",
                      g.rule->written);
            continue;
        }
        if (refuse) {
            err_set(err, ERR_UNSUPPORTED, "wall.light.kernel", "light mode cannot close %s: its guard needs it",
                    g.rule->value);
            return err_hint(err, "use --mode standard, which has its own /proc and /dev");
        }
        if (host && strcmp(g.rule->value, "/") == 0)
            r = all_of_root(&g, err);
        else if (!g.rule->literal && path_has_glob(str_of(g.rule->value)))
            r = fit(&g, real, err);
        else if (g.rule->from.kind == ORIGIN_BUILTIN && in == &p->credentials)
            r = close_builtin(&g, &known, plain_home, err);
        else if (g.rule->from.kind == ORIGIN_BUILTIN && g.rule->literal && plan_known_absent(&known, g.rule->value) &&
                 plan_known_plain(&known, g.rule->value))
            r = plan_rules_put(&g, g.rule->value, err);
        else
            r = close_name(&g, g.rule->value, err);
        if (r < 0)
            return -1;
    }
    *out = made;
    return 0;
}

/* --- what is opened -------------------------------------------------------------------------------------------- */

static bool
exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

static int
open_one(struct gather *g, bool write, struct err *err)
{
    struct plan_way way;
    int r;

    if (!plan_real_way(g->plan, g->rule->value, &way) || !exists(way.real))
        return 0;
    r = plan_links_note(g->plan, &(struct plan_named){ .way = way, .rule = g->rule, .from = &g->rule->from,
                                                        .name = g->rule->value, .write = write }, err);
    return r <= 0 ? r : plan_rules_put(g, way.real, err);
}

static bool
covers_any(const struct policy_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (path_covers(str_of(list->v[i].value), list->v[i].literal, str_of(path), NULL))
            return true;
    return false;
}

/* What is opened below the home without anybody having asked gives way to a rule that closes it (as SRT has it). */
static bool
gives_way(const struct policy *p, const struct policy_entry *rule)
{
    return rule->from.kind == ORIGIN_BUILTIN && p->home != NULL && path_within(str_of(rule->value), str_of(p->home)) &&
           covers_any(&p->deny_read, rule->value) && !covers_any(&p->allow_read, rule->value);
}

static int
open_list(struct native_plan *plan, const struct policy *p, const struct policy *real, bool write,
          struct policy_list *out, struct err *err)
{
    const struct policy_list *in = write ? &p->allow_write : &p->allow_read;
    bool host = real->view.v == VIEW_HOST || plan->light, refuse;
    struct policy_list made = { .from = in->from, .set = in->set };
    struct gather g = { .plan = plan, .out = &made, .open = true, .write = write };

    for (size_t i = 0; i < in->n; i++) {
        int r;
        g.rule = &in->v[i];
        if (host && (own_kernel(&g, real, &refuse) || path_within(str_of(g.rule->value), STR_LIT("/dev"))))
            continue;       /* what it has of these is open to it */
        if (gives_way(p, g.rule))
            continue;
        if (host && write && strcmp(g.rule->value, "/") == 0) {
            if (geteuid() == 0) {
                err_set(err, ERR_POLICY, "policy.write.root", "\"%s\" would let root's sandbox write the whole host",
                        g.rule->written);
                return err_hint(err, "name the folders that have to be writable, or run as an ordinary user");
            }
            r = all_of_root(&g, err);
        } else if (!g.rule->literal && path_has_glob(str_of(g.rule->value))) {
            r = fit(&g, real, err);
        } else {
            r = open_one(&g, write, err);
        }
        if (r < 0)
            return -1;
    }
    *out = made;
    return 0;
}

static int
shown_one(struct native_plan *plan, char **path, bool write, const char *what, const struct origin *from,
          struct err *err)
{
    struct plan_way way;

    if (!plan_real_way(plan, *path, &way))
        return err_sys(err, ELOOP, "wall.bind.open", "%s", *path);
    if (plan_links_note(plan, &(struct plan_named){ .way = way, .from = from, .name = *path, .write = write,
                                                     .what = what }, err) < 0)
        return -1;
    *path = (char *)(uintptr_t)way.real;
    return 0;
}

static int
shown(struct native_plan *plan, const struct policy *p, struct policy *real, struct err *err)
{
    real->binds = (struct policy_bind *)(void *)plan_room(plan, (p->n_binds + 1) * sizeof(*real->binds));
    if (real->binds == NULL)
        return no_memory(err);
    if (real->workspace.dir != NULL && shown_one(plan, &real->workspace.dir, real->workspace.kind != WORKSPACE_RO,
                                                 "workspace", &p->workspace.from, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++) {
        real->binds[i] = p->binds[i];
        if (shown_one(plan, &real->binds[i].source, p->binds[i].writable, "bind", &p->binds[i].from, err) < 0)
            return -1;
        if (p->view.v == VIEW_HOST)
            real->binds[i].dest = real->binds[i].source;
    }
    return 0;
}

/* A socket's name is not rewritten, for it is what programs inside say; where it leads is judged like the rest. */
static int
note_sockets(struct native_plan *plan, const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->unix_sockets.n; i++) {
        const struct policy_entry *rule = &p->unix_sockets.v[i];
        struct plan_way way;
        if (plan_real_way(plan, rule->value, &way) && way.n_links > 0 &&
            plan_links_note(plan, &(struct plan_named){ .way = way, .rule = rule, .from = &rule->from,
                                                        .name = rule->value, .what = "unix socket" }, err) < 0)
            return -1;
    }
    return 0;
}

/* In the host view what is shown read-only lies in what can be written, or beside it: then it is a rule like deny-write
 * (policy/settle.c says so of names; here it is said of where they lead). */
static int
close_shown(struct gather *g, const struct policy *real, const char *path, const struct origin *from, struct err *err)
{
    const struct policy_entry rule = { .value = (char *)(uintptr_t)path, .written = (char *)(uintptr_t)path,
                                       .literal = true, .from = *from };
    bool open = real->workspace.dir != NULL && real->workspace.kind == WORKSPACE_RW &&
                strcmp(real->workspace.dir, path) != 0 && path_within(str_of(path), str_of(real->workspace.dir));
    int r;

    for (size_t i = 0; i < real->n_binds; i++)
        open |= real->binds[i].writable && strcmp(real->binds[i].source, path) != 0 &&
                path_within(str_of(path), str_of(real->binds[i].source));
    for (size_t i = 0; i < real->allow_write.n; i++)
        open |= path_within(str_of(path), str_of(real->allow_write.v[i].value));
    if (!open)
        return 0;
    g->rule = &rule;
    r = plan_rules_put(g, path, err);
    g->rule = NULL;
    return r;
}

static int
close_read_only(struct native_plan *plan, struct policy *real, struct err *err)
{
    struct gather g = { .plan = plan, .out = &real->deny_write, .cap = real->deny_write.n };

    if (real->view.v != VIEW_HOST)
        return 0;
    if (real->workspace.dir != NULL && real->workspace.kind == WORKSPACE_RO &&
        close_shown(&g, real, real->workspace.dir, &real->workspace.from, err) < 0)
        return -1;
    for (size_t i = 0; i < real->n_binds; i++)
        if (!real->binds[i].writable && close_shown(&g, real, real->binds[i].source, &real->binds[i].from, err) < 0)
            return -1;
    return 0;
}

/* The folders that patterns are looked for in under a private root. */
static int
note_shown(struct native_plan *plan, const struct policy *real, struct err *err)
{
    size_t most = 1 + real->n_binds + real->allow_read.n + real->allow_write.n;

    plan->shown = (const char **)(void *)plan_room(plan, most * sizeof(*plan->shown));
    if (plan->shown == NULL)
        return no_memory(err);
    if (real->workspace.dir != NULL)
        plan->shown[plan->n_shown++] = real->workspace.dir;
    for (size_t i = 0; i < real->n_binds; i++)
        plan->shown[plan->n_shown++] = real->binds[i].source;
    for (size_t i = 0; i < real->allow_read.n; i++)
        plan->shown[plan->n_shown++] = real->allow_read.v[i].value;
    for (size_t i = 0; i < real->allow_write.n; i++)
        plan->shown[plan->n_shown++] = real->allow_write.v[i].value;
    return 0;
}

static int
put_alias(struct native_plan *plan, struct policy_list *list, const struct policy_entry *entry, const char *path,
          struct err *err)
{
    struct gather g = { .plan = plan, .rule = entry, .out = list, .cap = list->n };

    return plan_rules_put(&g, path, err);
}

static int
note_credentials(struct native_plan *plan, const struct policy *real, struct err *err)
{
    struct policy_list *there = &plan->credentials;

    *there = (struct policy_list){ .from = real->credentials.from, .set = real->credentials.set };
    there->v = (struct policy_entry *)(void *)plan_room(plan, (real->credentials.n + 1) * sizeof(*there->v));
    if (there->v == NULL)
        return no_memory(err);
    for (size_t i = 0; i < real->credentials.n; i++)
        if (!real->credentials.v[i].absent)
            there->v[there->n++] = real->credentials.v[i];
    return 0;
}

static int
is_own(const struct policy *real, const char *path, struct err *err)
{
    for (size_t i = 0; i < real->credentials.n; i++) {
        const struct policy_entry *e = &real->credentials.v[i];
        if (!e->own || !path_within(str_of(path), str_of(e->value)))
            continue;
        err_set(err, ERR_POLICY, "policy.own-folder", "%s is in %s, where cloche keeps its records, sockets and keys: "
                "no sandbox gets it", path, e->value);
        return err_hint(err, "name another folder; `cloche audit`, `cloche secret` and the API show what is there");
    }
    return 0;
}

/* What is given must not be cloche's own, by whichever name: those of other mounts have been added to the list. What
 * only contains it has it closed inside. */
static int
check_own(struct native_plan *plan, const struct policy *real, struct err *err)
{
    struct plan_way way;

    for (size_t i = 0; i < plan->n_shown; i++)
        if (!policy_gives(real, plan->shown[i]) && is_own(real, plan->shown[i], err) < 0)
            return -1;
    for (size_t i = 0; i < real->unix_sockets.n; i++) {
        const char *path = real->unix_sockets.v[i].value;
        if (is_own(real, plan_real_way(plan, path, &way) ? way.real : path, err) < 0)
            return -1;
    }
    return 0;
}

int
plan_rules(struct native_plan *plan, const struct policy *p, struct err *err)
{
    struct policy *real = &plan->real;
    struct policy_list *const closed[] = { &real->deny_read, &real->credentials };

    *real = *p;
    plan->light = p->mode.v == MODE_LIGHT;
    if (shown(plan, p, real, err) < 0 || note_sockets(plan, p, err) < 0 ||
        open_list(plan, p, real, true, &real->allow_write, err) < 0 ||
        open_list(plan, p, real, false, &real->allow_read, err) < 0)
        return -1;
    if (plan_links_check(plan, real, err) < 0 || note_shown(plan, real, err) < 0)
        return -1;
    if (plan->n_shown == 0 && !plan->light && real->view.v == VIEW_PRIVATE)
        return check_own(plan, real, err);      /* nothing of the host is there to be closed */
    if (close_list(plan, p, real, &p->deny_read, &real->deny_read, err) < 0 ||
        close_list(plan, p, real, &p->credentials, &real->credentials, err) < 0 ||
        close_list(plan, p, real, &p->deny_write, &real->deny_write, err) < 0)
        return -1;
    return plan_aliases(plan, closed, ARRAY_LEN(closed), put_alias, err) < 0 ||
                   check_own(plan, real, err) < 0 || note_credentials(plan, real, err) < 0
               ? -1 : close_read_only(plan, real, err);
}

int
plan_rules_more(struct native_plan *plan, const struct policy_list *in, struct policy_list *out, struct err *err)
{
    return close_list(plan, &plan->real, &plan->real, in, out, err) < 0
               ? -1 : plan_aliases(plan, &out, 1, put_alias, err);
}
