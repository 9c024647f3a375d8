/* workspace/marks.c: see marks.h */
#include "workspace/marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define LIST_MAX 65536

struct search {
    struct marks *out;
    dev_t dev;
    char path[PATH_MAX];                /* of the folder that is looked through, with a '/' behind it, or "" */
    size_t n;
    char list[LIST_MAX];
};

/* Has the entry of the working directory an attribute of an overlay's? There is no llistxattr for a descriptor and a
 * name before Linux 6.13, and a path through /proc costs twice as much. */
static bool
is_marked(struct search *s, const char *name)
{
    ssize_t n = llistxattr(name, s->list, sizeof(s->list));

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(s->list + at) + 1)
        if (str_starts(str_of(s->list + at), STR_LIT("user.overlay.")))
            return true;
    return false;
}

static int
note(struct search *s, const char *name, struct err *err)
{
    struct marks *m = s->out;

    m->n++;
    if (m->n_names == MARKS_NAMED_MAX)
        return 0;
    if (asprintf(&m->names[m->n_names], "%s%s", s->path, name) < 0)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    m->n_names++;
    return 0;
}

static int look_through(struct search *s, int dir, unsigned depth, struct err *err);

static int
enter(struct search *s, int dir, const char *name, unsigned depth, struct err *err)
{
    cleanup_close int sub = -1;
    size_t before = s->n, len = strlen(name);
    struct stat st;
    int r = 0;

    if (depth == MARKS_DEPTH_MAX || s->n + len + 2 > sizeof(s->path)) {
        s->out->stopped = true;
        return 0;
    }
    sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0 || fstat(sub, &st) < 0 || st.st_dev != s->dev)
        return 0;
    memcpy(s->path + s->n, name, len);
    memcpy(s->path + s->n + len, "/", 2);
    s->n += len + 1;
    r = look_through(s, sub, depth + 1, err);
    s->n = before;
    s->path[before] = '\0';
    s->out->stopped |= fchdir(dir) < 0;
    return r;
}

static int
look_through(struct search *s, int dir, unsigned depth, struct err *err)
{
    cleanup_dir DIR *list = NULL;
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    struct dirent *entry;

    if (copy < 0 || fchdir(dir) < 0 || (list = fdopendir(copy)) == NULL) {
        if (copy >= 0)
            close(copy);
        s->out->stopped = true;
        return 0;
    }
    while (!s->out->stopped && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        s->out->stopped = ++s->out->looked > MARKS_LOOKED_MAX;
        /* user attributes are for files and folders only */
        if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            continue;
        if (is_marked(s, entry->d_name) && note(s, entry->d_name, err) < 0)
            return -1;
        if (entry->d_type != DT_REG && enter(s, dir, entry->d_name, depth, err) < 0)
            return -1;
    }
    return 0;
}

int
marks_find(int project, struct marks *out, struct err *err)
{
    cleanup_close int dir = openat(project, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free struct search *s = calloc(1, sizeof(*s));
    cleanup_close int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    int r;

    *out = (struct marks)MARKS_INIT;
    if (s == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    if (before < 0 || dir < 0 || fstat(dir, &st) < 0 || fchdir(dir) < 0) {
        out->stopped = true;
        return 0;
    }
    s->out = out;
    s->dev = st.st_dev;
    r = is_marked(s, ".") ? note(s, ".", err) : 0;
    if (r == 0)
        r = look_through(s, dir, 0, err);
    if (fchdir(before) < 0)
        return err_sys(err, errno, "workspace.cwd", "the working directory");
    return r;
}

void
marks_free(struct marks *m)
{
    for (size_t i = 0; i < m->n_names; i++)
        free(m->names[i]);
    *m = (struct marks)MARKS_INIT;
}
