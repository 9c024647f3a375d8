/* guest/guard_lock.c: the lock of a file that is the sandbox's own
 *
 * git makes `config.lock` beside `config`, writes it, and renames it. Under that name the owner's git on the host does
 * the same: who could write to its lock, or put another file there, would write the owner's configuration. So the name
 * is protected while the sandbox lives. Who makes it inside gets a file without a name, which becomes the sandbox's own
 * file by the rename. It is there for nobody else; that it is taken, the next one learns while it is open for writing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_priv.h"

#define LOCK_NAME  "config.lock"
#define OWN_NAME   "config"

bool
lock_is(const struct guard *g, const struct place *p)
{
    return p->name_n == strlen(LOCK_NAME) && p->name[p->name_n] == '\0' &&
           strncmp(p->name, LOCK_NAME, p->name_n) == 0 &&
           rules_own(g, p->dir, &p->dir_st, OWN_NAME, strlen(OWN_NAME));
}

/* Somebody has it open for writing: then no read lease can be had. */
static bool
is_written(int file)
{
    if (fcntl(file, F_SETLEASE, F_RDLCK) < 0)
        return errno == EAGAIN;
    (void)fcntl(file, F_SETLEASE, F_UNLCK);
    return false;
}

static struct own_lock *
find(struct guard *g, pid_t tid)
{
    for (size_t i = 0; i < g->n_locks; i++)
        if (g->locks[i].tid == tid)
            return &g->locks[i];
    return NULL;
}

int
lock_file(const struct call *c)
{
    const struct own_lock *l = find(c->g, c->tid);

    return l != NULL ? l->file : -1;
}

void
lock_drop(const struct call *c)
{
    struct guard *g = c->g;
    struct own_lock *l = find(g, c->tid);

    if (l == NULL)
        return;
    close(l->file);
    *l = g->locks[--g->n_locks];
}

int
lock_make(struct call *c, const struct place *p, int flags)
{
    struct guard *g = c->g;
    cleanup_close int made = -1, file = -1;
    int writer;

    if ((flags & O_EXCL) == 0)
        return deny(c, p, "git state: lock of the host's", EACCES);
    for (size_t i = g->n_locks; i-- > 0;) {
        if (is_written(g->locks[i].file))
            return -EEXIST;
        if (g->locks[i].tid == c->tid || g->n_locks == LOCKS_MAX) {
            close(g->locks[i].file);
            g->locks[i] = g->locks[--g->n_locks];
        }
    }
    made = openat(p->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    file = made < 0 ? -1 : open(fd_path(made).text, O_RDONLY | O_CLOEXEC);
    writer = file < 0 ? -1 : open(fd_path(made).text, (flags & (O_ACCMODE | O_APPEND | O_CLOEXEC)) | O_CLOEXEC);
    if (writer < 0)
        return -errno;
    g->locks[g->n_locks++] = (struct own_lock){ c->tid, take_fd(&file) };
    return answer_fd(c, writer, (flags & O_CLOEXEC) != 0);
}
