/* engine/native/plan_known.c: see plan_known.h */
#include "engine/native/plan_known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "engine/native/plan_real.h"

#define LIST_FROM 4             /* places looked for in one folder: from then on its names are read instead */
#define NAMES_MAX 2000          /* ... where they are not too many for that */
#define SEEN_BITS 8192

/* Of names that differ in the case of ASCII letters the same. */
static size_t
bit_of(const char *name)
{
    uint32_t h = 2166136261u;   /* FNV-1a */

    for (; *name != '\0'; name++)
        h = (h ^ ((unsigned char)*name | (*name >= 'A' && *name <= 'Z' ? 0x20u : 0u))) * 16777619u;
    return h % SEEN_BITS;
}

/* Whether the folder is not there, or its names were read and @name is none of them. */
static bool
is_unseen(const struct plan_folder *f, const char *name)
{
    size_t bit = bit_of(name);

    return f->fd < 0 || (f->seen != NULL && (f->seen[bit / 64] >> bit % 64 & 1) == 0);
}

/* Bytes of @path, absolute, that name the folder it lies in. */
static size_t
folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == path ? 1 : (size_t)(slash - path);
}

static bool
is_folder(const struct plan_folder *f, const char *path, size_t n)
{
    return f->n == n && memcmp(f->path, path, n) == 0;
}

static struct plan_folder *
find(struct plan_known *known, const char *path, size_t n)
{
    /* neighbours in a table are neighbours on the disk; and most lie in the home itself */
    for (size_t i = 0; i < PLAN_KNOWN_RECENT; i++)
        if (known->recent[i] < known->n && is_folder(&known->v[known->recent[i]], path, n))
            return &known->v[known->recent[i]];
    for (size_t i = known->n; i-- > 0;) {
        if (!is_folder(&known->v[i], path, n))
            continue;
        known->recent[known->next_recent++ % PLAN_KNOWN_RECENT] = i;
        return &known->v[i];
    }
    return NULL;
}

/* The folder that @path lies in, opened once. NULL: nobody can say by it whether the path is there. */
static struct plan_folder *
folder_of(struct plan_known *known, const char *path)
{
    size_t n = folder_length(path);
    struct plan_folder *f = find(known, path, n), *above;
    char folder[PATH_MAX];

    if (f != NULL || known->n == PLAN_KNOWN_MAX || n >= sizeof(folder))
        return f;
    memcpy(folder, path, n);
    folder[n] = '\0';
    f = &known->v[known->n];
    *f = (struct plan_folder){ .path = path, .n = n, .fd = -1 };
    above = n > 1 ? find(known, folder, folder_length(folder)) : NULL;
    if (above == NULL || !is_unseen(above, strrchr(folder, '/') + 1)) {
        f->fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (f->fd < 0 && errno != ENOENT && errno != ENOTDIR)
            return NULL;
    }
    known->n++;
    return f;
}

/* A home holds a few of hundreds of names that it could: to read all it has is cheaper than to ask for each. */
static void
list_names(struct plan_folder *f)
{
    cleanup_close int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = fd };
    cleanup_free uint64_t *seen = NULL;
    const char *name;
    size_t n = 0;

    if (fd < 0 || !io_exact_names(fd))
        return;
    seen = calloc(SEEN_BITS / 64, sizeof(*seen));
    while (seen != NULL && n < NAMES_MAX && (name = dirents_next(&names)) != NULL) {
        size_t bit = bit_of(name);
        seen[bit / 64] |= UINT64_C(1) << bit % 64;
        n++;
    }
    if (seen != NULL && n < NAMES_MAX && names.failed == 0)
        f->seen = take_ptr(&seen);
}

bool
plan_known_absent(struct plan_known *known, const char *path)
{
    struct plan_folder *f = path[0] == '/' ? folder_of(known, path) : NULL;
    const char *name;
    struct stat st;

    if (f == NULL)
        return false;
    name = strrchr(path, '/') + 1;
    if (f->fd >= 0 && ++f->asked == LIST_FROM)
        list_names(f);
    return is_unseen(f, name) ||
           (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && (errno == ENOENT || errno == ENOTDIR));
}

bool
plan_known_plain(struct plan_known *known, const char *path)
{
    struct plan_folder *f = path[0] == '/' ? folder_of(known, path) : NULL;
    char real[PATH_MAX];

    return f != NULL && f->fd >= 0 && plan_real_path(f->fd, real, sizeof(real)) && strlen(real) == f->n &&
           memcmp(real, f->path, f->n) == 0;
}

void
plan_known_forget(struct plan_known *known)
{
    for (size_t i = 0; i < known->n; i++) {
        close_fd(&known->v[i].fd);
        free(known->v[i].seen);
    }
    known->n = 0;
}
