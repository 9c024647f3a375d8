/* engine/native/plan_git.c: what git on the host would run, or read for that, in a writable tree
 *
 * The owner's configuration may name programs, hooks and further configuration in the project itself (core.hooksPath,
 * include.path, `core.fsmonitor = tools/watch`). What it names there is protected like `.git/hooks`, there or not. The
 * project's own configuration is read too: the sandbox cannot change it, but anybody may have written it, so it is
 * read with bounds and can only close more.
 *
 * The repository at the top keeps its HEAD: without it git would look for another one, further up or in the folder
 * itself. HEAD is mounted on itself, which costs no other file anything, and written to by the guard
 * (guest/guard_git.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/native/expand.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "match/git_config.h"
#include "match/git_shape.h"
#include "match/path.h"
#include "wall/mnt.h"

#define INCLUDES_MAX 64         /* files read for one tree */
#define INCLUDE_DEPTH 10        /* as git */
#define WORDS_MAX 2

struct configured {
    struct native_plan *plan;
    const struct policy *policy;
    const struct plan_tree *tree;
    char top[PATH_MAX];         /* the work tree's top, which may lie above the tree; "" none */
    unsigned n_files;
};

/* --- keys */

enum meaning {
    MEANS_HOOKS,                /* a directory of programs */
    MEANS_FILE,                 /* a file that git obeys; relative to the work tree's top */
    MEANS_INCLUDE,              /* ... relative to the file that names it */
    MEANS_PROGRAM,              /* a command line */
};

/* "*" as a section's second part: any subsection, or none. A name "*": any. */
static const struct {
    const char *section, *name;
    enum meaning meaning;
} keys[] = {
    { "include", "path", MEANS_INCLUDE }, { "includeif", "path", MEANS_INCLUDE },
    { "core", "hookspath", MEANS_HOOKS }, { "init", "templatedir", MEANS_HOOKS },
    { "core", "attributesfile", MEANS_FILE },
    { "core", "fsmonitor", MEANS_PROGRAM }, { "core", "sshcommand", MEANS_PROGRAM },
    { "core", "editor", MEANS_PROGRAM }, { "core", "pager", MEANS_PROGRAM }, { "core", "askpass", MEANS_PROGRAM },
    { "core", "gitproxy", MEANS_PROGRAM }, { "core", "alternaterefscommand", MEANS_PROGRAM },
    { "sequence", "editor", MEANS_PROGRAM }, { "interactive", "difffilter", MEANS_PROGRAM },
    { "diff", "external", MEANS_PROGRAM }, { "diff", "command", MEANS_PROGRAM }, { "diff", "textconv", MEANS_PROGRAM },
    { "merge", "driver", MEANS_PROGRAM }, { "filter", "clean", MEANS_PROGRAM }, { "filter", "smudge", MEANS_PROGRAM },
    { "filter", "process", MEANS_PROGRAM }, { "gpg", "program", MEANS_PROGRAM },
    { "gpg", "defaultkeycommand", MEANS_PROGRAM }, { "credential", "helper", MEANS_PROGRAM },
    { "uploadpack", "packobjectshook", MEANS_PROGRAM }, { "remote", "uploadpack", MEANS_PROGRAM },
    { "remote", "receivepack", MEANS_PROGRAM }, { "trailer", "command", MEANS_PROGRAM },
    { "trailer", "cmd", MEANS_PROGRAM }, { "mergetool", "cmd", MEANS_PROGRAM }, { "mergetool", "path", MEANS_PROGRAM },
    { "difftool", "cmd", MEANS_PROGRAM }, { "difftool", "path", MEANS_PROGRAM }, { "pager", "*", MEANS_PROGRAM },
    { "alias", "*", MEANS_PROGRAM }, { "hook", "command", MEANS_PROGRAM }, { "submodule", "update", MEANS_PROGRAM },
};

/* --- places */

/* @value as a path: `~/` is the home, what is relative is below @base ("" nothing). False: it is nowhere. */
static bool
locate(const struct configured *c, struct str value, const char *base, char out[PATH_MAX])
{
    int n;

    if (value.n >= 2 && value.p[0] == '~' && value.p[1] == '/')
        n = c->policy->home == NULL ? -1
                                    : snprintf(out, PATH_MAX, "%s%.*s", c->policy->home, (int)value.n - 1, value.p + 1);
    else if (value.n > 0 && value.p[0] == '/')
        n = snprintf(out, PATH_MAX, "%.*s", (int)value.n, value.p);
    else
        n = base[0] == '\0' || value.n == 0 ? -1 : snprintf(out, PATH_MAX, "%s/%.*s", base, (int)value.n, value.p);
    return n > 0 && n < PATH_MAX;
}

