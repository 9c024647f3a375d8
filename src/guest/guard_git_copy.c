/* guest/guard_git_copy.c: a judged copy takes a name (see guard_git.h)
 *
 * The copy is made under a name that every guard refuses to make, to open for writing and to put something at
 * (GIT_STATE_COPY): another sandbox of the same tree sees it for a moment. What was read is what is judged, and what is
 * written; the source may go on changing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guard_git.h"
#include "match/git_index.h"

#define COPY_MAX  GIT_INDEX_MAX /* the largest that a judge takes */
#define NAME_TRIES 8
#define COPY_ROOM 32

_Static_assert(GIT_CONFIG_MAX <= COPY_MAX && GIT_TODO_MAX <= COPY_MAX && GIT_HEAD_MAX <= COPY_MAX, "room for them");

/* The whole of @file from its beginning. 0 with @text to free, or an errno; EFBIG beyond COPY_MAX, or when it grows. */
static int
read_whole(int file, char **text, size_t *n)
{
    struct stat st;

    if (fstat(file, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)COPY_MAX)
        return S_ISREG(st.st_mode) ? EFBIG : EINVAL;
    *n = 0;
    size_t size = (size_t)st.st_size;
    *text = malloc(size + 1);
    while (*text != NULL && *n <= size) {
        ssize_t got = pread(file, *text + *n, size + 1 - *n, (off_t)*n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return 0;
        *n += (size_t)got;
    }
    return *text == NULL ? ENOMEM : EFBIG;
}

static int
write_whole(int fd, const char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = pwrite(fd, p + at, n - at, (off_t)at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? errno : EIO;
        at += (size_t)put;
    }
    return 0;
}

int
git_copy_text(int file, int to)
{
    cleanup_free char *text = NULL;
    size_t n = 0;
    int rc = read_whole(file, &text, &n);

    return rc != 0 ? rc : write_whole(to, text, n);
}

int
git_copy_whole(int file, int to)
{
    cleanup_free char *text = NULL;
    size_t n = 0;
    int rc = read_whole(file, &text, &n);

    if (rc == 0)
        rc = n > GIT_CONFIG_MAX ? EFBIG : write_whole(to, text, n);
    return rc == 0 && ftruncate(to, (off_t)n) < 0 ? errno : rc;
}

static int
open_temporary(int dir, char name[COPY_ROOM])
{
    for (int i = 0; i < NAME_TRIES; i++) {
        uint64_t r;
        int fd;

        if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
            return -EIO;
        snprintf(name, COPY_ROOM, GIT_COPY_NAME "%016" PRIx64, r);
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

/* With the mode and times of @like. */
static int
fill(int fd, const char *text, size_t n, const struct stat *like)
{
    const struct timespec times[2] = { like->st_atim, like->st_mtim };
    int rc = write_whole(fd, text, n);

    if (rc == 0 && (fchmod(fd, like->st_mode & 0777) < 0 || futimens(fd, times) < 0))
        rc = errno;
    return rc;
}

/* --- how long the names of objects are: by it an index is read */

/* What the configuration of the git place @dir says. False: it has none. */
static bool
oid_of_config(int dir, size_t *oid)
{
    cleanup_close int file = openat(dir, "config", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cleanup_free char *text = NULL;
    size_t n = 0;

    if (file < 0 || read_whole(file, &text, &n) != 0)
        return false;
    *oid = git_oid_bytes((struct str){ text, n });
    return true;
}

/* In the git place @dir; @common is what its commondir says, NULL: what is there. */
static size_t
oid_of_place(int dir, const struct str *common)
{
    cleanup_free char *text = NULL;
    struct str said, target;
    size_t n = 0, oid = GIT_OID_BYTES;
    char path[GIT_HEAD_MAX + 1];

    if (common == NULL) {
        cleanup_close int file = openat(dir, "commondir", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (file >= 0 && read_whole(file, &text, &n) == 0)
            said = (struct str){ text, n };
        else
            return oid_of_config(dir, &oid) ? oid : GIT_OID_BYTES;
    } else {
        said = *common;
    }
    if (!git_redirect_target(said, &target))
        return oid;
    snprintf(path, sizeof(path), "%.*s", (int)target.n, target.p);
    cleanup_close int above = openat(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return above >= 0 && oid_of_config(above, &oid) ? oid : GIT_OID_BYTES;
}

/* Whether what comes to @name would have an index that is there, which was judged, read otherwise. */
static bool
rereads_index(int dir, enum git_state state, const char *name, struct str text)
{
    static const char *const judged[] = { "index", "worktrees" };
    struct stat st;
    size_t oid;

    if (state == GIT_STATE_CONFIG && git_state_of(str_of(name)) == GIT_STATE_CONFIG &&
        git_without_lock(str_of(name)).n == strlen("config"))
        oid = git_oid_bytes(text);
    else if (state == GIT_STATE_COMMONDIR)
        oid = oid_of_place(dir, &text);
    else
        return false;
    if (oid == oid_of_place(dir, NULL))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (fstatat(dir, judged[i], &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            return true;
    return false;
}

static bool
harmless(int dir, struct str text, enum git_state state, const char *name, const struct git_site *site,
         struct git_config_fault *fault)
{
    if (state == GIT_STATE_INDEX)
        return git_index_harmless(text, oid_of_place(dir, NULL));
    return git_state_harmless(state, str_of(name), text, site->depth, fault) &&
           (state != GIT_STATE_COMMONDIR || (site->path.n > 0 && git_common_harmless(text, site->path)));
}

static int
judge(int dir, struct str text, enum git_state state, const char *name, const struct git_site *site,
      char rule[GIT_RULE_MAX])
{
    struct git_config_fault fault = { "" };

    if (harmless(dir, text, state, name, site, &fault)) {
        if (!rereads_index(dir, state, name, text))
            return 0;
        snprintf(rule, GIT_RULE_MAX, "git state: another object format than that of the index");
        return EACCES;
    }
    if (state == GIT_STATE_INDEX)
        snprintf(rule, GIT_RULE_MAX, "git state: %s that names what is not in the work tree", git_state_name(state));
    else if (state == GIT_STATE_FILE || state == GIT_STATE_COMMONDIR)
        snprintf(rule, GIT_RULE_MAX, "git state: %s to what is no .git", git_state_name(state));
    else if (fault.key[0] != '\0')
        snprintf(rule, GIT_RULE_MAX, "git state: %s: %s", git_state_name(state), fault.key);
    else
        snprintf(rule, GIT_RULE_MAX, "git state: %s that may run a program", git_state_name(state));
    return EACCES;
}

/* What is in @file, judged as what is to be @name in @dir. 0 with @text to free, an errno, or EACCES with @rule. */
static int
read_judged(int file, int dir, const char *name, enum git_state state, const struct git_site *site, char **text,
            size_t *n, char rule[GIT_RULE_MAX])
{
    int rc = read_whole(file, text, n);

    if (rc == EFBIG) {
        snprintf(rule, GIT_RULE_MAX, "git state: %s too large to judge", git_state_name(state));
        return EACCES;
    }
    /* nobody but git's own commands is to fail for what it would remember of a conflict: it remembers none */
    if (rc == 0 && state == GIT_STATE_RERERE)
        *n = 0;
    return rc != 0 ? rc : judge(dir, (struct str){ *text, *n }, state, name, site, rule);
}

int
git_copy_file(int file, int to, const char *to_name, enum git_state state, const struct git_site *site, unsigned flags,
              char rule[GIT_RULE_MAX], int *copy)
{
    cleanup_free char *text = NULL;
    cleanup_close int fd = -1;
    char temporary[COPY_ROOM];
    struct stat st;
    size_t n = 0;
    int rc = fstat(file, &st) < 0 ? errno : read_judged(file, to, to_name, state, site, &text, &n, rule);

    if (rc != 0)
        return rc;
    fd = open_temporary(to, temporary);
    if (fd < 0)
        return -fd;
    rc = fill(fd, text, n, &st);
    if (rc == 0 && syscall(SYS_renameat2, to, temporary, to, to_name, flags) < 0)
        rc = errno;
    if (rc != 0)
        (void)unlinkat(to, temporary, 0);
    else if (copy != NULL)
        *copy = take_fd(&fd);
    return rc;
}

int
git_fill_file(int file, int dir, const char *name, enum git_state state, const struct git_site *site, int to,
              char rule[GIT_RULE_MAX])
{
    cleanup_free char *text = NULL;
    size_t n = 0;
    int rc = read_judged(file, dir, name, state, site, &text, &n, rule);

    /* nobody may ever read the end of what was there behind what is */
    if (rc == 0 && ftruncate(to, 0) < 0)
        rc = errno;
    return rc == 0 ? write_whole(to, text, n) : rc;
}
