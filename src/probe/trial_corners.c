/* probe/trial_corners.c: the ways around a rule that lead over something else than its name
 *
 * A folder that is shut and opened again by its owner, a link where git itself writes, a file whose name goes while it
 * is open, a name that only a link, a mount or the owner's git configuration leads to. What lies there was made by
 * prove/prove_trial_corners.c.
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
#include "probe/places.h"

#define COUNT(rows) ARRAY_LEN(rows)

/* What was put where --hidden lies: in the project, or beside it. */
static char *
beside_hidden(const struct attempt *a, const char *name, char out[1024])
{
    const char *slash = strrchr(a->p->hidden, '/');

    return (size_t)snprintf(out, 1024, "%.*s/%s", (int)(slash - a->p->hidden), a->p->hidden, name) < 1024 ? out : NULL;
}

static bool
is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static bool
trial_corners_put(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* --- shut folders ------------------------------------------------------------------------------------------------- */

enum outcome
trial_project_shut(struct attempt *a)
{
    static const char *const folders[] = { SHUT_FOLDER, SHUT_FOLDER_TOO };
    char folder[1024], token[1024];

    if (a->p->hidden == NULL)
        return outcome_of(a, NOT_APPLICABLE, "nothing was hidden");
    for (size_t i = 0; i < COUNT(folders); i++) {
        /* whoever owns it may open it: what rules close behind it stays closed */
        (void)!chmod(beside_hidden(a, folders[i], folder), 0755);
        snprintf(token, sizeof(token), "%.900s/token", folder);
        if (try_open(a, token, O_RDONLY) == SUCCEEDED)
            return SUCCEEDED;
    }
    /* behind a link that a rule closes */
    if (try_open(a, beside_hidden(a, "behind/token", token), O_RDONLY) == SUCCEEDED ||
        try_open(a, beside_hidden(a, "to-behind/token", token), O_RDONLY) == SUCCEEDED)
        return SUCCEEDED;
    /* what is mounted on a name holds that name, not the folders above: those are the guard's to hold */
    if (rename(beside_hidden(a, SHUT_TOP, folder), beside_hidden(a, "moved-away", token)) == 0)
        return outcome_of(a, SUCCEEDED, "%s, with what rules close in it, can be moved away", folder);
    return outcome_of(a, BLOCKED, "none of %zu opens with what a rule closes in it", COUNT(folders));
}

/* While the project is shut nobody can look where a name in it leads to. */
enum outcome
trial_project_shut_absent(struct attempt *a)
{
    char path[1024];
    bool made;

    mkdir(in_project(a, ".config", path), 0755);
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0 || chmod(a->p->project, 0) < 0)
        return outcome_of(a, NOT_APPLICABLE, "%s: %s", path, strerror(errno));
    cleanup_close int fd = openat(dir, "git", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    made = fd >= 0 || mkdirat(dir, "systemd", 0755) == 0;
    (void)!chmod(a->p->project, 0755);
    return made ? outcome_of(a, SUCCEEDED, "a protected name in %s is made while the project is shut", path)
                : outcome_of(a, BLOCKED, "nothing protected is made while the project is shut");
}

/* --- git ---------------------------------------------------------------------------------------------------------- */

/* A link at one of the names that git writes by itself: made there, moved there, or there before. */
static const char *
leads_from_git(struct attempt *a)
{
    static const char *const names[] = { ".git/index", ".git/COMMIT_EDITMSG", ".git/FETCH_HEAD", ".git/logs/HEAD",
                                         ".git/refs/heads/x", "sub/.git/index" };
    char path[1024], link_path[1024], folder[1024];

    in_project(a, "a-link", link_path);
    for (size_t i = 0; i < COUNT(names); i++) {
        in_project(a, names[i], path);
        if (strcmp(names[i], ".git/logs/HEAD") == 0)
            make_folders(a, path);
        unlink(link_path);
        if (symlink("/etc/passwd", path) == 0)
            return "a link is made where git writes";
        if (symlink("/etc/passwd", link_path) == 0 && rename(link_path, path) == 0)
            return "a link is moved to where git writes";
    }
    unlink(link_path);
    make_folders(a, in_project(a, "with-link/", folder));
    (void)!symlink("/etc/passwd", in_project(a, "with-link/heads", path));
    if (is_there(path) && rename(in_project(a, "with-link", folder), in_project(a, ".git/refs/y", path)) == 0)
        return "a folder with a link in it is moved to where git writes";
    make_folders(a, in_project(a, "leads/", folder));
    (void)!symlink("/etc/passwd", in_project(a, "leads/index", path));
    make_folders(a, in_project(a, "leads/objects/", folder));
    make_folders(a, in_project(a, "leads/refs/", folder));
    trial_corners_put(in_project(a, "leads/HEAD", folder), "ref: refs/heads/main\n");
    if (is_there(path) && is_there(folder) && is_there(in_project(a, "leads/refs", path)) &&
        is_there(in_project(a, "leads/objects", path)))
        return "a folder with a link where git writes becomes a repository";
    return NULL;
}

/* `.git` as a link: made, moved, or a second name of one. */
static const char *
linked_git(struct attempt *a)
{
    char path[1024], link_path[1024];

    make_folders(a, in_project(a, "linked-git/.git", path));
    if (symlink("../stage", path) == 0)
        return "a link is made as .git";
    unlink(in_project(a, "git-link", link_path));
    if (symlink("../stage", link_path) == 0 && rename(link_path, path) == 0)
        return "a link is renamed to .git";
    if (is_there(link_path) && link(link_path, path) == 0)
        return "a link gets .git for a second name";
    return NULL;
}

/* Where core.worktree of a submodule's repository leads depends on how deep that lies. */
static const char *
moved_module(struct attempt *a)
{
    char path[1024], up[1024];

    make_folders(a, in_project(a, "outer/.git/modules/m/objects/", path));
    make_folders(a, in_project(a, "outer/.git/modules/m/refs/", path));
    trial_corners_put(in_project(a, "outer/.git/modules/m/HEAD", path), "ref: refs/heads/main\n");
    if (is_there(path) && rename(in_project(a, "outer/.git/modules/m", path), in_project(a, "outer/m", up)) == 0)
        return "a submodule's repository is moved up";
    return NULL;
}

/* What was in the tree, with a repository in it, is moved to where redirections may lead. */
static const char *
brought_module(struct attempt *a)
{
    char path[1024], to[1024];

    make_folders(a, in_project(a, ".git/modules/", to));
    if (rename(in_project(a, "brought", path), in_project(a, ".git/modules/brought", to)) == 0)
        return "a repository that runs something is moved into .git with the folder around it";
    return NULL;
}

enum outcome
trial_project_git_leads(struct attempt *a)
{
    const char *how = leads_from_git(a);

    if (how == NULL)
        how = linked_git(a);
    if (how == NULL)
        how = moved_module(a);
    if (how == NULL)
        how = brought_module(a);
    return how != NULL ? outcome_of(a, SUCCEEDED, "%s", how)
                       : outcome_of(a, BLOCKED, "no link lies where git writes, or is .git; no module moves up");
}

/* Written in place it gets its name when nobody writes it any more, and only as it was judged. */
enum outcome
trial_project_git_in_place(struct attempt *a)
{
    static const char runs[] = "[core]\n\tfsmonitor = touch ran\n";
    char path[1024], other[1024], text[256] = "";

    make_folders(a, in_project(a, "in-place/objects/", other));
    make_folders(a, in_project(a, "in-place/refs/", other));
    trial_corners_put(in_project(a, "in-place/HEAD", other), "ref: refs/heads/main\n");
    if (!trial_corners_put(in_project(a, "in-place/config", path), runs))
        return outcome_of(a, BLOCKED, "%s: %s", path, strerror(errno));
    /* the guard looks whenever it is asked for something */
    for (int i = 0; i < 20 && !is_there(path); i++) {
        trial_corners_put(in_project(a, "asked", other), "own\n");
        unlink(other);
    }
    return read_small(path, text, sizeof(text)) > 0 && strstr(text, "fsmonitor") != NULL
               ? outcome_of(a, SUCCEEDED, "%s was written in place, and stays", path)
               : outcome_of(a, BLOCKED, "%s was written in place, and did not get its name", path);
}

/* --- names that are not there, or somewhere else ------------------------------------------------------------------ */

static bool
can_make(const char *path)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd >= 0 || mkdir(path, 0755) == 0 || symlink("README", path) == 0;
}

