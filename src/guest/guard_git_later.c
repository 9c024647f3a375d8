/* guest/guard_git_later.c: a judged file that its maker writes in place (see guard_git.h)
 *
 * git writes the options of a rebase with open() and write(), and so do `cp` and `tar` with a configuration. What will
 * be in the file is not known when it is opened. So its maker gets a file without a name; when nobody has it open for
 * writing any more, which the guard asks at the next call that it serves and every few milliseconds, it is judged and a
 * copy of it takes the name. Until then the name is not there, or is what it was: that is why files that a program
 * reads at once are not made so (git_may_write_later). After the redirections of a worktree or submodule git makes
 * another file before it reads them, but for commondir.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"

bool
later_is_closed(int file)
{
    if (fcntl(file, F_SETLEASE, F_RDLCK) < 0)
        return false;
    (void)fcntl(file, F_SETLEASE, F_UNLCK);
    return true;
}

static void
drop(struct guard *g, size_t i)
{
    struct later *l = &g->later[i];

    close_fd(&l->dir);
    close_fd(&l->file);
    g->later[i] = g->later[--g->n_later];
}

static void
finish(struct guard *g, struct later *l)
{
    struct call c = { .g = g, .op = "write" };
    struct place p = { .dir = l->dir, .name_n = strlen(l->name) };
    char rule[GIT_RULE_MAX] = "";
    const char *other = "";

    memcpy(p.name, l->name, p.name_n + 1);
    if (fstat(l->dir, &p.dir_st) < 0)
        return;
    /* the directory may have been moved since */
    rules_next_call(&g->rules);
    if (judge_make(&c, &p, false, &other))
        (void)deny(&c, &p, other, EACCES);
    else if (git_copy_to(g, l->file, l->dir, &p.dir_st, l->name, 0, rule, NULL) == EACCES)
        (void)deny(&c, &p, rule, EACCES);
}

void
later_settle(struct guard *g, bool all)
{
    for (size_t i = g->n_later; i-- > 0;) {
        if (!all && !later_is_closed(g->later[i].file))
            continue;
        if (later_is_closed(g->later[i].file))
            finish(g, &g->later[i]);
        drop(g, i);
    }
}

bool
guard_settle(struct guard *g)
{
    if (g->n_later > 0)
        later_settle(g, false);
    return held_settle(g) || g->n_later > 0;
}

static struct later *
find(struct guard *g, const struct place *p, const char *name)
{
    struct stat st;

    for (size_t i = 0; i < g->n_later; i++)
        if (strcmp(g->later[i].name, name) == 0 && fstat(g->later[i].dir, &st) == 0 &&
            ident_eq(ident_of(&st), ident_of(&p->dir_st)))
            return &g->later[i];
    return NULL;
}

/* What is there now stays, unless it is to be truncated. */
static int
take_over(int file, const struct place *p, const char *name)
{
    cleanup_close int old = openat(p->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return old < 0 ? errno == ENOENT ? 0 : -errno : -git_copy_text(old, file);
}

/* A file without a name that its maker shall write. 0 with @l, or a negated errno. */
static int
guard_git_later_begin(struct later *l, const struct place *p, const char *name, int flags, int *writer)
{
    cleanup_close int file = openat(p->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int rc = 0;

    if (file < 0)
        return -errno;
    if ((flags & O_TRUNC) == 0 && (rc = take_over(file, p, name)) < 0)
        return rc;
    l->file = open(fd_path(file).text, O_RDONLY | O_CLOEXEC);
    close_fd(&file);
    /* a file system that does not tell who writes would never be done */
    if (l->file < 0 || !later_is_closed(l->file))
        return -EACCES;
    *writer = open(fd_path(l->file).text, (flags & (O_ACCMODE | O_APPEND | O_CLOEXEC)) | O_NONBLOCK | O_CLOEXEC);
    return *writer < 0 ? -errno : 0;
}

/* A worktree's commondir is read by the next program, which no call of this one comes before; but git always writes the
 * same. So a file that says that is there at once, if it may say it here. @writer starts from nothing all the same. */
static int
put_commondir(struct guard *g, const struct later *l, const struct place *p, int writer)
{
    static const char text[] = GIT_COMMON_TEXT;
    char rule[GIT_RULE_MAX] = "";
    struct stat st;

    if (git_part_of(str_of(l->name)) != GIT_PART_COMMONDIR ||
        fstatat(p->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (write(writer, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1)
        return -EIO;
    (void)git_copy_to(g, l->file, p->dir, &p->dir_st, l->name, GS_RENAME_NOREPLACE, rule, NULL);
    return ftruncate(writer, 0) < 0 || lseek(writer, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* A file that is there keeps its mode. */
static mode_t
mode_of(const struct place *p, const char *name, mode_t made)
{
    struct stat st;

    return (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode : made) & 0777;
}

int
later_open(struct call *c, const struct place *p, int flags, mode_t mode, int *writer)
{
    struct guard *g = c->g;
    struct later *l;
    char name[PATH_MAX + 1];
    int rc;

    *writer = -1;
    (void)place_name(p, name);
    if (p->name_n > NAME_MAX || p->name[p->name_n] == '/')
        return -EACCES;
    if (git_is_lock(str_of(name)))
        return held_open(c, p, flags, mode, writer);
    if ((l = find(g, p, name)) != NULL) {
        if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
            return -EEXIST;
        *writer = open(fd_path(l->file).text, (flags & (O_ACCMODE | O_APPEND | O_TRUNC)) | O_NONBLOCK | O_CLOEXEC);
        return *writer < 0 ? -errno : 0;
    }
    if (g->n_later == LATER_MAX)
        return deny(c, p, "git state: too many files written in place at once", EACCES);
    if ((rc = caller_umask(c)) < 0)
        return -EACCES;
    l = &g->later[g->n_later];
    *l = (struct later){ .dir = fcntl(p->dir, F_DUPFD_CLOEXEC, 0), .file = -1 };
    memcpy(l->name, name, p->name_n + 1);
    rc = l->dir < 0 ? -errno : guard_git_later_begin(l, p, name, flags, writer);
    if (rc == 0 && fchmod(*writer, mode_of(p, name, mode & ~c->umask)) < 0)
        rc = -errno;
    if (rc == 0)
        rc = put_commondir(g, l, p, *writer);
    g->n_later++;
    if (rc < 0) {
        close_fd(writer);
        drop(g, g->n_later - 1);
    }
    return rc;
}
