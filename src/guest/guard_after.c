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

bool
after_unasked(struct call *c, int fd, char *text)
{
    char name[OBJECT_NAME_ROOM];
    ssize_t n = fd_text(c->g, fd, text, 2 * PATH_MAX - 1);
    struct stat st;

    if (n > 0 && rules_no_name(c->g, (struct str){ text, (size_t)n }) && git_no_name((struct str){ text, (size_t)n }))
        return true;
    cleanup_close int dir = fstat(fd, &st) == 0 ? object_parent(c->g, fd, &st, name) : -1;
    if (dir >= 0 && name[0] != '\0')
        (void)unlinkat(dir, name, 0);
    deny_object(c, fd, "a place that changed");
    return false;
}
