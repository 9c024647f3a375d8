/* probe/trial_project.c: a project and a home of prove's own, and whatever of the host is found by its content
 *
 * The project is open for writing, so nothing but the rules keeps its protected names. Outside, places of the home and
 * folders in the host's /tmp, /run and the like hold tokens, files of one size that begin alike: wherever a token is
 * found inside, under whatever name, the wall has a hole there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"
#include "probe/places.h"

#define COUNT(rows) ARRAY_LEN(rows)
#define SEARCH_ENTRIES 200000
#define TOP_CONFIG     "/.git/config"
#define SEARCH_DEPTH   12
#define EXCHANGE       2U      /* RENAME_EXCHANGE */

/* What docs/policy.md says is protected, said again here: from the policy itself the probe would learn what a slip had
 * made of it. prove/prove_trial.c makes the first in the project; the second are absent. */
static const char *const present[] = {
    ".git/hooks/pre-commit", ".git/config", ".bashrc", ".vscode/tasks.json", ".gitmodules", "sub/.git/config",
    "sub/.git/hooks/post-checkout",
};
static const char *const absent_names[] = {
    ".git/hooks/pre-push", ".envrc", ".idea", ".claude/settings.json",
    /* in other letters: a file system may not tell them apart */
    ".git/HOOKS", ".Envrc", ".claude/SETTINGS.json",
    ".git/config.worktree", ".git/commondir", ".git/info/attributes", ".gitconfig", ".bash_profile", ".bash_login",
    ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc",
    ".inputrc", ".vimrc", ".exrc", ".nvimrc", ".gdbinit", ".lldbinit", ".mcp.json", ".ripgreprc", ".cursor",
    ".windsurf", ".zed", ".devcontainer", ".claude/settings.local.json", ".claude/commands", ".claude/agents",
    ".claude/hooks", ".codex/config.toml", ".gemini/settings.json", ".gemini/commands", ".srt-settings.json",
    ".config/git", ".config/systemd", ".config/autostart", ".config/environment.d", ".config/fish",
    ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".jj/repo/config.toml", ".sl/config",
    ".jj/workspace-config.toml", ".git/sl/config", ".git/lazygit.yml", ".pijul/config", "_darcs/prefs/defaults",
    "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise", ".config/mise", ".config/mise.toml",
    ".nvim.lua", ".helix",
};
#define TRIED_IN_EVERY_WAY 7    /* of these; of the rest by the commonest */

static char *
join(const char *folder, const char *name, char out[1024])
{
    return (size_t)snprintf(out, 1024, "%s/%s", folder, name) < 1024 ? out : NULL;
}

