/* policy/judge.c: see judge.h */
#include "policy/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"

/* Apart from covered(), which is asked hundreds of thousands of times: its buffer is zeroed at each call. */
static bool
exists_to(const char *path, size_t n, why_exists *exists)
{
    char object[PATH_TEXT_MAX + 1];

    if (n >= sizeof(object))
        return true;
    memcpy(object, path, n);
    object[n] = '\0';
    return exists(object);
}

/* How much of @path the rule takes, 0 for none. A pattern speaks of what exists: one that fits a name which is not
 * there closes and opens nothing, for the engine looks for its matches before the sandbox begins. */
static size_t
covered(const struct policy_entry *rule, struct str path, why_exists *exists)
{
    const struct str value = str_of(rule->value);
    size_t depth;

    while (path.n > 0) {
        if (!path_covers(value, rule->literal, path, &depth))
            return 0;
        if (rule->literal || !path_has_glob(value) || exists == NULL || exists_to(path.p, depth, exists))
            return depth;
        /* a shorter match may be there */
        for (path.n = depth; path.n > 0 && path.p[path.n - 1] != '/'; path.n--)
            ;
        path.n = path.n > 0 ? path.n - 1 : 0;
    }
    return 0;
}

/* The entry of @list that covers the path most specifically, and how much of it. */
static const struct policy_entry *
deepest(const struct policy_list *list, const char *path, why_exists *exists, size_t *depth)
{
    const struct policy_entry *best = NULL;
    const struct str whole = str_of(path);

    *depth = 0;
    for (size_t i = 0; i < list->n; i++) {
        size_t d = covered(&list->v[i], whole, exists);
        if (d == 0 || (best != NULL && d <= *depth))
            continue;
        best = &list->v[i];
        *depth = d;
    }
    return best;
}

/* The deny-write rule that closes the host's @path, or NULL. */
static const struct policy_entry *
policy_write_denied(const struct policy *p, const char *path, why_exists *exists)
{
    size_t depth;

    return deepest(&p->deny_write, path, exists, &depth);
}

/* Bytes of place->host that name the tree around it. In the host view a match of an allow-write pattern is one. */
static size_t
tree_root(const struct policy *p, const struct place *place, why_exists *exists)
{
    size_t root = place->from != NULL ? place->root_n : 0, depth;

    if (p->view.v == VIEW_HOST && deepest(&p->allow_write, place->host, exists, &depth) != NULL && depth > root)
        root = depth;
    return root;
}

bool
policy_gives(const struct policy *p, const char *host)
{
    bool gives = p->workspace.own && path_within(str_of(host), str_of(p->workspace.dir));

    for (size_t i = 0; i < p->n_binds && !gives; i++)
        gives = p->binds[i].own && path_within(str_of(host), str_of(p->binds[i].source));
    return gives;
}

/* cloche's own folders stay closed whatever opens them, but for what is given out of one. */
static bool
stays_closed(const struct policy *p, const struct policy_entry *secret, const char *host)
{
    return secret != NULL && secret->own && !policy_gives(p, host);
}

static void
judge_read(const struct policy *p, const struct place *place, why_exists *exists, struct judged *out)
{
    const struct policy_entry *deny, *secret, *open;
    size_t deny_depth, secret_depth, open_depth, root;
    bool own;

    out->read_why = place->kind == PLACE_ABSENT ? READ_ABSENT : READ_SHOWN;
    out->read = place->kind != PLACE_ABSENT;
    if (place->kind != PLACE_HOST)
        return;
    root = tree_root(p, place, exists);
    deny = deepest(&p->deny_read, place->host, exists, &deny_depth);
    secret = deepest(&p->credentials, place->host, exists, &secret_depth);
    open = deepest(&p->allow_read, place->host, exists, &open_depth);
    own = stays_closed(p, secret, place->host);
    secret = secret_depth <= root && !own ? NULL : secret;
    deny = deny_depth <= root ? NULL : deny;
    if (secret != NULL && (open == NULL || secret_depth > open_depth || own) &&
        (deny == NULL || secret_depth >= deny_depth)) {
        out->read_why = READ_CREDENTIAL;
        out->read_rule = secret;
    } else if (deny != NULL && (open == NULL || deny_depth > open_depth)) {
        out->read_why = READ_DENIED;
        out->read_rule = deny;
    } else if (open != NULL && (deny != NULL || secret != NULL)) {
        out->read_why = READ_REOPENED;
        out->read_rule = open;
    }
    out->read = out->read_why == READ_REOPENED || out->read_why == READ_SHOWN;
}

