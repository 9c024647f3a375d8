/* engine/native/plan_image.c: an image's files as the sandbox's system (policy->image)
 *
 * The root stays a tmpfs of ours, in which each folder at the image's top is one: what of it must be ours (users,
 * hosts, name service) is made there first, and the image's folder lies below that (ROOT_LAYER). So no path that we
 * make or mount on is looked up among a stranger's links: /proc, /dev, /tmp, /run, the home and the workspace are never
 * the image's, whatever it has there. What the sandbox writes goes to the tmpfs; the store is mounted read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "engine/native/plan.h"
#include "policy/place.h"
#include "wall/mnt.h"

#define ENTRIES_MAX 128             /* at its top, and in its /home */
#define PASSWD_MAX  (64 * 1024)
#define UID_MAX     65534

static int
out_of_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* A place of the image, links followed within it; -1 with errno. */
static int
open_in(const struct native_plan *plan, const char *path, int flags)
{
    struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

    return (int)syscall(SYS_openat2, plan->image.tree, path, &how, sizeof(how));
}

bool
plan_image_has(const struct native_plan *plan, const char *path)
{
    cleanup_close int fd = mnt_open_beneath(plan->image.tree, path, O_PATH, false);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* --- users -------------------------------------------------------------------------------------------------------- */

/* Its /etc/passwd; an empty one where there is none that can be read. */
static void
read_passwd(const struct native_plan *plan, struct buf *out)
{
    cleanup_close int fd = open_in(plan, "etc/passwd", O_RDONLY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || io_read_all(fd, out) < 0 ||
        memchr(out->p != NULL ? out->p : (const uint8_t *)"", '\0', out->n) != NULL)
        buf_reset(out);
}

/* Field @i of a line of it. */
static struct str
field(struct str line, unsigned i)
{
    struct str out = line;

    for (;; i--) {
        const char *colon = memchr(out.p, ':', out.n);
        size_t n = colon != NULL ? (size_t)(colon - out.p) : out.n;
        if (i == 0)
            return (struct str){ out.p, n };
        if (colon == NULL)
            return (struct str){ out.p, 0 };
        out = (struct str){ colon + 1, out.n - n - 1 };
    }
}

static bool
next_line(struct str *rest, struct str *line)
{
    const char *end = memchr(rest->p != NULL ? rest->p : "", '\n', rest->n);
    size_t n = end != NULL ? (size_t)(end - rest->p) : rest->n;

    if (rest->n == 0)
        return false;
    *line = (struct str){ rest->p, n };
    *rest = (struct str){ rest->p + n + (end != NULL), rest->n - n - (end != NULL) };
    return true;
}

/* The line of the user @name, or of @uid where that is NULL. */
static bool
find_user(const struct buf *passwd, const struct str *name, uint64_t uid, struct str *out)
{
    struct str rest = { (const char *)passwd->p, passwd->n }, line;
    uint64_t its;

    while (next_line(&rest, &line))
        if (name != NULL ? str_eq(field(line, 0), *name)
                         : (str_parse_u64(field(line, 2), UINT32_MAX, &its) && its == uid)) {
            *out = line;
            return true;
        }
    return false;
}

/* USER[:GROUP] of a configuration. Root, which no sandbox is, and nobody in particular leave the policy's user. */
static int
user(struct native_plan *plan, struct policy *p, struct err *err)
{
    cleanup_buf struct buf passwd = BUF_INIT(PASSWD_MAX);
    const char *text = image_text(&plan->image, "user");
    struct str name = field(str_of(text), 0), group = field(str_of(text), 1), line;
    uint64_t uid = 0, gid = 0;
    bool found;

    if (name.n == 0 || (p->user.from.kind >= ORIGIN_FILE && p->user.from.kind != ORIGIN_BUILTIN))
        return 0;
    read_passwd(plan, &passwd);
    found = str_parse_u64(name, UINT32_MAX, &uid);
    if (find_user(&passwd, found ? NULL : &name, uid, &line)) {
        found = str_parse_u64(field(line, 2), UINT32_MAX, &uid);
        (void)str_parse_u64(field(line, 3), UINT32_MAX, &gid);
    }
    if (!found || uid > UID_MAX) {
        err_set(err, ERR_POLICY, "image.user", "the image is for the user \"%.64s\", which it does not have", text);
        return err_hint(err, "--user UID chooses another one");
    }
    if (uid == 0)
        return 0;
    (void)str_parse_u64(group, UID_MAX, &gid);
    p->user.uid = (uint32_t)uid;
    p->user.gid = gid > 0 && gid <= UID_MAX ? (uint32_t)gid : (uint32_t)uid;
    return 0;
}

const char *
plan_image_passwd(struct native_plan *plan)
{
    cleanup_buf struct buf passwd = BUF_INIT(PASSWD_MAX);
    unsigned uid = plan->ids.inside_uid, gid = plan->ids.inside_gid;
    char own[96] = "";
    struct str line;

    read_passwd(plan, &passwd);
    if (passwd.n == 0)
        return NULL;
    if (!find_user(&passwd, NULL, uid, &line))
        snprintf(own, sizeof(own), "agent:x:%u:%u:agent:" POLICY_HOME ":/bin/sh\n", uid, gid);
    return plan_printf(plan, "%.*s%s%s", (int)passwd.n, (const char *)passwd.p,
                       passwd.p[passwd.n - 1] == '\n' ? "" : "\n", own);
}

/* --- what the policy leaves open ---------------------------------------------------------------------------------- */

/* The host's, or made by us, whatever the image has there. */
static bool
is_ours(const char *name)
{
    static const char *const names[] = { "proc", "sys", "dev", "tmp", "run", "workspace" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether nobody said where to be: it is the workspace, by itself or because that was said (policy/settle.c). */
static bool
workdir_is_open(const struct policy *p)
{
    const struct origin *w = &p->workdir.from, *s = &p->workspace.from;

    if (p->workdir.p == NULL)
        return true;
    return strcmp(p->workdir.p, policy_workspace_at(p)) == 0 &&
           (w->kind < ORIGIN_FILE || (w->kind == s->kind && w->line == s->line && w->name == s->name));
}

/* Its working directory, where that is a folder of the image. */
static void
workdir(struct native_plan *plan, struct policy *p)
{
    const char *path = image_text(&plan->image, "workdir");
    cleanup_close int fd = -1;
    char top[64];
    size_t n;

    if (!workdir_is_open(p) || path[0] != '/' || strcmp(path, "/") == 0)
        return;
    n = strcspn(path + 1, "/");
    if (n >= sizeof(top))
        return;
    memcpy(top, path + 1, n);
    top[n] = '\0';
    fd = is_ours(top) ? -1 : open_in(plan, path, O_RDONLY | O_DIRECTORY);
    if (fd >= 0)
        p->workdir.p = plan_printf(plan, "%s", path);
}

int
plan_image(struct native_plan *plan, struct err *err)
{
    struct policy *p = &plan->real;

    if (image_find(p->images, p->image.p, &plan->image, err) < 0 || user(plan, p, err) < 0)
        return -1;
    workdir(plan, p);
    return 0;
}

/* --- its files ---------------------------------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in the folder @at of the image, sorted; the plan's. How many, or -1 with @err. */
static int
names_in(struct native_plan *plan, int at, const char **out, struct err *err)
{
    struct dirents names = { .fd = at };
    const char *name;
    int n = 0;

    while ((name = dirents_next(&names)) != NULL) {
        if (n == ENTRIES_MAX)
            return err_set(err, ERR_LIMIT, "image.top", "the image has more than %d entries at its top, or in /home",
                           ENTRIES_MAX);
        out[n] = plan_printf(plan, "%s", name);
        if (out[n++] == NULL)
            return out_of_memory(err);
    }
    if (names.failed != 0)
        return err_sys(err, names.failed, "image.store", "%s", plan->image.path);
    qsort(out, (size_t)n, sizeof(*out), compare);
    return n;
}

/* The folder or file @fd of the image, which is at @path of it, for a mount at the same path. */
static int
part(struct native_plan *plan, enum root_op op, int fd, const char *path, bool writable, struct err *err)
{
    struct root_item *item = plan_stored(plan, op, fd, plan_printf(plan, "%s%s", plan->image.path, path), path, err);

    if (item == NULL)
        return -1;
    item->writable = writable;
    return 0;
}

/* What each entry of its top becomes: our own folder of that name, its link, its file. */
static int
top_entry(struct native_plan *plan, int at, const char *name, const char *path, struct err *err)
{
    cleanup_close int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char text[4096];
    struct root_item *item;
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "image.store", "%s%s", plan->image.path, path);
    if (S_ISDIR(st.st_mode)) {
        item = plan_item(plan, ROOT_DIR, NULL, path, err);
        if (item != NULL)
            item->mode = (st.st_mode & 01777) | 0700;
        return item != NULL ? 0 : -1;
    }
    if (S_ISREG(st.st_mode))
        return part(plan, ROOT_BIND, fd, path, false, err);
    n = S_ISLNK(st.st_mode) ? readlinkat(at, name, text, sizeof(text) - 1) : -1;
    if (n <= 0)
        return 0;
    text[n] = '\0';
    item = plan_item(plan, ROOT_SYMLINK, plan_printf(plan, "%s", text), path, err);
    return item != NULL ? 0 : -1;
}

/* The same of all in the folder @at, which is at @prefix, but what is ours. */
static int
top(struct native_plan *plan, int at, const char *prefix, bool (*skip)(const char *name), struct err *err)
{
    const char *names[ENTRIES_MAX];
    int n = names_in(plan, at, names, err);

    for (int i = 0; i < n; i++) {
        char *path = plan_printf(plan, "%s/%s", prefix, names[i]);
        if (path == NULL)
            return out_of_memory(err);
        if (!skip(names[i]) && top_entry(plan, at, names[i], path, err) < 0)
            return -1;
    }
    return n < 0 ? -1 : 0;
}

/* Folders that we make ourselves, so that nothing else may lie there. */
static bool
not_at_top(const char *name)
{
    static const char *const folders[] = { "etc", "var", "home" };

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (strcmp(name, folders[i]) == 0)
            return true;
    return is_ours(name);
}

static bool
not_in_home(const char *name)
{
    return strcmp(name, "agent") == 0;
}

static int
open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int
plan_image_folders(struct native_plan *plan, struct err *err)
{
    cleanup_close int home = open_folder(plan->image.tree, "home");

    /* listed by a descriptor of its own position */
    cleanup_close int all = open_folder(plan->image.tree, ".");
    if (all < 0)
        return err_sys(err, errno, "image.store", "%s", plan->image.path);
    if (top(plan, all, "", not_at_top, err) < 0)
        return -1;
    return home >= 0 ? top(plan, home, "/home", not_in_home, err) : 0;
}

/* The image's folder below ours at @path, if it has one there with something in it. */
static int
layer(struct native_plan *plan, const char *path, bool writable, struct err *err)
{
    cleanup_close int fd = mnt_open_beneath(plan->image.tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, false);
    struct dirents names = { .fd = fd };

    if (fd < 0)
        return 0;
    if (writable && plan_rule(plan, path, LANDLOCK_FULL, true, err) < 0)
        return -1;
    return dirents_next(&names) == NULL ? 0 : part(plan, ROOT_LAYER, fd, path, writable, err);
}

int
plan_image_layers(struct native_plan *plan, const struct policy *p, struct err *err)
{
    bool writable = !p->read_only_root.v;
    size_t n = plan->n_items;

    for (size_t i = 0; i < n; i++) {
        const char *dest = plan->items[i].dest;
        if (plan->items[i].op == ROOT_DIR && strcmp(dest, "/home") != 0 && strcmp(dest, POLICY_HOME) != 0 &&
            strcmp(dest, "/var/tmp") != 0 && !is_ours(dest + 1) && layer(plan, dest, writable, err) < 0)
            return -1;
    }
    plan->root.layers = true;
    plan->root.layer_mount = overlay_mount_folders;
    return 0;
}