static bool
make_file_of(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A file of our own in the project, as what is to take another's place. */
static bool
make_file(const char *path)
{
    return make_file_of(path, "own\n");
}

/* As git changes the configuration at the top: that is a copy, of which this key is not given back. Whether the owner's
 * file stays as it is only outside can tell (prove/prove_trial_outside.c). */
static bool
replace_config(const char *own, const char *path)
{
    size_t n = strlen(path), tail = strlen(TOP_CONFIG);

    if (n < tail || strcmp(path + n - tail, TOP_CONFIG) != 0 || strstr(path, "/sub/") != NULL)
        return false;
    return make_file_of(own, "[user]\n\tname = prove\n") && rename(own, path) == 0;
}

enum outcome
trial_project_control(struct attempt *a)
{
    char path[1024];

    if (a->p->project == NULL || chdir(a->p->project) < 0)
        return outcome_of(a, SUCCEEDED, "there is no project: %s", strerror(errno));
    if (!make_file(join(a->p->project, "made", path)))
        return outcome_of(a, SUCCEEDED, "no file can be made in it: %s", strerror(errno));
    if (unlink(path) < 0)
        return outcome_of(a, SUCCEEDED, "a file of its own cannot be removed: %s", strerror(errno));
    return outcome_of(a, BLOCKED, "a file was made and removed in %s", a->p->project);
}

/* By calls that are others' to the kernel, and to who looks at them, than those that everybody makes. */
static const char *
changed_otherwise(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    cleanup_close int cut = open(path, O_RDONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (cut >= 0)
        return "cut, being opened for reading";
    if (fd >= 0 && fchmod(fd, 0600) == 0)
        return "given another mode through its descriptor";
    if (fchownat(AT_FDCWD, path, getuid(), (gid_t)-1, AT_SYMLINK_NOFOLLOW) == 0)
        return "given an owner";
#ifdef SYS_chown
    if (syscall(SYS_chown, path, getuid(), (gid_t)-1) == 0 || syscall(SYS_lchown, path, getuid(), (gid_t)-1) == 0)
        return "given an owner by the calls without a folder";
#endif
    if (syscall(452L /* fchmodat2 */, AT_FDCWD, path, 0600U, 0U) == 0)
        return "given another mode by fchmodat2";
#ifdef SYS_utimes
    if (syscall(SYS_utimes, path, NULL) == 0)
        return "given other times by utimes";
#endif
    /* there is none: that is what the kernel says once it may be removed */
    if (lremovexattr(path, "user.prove") < 0 && errno == ENODATA)
        return "asked to lose an attribute";
    /* what is in it may keep it, which is no wall */
    if (rmdir(path) == 0 || errno == ENOTEMPTY)
        return "removed by rmdir";
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0 ? "removed by unlinkat" : NULL;
}

/* Change what is at @path in every way. It is prove's own, so that what works may do harm. */
static bool
can_change(struct attempt *a, const char *path)
{
    char own[1024], aside[1024];
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const char *how = NULL;

    join(a->p->project, "take-its-place", own);
    join(a->p->project, "moved-aside", aside);
    if (fd >= 0) {
        close(fd);
        how = "opened for writing";
    } else if (truncate(path, 0) == 0) {
        how = "cut";
    } else if (rename(path, aside) == 0) {
        how = "moved away";
    } else if (!replace_config(own, path) && make_file(own) && rename(own, path) == 0) {
        how = "replaced by rename";
    } else if (link(path, aside) == 0 && (fd = open(aside, O_WRONLY | O_CLOEXEC)) >= 0) {
        close(fd);
        how = "written through a hard link";
    } else if (unlink(path) == 0) {
        how = "removed";
    } else if (chmod(path, 0600) == 0) {
        how = "given another mode";
    } else if (utimensat(AT_FDCWD, path, NULL, 0) == 0) {
        how = "given other times";
    } else {
        how = changed_otherwise(path);
    }
    unlink(own);
    unlink(aside);
    if (how != NULL)
        outcome_of(a, SUCCEEDED, "%s can be %s", path, how);
    return how != NULL;
}

enum outcome
trial_project_present(struct attempt *a)
{
    char path[1024];
    struct stat st;

    for (size_t i = 0; i < COUNT(present); i++) {
        if (lstat(join(a->p->project, present[i], path), &st) < 0)
            return outcome_of(a, SUCCEEDED, "%s is not there: %s", path, strerror(errno));
        if (can_change(a, path))
            return SUCCEEDED;
    }
    return outcome_of(a, BLOCKED, "all %zu stay as they are", COUNT(present));
}

/* The same calls in the form that takes a folder's descriptor, and what only that form can. */
static const char *
made_at(const char *path, const char *own, const char *folder)
{
    const struct { uint64_t flags, mode, resolve; } at = { O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644, 0 };
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    cleanup_close int fd = (int)syscall(437L /* openat2 */, AT_FDCWD, path, &at, sizeof(at));

    if (fd >= 0)
        return "made by openat2";
    if (syscall(SYS_mkdirat, AT_FDCWD, path, 0755) == 0)
        return "made by mkdirat";
    if (syscall(SYS_symlinkat, "becomes-it", AT_FDCWD, path) == 0)
        return "made by symlinkat";
    if (syscall(SYS_linkat, AT_FDCWD, own, AT_FDCWD, path, 0) == 0)
        return "made by linkat";
    if (syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | 0644, 0) == 0)
        return "made by mknodat";
    if (syscall(SYS_renameat2, AT_FDCWD, own, AT_FDCWD, path, 0) == 0)
        return "renamed to by renameat2";
#ifdef SYS_renameat
    if (syscall(SYS_renameat, AT_FDCWD, folder, AT_FDCWD, path) == 0)
        return "renamed to by renameat";
#endif
    if (strlen(path) >= sizeof(name.sun_path))
        return NULL;
    memcpy(name.sun_path, path, strlen(path) + 1);
    cleanup_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return sock >= 0 && bind(sock, (struct sockaddr *)&name, sizeof(name)) == 0 ? "made by bind" : NULL;
}

/* Make @path in every way; with @all in every form. */
static bool
can_make(struct attempt *a, const char *path, bool all)
{
    char own[1024], folder[1024];
    const char *how = NULL;

    join(a->p->project, "becomes-it", own);
    join(a->p->project, "becomes-it-too", folder);
    make_file(own);
    mkdir(folder, 0755);
    if (make_file(path))
        how = "made";
    else if (mkdir(path, 0755) == 0)
        how = "made as a folder";
    else if (symlink("becomes-it", path) == 0)
        how = "made as a link";
    else if (link(own, path) == 0)
        how = "made as a hard link";
    else if (rename(own, path) == 0)
        how = "renamed to";
    else if (rename(folder, path) == 0)
        how = "renamed to from a folder";
    else if (mknod(path, S_IFREG | 0644, 0) == 0 || mknod(path, S_IFIFO | 0644, 0) == 0)
        how = "made by mknod";
    else if (all)
        how = made_at(path, own, folder);
    unlink(own);
    rmdir(folder);
    if (how != NULL)
        outcome_of(a, SUCCEEDED, "%s can be %s", path, how);
    return how != NULL;
}

enum outcome
trial_project_absent(struct attempt *a)
{
    char path[1024], above[1024];

    for (size_t i = 0; i < COUNT(absent_names); i++) {
        join(a->p->project, absent_names[i], path);
        /* the folders around it are free to make (.config), or are protected themselves */
        snprintf(above, sizeof(above), "%s", path);
        for (char *at = above + strlen(a->p->project) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
            *at = '\0';
            mkdir(above, 0755);
        }
        if (can_make(a, path, i < TRIED_IN_EVERY_WAY))
            return SUCCEEDED;
    }
    return outcome_of(a, BLOCKED, "none of %zu comes into being", COUNT(absent_names));
}

static bool
makes_at(struct attempt *a, int dir, const char *name, const char *how)
{
    cleanup_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 && mkdirat(dir, name, 0755) < 0 && symlinkat("/", dir, name) < 0)
        return false;
    outcome_of(a, SUCCEEDED, "%s can be made %s", name, how);
    return true;
}

