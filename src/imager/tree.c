/* imager/tree.c: see tree.h */
#include "imager/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/str.h"

static int
bad_path(struct err *err, const char *why, const char *name)
{
    return err_set(err, ERR_POLICY, "image.path", "the image has a name that %s: \"%.120s\"", why, name);
}

int
tree_hint(int why, struct err *err)
{
    return why == ENOSPC || why == EDQUOT ? err_hint(err, "the disk of the state folder is full; XDG_STATE_HOME "
                                                     "chooses another one") : -1;
}

static int
fail(struct err *err, const char *name)
{
    int why = errno;

    err_sys(err, why, "image.unpack", "unpack \"%.200s\"", name);
    return tree_hint(why, err);
}

/* --- what this layer made ----------------------------------------------------------------------------------------- */

static size_t
slot(const struct tree *t, uint64_t ino)
{
    size_t at = (size_t)(ino * 0x9e3779b97f4a7c15ULL >> 16) & (t->cap_own - 1);

    while (t->own[at] != 0 && t->own[at] != ino)
        at = (at + 1) & (t->cap_own - 1);
    return at;
}

static bool
is_own(const struct tree *t, uint64_t ino)
{
    return t->own[slot(t, ino)] == ino;
}

static int
grow(struct tree *t)
{
    struct tree bigger = { .cap_own = t->cap_own * 2 };

    bigger.own = calloc(bigger.cap_own, sizeof(*bigger.own));
    if (bigger.own == NULL)
        return -1;
    for (size_t i = 0; i < t->cap_own; i++)
        if (t->own[i] != 0)
            bigger.own[slot(&bigger, t->own[i])] = t->own[i];
    free(t->own);
    t->own = bigger.own;
    t->cap_own = bigger.cap_own;
    return 0;
}

