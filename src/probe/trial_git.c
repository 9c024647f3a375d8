/* probe/trial_git.c: what git would execute, by its content, wherever git looks for it
 *
 * trial_state.c tries the shapes of a repository with one key of a configuration. Here the shape stands, and each
 * thing that git runs, or that leads it to another file, is tried in it: it may be written there, written elsewhere and
 * renamed or linked, or lie there already when the folder becomes a repository. Nothing but the words in the file
 * counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define COUNT(rows) ARRAY_LEN(rows)

static bool
trial_git_put(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0755);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Is @path there with all of @text? */
static bool
holds(const char *path, const char *text)
{
    char is[1024];

    return read_small(path, is, sizeof(is)) > 0 && strcmp(is, text) == 0;
}

static bool
arrives(struct attempt *a, const char *name, const char *text)
{
    char path[1024], own[1024];
    bool there;

    in_project(a, name, path);
    in_project(a, "git-to-be", own);
    make_folders(a, path);
    trial_git_put(path, text);
    there = holds(path, text);
    if (!there && trial_git_put(own, text))
        there = rename(own, path) == 0 && holds(path, text);
    if (!there && trial_git_put(own, text))
        there = link(own, path) == 0 && holds(path, text);
    unlink(own);
    unlink(path);
    if (there)
        outcome_of(a, SUCCEEDED, "%s holds what git runs: %.100s", name,
                   text + (text[0] == '[' ? strcspn(text, "\n") + 1 : 0));
    return there;
}

/* A repository's shape, with nothing in it that runs. */
static bool
shape(struct attempt *a, const char *folder)
{
    static const char *const parts[] = { "objects", "refs", "hooks" };
    char path[1024], name[300];
    struct stat st;

    for (size_t i = 0; i < COUNT(parts); i++) {
        snprintf(name, sizeof(name), "%s/%s/", folder, parts[i]);
        make_folders(a, in_project(a, name, path));
    }
    snprintf(name, sizeof(name), "%s/HEAD", folder);
    trial_git_put(in_project(a, name, path), "ref: refs/heads/main\n");
    return stat(path, &st) == 0;
}

enum outcome
trial_project_git_keys(struct attempt *a)
{
    static const char *const texts[] = {
        "[core]\n\thooksPath = ../evil\n", "[core]\n\tsshCommand = touch ran\n", "[core]\n\teditor = touch ran\n",
        "[core]\n\tpager = touch ran\n", "[core]\n\tgitProxy = touch-ran\n", "[core]\n\taskPass = touch-ran\n",
        "[core]\n\talternateRefsCommand = touch ran\n", "[core]\n\tattributesFile = ../evil\n",
        "[core]\n\texcludesFile = ../evil\n", "[core]\n\tworktree = /etc\n",
        "[core]\n\tworktree = ../../../../../../../../etc\n", "[submodule \"../x\"]\n\turl = https://example.com/x\n",
        "[remote \"x\"]\n\turl = ssh://-oProxyCommand=ran/x\n", "[core]\n\tfsmonitor = true\n",
        "[include]\n\tpath = ../evil\n", "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
        "[filter \"x\"]\n\tclean = touch ran\n", "[filter \"x\"]\n\tprocess = touch ran\n",
        "[diff]\n\texternal = touch-ran\n", "[diff \"x\"]\n\ttextconv = touch ran\n",
        "[diff \"x\"]\n\tcommand = touch ran\n",
        "[merge \"x\"]\n\tdriver = touch ran\n", "[alias]\n\tst = !touch ran\n", "[gpg]\n\tprogram = touch-ran\n",
        "[gpg \"ssh\"]\n\tdefaultKeyCommand = touch ran\n", "[commit]\n\tgpgSign = true\n",
        "[credential]\n\thelper = !touch ran\n", "[remote \"x\"]\n\turl = ext::touch ran\n",
        "[remote \"x\"]\n\tuploadpack = touch ran\n", "[remote \"x\"]\n\tvcs = ran\n",
        "[submodule \"x\"]\n\tupdate = !touch ran\n", "[submodule \"x\"]\n\turl = ext::touch ran\n",
        "[url \"ext::touch ran \"]\n\tinsteadOf = https://\n", "[protocol \"ext\"]\n\tallow = always\n",
        "[uploadpack]\n\tpackObjectsHook = touch-ran\n", "[sequence]\n\teditor = touch ran\n",
        "[interactive]\n\tdiffFilter = touch ran\n", "[pager]\n\tstatus = touch ran\n",
        "[difftool \"x\"]\n\tcmd = touch ran\n", "[trailer \"x\"]\n\tcommand = touch ran\n",
        "[browser \"x\"]\n\tcmd = touch ran\n", "[init]\n\ttemplateDir = ../evil\n",
    };

    if (!shape(a, "keys"))
        return outcome_of(a, NOT_APPLICABLE, "no folder of a repository's shape can be made");
    for (size_t i = 0; i < COUNT(texts); i++)
        if (arrives(a, "keys/config", texts[i]))
            return SUCCEEDED;
    return outcome_of(a, BLOCKED, "none of %zu configurations arrives", COUNT(texts));
}

