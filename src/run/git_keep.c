/* run/git_keep.c: see git_keep.h
 *
 * The sandbox is gone, so the copy stays as it is. The owner's file is appended to where it is: it keeps its inode, on
 * which the mounts of other sandboxes with the same folder lie, and no name is given to anything, so there is nothing
 * that one of them could exchange. git's own lock keeps the owner's git from writing at the same time.
 */
#include "run/git_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "match/git_config.h"
#include "match/git_config_add.h"
#include "run/session_priv.h"
#include "wall/mnt.h"

#define LOCK_TRIES 20           /* of 50 ms: the owner's git holds it for as long as it writes one file */
#define LOCK_NAME  "config.lock"
#define TOLD_MAX   5            /* keys of each kind that are named */
#define TOLD_ROOM  160

/* Keys for a person. */
struct told {
    char text[TOLD_ROOM];
    size_t n, more;
    char last[GIT_CONFIG_SAID_MAX + 1];
};

struct telling {
    struct told kept, left;
};

static void
tell(struct told *t, struct str key)
{
    char safe[GIT_CONFIG_SAID_MAX + 1] = "";
    size_t used = strlen(t->text);

    git_config_said_key(key, safe);
    if (t->n + t->more > 0 && strcmp(safe, t->last) == 0)
        return;
    memcpy(t->last, safe, sizeof(safe));
    if (t->n == TOLD_MAX || used + strlen(safe) + 3 > sizeof(t->text)) {
        t->more++;
        return;
    }
    snprintf(t->text + used, sizeof(t->text) - used, "%s%s", t->n > 0 ? ", " : "", safe);
    t->n++;
}

static void
said(void *ctx, struct str key, bool kept)
{
    struct telling *t = ctx;

    tell(kept ? &t->kept : &t->left, key);
}

static void
say_told(struct session_result *r, bool say, const struct told *t, const char *what)
{
    char more[32] = "";

    if (t->more > 0)
        snprintf(more, sizeof(more), " and %zu more", t->more);
    if (t->n + t->more > 0)
        session_warn(r, say, "%s: %s%s", what, t->text, more);
}

/* --- the owner's file */

static int
lock(int git)
{
    const struct timespec wait = { 0, 50 * 1000 * 1000 };

    for (int i = 0; i < LOCK_TRIES; i++) {
        int fd = openat(git, LOCK_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd >= 0 || errno != EEXIST)
            return fd;
        (void)nanosleep(&wait, NULL);
    }
    return -1;
}

/* If it is still ours: another sandbox of the folder can remove it, and the owner's git make its own. */
static void
unlock(int git, int locked)
{
    struct stat ours, there;

    if (fstat(locked, &ours) == 0 && fstatat(git, LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
        (void)unlinkat(git, LOCK_NAME, 0);
}

/* A plain file of the folder's own: nothing that somebody linked here. */
static int
open_config(int git)
{
    cleanup_close int fd = openat(git, "config", O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st, dir;

    if (fd < 0 || fstat(fd, &st) < 0 || fstat(git, &dir) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_dev != dir.st_dev || st.st_uid != dir.st_uid)
        return -1;
    return take_fd(&fd);
}

/* In one write, so that a reader sees all of it or, across a page, its beginning. 0; -1: the file is as it was; -2: a
 * part of it is there. */
static int
append(int config, const struct buf *text)
{
    struct stat before;
    ssize_t n;

    if (fstat(config, &before) < 0)
        return -1;
    n = write(config, text->p, text->n);
    if (n == (ssize_t)text->n)
        return 0;
    return n > 0 && ftruncate(config, before.st_size) < 0 ? -2 : -1;
}

/* A repository or a bundle at the work tree's top is a path to the owner's git there; what lies in these folders of its
 * own are remotes of the oldest form. */
static bool
is_taken(void *ctx, const char *name)
{
    static const struct { const char *in, *end; } forms[] = {
        { "..", "" }, { "..", ".git" }, { "remotes", "" }, { "branches", "" },
    };
    const int *git = ctx;
    char path[NAME_MAX + 1];
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s%s", forms[i].in, name, forms[i].end);
        if (n < 0 || (size_t)n >= sizeof(path) || fstatat(*git, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
            !mnt_is_absent(errno))
            return true;
    }
    return false;
}

static int
add(const struct sandbox_own *own, int git, struct str copy, struct telling *t)
{
    cleanup_close int config = open_config(git);
    cleanup_buf struct buf now = BUF_INIT(GIT_CONFIG_MAX), more = BUF_INIT(GIT_CONFIG_ADD_ROOM);

    if (config < 0 || io_read_all(config, &now) < 0 ||
        git_config_add((struct str){ own->text, own->n }, copy,
                       &(struct git_config_owner){ .now = { (const char *)now.p, now.n }, .elsewhere = own->elsewhere,
                                                   .is_taken = is_taken, .ctx = &git },
                       &more, said, t) < 0)
        return -1;
    return more.n > 0 ? append(config, &more) : 0;
}

/* Whether the copy is not what it was; then it is in @copy. */
static bool
is_changed(const struct sandbox_own *own, struct buf *copy, bool *read)
{
    *read = lseek(own->copy, 0, SEEK_SET) == 0 && io_read_all(own->copy, copy) == 0;
    return !*read || copy->n != own->n || (own->n > 0 && memcmp(copy->p, own->text, own->n) != 0);
}

static void
keep(const struct sandbox_own *own, struct session_result *r, bool say)
{
    cleanup_buf struct buf copy = BUF_INIT(GIT_CONFIG_MAX);
    struct telling t = { .kept = { .n = 0 } };
    cleanup_close int git = -1, locked = -1;
    bool read;
    int done;

    if (!is_changed(own, &copy, &read))
        return;
    git = mnt_open_beneath(own->folder_fd, strcmp(own->relative, "config") == 0 ? "." : ".git",
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW, false);
    locked = read && git >= 0 ? lock(git) : -1;
    done = locked >= 0 ? add(own, git, (struct str){ (const char *)copy.p, copy.n }, &t) : -1;
    if (locked >= 0)
        unlock(git, locked);
    if (done < 0) {
        session_warn(r, say, "%s/%s %s: what was written to it inside could not be added", own->folder, own->relative,
                     done == -2 ? "ends with a part of an addition, which you should remove" : "is as it was");
        return;
    }
    say_told(r, say, &t.kept, "added to .git/config");
    say_told(r, say, &t.left, "not added to .git/config, it was for the sandbox alone");
}

void
git_keep(const struct sandbox *sb, struct session_result *r, bool say)
{
    const struct sandbox_facts *f = sandbox_facts(sb);

    for (size_t i = 0; i < f->n_own; i++)
        keep(&f->own[i], r, say);
}