/* Close @path, where it lies in the tree, and where links lead from it. */
static int
close_place(struct configured *c, const char *path, struct err *err)
{
    char real[PATH_MAX], written[PATH_MAX];
    const char *below;
    size_t n;

    /* as it is written: a link on the way is a name that could be made anew */
    if (path_normalise(str_of(path), STR_LIT("/"), false, written, sizeof(written), &n) == PATH_OK) {
        below = expand_below(written, c->tree->host);
        if (below != NULL && below[0] != '\0' && plan_guard_name(c->plan, c->tree->inside, below, err) < 0)
            return -1;
    }
    /* links and ".." are resolved; what does not exist yet is where it would be made */
    if (!plan_real_future(path, real))
        return 0;
    below = expand_below(real, c->tree->host);
    if (below != NULL && below[0] == '\0')
        return plan_warn(c->plan, "git's configuration names programs at the top of %s: they are not protected",
                         c->tree->host);
    return below == NULL ? 0 : plan_protect_place(c->plan, c->tree, below, err);
}

/* Words of a command line that may name a program in the tree: the first, and what an interpreter is to run. */
static int
close_program(struct configured *c, struct str value, struct err *err)
{
    static const char *const interpreters[] = { "sh", "bash", "dash", "zsh", "python", "python3", "node", "perl",
                                                "ruby", "env", "exec" };
    bool more = true;

    if (value.n > 0 && value.p[0] == '!')
        value = (struct str){ value.p + 1, value.n - 1 };
    for (int i = 0; more && i < WORDS_MAX; i++) {
        char path[PATH_MAX];
        struct str word;
        size_t at = 0, end;

        while (at < value.n && memchr(" \t\n\"'", value.p[at], 5) != NULL)
            at++;
        for (end = at; end < value.n && memchr(" \t\n\"';|&", value.p[end], 8) == NULL;)
            end++;
        word = (struct str){ value.p + at, end - at };
        value = (struct str){ value.p + end, value.n - end };
        more = false;
        for (size_t k = 0; k < sizeof(interpreters) / sizeof(interpreters[0]); k++)
            more |= str_eq_c(word, interpreters[k]) ||
                    (str_ends(word, str_of(interpreters[k])) && word.n > strlen(interpreters[k]) &&
                     word.p[word.n - strlen(interpreters[k]) - 1] == '/');
        if (word.n == 0 || (i == 0 && memchr(word.p, '/', word.n) == NULL) || !locate(c, word, c->top, path))
            continue;
        if (close_place(c, path, err) < 0)
            return -1;
    }
    return 0;
}

/* --- files */

static int read_config(struct configured *c, int dirfd, const char *path, unsigned depth, struct err *err);

static int
close_entry(struct configured *c, const struct git_config_entry *e, const char *file, unsigned depth, struct err *err)
{
    char path[PATH_MAX], base[PATH_MAX];
    const char *slash = strrchr(file, '/');

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!str_eq_c(e->section, keys[i].section) || (keys[i].name[0] != '*' && !str_eq_c(e->name, keys[i].name)))
            continue;
        switch (keys[i].meaning) {
        case MEANS_PROGRAM:
            return close_program(c, e->value, err);
        case MEANS_HOOKS:
        case MEANS_FILE:
            return locate(c, e->value, c->top, path) ? close_place(c, path, err) : 0;
        case MEANS_INCLUDE:
            snprintf(base, sizeof(base), "%.*s", slash != NULL ? (int)(slash - file) : 0, file);
            if (!locate(c, e->value, base, path))
                return 0;
            return close_place(c, path, err) < 0 ? -1 : read_config(c, AT_FDCWD, path, depth + 1, err);
        }
    }
    return 0;
}

