/* engine/native/plan_hard_links.c: files of the bound folders that have names (hard links) elsewhere, as denied reads
 *
 * Only with `deny-hard-links`: it takes a walk through every bound folder before the start. A file of which all names
 * lie in the bound folders is theirs. What it finds joins the other denied reads, so that masks, holes and light mode
 * treat it like them; who has thousands of such files (a package manager's store) meets their ceiling, and is refused.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "wall/mnt.h"

#define FOUND_MAX 1000000       /* names of files that have several */
#define DEPTH_MAX 256

struct found {
    dev_t dev;
    ino_t ino;
    uint64_t links;
    dev_t dir_dev;              /* of the folder that holds this name: it may be met in two trees */
    ino_t dir_ino;
    const char *path, *name;    /* the plan's; @name is its last component */
};

struct finding {
    struct native_plan *plan;
    struct found *v;
    size_t n, room;
};

static int
plan_hard_links_add(struct finding *f, const struct stat *dir, const struct stat *st, const char *path, struct err *err)
{
    if (f->n == FOUND_MAX)
        return err_set(err, ERR_LIMIT, "wall.hard-links.too-many",
                       "deny-hard-links: more than %d names of files that have several", FOUND_MAX);
    if (f->n == f->room) {
        size_t room = f->room == 0 ? 1024 : 2 * f->room;
        struct found *bigger = reallocarray(f->v, room, sizeof(*bigger));

        if (bigger == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        f->v = bigger;
        f->room = room;
    }
    f->v[f->n++] = (struct found){ st->st_dev, st->st_ino, st->st_nlink, dir->st_dev, dir->st_ino, path,
                                   strrchr(path, '/') + 1 };
    return 0;
}

static int
unseen(const char *path, int why, struct err *err)
{
    return mnt_is_absent(why) ? 0 : err_sys(err, why, "wall.expand.unseen", "deny-hard-links: %s", path);
}

/* A folder that cannot be listed: another's is unreadable for the sandbox too; the caller's own can be opened again by
 * whoever runs inside as its owner, so it is closed whole. */
static int
add_shut(struct finding *f, int fd, const char *path, int why, struct err *err)
{
    struct stat st;

    if (unseen(path, why, err) < 0)
        return -1;
    if (why != EACCES || fstat(fd, &st) < 0 || !plan_real_opens_again(&st) || strrchr(path, '/') == NULL)
        return 0;
    st.st_nlink = (nlink_t)-1;          /* more names than can be met */
    return plan_hard_links_add(f, &st, &st, path, err);
}

static int look_through(struct finding *f, int fd, const char *path, unsigned depth, struct err *err);

/* @entry of the folder @dir, which is @here and @path. */
static int
look_at(struct finding *f, int dir, const struct stat *here, const char *path, const struct dirent *entry,
        unsigned depth, struct err *err)
{
    cleanup_close int sub = -1;
    struct stat st;
    char *name;

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || entry->d_type == DT_LNK)
        return 0;
    if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return unseen(path, errno, err);
    if (!S_ISDIR(st.st_mode) && st.st_nlink < 2)
        return 0;
    name = plan_printf(f->plan, "%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
    if (name == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (!S_ISDIR(st.st_mode))
        return plan_hard_links_add(f, here, &st, name, err);
    sub = openat(dir, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return sub < 0 ? unseen(name, errno, err) : look_through(f, sub, name, depth + 1, err);
}

static int
look_through(struct finding *f, int fd, const char *path, unsigned depth, struct err *err)
{
    /* with the slash it must be one that can be searched as well */
    int copy = openat(fd, "./.", O_RDONLY | O_DIRECTORY | O_CLOEXEC), why = errno;
    cleanup_dir DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    struct stat here;

    if (list == NULL) {
        why = copy >= 0 ? ENOMEM : why;
        close_fd(&copy);
        return add_shut(f, fd, path, why, err);
    }
    if (depth > DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "wall.hard-links.too-deep", "deny-hard-links: %s lies more than %d folders deep",
                       path, DEPTH_MAX);
    if (fstat(copy, &here) < 0)
        return err_sys(err, errno, "wall.hard-links", "%s", path);
    while (errno = 0, (entry = readdir(list)) != NULL)
        if (look_at(f, copy, &here, path, entry, depth, err) < 0)
            return -1;
    return errno == 0 ? 0 : unseen(path, errno, err);
}

/* By file, and of one file by name. */
static int
by_name(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    if (x->dir_dev != y->dir_dev)
        return x->dir_dev < y->dir_dev ? -1 : 1;
    if (x->dir_ino != y->dir_ino)
        return x->dir_ino < y->dir_ino ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* How many of the names from @i on are of one file: to @end, and how many different ones these are. */
static uint64_t
names_of(const struct finding *f, size_t i, size_t *end)
{
    uint64_t names = 0;

    for (*end = i; *end < f->n && f->v[*end].dev == f->v[i].dev && f->v[*end].ino == f->v[i].ino; (*end)++)
        names += *end == i || by_name(&f->v[*end - 1], &f->v[*end]) != 0;
    return names;
}

static int
deny(struct finding *f, struct err *err)
{
    const struct policy *p = &f->plan->real;
    struct policy_list *out = &f->plan->real.deny_read;
    struct policy_entry *bigger;
    size_t end;

    if (f->n == 0)
        return 0;
    qsort(f->v, f->n, sizeof(f->v[0]), by_name);
    bigger = (struct policy_entry *)(void *)plan_room(f->plan, (out->n + f->n) * sizeof(*bigger));
    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (out->n > 0)
        memcpy(bigger, out->v, out->n * sizeof(*bigger));
    out->v = bigger;
    for (size_t i = 0; i < f->n; i = end) {
        if (names_of(f, i, &end) >= f->v[i].links)
            continue;
        for (size_t k = i; k < end; k++)
            bigger[out->n++] = (struct policy_entry){ .value = (char *)(uintptr_t)f->v[k].path,
                                                      .written = (char *)(uintptr_t)"deny-hard-links",
                                                      .literal = true, .from = p->deny_hard_links.from };
    }
    return 0;
}

int
plan_hard_links(struct native_plan *plan, struct err *err)
{
    struct finding f = { .plan = plan };
    int r = 0;

    for (size_t i = 0; plan->real.deny_hard_links.v && r == 0 && i < plan->n_trees; i++)
        if (plan->trees[i].is_dir)
            r = look_through(&f, plan->trees[i].fd, plan->trees[i].host, 0, err);
    if (r == 0)
        r = deny(&f, err);
    free(f.v);
    return r;
}
