/* engine/native/plan_alias.c: closed places by the other names that mounts give them
 *
 * A file system may be mounted more than once: bind mounts, the top of a btrfs beside its parts, /sysroot of systems
 * that are images. What is closed is then closed under one name and open under another; and Landlock, whose rights are
 * a folder's and not a name's, opens both by the one that was forgotten. So each place that is closed to reading is
 * looked for in every other mount of its file system; and so is each mount below it, a piece of another file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/native/mountinfo.h"
#include "engine/native/plan.h"
#include "match/path.h"

#define MOUNTS_MAX 8192

struct mounts {
    struct mount_line *v;
    size_t n;
};

/* The mount that @path lies on, by the kernel's word; where it cannot be asked, the nearest one above. */
static const struct mount_line *
mount_of(const struct mounts *m, const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    uint8_t room[1024];
    cleanup_buf struct buf text = BUF_INIT_IN(room, 4096);
    const struct mount_line *best = NULL;
    uint64_t id = 0;
    char name[64];

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
    if (fd >= 0 && io_read_file(AT_FDCWD, name, &text) == 0 && buf_nul(&text) == 0) {
        const char *at = strstr((const char *)text.p, "mnt_id:");
        at = at != NULL ? at + 7 + strspn(at + 7, " \t") : "";
        if (str_parse_u64((struct str){ at, strcspn(at, "\n") }, UINT64_MAX, &id))
            for (size_t i = 0; i < m->n; i++)
                if (m->v[i].id == id)
                    return &m->v[i];
    }
    for (size_t i = 0; i < m->n; i++)
        if (path_within(str_of(path), str_of(m->v[i].point)) &&
            (best == NULL || strlen(m->v[i].point) >= strlen(best->point)))
            best = &m->v[i];
    return best;
}

/* "/a" and "/b/c" as "/a/b/c"; either may be "/". False: too long. */
static bool
join(const char *head, const char *rest, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s%s", strcmp(head, "/") == 0 ? "" : head, strcmp(rest, "/") == 0 ? "" : rest);

    if (n == 0)
        n = snprintf(out, PATH_MAX, "/");
    return n > 0 && n < PATH_MAX;
}

/* The part of @path below @base, with its slash; "" for itself. */
static const char *
rest_of(const char *path, const char *base)
{
    return strcmp(base, "/") == 0 ? path : path + strlen(base);
}

/* What @path, whose mount is @own, is called by @other. False: it is not in it. */
static bool
other_name(const char *path, const struct mount_line *own, const struct mount_line *other, char out[PATH_MAX])
{
    char in_file_system[PATH_MAX];
    struct stat here, there;

    /* behind a link it lies on another mount than its name says: where it really is has an entry of its own */
    if (other == own || strcmp(other->device, own->device) != 0 || !path_within(str_of(path), str_of(own->point)) ||
        !join(own->root, rest_of(path, own->point), in_file_system))
        return false;
    /* a piece of what is closed, mounted elsewhere */
    if (path_within(str_of(other->root), str_of(in_file_system)))
        return strcmp(other->point, path) != 0 && snprintf(out, PATH_MAX, "%s", other->point) < PATH_MAX;
    if (!path_within(str_of(in_file_system), str_of(other->root)) ||
        !join(other->point, rest_of(in_file_system, other->root), out) || strcmp(out, path) == 0)
        return false;
    /* something else may be mounted over it there; what cannot be looked at is not trusted to be that */
    if (lstat(out, &there) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return lstat(path, &here) < 0 || (here.st_dev == there.st_dev && here.st_ino == there.st_ino);
}

static int
read_mounts(struct native_plan *plan, struct buf *text, struct mounts *m, struct err *err)
{
    struct mount_line line;
    char *at;

    if (mountinfo_read(text, err) < 0)
        return -1;
    m->v = (struct mount_line *)(void *)plan_room(plan, MOUNTS_MAX * sizeof(*m->v));
    if (m->v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    at = (char *)text->p;
    while (mountinfo_next(&at, &line)) {
        if (m->n == MOUNTS_MAX)
            return err_set(err, ERR_LIMIT, "wall.mounts.too-many", "more than %d mounts", MOUNTS_MAX);
        m->v[m->n++] = line;
    }
    return 0;
}

/* What @entry closes at @path, which lies on @own, by the names that it has elsewhere. */
static int
close_elsewhere(struct native_plan *plan, const struct mounts *m, const char *path, const struct mount_line *own,
                struct policy_list *list, const struct policy_entry *entry, plan_alias_put *put, struct err *err)
{
    char name[PATH_MAX];

    for (size_t k = 0; k < m->n; k++)
        if (other_name(path, own, &m->v[k], name) && !path_within(str_of(name), str_of(entry->value)) &&
            put(plan, list, entry, name, err) < 0)
            return -1;
    return 0;
}

int
plan_aliases(struct native_plan *plan, struct policy_list *const *lists, size_t n_lists, plan_alias_put *put,
             struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MOUNTINFO_MAX);
    struct mounts m = { .n = 0 };

    for (size_t l = 0; l < n_lists; l++) {
        size_t n = lists[l]->n;
        for (size_t i = 0; i < n; i++) {
            const struct policy_entry entry = lists[l]->v[i];
            const struct mount_line *own;
            if (entry.absent)
                continue;
            if (m.n == 0 && read_mounts(plan, &text, &m, err) < 0)
                return -1;
            own = mount_of(&m, entry.value);
            if (own != NULL && close_elsewhere(plan, &m, entry.value, own, lists[l], &entry, put, err) < 0)
                return -1;
            for (size_t k = 0; k < m.n; k++)
                if (&m.v[k] != own && path_within(str_of(m.v[k].point), str_of(entry.value)) &&
                    close_elsewhere(plan, &m, m.v[k].point, &m.v[k], lists[l], &entry, put, err) < 0)
                    return -1;
        }
    }
    return 0;
}
