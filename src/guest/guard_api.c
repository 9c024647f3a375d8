/* guest/guard_api.c: the guest's own file requests, which do not pass the filter (see guard.h) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"

/* A place in a directory that the caller holds: not closed here. */
static int
place_of(struct guard *g, int dirfd, const char *name, struct place *p)
{
    size_t n = strlen(name);

    /* the guest may move directories next */
    later_settle(g, false);
    rules_next_call(&g->rules);
    rules_moved(&g->rules);
    *p = (struct place){ .dir = dirfd };
    if (n > NAME_MAX || fstat(dirfd, &p->dir_st) < 0)
        return n > NAME_MAX ? ENAMETOOLONG : errno;
    memcpy(p->name, name, n + 1);
    p->name_n = n;
    return 0;
}

int
guard_aliased(struct guard *g, int dirfd, const char *name, const char *op)
{
    struct call c = { .g = g, .op = op };
    const char *rule = "";
    struct place p;
    int rc = place_of(g, dirfd, name, &p);

    if (rc != 0 || !rules_ambiguous(g, p.name, p.name_n) || !rules_aliased(g, dirfd, &p.dir_st, name, &rule))
        return rc;
    return -deny(&c, &p, rule, EACCES);
}

int
guard_made(struct guard *g, int dirfd, const char *name, bool directory)
{
    struct call c = { .g = g, .op = directory ? "mkdir" : "write" };
    struct place p;
    int rc = guard_aliased(g, dirfd, name, c.op);

    if (rc == 0)
        rc = place_of(g, dirfd, name, &p);
    p.git_whole = g->asked_whole;
    return rc == 0 ? -after_made(&c, &p, directory ? S_IFDIR : S_IFREG) : rc;
}

int
guard_renamed(struct guard *g, int from, const char *from_name, int to, const char *to_name)
{
    struct call c = { .g = g, .op = "rename" };
    struct place source, target;
    const char *rule = "";
    struct stat st;
    int rc = guard_aliased(g, to, to_name, c.op);

    if (rc == 0)
        rc = place_of(g, from, from_name, &source);
    if (rc == 0)
        rc = place_of(g, to, to_name, &target);
    if (rc != 0)
        return rc;
    target.git_whole = g->asked_whole;
    if (judge_make(&c, &target, false, &rule))
        return -deny(&c, &target, rule, EACCES);
    return fstatat(to, to_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : -git_call_came(&c, &source, &st, &target);
}

int
guard_check(struct guard *g, int dirfd, const char *name, const char *op)
{
    struct call c = { .g = g, .op = op };
    bool directory = strcmp(op, "mkdir") == 0;
    const char *rule = "";
    struct place p;
    int rc = guard_aliased(g, dirfd, name, op);

    if (rc == 0)
        rc = place_of(g, dirfd, name, &p);
    if (rc != 0)
        return rc;
    g->asked_whole = git_is_whole(g, dirfd, &p.dir_st, str_of(name));
    if (judge_make(&c, &p, directory, &rule))
        return -deny(&c, &p, rule, EACCES);
    if (directory)
        return -git_call_make(&c, &p, true, false);
    return strcmp(op, "remove") == 0 || strcmp(op, "rename") == 0 ? -git_call_leave(&c, &p) : 0;
}

int
guard_check_write(struct guard *g, int dirfd, const char *name)
{
    struct call c = { .g = g, .op = "write" };
    struct place p;
    int rc = place_of(g, dirfd, name, &p);

    return rc != 0 ? rc : -git_call_open(&c, &p, O_WRONLY | O_CREAT);
}

int
guard_rename(struct guard *g, int from, const char *from_name, int to, const char *to_name, bool replace)
{
    struct call c = { .g = g, .op = "rename" };
    struct place source, target;
    struct stat st;
    int rc = place_of(g, from, from_name, &source);

    if (rc == 0)
        rc = place_of(g, to, to_name, &target);
    if (rc != 0)
        return rc;
    if (fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    rc = git_call_come(&c, &source, &st, &target);
    if (rc != GIT_CALL_COPY)
        return -rc;
    rc = git_call_copy(&c, &source, &target, replace ? 0 : GS_RENAME_NOREPLACE);
    return rc < 0 ? -rc : GUARD_DONE;
}

int
guard_place(struct guard *g, int fd, int dirfd, const char *name, bool replace)
{
    cleanup_close int file = open(fd_path(fd).text, O_RDONLY | O_CLOEXEC);
    struct call c = { .g = g, .op = "write" };
    char rule[GIT_RULE_MAX] = "";
    struct place p;
    struct stat st;
    int rc = place_of(g, dirfd, name, &p);

    if (rc != 0)
        return rc;
    if (file < 0 || fstat(file, &st) < 0)
        return errno;
    rc = (g->flags & GUARD_GIT) != 0 ? git_may_rename(g, file, "", &st, dirfd, &p.dir_st, str_of(name), rule) : 0;
    if (rc == GIT_BY_COPY)
        rc = git_copy_to(g, file, dirfd, &p.dir_st, name, replace ? 0 : GS_RENAME_NOREPLACE, rule, NULL);
    else if (rc == 0)
        return 0;
    return rc == EACCES ? -deny(&c, &p, rule, EACCES) : rc == 0 ? GUARD_DONE : rc;
}