/* The same place, by names that do not begin at the top. */
enum outcome
trial_project_relative(struct attempt *a)
{
    static const struct { const char *folder, *name; } rows[] = {
        { "", ".envrc" }, { ".git/hooks", "pre-push" }, { ".config", "git" },
    };
    char path[1024], text[1200], link_path[1024];

    join(a->p->project, "leads-up", link_path);
    for (size_t i = 0; i < COUNT(rows); i++) {
        join(a->p->project, rows[i].folder, path);
        mkdir(path, 0755);
        cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            continue;
        if (makes_at(a, dir, rows[i].name, "by its folder's descriptor"))
            return SUCCEEDED;
        snprintf(text, sizeof(text), "/proc/self/fd/%d/%s", dir, rows[i].name);
        if (makes_at(a, AT_FDCWD, text, "through /proc"))
            return SUCCEEDED;
        snprintf(text, sizeof(text), "%s/./../%s/%s//%s", a->p->project, strrchr(a->p->project, '/') + 1,
                 rows[i].folder, rows[i].name);
        if (makes_at(a, AT_FDCWD, text, "by .."))
            return SUCCEEDED;
        if (symlink(path, link_path) == 0) {
            snprintf(text, sizeof(text), "%s/%s", link_path, rows[i].name);
            bool made = makes_at(a, AT_FDCWD, text, "through a link");
            unlink(link_path);
            if (made)
                return SUCCEEDED;
        }
        if (chdir(path) == 0 && makes_at(a, AT_FDCWD, rows[i].name, "from its own folder"))
            return SUCCEEDED;
    }
    return outcome_of(a, BLOCKED, "none of %zu, in five ways", COUNT(rows));
}

/* The mask of a command is the one that docs/policy.md promises; what the guard makes obeys the mask of who asked. */
enum outcome
trial_project_mode(struct attempt *a)
{
    char path[1024];
    mode_t given = umask(0077);
    struct stat file = { .st_mode = 0777 }, folder = { .st_mode = 0777 };

    if (!make_file(join(a->p->project, "masked", path)) || stat(path, &file) < 0)
        return outcome_of(a, NOT_APPLICABLE, "%s: %s", path, strerror(errno));
    unlink(path);
    if (mkdir(path, 0777) == 0)
        (void)stat(path, &folder);
    rmdir(path);
    if ((given & 022) != 022)
        return outcome_of(a, SUCCEEDED, "the umask is %03o", (unsigned)given);
    if ((file.st_mode & 077) != 0 || (folder.st_mode & 077) != 0)
        return outcome_of(a, SUCCEEDED, "with umask 077 a file has mode %04o, a folder %04o",
                          (unsigned)file.st_mode & 07777, (unsigned)folder.st_mode & 07777);
    return outcome_of(a, BLOCKED, "the umask is %03o, and its own is obeyed", (unsigned)given);
}

