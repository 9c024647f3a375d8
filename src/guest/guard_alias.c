/* guest/guard_alias.c: has a file names (hard links) that the sandbox cannot see?
 *
 * A bound folder is a view of some names of the host's files. A file of which there are other names elsewhere (a
 * package manager's store, a backup of links) is not the sandbox's to change, whatever the name in the folder is
 * called. How many names a file has, its inode says (st_nlink); how many of them lie in the writable trees, only a
 * walk through these can tell. It is done when the first file of several names is to be written to, and not before:
 * the start costs nothing, and neither does whoever writes to none.
 *
 * One walk answers for all: it keeps the files of which every name was met (`inside`), and whatever is not among them
 * has names elsewhere. Nothing in the sandbox makes, moves or links a name but by our hand, so the number of names
 * that a file has *outside* does not change by anything that is done inside: removing a name lowers both counts, and
 * links are noted (alias_linked). What the host does meanwhile is seen when a file has got more names than are known;
 * and a file that is not known is looked for again, now and then.
 *
 * A name counts where it can be written through: not on a read-only mount (pins), not at a protected place. What cannot
 * be told (too many names, a folder that cannot be read) counts as outside: such a file is copied, which is never wrong
 * but for its other names.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirents.h"
#include "base/kernel.h"
#include "guest/guard_git.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

#define FILES_MAX   (1024 * 1024)       /* of several names, met in one walk */
#define DIRS_MAX    (1024 * 1024)
#define DEVICES_MAX 64
#define WALK_US_MAX (5 * 1000 * 1000)   /* one walk; the rest of the sandbox waits for it */
/* an unknown file: walk again after this, and after so many times of what the last walk took */
#define AGAIN_US    (2 * 1000 * 1000)
#define AGAIN_COSTS 50
#define WANTED      (STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID)

/* A file, also when its number is used again; a directory has no @names. */
struct alias {
    struct ident id;
    uint64_t born_ns;
    uint32_t names;             /* met; 0: a free slot */
    uint32_t links;             /* st_nlink then */
};

struct alias_set {
    struct alias *slots;        /* open addressing; a power of two of them, at most half used */
    size_t n, mask;
};

struct aliases {
    struct alias_set inside;
    dev_t devices[DEVICES_MAX]; /* that the trees lie on */
    size_t n_devices;
    bool all_devices;           /* there are more, or it cannot be told */
    struct ident lost;          /* a file with one name, which is looked for (alias_outside) */
    uint64_t ended_us, took_us; /* the last walk; 0: none yet */
};

/* --- sets --------------------------------------------------------------------------------------------------------- */

static size_t
slot_of(const struct alias_set *s, struct ident id)
{
    uint64_t h = ((uint64_t)id.ino ^ ((uint64_t)id.dev << 32 | (uint64_t)id.dev >> 32)) * 0x9e3779b97f4a7c15ull;
    size_t at = (size_t)(h >> 20) & s->mask;

    while (s->slots[at].names != 0 && !ident_eq(s->slots[at].id, id))
        at = (at + 1) & s->mask;
    return at;
}

static struct alias *
set_find(const struct alias_set *s, struct ident id)
{
    struct alias *a = s->slots == NULL ? NULL : &s->slots[slot_of(s, id)];

    return a == NULL || a->names == 0 ? NULL : a;
}

static bool
set_grow(struct alias_set *s)
{
    struct alias_set bigger = { NULL, s->n, s->slots == NULL ? 255 : 2 * s->mask + 1 };

    bigger.slots = calloc(bigger.mask + 1, sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; s->slots != NULL && i <= s->mask; i++)
        if (s->slots[i].names != 0)
            bigger.slots[slot_of(&bigger, s->slots[i].id)] = s->slots[i];
    free(s->slots);
    *s = bigger;
    return true;
}

/* The entry of @id, made when there is none and there are fewer than @max. NULL: no room. */
static struct alias *
set_add(struct alias_set *s, struct ident id, size_t max)
{
    struct alias *a = set_find(s, id);

    if (a != NULL)
        return a;
    if (s->n >= max || ((s->slots == NULL || 2 * (s->n + 1) > s->mask) && !set_grow(s)))
        return NULL;
    a = &s->slots[slot_of(s, id)];
    *a = (struct alias){ .id = id };
    s->n++;
    return a;
}