enum outcome
trial_project_git_steps(struct attempt *a)
{
    static const struct { const char *name, *text; } rows[] = {
        { ".git/rebase-merge/git-rebase-todo", "exec touch ran\n" },
        { ".git/rebase-merge/git-rebase-todo", "x touch ran\n" },
        { ".git/rebase-merge/git-rebase-todo.backup", "x touch ran\n" },
        { ".git/rebase-merge/strategy_opts", " '--x=`touch ran`'\n" }, { ".git/rebase-merge/strategy", "../ran\n" },
        { ".git/rebase-merge/author-script", "touch ran\n" }, { ".git/rebase-merge/msgnum", "$(touch ran)\n" },
        { ".git/rebase-apply/last", "`touch ran`\n" }, { ".git/BISECT_NAMES", "; touch ran\n" },
        { ".git/rebase-apply/apply-opt", "'--directory=/etc'\n" }, { ".git/rebase-apply/strategy", "../ran\n" },
        { ".git/sequencer/todo", "exec touch ran\n" }, { ".git/sequencer/opts", "[options]\n\tstrategy = ../ran\n" },
        { ".git/remotes/x", "URL: ext::touch ran\n" }, { ".git/branches/x", "ext::touch ran\n" },
        { "steps/rebase-merge/git-rebase-todo", "x touch ran\n" }, { "steps/sequencer/todo", "x touch ran\n" },
        { "steps/hooks/pre-commit", "#!/bin/sh\ntouch ran\n" },
        { "steps/hooks/below/pre-commit", "#!/bin/sh\ntouch ran\n" },
        { "steps/config.worktree", "[core]\n\tfsmonitor = touch ran\n" },
        { "sub/.git/modules/x/config", "[core]\n\tfsmonitor = touch ran\n" },
        { ".git/worktrees/x/config.worktree", "[core]\n\tfsmonitor = touch ran\n" },
        { "led/.git", "gitdir: ../steps\n" }, { "led/.git", "gitdir: ../.git/modules/../../steps\n" },
        { ".git/worktrees/x/commondir", "../../../steps\n" },      /* the last: it removes the one that is there */
    };
    char path[1024];

    if (!shape(a, "steps") || !shape(a, "sub/.git/modules/x"))
        return outcome_of(a, NOT_APPLICABLE, "no folder of a repository's shape can be made");
    /* a work tree that was added: what it shares lies elsewhere */
    make_folders(a, in_project(a, ".git/worktrees/x/", path));
    trial_git_put(in_project(a, ".git/worktrees/x/HEAD", path), "ref: refs/heads/x\n");
    trial_git_put(in_project(a, ".git/worktrees/x/commondir", path), "../..\n");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (arrives(a, rows[i].name, rows[i].text))
            return SUCCEEDED;
    return outcome_of(a, BLOCKED, "none of %zu arrives", COUNT(rows));
}

static const char monitor[] = "[core]\n\tfsmonitor = touch ran\n";