/* Landlock stands behind that, and would hide that it is lost. */
enum outcome
trial_project_tree(struct attempt *a)
{
    static const char *const places[] = { "/usr", "/opt", "/", "/etc", "/var", "/home" };
    size_t n = a->p->own_root ? 2 : COUNT(places);
    struct statvfs fs;

    if (a->p->mode != NULL && strcmp(a->p->mode, "light") == 0)
        return outcome_of(a, NOT_APPLICABLE, "nothing is mounted");
    for (size_t i = 0; i < n; i++)
        if (statvfs(places[i], &fs) == 0 && (fs.f_flag & ST_RDONLY) == 0)
            return outcome_of(a, SUCCEEDED, "%s is mounted writable", places[i]);
    return outcome_of(a, BLOCKED, "all of %zu are read-only", n);
}

enum outcome
trial_project_moved(struct attempt *a)
{
    static const char *const folders[] = { ".git", ".git/hooks", ".vscode", "sub/.git", "sub/.git/hooks", "sub" };
    char path[1024], aside[1024];

    for (size_t i = 0; i < COUNT(folders); i++)
        if (rename(join(a->p->project, folders[i], path), join(a->p->project, "aside", aside)) == 0)
            return outcome_of(a, SUCCEEDED, "%s can be moved away", path);
    /* in exchange for an empty one, which is asked for from both sides */
    mkdir(aside, 0755);
    for (size_t i = 0; i < COUNT(folders); i++)
        if (syscall(SYS_renameat2, AT_FDCWD, aside, AT_FDCWD, join(a->p->project, folders[i], path), EXCHANGE) == 0 ||
            syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, aside, EXCHANGE) == 0)
            return outcome_of(a, SUCCEEDED, "%s can be exchanged", path);
    rmdir(aside);
    return outcome_of(a, BLOCKED, "none of %zu moves", COUNT(folders));
}

enum outcome
trial_project_deny_write(struct attempt *a)
{
    char folder[1024], path[1024];

    join(a->p->project, "closed", folder);
    if (can_change(a, join(folder, "file", path)) || can_make(a, join(folder, "fresh", path), true))
        return SUCCEEDED;
    if (rename(folder, join(a->p->project, "aside", path)) == 0)
        return outcome_of(a, SUCCEEDED, "%s can be moved away", folder);
    /* one that is named and not there */
    if (can_make(a, join(a->p->project, "closed-later", path), true))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "neither what is there nor what could come");
}

enum outcome
trial_project_deny_read(struct attempt *a)
{
    char path[1024], link_path[1024];
    struct stat st;

    if (a->p->hidden == NULL)
        return outcome_of(a, NOT_APPLICABLE, "nothing was hidden");
    if (try_open(a, join(a->p->hidden, "token", path), O_RDONLY) == SUCCEEDED)
        return SUCCEEDED;
    if (symlink(path, join(a->p->project, "leads-there", link_path)) == 0) {
        enum outcome o = try_open(a, link_path, O_RDONLY);
        unlink(link_path);
        if (o == SUCCEEDED)
            return o;
    }
    cleanup_dir DIR *dir = opendir(a->p->hidden);
    struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return outcome_of(a, SUCCEEDED, "%s can be listed", a->p->hidden);
    return outcome_of(a, BLOCKED, "%s: %s", a->p->hidden, stat(path, &st) < 0 ? strerror(errno) : "does not open");
}

enum outcome
trial_project_read_only(struct attempt *a)
{
    char path[1024];

    if (can_change(a, join(a->p->project, "README", path)) || can_make(a, join(a->p->project, "fresh", path), true))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "%s stays as it is", a->p->project);
}

enum outcome
trial_project_set_user_id(struct attempt *a)
{
    return make_set_id(a, a->p->project);
}

/* --- bait --------------------------------------------------------------------------------------------------------- */

