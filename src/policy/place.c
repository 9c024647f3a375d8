/* policy/place.c: see place.h */
#include "policy/place.h"

#include <string.h>

#include "base/array.h"
#include "policy/internal.h"

#define N(a) ARRAY_LEN(a)

/* One shown tree: a workspace, a bind, or an entry of allow-read or allow-write at its own path. */
struct shown {
    const char *source, *dest;
    bool writable;
    const struct origin *from;
    const struct policy_bind *bind;
    bool mounted;           /* the workspace or a bind: no list overrides it */
};

static struct shown
shown_bind(const struct policy_bind *bind)
{
    return (struct shown){ bind->source, bind->dest, bind->writable, &bind->from, bind, true };
}

const char *
policy_workspace_at(const struct policy *p)
{
    if (p->view.v != VIEW_PRIVATE)
        return p->workspace.dir;
    return p->workspace.at != NULL ? p->workspace.at : PLACE_WORKSPACE;
}

static struct shown
shown_workspace(const struct policy *p)
{
    const char *dest = policy_workspace_at(p);
    bool writable = p->workspace.kind == WORKSPACE_RW || p->workspace.kind == WORKSPACE_COW;

    return (struct shown){ p->workspace.dir, dest, writable, &p->workspace.from, NULL, true };
}

static struct shown
shown_entry(const struct policy_entry *entry, bool writable)
{
    return (struct shown){ entry->value, entry->value, writable, &entry->from, NULL, false };
}

/* Keep the deepest of the trees whose @side holds the path. */
static void
consider(struct shown *best, const struct shown *tree, const char *path, bool by_dest)
{
    const char *root = by_dest ? tree->dest : tree->source;
    const char *best_root = by_dest ? best->dest : best->source;

    if (path_within(str_of(path), str_of(root)) &&
        (best_root == NULL || strlen(root) > strlen(best_root) ||
         (strlen(root) == strlen(best_root) && tree->writable && !best->mounted)))
        *best = *tree;
}

static struct shown
find_mounted(const struct policy *p, const char *path, bool by_dest)
{
    struct shown best = { NULL, NULL, false, NULL, NULL, false }, tree;

    if (p->workspace.dir != NULL) {
        tree = shown_workspace(p);
        consider(&best, &tree, path, by_dest);
    }
    for (size_t i = 0; i < p->n_binds; i++) {
        tree = shown_bind(&p->binds[i]);
        consider(&best, &tree, path, by_dest);
    }
    return best;
}

/* Whether an entry of allow-read or allow-write brings a tree of its own: it names one place, which nothing shows. */
static bool
is_own_tree(const struct policy *p, const struct policy_entry *entry)
{
    return entry->literal && (p->view.v == VIEW_HOST || find_mounted(p, entry->value, false).source == NULL);
}

/* With the entries of allow-read (in the private view) and allow-write that are shown at their own paths. */
static struct shown
find_shown(const struct policy *p, const char *path, bool by_dest)
{
    struct shown best = find_mounted(p, path, by_dest), tree;

    for (size_t i = 0; p->view.v == VIEW_PRIVATE && i < p->allow_read.n; i++) {
        tree = shown_entry(&p->allow_read.v[i], false);
        if (is_own_tree(p, &p->allow_read.v[i]))
            consider(&best, &tree, path, by_dest);
    }
    for (size_t i = 0; i < p->allow_write.n; i++) {
        tree = shown_entry(&p->allow_write.v[i], true);
        if (is_own_tree(p, &p->allow_write.v[i]))
            consider(&best, &tree, path, by_dest);
    }
    return best;
}

static void
copy(char out[PATH_TEXT_MAX + 1], const char *from)
{
    size_t n = strnlen(from, PATH_TEXT_MAX);

    memcpy(out, from, n);
    out[n] = '\0';
}

/* @path with its leading @from replaced by @to. */
static void
rebase(char out[PATH_TEXT_MAX + 1], const char *path, const char *from, const char *to)
{
    const char *rest = strcmp(from, "/") == 0 ? path : path + strlen(from);
    size_t n = strcmp(to, "/") == 0 ? 0 : strlen(to), m = strlen(rest);

    if (n + m > PATH_TEXT_MAX) {
        out[0] = '\0';
        return;
    }
    memcpy(out, to, n);
    memcpy(out + n, rest, m + 1);
    if (n + m == 0)
        copy(out, "/");
}

static void
place_shown(const struct policy *p, const struct shown *tree, const char *path, bool by_dest, struct place *out)
{
    out->kind = PLACE_HOST;
    out->writable = tree->writable;
    out->copy = tree->from == &p->workspace.from && p->workspace.kind == WORKSPACE_COW;
    out->from = tree->from;
    out->bind = tree->bind;
    out->root_n = strlen(tree->source);
    if (by_dest) {
        copy(out->inside, path);
        rebase(out->host, path, tree->dest, tree->source);
    } else {
        copy(out->host, path);
        rebase(out->inside, path, tree->source, tree->dest);
    }
}