static void
set_free(struct alias_set *s)
{
    free(s->slots);
    *s = (struct alias_set){ 0 };
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

struct survey {
    struct guard *g;
    struct alias_set files, dirs;
    char **todo;                /* absolute paths of directories */
    size_t n_todo, room;
    uint64_t end_us;
    bool stopped;               /* by a ceiling: what was not met counts as outside */
};

struct ident
statx_ident(const struct statx *sx)
{
    return (struct ident){ makedev(sx->stx_dev_major, sx->stx_dev_minor), (ino_t)sx->stx_ino };
}

static uint64_t
statx_born(const struct statx *sx)
{
    return (sx->stx_mask & STATX_BTIME) != 0
               ? (uint64_t)sx->stx_btime.tv_sec * 1000000000u + sx->stx_btime.tv_nsec : 0;
}

static void
note_device(struct aliases *a, dev_t dev)
{
    for (size_t i = 0; i < a->n_devices; i++)
        if (a->devices[i] == dev)
            return;
    if (a->n_devices == DEVICES_MAX)
        a->all_devices = true;
    else
        a->devices[a->n_devices++] = dev;
}

static void
todo_add(struct survey *s, const char *dir, const char *name)
{
    char *path = NULL;

    if (s->n_todo == s->room) {
        size_t room = s->room == 0 ? 64 : 2 * s->room;
        char **bigger = reallocarray(s->todo, room, sizeof(*bigger));

        if (bigger == NULL) {
            s->stopped = true;
            return;
        }
        s->todo = bigger;
        s->room = room;
    }
    if (asprintf(&path, "%s%s%s", dir, strcmp(dir, "/") == 0 || name[0] == '\0' ? "" : "/", name) < 0)
        s->stopped = true;
    else
        s->todo[s->n_todo++] = path;
}

/* One more name of a file that has several: @sx says which. */
static void
count_name(struct survey *s, const struct statx *sx)
{
    struct alias *a = set_add(&s->files, statx_ident(sx), FILES_MAX);

    if (a == NULL) {
        s->stopped = true;
        return;
    }
    a->names++;
    /* names can go during the walk, and none comes: the most that there were is what the names met are held against */
    if (sx->stx_nlink > a->links)
        a->links = sx->stx_nlink;
    a->born_ns = statx_born(sx);
}

static void
survey_entry(struct survey *s, int dir, const struct statx *dir_sx, const struct stat *dir_st, const char *path,
             const char *name)
{
    char git_rule[GIT_RULE_MAX];
    const char *rule = "";
    struct statx sx;

    if (kernel_statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WANTED, &sx) < 0)
        return;
    if (S_ISDIR(sx.stx_mode)) {
        todo_add(s, path, name);
        return;
    }
    /* a mount on a file is not the name below it; and what git executes is not written to by another name either */
    if ((sx.stx_nlink < 2 && !ident_eq(statx_ident(&sx), s->g->aliases->lost)) ||
        sx.stx_mnt_id != dir_sx->stx_mnt_id ||
        rules_place(s->g, dir, dir_st, name, strlen(name), &rule) == PLACE_PROTECTED ||
        git_may_write(s->g, dir, dir_st, str_of(name), git_rule) != 0)
        return;
    count_name(s, &sx);
}

static void
survey_dir(struct survey *s, const char *path)
{
    const struct gs_open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME,
                                     .resolve = GS_RESOLVE_NO_SYMLINKS | GS_RESOLVE_NO_MAGICLINKS };
    struct gs_open_how plain = how;
    cleanup_close int dir = (int)syscall(GS_NR_openat2, s->g->root, path, &how, sizeof(how));
    struct dirents names = { .fd = -1 };
    struct alias *seen;
    struct statx sx;
    struct stat st;
    const char *name;

    plain.flags &= ~(uint64_t)O_NOATIME;        /* for the owner only */
    if (dir < 0 && errno == EPERM)
        dir = (int)syscall(GS_NR_openat2, s->g->root, path, &plain, sizeof(plain));
    /* which file system it lies on cannot be told then: every one counts */
    if (dir < 0 || kernel_statx(dir, "", AT_EMPTY_PATH, WANTED, &sx) < 0 || fstat(dir, &st) < 0) {
        s->g->aliases->all_devices = true;
        return;
    }
    if (read_only_mount(dir))
        return;
    /* two mounts of one directory show the same names */
    seen = set_add(&s->dirs, statx_ident(&sx), DIRS_MAX);
    if (seen == NULL || seen->names++ > 0) {
        s->stopped |= seen == NULL;
        return;
    }
    note_device(s->g->aliases, st.st_dev);
    names.fd = dir;
    while ((name = dirents_next(&names)) != NULL && !s->stopped)
        survey_entry(s, dir, &sx, &st, path, name);
    s->stopped |= clock_us() > s->end_us;
}

/* A tree that is a file was named itself: it is meant, whatever names it has. */
static void
survey_tree(struct survey *s, const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
    char real[PATH_MAX];
    struct alias *a;
    struct statx sx;
    ssize_t n;

    if (fd < 0 || kernel_statx(fd, "", AT_EMPTY_PATH, WANTED, &sx) < 0) {
        s->g->aliases->all_devices = true;
        return;
    }
    if (S_ISDIR(sx.stx_mode)) {
        n = fd_text(s->g, fd, real, sizeof(real));
        if (n > 0 && n < (ssize_t)sizeof(real)) {
            real[n] = '\0';
            todo_add(s, real, "");
        } else {
            s->stopped = true;
        }
        return;
    }
    a = set_add(&s->g->aliases->inside, statx_ident(&sx), FILES_MAX);
    if (a == NULL)
        return;
    a->names = a->links = UINT32_MAX;
    a->born_ns = statx_born(&sx);
}