struct search {
    struct attempt *a;
    bool closed_only;           /* what is open to all may be found: the view is the host's */
    bool write;                 /* not whether it can be read, but whether it opens for writing */
    size_t left;
    size_t seen;
};

static bool search_all(struct search *s, int dirfd, const char *path, unsigned depth);

static bool
is_token(struct search *s, int dirfd, const char *name, const char *path)
{
    const char *prefix = s->a->p->token;
    size_t n = strlen(prefix);
    char text[PROBE_TOKEN_SIZE + 1] = "";
    cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || read(fd, text, PROBE_TOKEN_SIZE) != PROBE_TOKEN_SIZE || strncmp(text, prefix, n) != 0)
        return false;
    s->seen++;
    if (s->write) {
        cleanup_close int writer = openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (writer < 0)
            return false;
    } else if (s->closed_only && text[n] != 'C') {
        return false;
    }
    outcome_of(s->a, SUCCEEDED, "%s %s: %.40s", path, s->write ? "opens for writing" : "holds what is closed",
               text + n + 1);
    return true;
}

static bool
search_one(struct search *s, int dirfd, const char *path, const char *name, unsigned depth)
{
    char child[1024];
    struct stat st;

    s->left--;
    if ((size_t)snprintf(child, sizeof(child), "%s/%s", path, name) >= sizeof(child) ||
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISREG(st.st_mode))
        return st.st_size == PROBE_TOKEN_SIZE && is_token(s, dirfd, name, child);
    if (!S_ISDIR(st.st_mode) || depth == SEARCH_DEPTH || strcmp(child, "/proc") == 0 || strcmp(child, "/sys") == 0 ||
        strcmp(child, "/usr") == 0)
        return false;
    cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && search_all(s, fd, child, depth + 1);
}

static bool
search_all(struct search *s, int dirfd, const char *path, unsigned depth)
{
    int list = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    cleanup_dir DIR *dir = list >= 0 ? fdopendir(list) : NULL;
    struct dirent *e;

    while (dir != NULL && s->left > 0 && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            search_one(s, dirfd, path, e->d_name, depth))
            return true;
    return false;
}

static bool
search_from(struct search *s, const char *start)
{
    cleanup_close int fd = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);

    return fd >= 0 && search_all(s, fd, strcmp(start, "/") == 0 ? "" : start, 1);
}

/* What prove put into places where everybody may write. */
static bool
search_beside(struct search *s)
{
    static const char *const places[] = { "/var/tmp", "/dev/shm", "/run" };
    char path[1024];

    for (size_t i = 0; i < COUNT(places); i++) {
        snprintf(path, sizeof(path), "%s/%.*s", places[i], (int)strcspn(s->a->p->token, ":"), s->a->p->token);
        if (search_from(s, path))
            return true;
    }
    return false;
}

/* The whole tree where it is the sandbox's own. In the host's, what prove made: the rest is the host's size. And then
 * each place by its name, for a folder that may not be listed may still be passed through. */
static bool
search_tree(struct search *s)
{
    s->left = SEARCH_ENTRIES;
    if (s->a->p->own_root && search_from(s, "/"))
        return true;
    return !s->a->p->own_root && (search_from(s, s->a->p->home) || search_beside(s));
}

enum outcome
trial_project_bait(struct attempt *a)
{
    struct search s = { .a = a, .closed_only = !a->p->own_root };
    char path[1024];

    if (a->p->token == NULL || a->p->home == NULL)
        return outcome_of(a, NOT_APPLICABLE, "there is no bait");
    for (size_t i = 0; i < COUNT(closed_places); i++)
        if (try_open(a, join(a->p->home, closed_places[i], path), O_RDONLY) == SUCCEEDED)
            return SUCCEEDED;
    if (search_tree(&s))
        return SUCCEEDED;
    if (s.left == 0)
        return outcome_of(a, NOT_APPLICABLE, "the tree is too large to be searched whole");
    return outcome_of(a, BLOCKED, "%zu entries searched, %zu tokens that may be there", SEARCH_ENTRIES - s.left,
                      s.seen);
}

enum outcome
trial_project_bait_write(struct attempt *a)
{
    struct search s = { .a = a, .write = true };

    if (a->p->token == NULL || a->p->home == NULL)
        return outcome_of(a, NOT_APPLICABLE, "there is no bait");
    if (search_tree(&s))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "%zu tokens are visible, none opens for writing", s.seen);
}
