/* workspace/cow_list.c: which states there are, and which one a person means */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/store.h"
#include "workspace/tree.h"

#define PREFIX_MIN 4

void
cow_list_free(struct cow_info *list, size_t n)
{
    for (size_t i = 0; list != NULL && i < n; i++)
        free(list[i].project);
    free(list);
}

/* What can be known about the state @id; a broken one is listed too, so that it can be discarded. */
static int
info_fill(int store, const char *id, struct cow_info *info)
{
    cleanup_cow struct cow_state state = COW_STATE_INIT;
    struct stat st;

    memcpy(info->id, id, strlen(id) + 1);
    memcpy(state.id, id, strlen(id) + 1);
    state.state_fd = store_enter(store, id, NULL);
    if (state.state_fd < 0 || fstat(state.state_fd, &st) < 0)
        return -1;
    info->busy = cow_busy(&state);
    info->interrupted = !info->busy && io_present(state.state_fd, "journal");
    info->created = st.st_ctim;
    if (meta_read(state.state_fd, &state, NULL) == 0) {
        info->created = state.created;
        info->project = take_ptr(&state.project);
    }
    return 0;
}

static int
newest_first(const void *a, const void *b)
{
    const struct cow_info *x = a, *y = b;

    if (x->created.tv_sec != y->created.tv_sec)
        return x->created.tv_sec < y->created.tv_sec ? 1 : -1;
    if (x->created.tv_nsec != y->created.tv_nsec)
        return x->created.tv_nsec < y->created.tv_nsec ? 1 : -1;
    return strcmp(x->id, y->id);
}

static ssize_t
list_names(int store, const struct tree_names *names, struct cow_info **out, struct err *err)
{
    struct cow_info *list = calloc(names->n + 1, sizeof(*list));
    size_t n = 0;

    if (list == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.state.memory", "no memory");
    for (size_t i = 0; i < names->n; i++) {
        /* what an interrupted discard left; one that is at work has the store locked */
        if (strncmp(names->v[i], ".discard-", 9) == 0 && flock(store, LOCK_EX | LOCK_NB) == 0)
            tree_remove(store, names->v[i], NULL);
        else if (store_id_valid(names->v[i]) && info_fill(store, names->v[i], &list[n]) == 0)
            n++;
    }
    qsort(list, n, sizeof(*list), newest_first);
    *out = list;
    return (ssize_t)n;
}

ssize_t
cow_list(struct cow_info **out, struct err *err)
{
    struct err why = ERR_INIT;
    struct tree_names names;

    *out = NULL;
    cleanup_close int store = store_open(false, &why);
    if (store < 0 && why.kind == ERR_NOT_FOUND)
        return 0;
    if (store < 0) {
        if (err != NULL)
            *err = why;
        return -1;
    }
    if (tree_names_read(store, &names) < 0)
        return err_sys(err, errno, "workspace.state.open", "cannot read the state directory");
    ssize_t n = list_names(store, &names, out, err);
    tree_names_free(&names);
    return n;
}

static int
none(const char *which, struct err *err)
{
    err_set(err, ERR_NOT_FOUND, "workspace.state.none", "there is no copy-on-write state for %s", which);
    return err_hint(err, "`cloche run --workspace DIR:cow -- CMD` makes one; `cloche diff --list` shows all");
}

/* The one state whose id begins with @prefix: 1, none: 0, several: -1. */
static int
by_prefix(const struct cow_info *list, size_t n, const char *prefix, char id[COW_ID_MAX + 1], struct err *err)
{
    const struct cow_info *hit = NULL;
    size_t len = strlen(prefix);

    if (len < PREFIX_MIN || len > COW_ID_MAX || strspn(prefix, "0123456789abcdef") != len)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(list[i].id, prefix, len) != 0)
            continue;
        if (hit != NULL) {
            err_set(err, ERR_USAGE, "workspace.state.ambiguous", "%s is the beginning of several ids", prefix);
            return err_hint(err, "such as %s and %s", hit->id, list[i].id);
        }
        hit = &list[i];
    }
    if (hit != NULL)
        memcpy(id, hit->id, sizeof(hit->id));
    return hit != NULL;
}

/* The newest state whose project is the directory @path: by its name, or through another name of the same directory. */
static bool
by_directory(const struct cow_info *list, size_t n, const char *path, char id[COW_ID_MAX + 1])
{
    struct stat want, st;

    if (stat(path, &want) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (list[i].project != NULL && stat(list[i].project, &st) == 0 && st.st_dev == want.st_dev &&
            st.st_ino == want.st_ino) {
            memcpy(id, list[i].id, sizeof(list[i].id));
            return true;
        }
    }
    return false;
}

static int
find_in(const struct cow_info *list, size_t n, const char *which, const char *cwd, char id[COW_ID_MAX + 1],
        struct err *err)
{
    char path[PATH_MAX];
    size_t len;

    if (which != NULL) {
        int hit = by_prefix(list, n, which, id, err);
        if (hit != 0)
            return hit < 0 ? -1 : 0;
        return by_directory(list, n, which, id) ? 0 : none(which, err);
    }
    len = strlen(cwd);
    if (len >= sizeof(path))
        return none(cwd, err);
    memcpy(path, cwd, len + 1);
    for (;;) {
        if (by_directory(list, n, path, id))
            return 0;
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0')
            return none(cwd, err);
        slash[slash == path ? 1 : 0] = '\0';
    }
}

int
cow_find(const char *which, const char *cwd, char id[COW_ID_MAX + 1], struct err *err)
{
    struct cow_info *list;
    ssize_t n = cow_list(&list, err);

    if (n < 0)
        return -1;
    int r = find_in(list, (size_t)n, which, cwd, id, err);
    cow_list_free(list, (size_t)n);
    return r;
}