static bool
within_any(const char *path, const char *const *dirs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (path_within(str_of(path), str_of(dirs[i])))
            return true;
    return false;
}

const char *const place_etc_host[] = {
    "ld.so.cache",     "ld.so.conf",  "ld-musl-x86_64.path",
    "alternatives",    "ssl",         "pki",
    "crypto-policies", "localtime",   "timezone",
    "services",        "protocols",   "bash.bashrc",
    "inputrc",         "fonts",       "java-17-openjdk",
    "java-21-openjdk", "java",        "os-release",
    "debian_version",  "lsb-release", "redhat-release",
};
const size_t n_place_etc_host = N(place_etc_host);

static bool
etc_is_shown(const struct policy *p, const char *path)
{
    static const char *const made[] = { "/etc/passwd", "/etc/group", "/etc/hostname", "/etc/hosts",
                                        "/etc/nsswitch.conf", "/etc/resolv.conf" };
    struct str name;

    if (strcmp(path, "/etc") == 0 || within_any(path, made, N(made)))
        return true;
    name = str_of(path + strlen("/etc/"));
    for (size_t i = 0; i < N(place_etc_host); i++)
        if (path_within(name, str_of(place_etc_host[i])))
            return true;
    return p->network.v == NETWORK_HOST && strcmp(path, "/etc/gai.conf") == 0;
}

static void
place_private(const struct policy *p, const char *path, struct place *out)
{
    static const char *const own[] = { "/tmp", POLICY_HOME, "/dev/shm" };
    static const char *const own_more[] = { "/var/tmp", "/run" };
    static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt" };
    static const char *const folders[] = { "/", "/home", "/var", "/var/tmp", "/run" };
    static const char *const kernel[] = { "/proc", "/dev" };

    copy(out->inside, path);
    if (within_any(path, own, N(own)) ||
        (p->workspace.at == NULL && path_within(str_of(path), STR_LIT(PLACE_WORKSPACE))) ||
        (!p->read_only_root.v && within_any(path, own_more, N(own_more)))) {
        out->kind = PLACE_OWN;
        out->writable = true;
        return;
    }
    if (within_any(path, kernel, N(kernel))) {
        out->kind = PLACE_KERNEL;
        return;
    }
    for (size_t i = 0; i < N(folders); i++)
        if (strcmp(path, folders[i]) == 0)
            out->kind = PLACE_SYSTEM;
    if (within_any(path, system_dirs, N(system_dirs)) ||
        (path_within(str_of(path), STR_LIT("/etc")) && etc_is_shown(p, path))) {
        out->kind = PLACE_SYSTEM;
        copy(out->host, path);
    }
    if (out->kind == PLACE_ABSENT) {
        out->inside[0] = '\0';
        copy(out->host, path);
    }
}

typedef struct shown finder(const struct policy *p, const char *path, bool by_dest);

static bool
place_by(finder *find, const struct policy *p, const char *path, bool host_name, struct place *out)
{
    bool by_dest = !host_name;
    struct shown tree = find(p, path, by_dest);

    memset(out, 0, sizeof(*out));
    if (tree.source == NULL) {
        by_dest = !by_dest;
        tree = find(p, path, by_dest);
    }
    if (tree.source == NULL)
        return false;
    place_shown(p, &tree, path, by_dest, out);
    return true;
}

bool
policy_place_mounted(const struct policy *p, const char *path, bool host_name, struct place *out)
{
    return place_by(find_mounted, p, path, host_name, out);
}

/* What no tree shows. */
static void
place_bare(const struct policy *p, const char *path, struct place *out)
{
    static const char *const kernel[] = { "/proc", "/dev" };

    memset(out, 0, sizeof(*out));
    if (p->view.v == VIEW_PRIVATE) {
        place_private(p, path, out);
        return;
    }
    out->kind = within_any(path, kernel, N(kernel)) && p->mode.v != MODE_LIGHT ? PLACE_KERNEL : PLACE_HOST;
    copy(out->host, path);
    copy(out->inside, path);
}

void
policy_place_inside(const struct policy *p, const char *path, struct place *out)
{
    struct shown tree = find_shown(p, path, true);

    memset(out, 0, sizeof(*out));
    if (tree.source != NULL)
        place_shown(p, &tree, path, true, out);
    else
        place_bare(p, path, out);
}

void
policy_place(const struct policy *p, const char *path, bool host_name, struct place *out)
{
    if (!place_by(find_shown, p, path, host_name, out))
        place_bare(p, path, out);
}
