/* workspace/commit.c: the only code that changes a project: renames between it and the stage, each one reversible */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "workspace/apply_priv.h"
#include "workspace/quote.h"
#include "workspace/tree.h"

void
slot_name(char out[16], char letter, uint32_t slot)
{
    snprintf(out, 16, "%c%u", letter, slot);
}

/* Rename to a name that must be free. */
static int
move_new(int from_dir, const char *from, int to_dir, const char *to)
{
    struct stat st;

    if (kernel_renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* a file system without that flag: the check and the rename are two calls */
    if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(from_dir, from, to_dir, to);
}

/* Put stage/nSLOT in the place of @name, whose old content ends as stage/nSLOT or stage/oSLOT. */
static int
swap(int stage, uint32_t slot, int dir, const char *name)
{
    char fresh[16], old[16];

    slot_name(fresh, 'n', slot);
    slot_name(old, 'o', slot);
    if (kernel_renameat2(stage, fresh, dir, name, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (move_new(dir, name, stage, old) < 0)
        return -1;
    return move_new(stage, fresh, dir, name);
}

static uint64_t
ino_of(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

/* Set the permission bits of the directory @name when it is the one with @ino. */
static int
set_mode(int dir, const char *name, uint64_t ino, mode_t mode)
{
    struct stat st;

    cleanup_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        /* unreadable, not absent: through its handle */
        char path[32];
        cleanup_close int handle = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (handle < 0 || fstat(handle, &st) < 0 || st.st_ino != ino)
            return -1;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
        return chmod(path, mode);
    }
    if (fstat(fd, &st) < 0)
        return -1;
    if (st.st_ino != ino) {
        errno = ESTALE;
        return -1;
    }
    return fchmod(fd, mode);
}

/* A directory that its owner cannot write to cannot be moved by its owner either. */
static int
make_movable(int dir, const char *name, const struct step *s)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) || (st.st_mode & S_IRWXU) == S_IRWXU)
        return 0;
    return set_mode(dir, name, s->old_ino, (st.st_mode & 07777) | S_IRWXU);
}

/* Whether what lies at @dir/@name is what was decided about. */
static bool
as_decided(int dir, const char *name, const struct change *e)
{
    struct stat st;

    /* not its ctime: a rename changes that; of a directory only which one it is */
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == e->lower.ino &&
           (S_ISDIR(st.st_mode) || ((uint64_t)st.st_size == e->lower.size &&
                                    st.st_mtim.tv_sec == e->lower.mtime.tv_sec &&
                                    st.st_mtim.tv_nsec == e->lower.mtime.tv_nsec));
}

static int
do_over(const struct step *s, int stage, int dir, const char *name, const struct change *e)
{
    char fresh[16], old[16];

    slot_name(fresh, 'n', s->slot);
    slot_name(old, 'o', s->slot);
    if (!as_decided(dir, name, e)) {
        errno = ESTALE;
        return -1;
    }
    if (make_movable(dir, name, s) < 0 || swap(stage, s->slot, dir, name) < 0)
        return -1;
    /* between the look and the exchange somebody may have put another file there, which is not to be lost */
    if (!as_decided(stage, ino_of(stage, old) != 0 ? old : fresh, e)) {
        errno = ESTALE;
        return -1;
    }
    return 0;
}

static int
do_remove(const struct step *s, int stage, int dir, const char *name, const struct change *e)
{
    char slot[16];

    slot_name(slot, 'n', s->slot);
    if (!as_decided(dir, name, e)) {
        errno = ESTALE;
        return -1;
    }
    if (make_movable(dir, name, s) < 0 || move_new(dir, name, stage, slot) < 0)
        return -1;
    if (!as_decided(stage, slot, e)) {
        errno = ESTALE;
        return -1;
    }
    return 0;
}

/* --- undoing ---------------------------------------------------------------------------------------------------- */

static int
undo_new(const struct step *s, int stage, int dir, const char *name)
{
    char slot[16];

    slot_name(slot, 'n', s->slot);
    if (ino_of(dir, name) != s->new_ino || ino_of(stage, slot) != 0)
        return 0;   /* not done, or no longer ours */
    if (S_ISDIR(s->new_mode) && (s->new_mode & S_IRWXU) != S_IRWXU)
        (void)set_mode(dir, name, s->new_ino, (s->new_mode & 0777) | S_IRWXU);
    return move_new(dir, name, stage, slot);
}