/* A file that is not there, or that git would not read to its end, says nothing more. */
static int
read_config(struct configured *c, int dirfd, const char *path, unsigned depth, struct err *err)
{
    cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cleanup_buf struct buf text = BUF_INIT(GIT_CONFIG_MAX);
    cleanup_free struct git_config_reader *reader = NULL;
    struct git_config_entry e;
    char shut[PATH_MAX];
    struct stat st;

    if (fd < 0 && errno == EACCES && plan_real_shut(path, shut) && expand_below(shut, c->tree->host) != NULL) {
        err_set(err, ERR_POLICY, "wall.git.shut", "%s cannot be searched: what git would run cannot be told", shut);
        return err_hint(err, "chmod u+rx it: what runs inside could");
    }
    if (fd < 0 || depth > INCLUDE_DEPTH || c->n_files++ == INCLUDES_MAX || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        io_read_all(fd, &text) < 0)
        return 0;
    reader = malloc(sizeof(*reader));
    if (reader == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    git_config_open(reader, (struct str){ (const char *)text.p, text.n });
    while (git_config_next(reader, &e) > 0)
        if (close_entry(c, &e, path, depth, err) < 0)
            return -1;
    return 0;
}

static int
read_below(struct configured *c, const char *dir, const char *name, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    return n > 0 && n < (int)sizeof(path) ? read_config(c, AT_FDCWD, path, 0, err) : 0;
}

/* One line of the small file @path (a `.git`, a commondir): where it leads, from @base. */
static bool
read_target(const char *path, bool dot_git, const char *base, char out[PATH_MAX])
{
    cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX);
    struct str whole, target;
    struct stat st;
    int n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || io_read_all(fd, &text) < 0)
        return false;
    whole = (struct str){ (const char *)text.p, text.n };
    if (!(dot_git ? git_file_target(whole, &target) : git_redirect_target(whole, &target)))
        return false;
    n = target.p[0] == '/' ? snprintf(out, PATH_MAX, "%.*s", (int)target.n, target.p)
                           : snprintf(out, PATH_MAX, "%s/%.*s", base, (int)target.n, target.p);
    return n > 0 && n < PATH_MAX;
}

/* The repository whose work tree the folder @c->tree is, or lies in. */
static int
read_repository(struct configured *c, struct err *err)
{
    char dot[PATH_MAX + 8], dir[PATH_MAX], common[PATH_MAX], path[PATH_MAX + 16];
    struct stat st;
    char *slash;

    snprintf(c->top, sizeof(c->top), "%s", c->tree->host);
    for (;;) {
        snprintf(dot, sizeof(dot), "%s/.git", c->top);
        if (stat(dot, &st) == 0 || (slash = strrchr(c->top, '/')) == NULL || slash == c->top)
            break;
        *slash = '\0';
    }
    if (stat(dot, &st) < 0) {
        snprintf(c->top, sizeof(c->top), "%s", c->tree->host);
        return 0;
    }
    if (S_ISDIR(st.st_mode) ? snprintf(dir, sizeof(dir), "%s", dot) >= (int)sizeof(dir)
                            : !read_target(dot, true, c->top, dir))
        return 0;
    snprintf(path, sizeof(path), "%s/commondir", dir);
    if (!read_target(path, false, dir, common))
        snprintf(common, sizeof(common), "%s", dir);
    return read_below(c, common, "config", err) < 0 ? -1 : read_below(c, dir, "config.worktree", err);
}

static int
read_owners(struct configured *c, struct err *err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = c->policy->home;

    if (read_config(c, AT_FDCWD, "/etc/gitconfig", 0, err) < 0)
        return -1;
    if (xdg != NULL && xdg[0] == '/' && read_below(c, xdg, "git/config", err) < 0)
        return -1;
    if (home == NULL)
        return 0;
    return read_below(c, home, ".config/git/config", err) < 0 ? -1 : read_below(c, home, ".gitconfig", err);
}

/* --- */

bool
plan_git_watched(const struct policy *p)
{
    for (size_t i = 0; i < p->protect.n; i++)
        if (strcmp(p->protect.v[i].value, ".git/hooks") == 0)
            return true;
    return false;
}

bool
plan_git_later(const struct policy *p, const struct plan_tree *tree, const char *name)
{
    struct stat st;

    return plan_git_watched(p) && strncmp(name, ".git/", 5) == 0 &&
           fstatat(tree->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static int
keep_head(struct native_plan *plan, const struct plan_tree *tree, struct err *err)
{
    cleanup_close int head = mnt_open_beneath(tree->fd, ".git/HEAD", O_PATH | O_NOFOLLOW, false);
    struct root_item *item;
    struct stat st;

    /* in light mode, where there are no mounts, the guard is asked about removing too */
    if (plan->light || head < 0 || fstat(head, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    item = plan_item(plan, ROOT_PIN, NULL,
                     plan_printf(plan, "%s/.git/HEAD", strcmp(tree->inside, "/") == 0 ? "" : tree->inside), err);
    if (item == NULL)
        return -1;
    item->writable = true;
    return 0;
}

int
plan_git(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct err *err)
{
    cleanup_free struct configured *c = NULL;

    if (!plan_git_watched(p))
        return 0;
    plan->guard_git = true;
    plan->guard_git_config = !p->allow_git_config.v;
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    c->plan = plan;
    c->policy = p;
    c->tree = tree;
    if (read_repository(c, err) < 0 || read_owners(c, err) < 0)
        return -1;
    return keep_head(plan, tree, err);
}