/* Of what was met, keep the files of which every name was. */
static void
keep_inside(struct survey *s, struct aliases *a)
{
    for (size_t i = 0; s->files.slots != NULL && i <= s->files.mask; i++) {
        const struct alias *met = &s->files.slots[i];
        struct alias *kept;

        if (met->names == 0 || met->names < met->links || (kept = set_add(&a->inside, met->id, FILES_MAX)) == NULL)
            continue;
        if (kept->names != UINT32_MAX)
            *kept = *met;
    }
}

static void
survey(struct guard *g)
{
    uint64_t start = clock_us();
    struct survey s = { .g = g, .end_us = start + WALK_US_MAX };

    set_free(&g->aliases->inside);
    for (size_t i = 0; i < g->n_trees; i++)
        survey_tree(&s, g->trees[i]);
    while (s.n_todo > 0) {
        char *path = s.todo[--s.n_todo];

        if (!s.stopped)
            survey_dir(&s, path);
        free(path);
    }
    free(s.todo);
    /* what was not come to may lie on any */
    g->aliases->all_devices |= s.stopped;
    keep_inside(&s, g->aliases);
    set_free(&s.files);
    set_free(&s.dirs);
    g->aliases->ended_us = clock_us();
    g->aliases->took_us = g->aliases->ended_us - start;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static bool
on_a_tree(const struct aliases *a, dev_t dev)
{
    for (size_t i = 0; i < a->n_devices; i++)
        if (a->devices[i] == dev)
            return true;
    return a->all_devices;
}

static bool
is_inside(const struct aliases *a, const struct statx *sx)
{
    const struct alias *known = set_find(&a->inside, statx_ident(sx));

    return known != NULL && known->links >= sx->stx_nlink && known->born_ns == statx_born(sx);
}

static bool
may_walk_again(const struct aliases *a)
{
    uint64_t since = clock_us() - a->ended_us;

    return since > AGAIN_US && since > AGAIN_COSTS * a->took_us;
}

bool
guard_is_own(const struct guard *g, dev_t dev)
{
    for (size_t i = 0; i < g->n_own_devs; i++)
        if (g->own_devs[i] == dev)
            return true;
    return false;
}

/* Is the one name that @object has the one by which it was opened? (Pipes and the like have none.) */
static bool
is_where_it_was(const struct guard *g, int object)
{
    cleanup_close int dir = -1;
    char name[OBJECT_NAME_ROOM];
    struct stat st;

    if (fstat(object, &st) < 0 || st.st_nlink != 1)
        return false;
    dir = object_parent(g, object, &st, name);
    return dir >= 0 || (name[0] == '\0' && !S_ISREG(st.st_mode));
}

bool
alias_outside(struct guard *g, int object)
{
    struct aliases *a = g->aliases;
    struct statx sx;

    if (a == NULL)
        return false;
    if (kernel_statx(object, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, WANTED, &sx) < 0)
        return true;
    if (sx.stx_nlink == 0 || S_ISDIR(sx.stx_mode) || guard_is_own(g, statx_ident(&sx).dev) ||
        (sx.stx_nlink == 1 && is_where_it_was(g, object)))
        return false;
    /* one name, and not the one that it had: removed inside, and the other is elsewhere, if it is not found */
    a->lost = sx.stx_nlink == 1 ? statx_ident(&sx) : (struct ident){ 0, 0 };
    if (a->ended_us == 0)
        survey(g);
    if (!on_a_tree(a, statx_ident(&sx).dev) || is_inside(a, &sx))
        return false;
    if (!may_walk_again(a))
        return true;
    survey(g);
    return on_a_tree(a, statx_ident(&sx).dev) && !is_inside(a, &sx);
}

bool
alias_walked(const struct guard *g)
{
    return g->aliases != NULL && g->aliases->ended_us != 0;
}

bool
alias_known(struct guard *g, int object)
{
    struct statx sx;

    return kernel_statx(object, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, WANTED, &sx) == 0 &&
           (sx.stx_nlink < 2 ? !alias_outside(g, object) : is_inside(g->aliases, &sx));
}

void
alias_linked(struct guard *g, int object)
{
    struct alias *known;
    struct statx sx;

    if (kernel_statx(object, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, WANTED, &sx) < 0 || sx.stx_nlink < 2)
        return;
    known = set_add(&g->aliases->inside, statx_ident(&sx), FILES_MAX);
    if (known != NULL && known->links != UINT32_MAX)
        *known = (struct alias){ statx_ident(&sx), statx_born(&sx), sx.stx_nlink, sx.stx_nlink };
}

int
alias_init(struct guard *g)
{
    if ((g->flags & GUARD_WRITES) == 0 || g->n_trees == 0)
        return 0;
    g->aliases = calloc(1, sizeof(*g->aliases));
    return g->aliases != NULL ? 0 : -1;
}

void
alias_free(struct guard *g)
{
    if (g->aliases != NULL)
        set_free(&g->aliases->inside);
    free(g->aliases);
    g->aliases = NULL;
}
