/* workspace/moves.c: see apply_priv.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "match/git_shape.h"
#include "workspace/apply_priv.h"
#include "workspace/git_mark.h"
#include "workspace/git_place.h"

#define FDS_OTHER 64        /* descriptors that are for everything else */
#define FDS_MAX   65536

int
moves_open(struct moves *m, struct err *err)
{
    struct rlimit files;

    m->bad = CHANGE_NOT;
    m->fd = malloc((m->c->n + 1) * sizeof(*m->fd));
    m->seen = calloc(m->c->n + 1, sizeof(*m->seen));
    for (size_t i = 0; m->fd != NULL && i < m->c->n; i++)
        m->fd[i] = -1;
    if (m->fd == NULL || m->seen == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 0;
    const struct rlimit all = { files.rlim_max, files.rlim_max };
    if (files.rlim_cur < files.rlim_max && setrlimit(RLIMIT_NOFILE, &all) == 0)
        files = all;
    m->room = files.rlim_cur > FDS_MAX ? FDS_MAX : files.rlim_cur > FDS_OTHER ? files.rlim_cur - FDS_OTHER : 0;
    return 0;
}

void
moves_close(struct moves *m)
{
    for (size_t i = 0; m->fd != NULL && i < m->c->n; i++)
        close_fd(&m->fd[i]);
    free(m->fd);
    free(m->seen);
    m->fd = NULL;
    m->seen = NULL;
}

static bool
is_side(const struct stat *st, const struct change_side *side)
{
    return st->st_ino == side->ino && st->st_dev == side->dev && S_ISDIR(st->st_mode);
}

int
moves_keep(struct moves *m, size_t i, int *found, int *dir)
{
    struct stat st;

    if (fstat(*found, &st) < 0)
        return -1;
    if (!is_side(&st, &m->c->v[i].lower)) {
        m->bad = i;
        errno = ESTALE;
        return -1;
    }
    *dir = *found;
    if (m->fd[i] >= 0 || m->room == 0)
        return 0;
    m->room--;
    m->fd[i] = take_fd(found);
    return 0;
}

static bool
bad(struct moves *m, size_t i, bool is_git)
{
    m->bad = i;
    m->is_git = is_git;
    return false;
}

static bool
stands(struct moves *m, size_t i, int dir)
{
    cleanup_close int above = -1;
    struct stat st;

    while (m->seen[i] != m->round) {
        const struct change *e = &m->c->v[i];
        m->seen[i] = m->round;
        if (fstat(dir, &st) < 0 || !is_side(&st, &e->lower))
            return bad(m, i, false);
        if (!git_mark_holds(m->c, m->fate, i, dir))
            return bad(m, i, true);
        if (e->parent == CHANGE_NOT)
            break;
        int up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close_fd(&above);
        above = dir = up;
        if (up < 0 || fstatat(up, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_side(&st, &e->lower))
            return bad(m, i, false);
        /* one that was looked at is where it was; is this one below it? */
        i = e->parent;
        if (fstat(up, &st) < 0 || !is_side(&st, &m->c->v[i].lower))
            return bad(m, i, false);
    }
    return true;
}

bool
moves_stand(struct moves *m, size_t i, int dir)
{
    m->round++;
    return stands(m, i, dir);
}

bool
moves_all_stand(struct moves *m)
{
    m->round++;
    for (size_t i = 0; i < m->c->n; i++)
        if (m->fd[i] >= 0 && !stands(m, i, m->fd[i]))
            return false;
    return true;
}

/* --- undoing */

/* Whether git would obey what comes to @path in a repository. */
static bool
git_obeys(struct str path, bool link)
{
    return git_state_of(path) != GIT_STATE_NONE || git_part_of(path) != GIT_PART_NONE || (link && git_writes(path));
}

bool
moves_may_return(const struct moves *m, size_t i, int dir)
{
    const struct step *s = &m->j->v[i];
    const struct change *folder = m->c != NULL ? &m->c->v[m->c->v[m->change_of[i]].parent] : NULL;
    cleanup_close int above = -1;
    size_t at = strlen(s->path);
    struct stat st;

    /* by that name it was a repository before, and its guards judged what came there */
    if (folder == NULL && git_below_dot_git(str_of(s->path)))
        return true;
    for (;;) {
        while (at > 0 && s->path[at - 1] != '/')
            at--;
        bool old = folder != NULL && folder->git_place && !folder->git_new;
        if (!old && git_obeys(str_of(s->path + at), S_ISLNK(s->old_mode)) && git_parts_place(git_place_parts(dir)))
            return false;
        if (at == 0)
            return true;
        int up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (up < 0 || (folder != NULL && (fstatat(up, folder->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                                          !is_side(&st, &folder->lower)))) {
            close_fd(&up);
            return false;
        }
        close_fd(&above);
        above = dir = up;
        folder = folder != NULL ? &m->c->v[folder->parent] : NULL;
        at--;
    }
}
