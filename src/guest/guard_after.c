/* guest/guard_after.c: what was done is judged once more
 *
 * Theory: nothing that our own sandbox moves moves between a look and the call. But another sandbox of the same tree
 * has a guard of its own, and between our look and our call that one may let a directory become a git place or get a
 * protected name. So each guard looks, acts, and looks again at what is there by then: of two that act at the same
 * time, the one that looks last sees what both have done. What it refuses then is taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"

void
after_undo(const struct place *p, mode_t type)
{
    char name[PATH_MAX + 1], other[40];
    uint64_t r;

    (void)place_name(p, name);
    if (unlinkat(p->dir, name, S_ISDIR(type) ? AT_REMOVEDIR : 0) == 0 || !S_ISDIR(type) ||
        getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
        return;
    snprintf(other, sizeof(other), "refused-%016" PRIx64, r);
    (void)syscall(SYS_renameat2, p->dir, name, p->dir, other, GS_RENAME_NOREPLACE);
}

int
after_made(struct call *c, const struct place *p, mode_t type)
{
    const char *rule = "";
    int rc;

    if (guard_is_own(c->g, p->dir_st.st_dev))
        return 0;
    rules_next_call(&c->g->rules);
    rc = judge_make(c, p, S_ISDIR(type), &rule) ? deny(c, p, rule, EACCES) : git_call_made(c, p, type);
    if (rc < 0)
        after_undo(p, type);
    return rc;
}

int
after_opened(struct call *c, const struct place *p, int flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0, makes = (flags & O_CREAT) != 0;
    const char *rule = "";
    int rc;

    if ((!writes && !makes) || guard_is_own(c->g, p->dir_st.st_dev))
        return 0;
    rules_next_call(&c->g->rules);
    if (makes && judge_make(c, p, false, &rule))
        return deny(c, p, rule, EACCES);
    rc = writes ? git_call_opened(c, p) : 0;
    return rc == 0 && makes && !p->git_whole ? git_call_made(c, p, S_IFREG) : rc;
}

/* Where what was just made as @path lies. A name without a '/' does in the directory that is held, wherever that is by
 * now: to ask for that costs less. */
static ssize_t
text_now(struct call *c, int fd, const char *path, char *text)
{
    size_t len = strlen(path);
    ssize_t n;

    if (!c->cwd_lent || strchr(path, '/') != NULL)
        return fd_text(c->g, fd, text, 2 * PATH_MAX - 1);
    n = dir_text(c->g, c->cwd, text, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX)
        return -1;
    text[n] = '/';
    memcpy(text + n + 1, path, len);
    return n + 1 + (ssize_t)len;
}

bool
after_unasked(struct call *c, int fd, const char *path, char *text)
{
    char name[OBJECT_NAME_ROOM];
    ssize_t n = text_now(c, fd, path, text);
    struct stat st;

    if (n > 0 && rules_no_name(c->g, (struct str){ text, (size_t)n }) && git_no_name((struct str){ text, (size_t)n }))
        return true;
    cleanup_close int dir = fstat(fd, &st) == 0 ? object_parent(c->g, fd, &st, name) : -1;
    if (dir >= 0 && name[0] != '\0')
        (void)unlinkat(dir, name, 0);
    deny_object(c, fd, "a place that changed");
    return false;
}