/* Whether @name protects the path from the directory @at bytes into it: the names follow there, whole. */
static bool
names_follow(const char *path, size_t at, struct str name)
{
    return strlen(path) >= at + name.n && memcmp(path + at, name.p, name.n) == 0 &&
           (path[at + name.n] == '/' || path[at + name.n] == '\0');
}

const char *
policy_name_rest(struct str tree, const char *name)
{
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - name);
        if (tree.n > n && tree.p[tree.n - n - 1] == '/' && memcmp(tree.p + tree.n - n, name, n) == 0)
            return strncmp(name, ".git/", 5) != 0 ? slash + 1 : NULL;
    }
    return NULL;
}

/* One writable tree around a place, and how the place is named in it. */
struct around {
    const char *path;       /* of the place, in the tree's own names */
    size_t root;            /* bytes of it that are the tree */
    const char *source;     /* the host's folder that is the tree */
    struct str tree;        /* its path there */
    const struct place *place;
};

/* Whether the host has the first @n bytes of the path: in the tree, or in a narrower one that is shown within it. */
static bool
object_exists(const struct around *a, size_t n, why_exists *exists)
{
    const struct place *place = a->place;
    size_t tail = strlen(place->host) - place->root_n, length = strlen(a->path);
    size_t own = length > tail ? length - tail : 0;     /* bytes of the path that are the place's own tree */
    char object[2 * PATH_TEXT_MAX];

    if (exists == NULL)
        return true;
    if (n >= own)
        snprintf(object, sizeof(object), "%.*s", (int)(place->root_n + (n - own)), place->host);
    else
        snprintf(object, sizeof(object), "%s%.*s", a->source, (int)(n - a->root), a->path + a->root);
    return exists(object);
}

/* The names at the top of a tree, there or not, and those that exist deeper down, as deep as protect-depth says. */
static const struct policy_entry *
protected_in(const struct policy *p, const struct around *a, why_exists *exists)
{
    size_t at = a->root <= 1 ? 1 : a->root + 1;

    if (strlen(a->path) <= a->root)
        return NULL;
    for (size_t i = 0; !p->srt && i < p->protect.n; i++) {
        const char *rest = policy_name_rest(a->tree, p->protect.v[i].value);
        if (rest != NULL && names_follow(a->path, at, str_of(rest)))
            return &p->protect.v[i];
    }
    for (size_t dirs = 0; dirs < p->protect_depth.v; dirs++) {
        const char *slash;
        for (size_t i = 0; i < p->protect.n; i++) {
            struct str name = str_of(p->protect.v[i].value);
            if (names_follow(a->path, at, name) && (dirs == 0 || object_exists(a, at + name.n, exists)))
                return &p->protect.v[i];
        }
        slash = strchr(a->path + at, '/');
        if (slash == NULL)
            return NULL;
        /* what package managers unpack is not searched */
        if (str_eq((struct str){ a->path + at, (size_t)(slash - a->path) - at }, STR_LIT("node_modules")))
            return NULL;
        at = (size_t)(slash - a->path) + 1;
    }
    return NULL;
}

static const struct policy_entry *
protected_at(const struct policy *p, const struct place *place, const char *source, const char *dest,
             why_exists *exists)
{
    const struct around a = { place->inside, strlen(dest), source, str_of(source), place };

    return path_within(str_of(place->inside), str_of(dest)) ? protected_in(p, &a, exists) : NULL;
}

/* By any writable tree around the place, however many lie within each other: what a wider one protects, a narrower one
 * that lies in it does not open. */