/* Put the old directory's own mode back, if it was one and was lifted to be moved. */
static void
restore_mode(const struct step *s, int dir, const char *name)
{
    if (S_ISDIR(s->old_mode))
        (void)set_mode(dir, name, s->old_ino, s->old_mode & 07777);
}

static int
undo_over(const struct step *s, int stage, int dir, const char *name)
{
    char fresh[16], old[16];
    uint64_t now = ino_of(dir, name);
    int r = 0;

    slot_name(fresh, 'n', s->slot);
    slot_name(old, 'o', s->slot);
    uint64_t in_old = ino_of(stage, old), in_fresh = ino_of(stage, fresh);
    if (now == s->new_ino && in_old == 0 && in_fresh != 0) {
        /* what came out goes back, even where it is not what was expected there */
        if (S_ISDIR(s->new_mode) && (s->new_mode & S_IRWXU) != S_IRWXU)
            (void)set_mode(dir, name, s->new_ino, (s->new_mode & 0777) | S_IRWXU);
        r = kernel_renameat2(stage, fresh, dir, name, RENAME_EXCHANGE);
    } else if (in_old != 0) {
        if (now == s->new_ino)
            r = move_new(dir, name, stage, fresh);
        if (r == 0)
            r = move_new(stage, old, dir, name);
    }
    if (r == 0)
        restore_mode(s, dir, name);
    return r;
}

static int
undo_remove(const struct step *s, int stage, int dir, const char *name)
{
    char slot[16];

    slot_name(slot, 'n', s->slot);
    if (ino_of(stage, slot) != 0 && move_new(stage, slot, dir, name) < 0)
        return -1;
    restore_mode(s, dir, name);
    return 0;
}

/* Whether the stage alone shows that nothing of the step was done. */
static bool
untouched(const struct step *s, int stage)
{
    char fresh[16], old[16];

    slot_name(fresh, 'n', s->slot);
    slot_name(old, 'o', s->slot);
    switch (s->kind) {
    case STEP_NEW:
    case STEP_OVER:
        return ino_of(stage, fresh) == s->new_ino && ino_of(stage, old) == 0;
    case STEP_REMOVE:
        return ino_of(stage, fresh) == 0;
    case STEP_MODE:
        return true;    /* where its parent is gone, so is the directory */
    }
    return false;
}

/* What came out of @dir goes back. Another sandbox may have made something else of the folder meanwhile, in which git
 * or another program would obey it: then it stays in the stage. */
static int
undo_back(const struct moves *m, size_t i, int dir, const char *name)
{
    const struct step *s = &m->j->v[i];
    char slot[16];
    uint64_t before = ino_of(dir, name);

    if ((s->kind == STEP_OVER ? undo_over(s, m->stage, dir, name) : undo_remove(s, m->stage, dir, name)) < 0)
        return -1;
    if (ino_of(dir, name) == before || moves_may_return(m, i, dir))
        return 0;
    slot_name(slot, s->kind == STEP_OVER ? 'o' : 'n', s->slot);
    if (move_new(dir, name, m->stage, slot) == 0)
        errno = ESTALE;
    return -1;
}

static int
undo_in(const struct moves *m, size_t i, int dir, const char *name)
{
    const struct step *s = &m->j->v[i];

    switch (s->kind) {
    case STEP_NEW:
        return undo_new(s, m->stage, dir, name);
    case STEP_OVER:
    case STEP_REMOVE:
        return undo_back(m, i, dir, name);
    case STEP_MODE:
        return ino_of(dir, name) == s->old_ino ? set_mode(dir, name, s->old_ino, s->old_mode & 07777) : 0;
    }
    return 0;
}

static int
undo_step(const struct moves *m, size_t i)
{
    const struct step *s = &m->j->v[i];
    const char *name;

    cleanup_close int own = tree_open_parent(m->project, s->path, &name);
    int kept = m->c != NULL ? m->fd[m->c->v[m->change_of[i]].parent] : -1, dir = kept >= 0 ? kept : own;
    if (dir < 0)
        return untouched(s, m->stage) ? 0 : -1;
    return undo_in(m, i, dir, name);
}

static void
quoted(const char *path, char *out, size_t n)
{
    cleanup_buf struct buf text = BUF_INIT(6 * TREE_PATH_MAX);

    quote_name(&text, "", str_of(path));
    snprintf(out, n, "%.*s", (int)text.n, text.n > 0 ? (const char *)text.p : "");
}

