/* cli/agent_git.c: see agent_git.h */
#include "cli/agent_git.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "match/git_shape.h"
#include "workspace/quote.h"

static void
say(const char *before, const char *path, const char *after)
{
    cleanup_buf struct buf line = BUF_INIT(4 * PATH_MAX);

    buf_puts(&line, before);
    quote_name(&line, "", str_of(path));
    fprintf(stderr, "%.*s%s", (int)line.n, (const char *)line.p, after);
}

/* A worktree's `.git` file leads into the repository, and the repository back: a file that something wrote here by
 * itself is no reason to offer another project's. */
static bool
main_of_worktree(const char *cwd, const char *dot, char out[PATH_MAX])
{
    static const char within[] = "/.git/worktrees/";
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX), back = BUF_INIT(GIT_HEAD_MAX);
    char path[2 * PATH_MAX], real[PATH_MAX];
    struct str target;
    const char *at;

    if (io_read_regular(AT_FDCWD, dot, &text) < 0 ||
        !git_file_target((struct str){ (const char *)text.p, text.n }, &target))
        return false;
    snprintf(path, sizeof(path), "%s%s%.*s", target.p[0] == '/' ? "" : cwd, target.p[0] == '/' ? "" : "/",
             (int)target.n, target.p);
    if (realpath(path, real) == NULL || (at = strstr(real, within)) == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/gitdir", real);
    if (io_read_regular(AT_FDCWD, path, &back) < 0 ||
        !git_redirect_target((struct str){ (const char *)back.p, back.n }, &target) || !str_eq_c(target, dot))
        return false;
    snprintf(out, PATH_MAX, "%.*s", (int)(at - real) + (int)strlen("/.git"), real);
    return true;
}

void
agent_git_hint(const char *cwd, const char *home, const char *name)
{
    char dot[PATH_MAX + 8], top[PATH_MAX];
    struct stat st;
    char *slash;

    snprintf(dot, sizeof(dot), "%s/.git", cwd);
    if (lstat(dot, &st) == 0) {
        if (S_ISREG(st.st_mode) && main_of_worktree(cwd, dot, top)) {
            say("cloche: the repository of this worktree is not in it: git finds it with --bind ", top, ":rw");
            fprintf(stderr, " (before %s)\n", name);
        }
        return;
    }
    snprintf(top, sizeof(top), "%s", cwd);
    while ((slash = strrchr(top, '/')) != NULL && slash != top) {
        *slash = '\0';
        if (home != NULL && strcmp(top, home) == 0)
            return;
        snprintf(dot, sizeof(dot), "%s/.git", top);
        if (lstat(dot, &st) < 0)
            continue;
        say("cloche: this folder lies in a repository that the agent does not have: git finds it with --workspace ",
            top, "");
        say(" --workdir ", cwd, "");
        fprintf(stderr, " (before %s), which gives it the whole repository\n", name);
        return;
    }
}
