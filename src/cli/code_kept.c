/* cli/code_kept.c: see code_kept.h
 *
 * A set is copied into a folder beside its place, which is locked by who copies, and renamed into it. Who uses one
 * holds a lock on it too, so that none is removed under a sandbox. A process that is killed leaves a folder that nobody
 * has locked: the next one that keeps a set removes it.
 */
#include "cli/code_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "base/sha256.h"
#include "hosts/registry_kept.h"
#include "program/state.h"
#include "workspace/copy.h"
#include "workspace/tree.h"

#define FOLDER    "packages"
#define FRESH     ".new-"
#define BYTES_MAX (2ULL * 1024 * 1024 * 1024)
#define NAME_SIZE (sizeof(FRESH) + SHA256_TEXT)

static int
open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The digest of what @words would install; false where nothing is known of the registry, which is asked then. */
static bool
key_of(const struct package_client *client, const struct policy *p, const char *const *words, char key[SHA256_TEXT + 1])
{
    json_t *answer = registry_kept_for(p, client->registry, KEPT_SETS_S), *list = json_array(), *all;
    cleanup_free char *text = NULL;
    uint8_t hash[SHA256_SIZE];

    for (size_t i = 0; words[i] != NULL; i++)
        (void)json_array_append_new(list, json_string(words[i]));
    if (answer == NULL) {
        json_decref(list);
        return false;
    }
    (void)json_object_del(answer, "at");
    all = json_pack("{s:s, s:o, s:o}", "cloche", CLOCHE_VERSION, "registry", answer, "words", list);
    text = all != NULL ? json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(all);
    if (text == NULL)
        return false;
    sha256_of(text, strlen(text), hash);
    sha256_text(hash, key);
    return true;
}

/* --- taking one --------------------------------------------------------------------------------------------------- */

static bool
is_young(const struct stat *st)
{
    time_t now = time(NULL);

    return st->st_mtime <= now && now - st->st_mtime < KEPT_SETS_S;
}

bool
code_kept_find(struct kept_set *set, const struct package_client *client, const struct policy *p,
               const char *const *words)
{
    cleanup_close int dir = state_own_open(FOLDER, "cli.package", NULL), fd = -1;
    char key[SHA256_TEXT + 1], state[PATH_MAX];
    struct stat mine, there, part;

    *set = (struct kept_set){ .lock = -1 };
    if (dir < 0 || !key_of(client, p, words, key) || state_dir_path(state, NULL) < 0)
        return false;
    fd = open_folder(dir, key);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &mine) < 0 || !is_young(&mine) ||
        fstatat(dir, key, &there, AT_SYMLINK_NOFOLLOW) < 0 || there.st_ino != mine.st_ino ||
        fstatat(fd, client->folder, &part, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(part.st_mode) ||
        strchr(state, ':') != NULL ||       /* no --bind has one in a path */
        snprintf(set->path, sizeof(set->path), "%s/" FOLDER "/%s", state, key) >= (int)sizeof(set->path)) {
        set->path[0] = '\0';
        return false;
    }
    set->lock = take_fd(&fd);
    return true;
}

/* --- keeping one -------------------------------------------------------------------------------------------------- */

/* Remove what is named so, unless somebody uses or makes it. Whether it is gone. */
static bool
remove_unused(int dir, const char *name)
{
    cleanup_close int fd = open_folder(dir, name);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && tree_remove(dir, name, NULL) == 0;
}

/* Its place in @names; their number: there is none. */
static size_t
oldest_of(int dir, const struct tree_names *names)
{
    size_t oldest = names->n;
    time_t when = 0;

    for (size_t i = 0; i < names->n; i++) {
        struct stat st = { .st_mtime = 0 };
        (void)fstatat(dir, names->v[i], &st, AT_SYMLINK_NOFOLLOW);
        if (oldest < names->n && st.st_mtime >= when)
            continue;
        oldest = i;
        when = st.st_mtime;
    }
    return oldest;
}

/* What was left half made, what is too old, and the oldest ones where there are too many. Whether there is room for
 * one more then: sets that are in use stay. */
static bool
tidy(int dir)
{
    struct tree_names names;
    size_t n = 0;

    if (tree_names_read(dir, &names) < 0)
        return false;
    for (size_t i = 0; i < names.n; i++) {
        bool fresh = strncmp(names.v[i], FRESH, strlen(FRESH)) == 0;
        struct stat st;
        bool goes = fresh || fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_young(&st);
        if ((!goes || !remove_unused(dir, names.v[i])) && !fresh)
            names.v[n++] = names.v[i];
    }
    names.n = n;
    for (size_t i; n >= KEPT_SETS_MAX && (i = oldest_of(dir, &names)) < names.n; names.v[i] = names.v[--names.n])
        n -= remove_unused(dir, names.v[i]) ? 1 : 0;
    tree_names_free(&names);
    return n < KEPT_SETS_MAX;
}

static int
copy_into(int fresh, const char *installed, const char *folder)
{
    cleanup_close int at = open(installed, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int from = at < 0 ? -1 : open_folder(at, folder), to = -1;
    struct tree_copy copy = { .from = from, .bytes_max = BYTES_MAX, .owned = true, .uid = geteuid(), .gid = getegid() };

    if (from < 0 || mkdirat(fresh, folder, 0755) < 0)
        return -1;
    to = open_folder(fresh, folder);
    copy.to = to;
    return to < 0 ? -1 : tree_copy(&copy, NULL);
}

void
code_kept_keep(const struct package_client *client, const struct policy *p, const char *const *words,
               const char *installed)
{
    cleanup_close int dir = state_own_open(FOLDER, "cli.package", NULL), fresh = -1;
    char key[SHA256_TEXT + 1], name[NAME_SIZE];

    if (dir < 0 || !key_of(client, p, words, key) || !tidy(dir))
        return;
    snprintf(name, sizeof(name), FRESH "%s", key);
    if (mkdirat(dir, name, 0755) < 0)
        return;         /* another process is at it */
    fresh = open_folder(dir, name);
    if (fresh < 0 || flock(fresh, LOCK_EX | LOCK_NB) < 0)
        return;
    if (copy_into(fresh, installed, client->folder) == 0 &&
        kernel_renameat2(dir, name, dir, key, RENAME_NOREPLACE) < 0 && errno == EEXIST)
        (void)kernel_renameat2(dir, name, dir, key, RENAME_EXCHANGE);
    close_fd(&fresh);
    remove_unused(dir, name);       /* the earlier one, or half of this one */
}