static int
note_own(struct tree *t, int dir, const char *name, struct err *err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(err, name);
    if (is_own(t, st.st_ino))
        return 0;
    if (t->n_own * 2 >= t->cap_own && grow(t) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    t->own[slot(t, st.st_ino)] = st.st_ino;
    t->n_own++;
    return 0;
}

void
tree_free(struct tree *t)
{
    free(t->own);
    close_fd(&t->parent);
}

void
tree_layer(struct tree *t)
{
    memset(t->own, 0, t->cap_own * sizeof(*t->own));
    t->n_own = 0;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* @name from the root, with neither "." nor repeated or trailing slashes: its folder in @dir, its last component in
 * @last. Both "": it is the root itself. */
static int
split(const char *name, char dir[TREE_NAME_MAX + 1], char last[NAME_MAX + 1], struct err *err)
{
    size_t n = 0, depth = 0, cut = 0;
    const char *at = name;

    if (strlen(name) > TREE_NAME_MAX)
        return bad_path(err, "is too long", name);
    while (*at != '\0') {
        const char *end = strchrnul(at, '/');
        size_t k = (size_t)(end - at);
        if (k == 2 && at[0] == '.' && at[1] == '.')
            return bad_path(err, "leads out of it", name);
        if (k > NAME_MAX)
            return bad_path(err, "is too long", name);
        if (k > 0 && !(k == 1 && at[0] == '.')) {
            if (++depth > TREE_DEPTH_MAX)
                return bad_path(err, "is too deep", name);
            cut = n;
            if (n > 0)
                dir[n++] = '/';
            memcpy(dir + n, at, k);
            n += k;
        }
        at = *end == '/' ? end + 1 : end;
    }
    dir[n] = '\0';
    memcpy(last, dir + cut + (cut > 0), n - cut - (cut > 0) + 1);
    dir[cut] = '\0';
    return 0;
}

/* Links lead within the root; magic ones nowhere. */
static int
open_in(const struct tree *t, const char *dir)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

    return (int)syscall(SYS_openat2, t->root, *dir != '\0' ? dir : ".", &how, sizeof(how));
}

int
tree_init(struct tree *t, int root, const struct tree_limits *limits, struct err *err)
{
    cleanup_close int fd = -1;

    *t = (struct tree){ .root = root, .limits = *limits, .cap_own = 4096, .parent = -1 };
    fd = open_in(t, "");
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        err_set(err, ERR_UNSUPPORTED, "image.openat2", "images are unpacked by openat2(2), which this kernel lacks");
        return err_hint(err, "it needs Linux 5.6, and no outer filter that hides the call");
    }
    t->own = calloc(t->cap_own, sizeof(*t->own));
    return t->own != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* What stands in the way of a folder, a file or a link to nowhere, goes; the folder is made. */
static int
make_step(struct tree *t, int at, const char *name, struct err *err)
{
    if (mkdirat(at, name, 0755) < 0) {
        if (errno != EEXIST || unlinkat(at, name, 0) < 0 || mkdirat(at, name, 0755) < 0)
            return fail(err, name);
    }
    return note_own(t, at, name, err);
}

/* The folder @dir with those that are missing on the way. A descriptor, or -1 with @err. */
static int
make_folders(struct tree *t, const char *dir, struct err *err)
{
    cleanup_close int at = open_in(t, "");
    char path[TREE_NAME_MAX + 1];

    for (const char *end = dir; at >= 0 && *end != '\0';) {
        const char *from = end;
        size_t n;
        int next;
        end = strchrnul(end, '/');
        n = (size_t)(end - dir);
        memcpy(path, dir, n);
        path[n] = '\0';
        next = open_in(t, path);
        if (next < 0 && (errno == ENOENT || errno == ENOTDIR)) {
            if (make_step(t, at, path + (from - dir), err) < 0)
                return -1;
            next = open_in(t, path);
        }
        close_fd(&at);
        at = next;
        end += *end == '/';
    }
    return at >= 0 ? take_fd(&at) : errno == ELOOP ? bad_path(err, "leads through links without end", dir)
                                                   : fail(err, dir);
}

/* The folder that @name lies in: the tree's descriptor; -1 with @err. */
static int
parent_of(struct tree *t, const char *name, char last[NAME_MAX + 1], bool make, struct err *err)
{
    char dir[TREE_NAME_MAX + 1];

    if (split(name, dir, last, err) < 0)
        return -1;
    if (t->parent >= 0 && strcmp(dir, t->parent_name) == 0)
        return t->parent;
    close_fd(&t->parent);
    t->parent = open_in(t, dir);
    if (t->parent < 0 && make)
        t->parent = make_folders(t, dir, err);
    else if (t->parent < 0)
        err_set(err, ERR_POLICY, "image.path", "there is no folder \"%.200s\" in the image", dir);
    if (t->parent >= 0)
        memcpy(t->parent_name, dir, strlen(dir) + 1);
    return t->parent;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

static int purge(const struct tree *spare, int dir, int depth);

/* @name in @dir and all below it, but what is this layer's where @spare. -1 with errno. */
static int
remove_at(const struct tree *spare, int dir, const char *name, int depth)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(st.st_mode)) {
        cleanup_close int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0 || purge(spare, below, depth + 1) < 0)
            return -1;
    }
    if (spare != NULL && is_own(spare, st.st_ino))
        return 0;
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0)
        return 0;
    return spare != NULL && (errno == ENOTEMPTY || errno == EEXIST) ? 0 : -1;
}

static int
remove_one(const struct tree *spare, int dir, const char *name)
{
    return remove_at(spare, dir, name, 0);
}

/* The same of all that is in @dir. */
static int
purge(const struct tree *spare, int dir, int depth)
{
    struct dirents names = { .fd = dir };
    const char *name;

    /* deeper than anything that we make */
    if (depth > TREE_DEPTH_MAX + 2) {
        errno = ELOOP;
        return -1;
    }
    while ((name = dirents_next(&names)) != NULL)
        if (remove_at(spare, dir, name, depth) < 0)
            return -1;
    return names.failed != 0 ? (errno = names.failed, -1) : 0;
}

int
tree_empty(int dir)
{
    return purge(NULL, dir, 0);
}

