/* engine/native/expand.c: see expand.h */
#include "engine/native/expand.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "engine/native/plan_real.h"
#include "match/path.h"
#include "wall/mnt.h"

struct walk {
    const char *host;                   /* of the tree */
    const struct policy_entry *rule;    /* glob walk */
    const struct policy_list *names;    /* name search */
    bool begins[256];                   /* ... bytes that one of them begins with, in either case */
    expand_fn *found, *shut;            /* @shut: NULL, nobody asks */
    void *ctx;
    unsigned max_depth;
    size_t folders;
    char relative[PATH_MAX];
    struct err *err;
};

static int walk_folder(struct walk *w, int fd, size_t len, unsigned depth);

/* What could not be opened or listed (@why) may be there all the same, and is then not protected: nothing is started.
 * 0 where there is nothing, or what those who may not look cannot reach either (mnt_is_absent). */
static int
unseen(const struct walk *w, int why)
{
    return why == 0 || mnt_is_absent(why) ? 0
         : err_sys(w->err, why, "wall.expand.unseen", "%s%s%s cannot be searched to its end", w->host,
                   w->relative[0] != '\0' ? "/" : "", w->relative);
}

/* @name in @parent could not be opened (errno): is it the caller's own folder, which can be opened again? */
static bool
is_shut(int parent, const char *name)
{
    struct stat st;

    return errno == EACCES && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && plan_real_opens_again(&st);
}