enum outcome
trial_project_led_to(struct attempt *a)
{
    /* closed to reading and absent; the folder of secrets; what .git/config names; behind a protected link */
    static const char *const absent_names[] = { "absent-read", "data/cloche", "husky/pre-commit", "included-config",
                                                "kept-codex/config.toml", "led-attributes", "led-filter",
                                                "sub/husky/pre-commit" };
    char path[1024];

    for (size_t i = 0; i < COUNT(absent_names); i++) {
        make_folders(a, in_project(a, absent_names[i], path));
        if (can_make(path))
            return outcome_of(a, SUCCEEDED, "%s can be made", path);
    }
    cleanup_close int fd = open(in_project(a, ".jj", path), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 || unlink(path) == 0)
        return outcome_of(a, SUCCEEDED, "%s, a file in the place of a protected folder, is changed", path);
    /* what a mount shows beside the home is what a rule closes by its other name */
    snprintf(path, sizeof(path), "%s/../elsewhere/token", a->p->home != NULL ? a->p->home : "");
    if (try_open(a, path, O_RDONLY) == SUCCEEDED)
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "none of %zu is made or changed", COUNT(absent_names) + 1);
}

/* Its name here goes while it is open: what is left of it lies outside. Judged there. */
enum outcome
trial_project_last_name(struct attempt *a)
{
    char path[1024], magic[64];

    cleanup_close int reader = open(in_project(a, "linked-last", path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (reader < 0 || unlink(path) < 0)
        return outcome_of(a, BLOCKED, "%s: %s", path, strerror(errno));
    snprintf(magic, sizeof(magic), "/proc/self/fd/%d", reader);
    cleanup_close int fd = open(magic, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "inside\n", 7);
    (void)!fchmod(reader, 0600);
    return outcome_of(a, BLOCKED, "its last name in the project was removed");
}