int
undo_steps(const struct moves *m, size_t n, struct err *err)
{
    char name[512];
    int r = 0;

    /* as much as can be undone is, whatever one of them meets */
    while (n > 0) {
        n--;
        if (undo_step(m, n) == 0)
            continue;
        quoted(m->j->v[n].path, name, sizeof(name));
        r = err_sys(err, errno, "workspace.apply.undo", "cannot undo the change of %s", name);
        err_hint(err, "the old content is kept in the state's stage directory; `cloche apply` tries again");
    }
    return r;
}

/* --- doing ------------------------------------------------------------------------------------------------------ */

/* The folder of step @i, which is the one that was judged: kept open in @m, or in @own. -1 with errno. */
static int
open_folder(struct moves *m, size_t i, const char **name, int *own)
{
    int dir = -1;

    *own = tree_open_parent(m->project, m->j->v[i].path, name);
    return *own < 0 || moves_keep(m, m->c->v[m->change_of[i]].parent, own, &dir) < 0 ? -1 : dir;
}

static int
do_step(struct moves *m, size_t i)
{
    const struct step *s = &m->j->v[i];
    const struct change *e = &m->c->v[m->change_of[i]];
    cleanup_close int own = -1;
    const char *name;
    char slot[16];
    int r = -1;

    int dir = open_folder(m, i, &name, &own);
    if (dir < 0)
        return -1;
    slot_name(slot, 'n', s->slot);
    switch (s->kind) {
    case STEP_NEW:
        r = move_new(m->stage, slot, dir, name);
        break;
    case STEP_OVER:
        r = do_over(s, m->stage, dir, name, e);
        break;
    case STEP_REMOVE:
        r = do_remove(s, m->stage, dir, name, e);
        break;
    case STEP_MODE:
        return set_mode(dir, name, s->old_ino, (s->new_mode & 0777) | (s->old_mode & 07000));
    }
    /* moved while writable; now what it shall be */
    if (r == 0 && s->kind != STEP_REMOVE && S_ISDIR(s->new_mode) && (s->new_mode & S_IRWXU) != S_IRWXU)
        r = set_mode(dir, name, s->new_ino, s->new_mode & 0777);
    if (r < 0 || m->fd[e->parent] >= 0)
        return r;
    /* not kept open: now or never */
    if (moves_stand(m, e->parent, dir))
        return 0;
    (void)undo_in(m, i, dir, name);
    errno = ESTALE;
    return -1;
}

/* The project changed while step @i (or none: after all) was done. */
static int
raced(const struct moves *m, size_t i, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(2 * TREE_PATH_MAX);
    char name[512];

    if (m->bad != CHANGE_NOT && change_path(m->c, m->bad, &path) == 0)
        quoted(path.n > 0 ? (const char *)path.p : ".", name, sizeof(name));
    else
        quoted(i < m->j->n ? m->j->v[i].path : ".", name, sizeof(name));
    err_set(err, ERR_DENIED, "workspace.apply.raced", "%s %s while the changes were applied; nothing was applied", name,
            m->is_git ? "became a repository of git" : "changed");
    return err_hint(err, m->is_git ? "run `cloche apply` again: then they are judged as what lies in one"
                                   : "run `cloche apply` again when nobody else works on the project");
}

static bool
is_race(int error)
{
    return error == ESTALE || error == EEXIST || error == ENOENT || error == ELOOP || error == ENOTDIR ||
           error == EXDEV;
}

int
commit_steps(struct moves *m, struct err *err)
{
    char name[512];
    size_t i = 0;

    while (i < m->j->n && do_step(m, i) == 0)
        i++;
    if (i == m->j->n && moves_all_stand(m))
        return 0;
    int saved = i < m->j->n ? errno : ESTALE;
    struct err failed = ERR_INIT;
    /* the step itself may be half done */
    if (undo_steps(m, i < m->j->n ? i + 1 : i, &failed) < 0) {
        if (err != NULL)
            *err = failed;
        return -1;
    }
    if (is_race(saved))
        return raced(m, i, err);
    quoted(m->j->v[i].path, name, sizeof(name));
    return err_sys(err, saved, "workspace.apply.commit", "cannot apply the change of %s; nothing was applied", name);
}