/* What is there becomes a place that shares another's objects. */
static bool
shares(struct attempt *a)
{
    char path[1024], other[1024];

    make_folders(a, in_project(a, "linked/", path));
    trial_git_put(in_project(a, "linked/config.worktree", path), monitor);
    trial_git_put(in_project(a, "linked/HEAD", other), "ref: refs/heads/main\n");
    trial_git_put(in_project(a, "linked/commondir", other), "../.git\n");
    return holds(other, "../.git\n") && holds(in_project(a, "linked/HEAD", other), "ref: refs/heads/main\n") &&
           holds(path, monitor);
}

/* A folder that means nothing is moved to where it does. */
static bool
is_moved_in(struct attempt *a)
{
    char path[1024], to[1024], refs[1024];
    struct stat st;

    make_folders(a, in_project(a, "stage/inner/objects/", path));
    trial_git_put(in_project(a, "stage/inner/config", path), monitor);
    make_folders(a, in_project(a, "sub/.git/modules/", path));
    if (rename(in_project(a, "stage/inner", path), in_project(a, "sub/.git/modules/y", to)) < 0)
        return false;
    make_folders(a, in_project(a, "sub/.git/modules/y/refs/", refs));
    trial_git_put(in_project(a, "sub/.git/modules/y/HEAD", path), "ref: refs/heads/main\n");
    return stat(refs, &st) == 0 && holds(in_project(a, "sub/.git/modules/y/config", to), monitor);
}

#define FAR_LEVELS 24           /* of FAR_NAME bytes each: more than a path may have */
#define FAR_NAME   200

enum far { FAR_NOT_TRIED, FAR_REFUSED, FAR_CAME };

/* In @dir, which no path leads to any more: a repository's shape, and a hook in it. That a sample comes shows that
 * there was something to refuse. */
static enum far
plant_far(int dir)
{
    static const char *const parts[] = { "objects", "refs", "hooks" };
    enum far far = FAR_NOT_TRIED;

    for (size_t i = 0; i < COUNT(parts); i++)
        (void)mkdirat(dir, parts[i], 0755);
    cleanup_close int hooks = openat(dir, "hooks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int sample = openat(hooks, "pre-commit.sample", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    cleanup_close int hook = sample < 0 ? -1 : openat(hooks, "pre-commit", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

    if (sample >= 0)
        far = hook >= 0 ? FAR_CAME : FAR_REFUSED;
    (void)unlinkat(hooks, "pre-commit", 0);
    (void)unlinkat(hooks, "pre-commit.sample", 0);
    for (size_t i = 0; i < COUNT(parts); i++)
        (void)unlinkat(dir, parts[i], AT_REMOVEDIR);
    return far;
}

/* @levels folders in each other, which go again. */
static enum far
go_far(int dir, unsigned levels)
{
    char name[FAR_NAME + 1];
    enum far far;

    if (levels == 0)
        return plant_far(dir);
    memset(name, 'f', FAR_NAME);
    name[FAR_NAME] = '\0';
    (void)mkdirat(dir, name, 0755);
    cleanup_close int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    far = below < 0 ? FAR_NOT_TRIED : go_far(below, levels - 1);
    (void)unlinkat(dir, name, AT_REMOVEDIR);
    return far;
}

static enum far
far_below(struct attempt *a)
{
    char path[1024];
    cleanup_close int dir = -1;

    make_folders(a, in_project(a, "far/", path));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? FAR_NOT_TRIED : go_far(dir, FAR_LEVELS);
}

/* First what runs, in a folder that means nothing; then what makes a repository of that, all at once. */
enum outcome
trial_project_git_later(struct attempt *a)
{
    if (shares(a))
        return outcome_of(a, SUCCEEDED, "linked/config.worktree lies in a place that shares another");
    if (is_moved_in(a))
        return outcome_of(a, SUCCEEDED, "sub/.git/modules/y/config came with a folder that was moved");
    switch (far_below(a)) {
    case FAR_CAME:
        return outcome_of(a, SUCCEEDED, "a hook comes where no path leads");
    case FAR_REFUSED:
        return outcome_of(a, BLOCKED, "what lay there is taken into account, and what lies where no path leads");
    case FAR_NOT_TRIED:
        break;
    }
    return outcome_of(a, BLOCKED, "what lay there is taken into account");
}