static const struct policy_entry *
protected_by(const struct policy *p, const struct place *place, size_t root, why_exists *exists)
{
    const struct around own = { place->host, root, place->host, { place->host, root }, place };
    const struct policy_entry *by;

    if (place->kind != PLACE_HOST || place->copy)
        return NULL;
    for (size_t i = 0; i < p->led.n; i++)
        if (path_within(str_of(place->host), str_of(p->led.v[i].value)))
            return &p->led.v[i];
    by = protected_in(p, &own, exists);
    if (by == NULL && p->workspace.dir != NULL && p->workspace.kind == WORKSPACE_RW)
        by = protected_at(p, place, p->workspace.dir, policy_workspace_at(p), exists);
    for (size_t i = 0; by == NULL && i < p->n_binds; i++)
        if (p->binds[i].writable)
            by = protected_at(p, place, p->binds[i].source, p->binds[i].dest, exists);
    for (size_t i = 0; by == NULL && i < p->allow_write.n; i++) {
        size_t n = covered(&p->allow_write.v[i], str_of(place->host), exists);
        const struct around wide = { place->host, n, place->host, { place->host, n }, place };
        if (wide.root > 0 && strcmp(place->inside, place->host) == 0)
            by = protected_in(p, &wide, exists);
    }
    return by;
}

static bool
is_stdio_device(const char *path)
{
    static const char *const devices[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/ptmx" };

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (strcmp(path, devices[i]) == 0)
            return true;
    return path_within(str_of(path), STR_LIT("/dev/pts"));
}

static enum judged_write
judge_write(const struct policy *p, const struct place *place, why_exists *exists, struct judged *out)
{
    const struct policy_entry *entry, *opened = NULL;
    bool open = place->writable;
    size_t depth;

    if (place->kind == PLACE_ABSENT)
        return WRITE_ABSENT;
    if (!out->read)
        return WRITE_CLOSED;
    if (is_stdio_device(place->inside))
        return WRITE_DEVICE;
    if (place->kind == PLACE_HOST) {
        opened = deepest(&p->allow_write, place->host, exists, &depth);
        /* under a private root what is allowed is a tree of its own by now */
        open |= opened != NULL && p->view.v == VIEW_HOST;
    }
    if (!open)
        return WRITE_READ_ONLY;
    entry = place->kind == PLACE_HOST ? policy_write_denied(p, place->host, exists) : NULL;
    if (entry != NULL) {
        out->write_rule = entry;
        return WRITE_DENIED;
    }
    entry = protected_by(p, place, tree_root(p, place, exists), exists);
    if (entry != NULL) {
        out->write_rule = entry;
        return WRITE_PROTECTED;
    }
    if (out->read_why == READ_REOPENED) {
        out->write_rule = out->read_rule;
        return WRITE_REOPENED;
    }
    out->write_rule = place->writable && (place->bind != NULL || place->from == &p->workspace.from) ? NULL : opened;
    return WRITE_OPENED;
}

/* Mode light has the host's devices: of them a command opens those that lead to nobody else (guest/own_domain.h). */
static bool
is_hosts_device(const struct policy *p, const struct place *place)
{
    static const char *const open[] = { "/dev/random", "/dev/urandom", "/dev/fd", "/dev/shm" };
    const char *path = place->host;

    if (p->mode.v != MODE_LIGHT || place->kind != PLACE_HOST || place->from != NULL || strcmp(path, "/dev") == 0 ||
        !path_within(str_of(path), STR_LIT("/dev")) || strcmp(path, "/dev/pts") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        if (path_within(str_of(path), str_of(open[i])))
            return false;
    return path_within(str_of(path), STR_LIT("/dev/pts")) || !is_stdio_device(path);
}

void
policy_judge(const struct policy *p, const struct place *place, why_exists *exists, struct judged *out)
{
    memset(out, 0, sizeof(*out));
    judge_read(p, place, exists, out);
    if (out->read_why == READ_SHOWN && is_hosts_device(p, place)) {
        out->read = false;
        out->read_why = READ_DEVICE;
    }
    out->write_why = judge_write(p, place, exists, out);
    out->write = out->write_why == WRITE_OPENED || out->write_why == WRITE_DEVICE;
}