/* What lies in the folder @fd can be looked at: to list its names is another right. errno. */
static bool
is_searchable(int fd)
{
    struct stat st;

    return fstatat(fd, "./.", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The folder @name in @parent, to be listed and searched. */
static int
open_folder(int parent, const char *name)
{
    cleanup_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 || !is_searchable(fd) ? -1 : take_fd(&fd);
}

static int
visit_glob(struct walk *w, int parent, const char *name, size_t len, unsigned depth, bool is_dir)
{
    char path[2 * PATH_MAX];
    struct str text;

    snprintf(path, sizeof(path), "%s/%s", strcmp(w->host, "/") == 0 ? "" : w->host, w->relative);
    text = str_of(path);
    if (path_glob_match(str_of(w->rule->value), text))
        return w->found(w->ctx, w->relative, w->err);
    if (!is_dir || !path_glob_goes_below(w->rule->value, path))
        return 0;
    cleanup_close int child = open_folder(parent, name);
    if (child >= 0)
        return walk_folder(w, child, len, depth + 1);
    if (errno != EACCES)
        return unseen(w, errno);
    return w->shut != NULL && is_shut(parent, name) ? w->shut(w->ctx, w->relative, w->err) : 0;
}

/* @name, of several components, cannot be looked for in the folder @fd: report what keeps it from being seen. */
static int
report_shut(struct walk *w, int fd, size_t len, const char *name)
{
    char path[2 * PATH_MAX];
    size_t n = 0, end;
    struct stat st;

    /* the longest beginning of the name that can be seen; none: the folder itself */
    for (end = strcspn(name, "/"); name[end] != '\0'; end += 1 + strcspn(name + end + 1, "/")) {
        snprintf(path, sizeof(path), "%.*s", (int)end, name);
        if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
            break;
        n = end;
    }
    w->relative[len] = '\0';
    snprintf(path, sizeof(path), "%.*s", (int)n, name);
    if ((n > 0 ? fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) : fstat(fd, &st)) < 0 || !plan_real_opens_again(&st))
        return 0;
    snprintf(path, sizeof(path), "%s%s%.*s", w->relative, len > 0 && n > 0 ? "/" : "", (int)n, name);
    return w->found(w->ctx, path, w->err);
}

/* Report @name if it exists in the folder @fd. */
static int
search_name(struct walk *w, int fd, size_t len, const char *name)
{
    cleanup_close int hit = mnt_open_beneath(fd, name, O_PATH | O_NOFOLLOW, false);
    char path[2 * PATH_MAX];

    if (hit < 0 && errno == EACCES)
        return report_shut(w, fd, len, name) != 0 ? -1 : 0;
    if (hit < 0)
        return unseen(w, errno);
    w->relative[len] = '\0';
    snprintf(path, sizeof(path), "%s%s%s", w->relative, len > 0 ? "/" : "", name);
    return w->found(w->ctx, path, w->err) != 0 ? -1 : 0;
}

/* Report what exists of the protected names whose first component is @entry of the folder @fd; NULL: of all. */
static int
search_names(struct walk *w, int fd, size_t len, const char *entry)
{
    size_t n = entry != NULL ? strlen(entry) : 0;

    if (entry != NULL && !w->begins[(unsigned char)*entry])
        return 0;
    for (size_t i = 0; i < w->names->n; i++) {
        const char *name = w->names->v[i].value;
        if (entry != NULL && (strncasecmp(name, entry, n) != 0 || (name[n] != '/' && name[n] != '\0')))
            continue;
        if (search_name(w, fd, len, name) < 0)
            return -1;
    }
    return 0;
}

static int
too_large(struct walk *w)
{
    err_set(w->err, ERR_LIMIT, "wall.expand.too-large", "%s has more than %d folders or %d levels to search", w->host,
            EXPAND_FOLDERS_MAX, EXPAND_DEPTH_MAX);
    return err_hint(w->err, "name a smaller folder, or a rule without wildcards");
}

/* The folder @fd, @level below the one that the search began in, and the folders in it. To read its names is cheaper
 * than to ask it for each of the protected ones. */
static int
search_folder(struct walk *w, int fd, size_t len, unsigned level)
{
    struct dirents entries = { .fd = fd };
    bool exact = level == 0 || io_exact_names(fd);
    const char *name;

    if (level < w->max_depth && (level >= EXPAND_DEPTH_MAX || ++w->folders > EXPAND_FOLDERS_MAX))
        return too_large(w);
    if (!exact && search_names(w, fd, len, NULL) < 0)
        return -1;
    while ((name = dirents_next(&entries)) != NULL) {
        size_t n = strlen(name);
        cleanup_close int child = -1;

        if (len + n + 2 > sizeof(w->relative))
            return too_large(w);
        if (level > 0 && exact && search_names(w, fd, len, name) < 0)
            return -1;
        /* what package managers unpack is not read by anything of the host, and it is where the many folders are */
        if (level >= w->max_depth || !dirents_maybe_directory(&entries) || strcmp(name, "node_modules") == 0)
            continue;
        snprintf(w->relative + len, sizeof(w->relative) - len, "%s%s", len > 0 ? "/" : "", name);
        child = open_folder(fd, name);
        if (child < 0 && unseen(w, errno) < 0)
            return -1;
        if (child >= 0 ? search_folder(w, child, len + (len > 0 ? 1 : 0) + n, level + 1) < 0
                       : is_shut(fd, name) && w->found(w->ctx, w->relative, w->err) != 0)
            return -1;
        w->relative[len] = '\0';
    }
    return unseen(w, entries.failed);
}

static int
walk_folder(struct walk *w, int fd, size_t len, unsigned depth)
{
    struct dirents entries = { .fd = fd };
    const char *name;

    if (depth > EXPAND_DEPTH_MAX || ++w->folders > EXPAND_FOLDERS_MAX)
        return too_large(w);
    while ((name = dirents_next(&entries)) != NULL) {
        size_t n = strlen(name);
        int r;

        if (len + n + 2 > sizeof(w->relative))
            return too_large(w);
        snprintf(w->relative + len, sizeof(w->relative) - len, "%s%s", len > 0 ? "/" : "", name);
        n += len > 0 ? 1 : 0;
        r = visit_glob(w, fd, name, len + n, depth, dirents_maybe_directory(&entries));
        w->relative[len] = '\0';
        if (r != 0)
            return -1;
    }
    return unseen(w, entries.failed);
}

const char *
expand_below(const char *path, const char *host)
{
    size_t n = strlen(host);

    if (strcmp(host, "/") == 0)
        return path[1] == '\0' ? "" : path + 1;
    if (strncmp(path, host, n) != 0)
        return NULL;
    return path[n] == '\0' ? path + n : path[n] == '/' ? path + n + 1 : NULL;
}

static int
expand_plain(int fd, const char *host, const struct policy_entry *rule, expand_fn *found, void *ctx, struct err *err)
{
    const char *relative = expand_below(rule->value, host);
    cleanup_close int hit = -1;

    if (relative == NULL)
        return 0;
    hit = mnt_open_beneath(fd, relative, O_PATH | O_NOFOLLOW, false);
    if (hit < 0 && !mnt_is_absent(errno))
        return err_sys(err, errno, "wall.expand.unseen", "%s", rule->value);
    return hit >= 0 ? found(ctx, relative, err) : 0;
}

int
expand_rule(int fd, const char *host, const struct policy_entry *rule, expand_fn *found, expand_fn *shut, void *ctx,
            struct err *err)
{
    struct walk w = { .host = host, .rule = rule, .found = found, .shut = shut, .ctx = ctx,
                      .err = err };
    struct str pattern = str_of(rule->value);
    char prefix[PATH_MAX];
    cleanup_close int start = -1;
    const char *relative;
    size_t n;

    if (rule->literal || !path_has_glob(pattern))
        return expand_plain(fd, host, rule, found, ctx, err);
    if (path_glob_match(pattern, str_of(host)))
        return found(ctx, "", err);
    n = path_glob_prefix(pattern);
    if (n >= sizeof(prefix))
        return 0;
    memcpy(prefix, rule->value, n);
    prefix[n] = '\0';
    /* start at the rule's own folder when it is below the tree, at the tree when the tree is below it */
    relative = expand_below(n == 0 ? "/" : prefix, host);
    if (relative == NULL && expand_below(host, n == 0 ? "/" : prefix) == NULL)
        return 0;
    if (relative == NULL)
        relative = "";
    snprintf(w.relative, sizeof(w.relative), "%s", relative);
    start = mnt_open_beneath(fd, relative, O_RDONLY | O_DIRECTORY, false);
    if ((start < 0 || !is_searchable(start)) && errno == EACCES && shut != NULL)
        return shut(ctx, relative, err);
    if (start < 0)
        return unseen(&w, errno);
    return walk_folder(&w, start, strlen(w.relative), 1);
}

int
expand_names(int fd, const struct policy_list *names, unsigned depth, expand_fn *found, void *ctx, struct err *err)
{
    struct walk w = {
        .host = "the workspace", .names = names, .found = found, .ctx = ctx, .max_depth = depth, .err = err
    };
    cleanup_close int start = mnt_open_beneath(fd, ".", O_RDONLY | O_DIRECTORY, false);
    struct stat st;

    if (depth == 0)
        return 0;
    if ((start < 0 || !is_searchable(start)) && errno == EACCES && fstat(fd, &st) == 0 && plan_real_opens_again(&st)) {
        err_set(err, ERR_POLICY, "wall.protect.shut",
                "the folder that is to be written cannot be searched for protected names");
        return err_hint(err, "chmod u+rx it: what runs inside could");
    }
    if (start < 0)
        return unseen(&w, errno);
    for (size_t i = 0; i < names->n; i++) {
        unsigned char c = (unsigned char)names->v[i].value[0];
        w.begins[c] = w.begins[toupper(c)] = w.begins[tolower(c)] = true;
    }
    return search_folder(&w, start, 0, 0);
}