/* The folder that is kept open may have been below what was removed. */
static void
forget_parent(struct tree *t)
{
    close_fd(&t->parent);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static int
count(struct tree *t, const char *name, struct err *err)
{
    if (t->count.entries++ < t->limits.entries)
        return 0;
    return err_set(err, ERR_LIMIT, "image.limit", "the image has more than %llu entries (at \"%.100s\")",
                   (unsigned long long)t->limits.entries, name);
}

/* The place for a new entry, free: its folder, or -1 with @err. */
static int
clear_place(struct tree *t, const char *name, char last[NAME_MAX + 1], struct err *err)
{
    int dir;

    if (count(t, name, err) < 0)
        return -1;
    dir = parent_of(t, name, last, true, err);
    if (dir < 0)
        return -1;
    if (last[0] == '\0')
        return bad_path(err, "is the root, which is a folder", name);
    return remove_one(NULL, dir, last) < 0 ? fail(err, name) : dir;
}

int
tree_folder(struct tree *t, const char *name, mode_t mode, struct err *err)
{
    mode_t own = (mode & 01777) | 0700;
    char last[NAME_MAX + 1];
    struct stat st;
    int dir;

    if (count(t, name, err) < 0)
        return -1;
    dir = parent_of(t, name, last, true, err);
    if (dir < 0 || last[0] == '\0')
        return dir < 0 ? -1 : 0;
    if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return fchmodat(dir, last, own, 0) < 0 ? fail(err, name) : 0;
    if (remove_one(NULL, dir, last) < 0 || mkdirat(dir, last, 0700) < 0 || fchmodat(dir, last, own, 0) < 0)
        return fail(err, name);
    return note_own(t, dir, last, err);
}

int
tree_link(struct tree *t, const char *name, const char *text, struct err *err)
{
    char last[NAME_MAX + 1];
    int dir = clear_place(t, name, last, err);

    if (dir < 0)
        return -1;
    if (text[0] == '\0' || strlen(text) > TREE_NAME_MAX)
        return bad_path(err, "is a link to nothing, or to too long a path", name);
    return symlinkat(text, dir, last) < 0 ? fail(err, name) : note_own(t, dir, last, err);
}

int
tree_hard_link(struct tree *t, const char *name, const char *target, struct err *err)
{
    char last[NAME_MAX + 1], of[NAME_MAX + 1];
    struct stat st, here;
    int dir = parent_of(t, target, of, false, err);
    cleanup_close int from = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);

    if (from < 0)
        return -1;
    if (fstatat(from, of[0] != '\0' ? of : ".", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !(S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
        return err_set(err, ERR_POLICY, "image.path", "the hard link \"%.100s\" is to \"%.100s\", which is no file of "
                       "the image", name, target);
    dir = parent_of(t, name, last, true, err);
    if (dir >= 0 && last[0] != '\0' && fstatat(dir, last, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == st.st_ino)
        return count(t, name, err);
    dir = clear_place(t, name, last, err);
    if (dir < 0)
        return -1;
    return linkat(from, of, dir, last, 0) < 0 ? fail(err, name) : 0;
}

int
tree_file(struct tree *t, const char *name, mode_t mode, uint64_t size, struct err *err)
{
    char last[NAME_MAX + 1];
    cleanup_close int fd = -1;
    int dir = clear_place(t, name, last, err);

    if (dir < 0)
        return -1;
    if (size > t->limits.bytes - t->count.bytes) {
        err_set(err, ERR_LIMIT, "image.limit", "the image is larger than %llu MiB (at \"%.100s\")",
                (unsigned long long)(t->limits.bytes >> 20), name);
        return err_hint(err, "--max-size SIZE allows more");
    }
    t->count.bytes += size;
    if ((mode & 06000) != 0)
        t->count.setuid++;
    fd = openat(dir, last, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, (mode & 0777) | 0600) < 0)
        return fail(err, name);
    return note_own(t, dir, last, err) < 0 ? -1 : take_fd(&fd);
}

int
tree_left_out(struct tree *t, const char *name, mode_t kind, struct err *err)
{
    if (count(t, name, err) < 0)
        return -1;
    if (S_ISCHR(kind) || S_ISBLK(kind))
        t->count.devices++;
    else
        t->count.fifos++;
    return 0;
}

int
tree_whiteout(struct tree *t, const char *name, struct err *err)
{
    char dir_name[TREE_NAME_MAX + 1], last[NAME_MAX + 1];
    struct err none = ERR_INIT;
    int dir, r;

    if (split(name, dir_name, last, err) < 0)
        return -1;
    if (strncmp(last, ".wh.", 4) != 0)
        return 0;
    if (count(t, name, err) < 0)
        return -1;
    t->count.whiteouts++;
    if (strncmp(last, ".wh..wh.", 8) == 0 && strcmp(last, ".wh..wh..opq") != 0)
        return 1;
    if (strcmp(last, ".wh.") == 0 || strcmp(last, ".wh..") == 0 || strcmp(last, ".wh...") == 0)
        return bad_path(err, "is a whiteout of no file", name);
    dir = parent_of(t, name, last, false, &none);
    if (dir < 0)
        return 1;       /* nothing of it is there */
    if (strcmp(last, ".wh..wh..opq") == 0) {
        /* of its own, with its own position */
        cleanup_close int all = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = all < 0 ? -1 : purge(t, all, 0);
    } else {
        r = remove_one(t, dir, last + 4);
    }
    forget_parent(t);
    return r < 0 ? fail(err, name) : 1;
}
