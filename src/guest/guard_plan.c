/* guest/guard_plan.c: the name guard's plan and its encoding (see guard.h). Pure: no system calls.
 *
 *   u8 version (2)   u32 flags
 *   u16 roots:         { path  u16 rules: { u8 kind (0 protect, 1 allow, 2 own)  path } }
 *   u16 sockets:       { path }
 *   u16 socket trees:  { path }
 *   u16 trees:         { path }
 * where a path is u16 length and bytes, and all numbers are big-endian.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "guest/guard.h"

#define WIRE_VERSION 2

enum rule_kind { RULE_PROTECT, RULE_ALLOW, RULE_OWN };

/* Components joined by one '/', none empty, "." or "..", no NUL. */
static bool
relative_ok(const char *p, size_t n)
{
    size_t depth = 0;

    if (n == 0 || n > GUARD_PATH_MAX)
        return false;
    for (size_t i = 0; i <= n;) {
        const char *slash = memchr(p + i, '/', n - i);
        size_t len = slash != NULL ? (size_t)(slash - p) - i : n - i;

        if (len == 0 || len > 255 || (len == 1 && p[i] == '.') || (len == 2 && p[i] == '.' && p[i + 1] == '.'))
            return false;
        if (memchr(p + i, '\0', len) != NULL || ++depth > GUARD_DEPTH_MAX)
            return false;
        i += len + 1;
    }
    return true;
}

static bool
absolute_ok(const char *p, size_t n)
{
    return n >= 1 && n <= GUARD_PATH_MAX && p[0] == '/' && memchr(p, '\0', n) == NULL;
}

static size_t
count_rules(const struct guard_plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_roots; i++)
        n += plan->roots[i].n_rules;
    return n;
}

static char *
copy_path(struct str path, struct err *err)
{
    char *copy = str_to_cstr(path);

    if (copy == NULL)
        err_sys(err, errno, "memory", "the name guard's plan");
    return copy;
}

static int
bad_path(struct err *err, const char *what, struct str path, const char *rule)
{
    return err_set(err, ERR_POLICY, "guard.plan.path", "%s \"%.*s\": %s", what,
                   (int)(path.n > 200 ? 200 : path.n), path.p, rule);
}

static int
over_limit(struct err *err, const char *what, size_t limit)
{
    return err_set(err, ERR_LIMIT, "guard.plan.limit", "more than %zu %s for the name guard", limit, what);
}

static int
add_root(struct guard_plan *plan, struct str path, struct guard_root **out, struct err *err)
{
    struct guard_root *bigger;

    for (size_t i = 0; i < plan->n_roots; i++) {
        if (str_eq_c(path, plan->roots[i].path)) {
            *out = &plan->roots[i];
            return 0;
        }
    }
    if (!absolute_ok(path.p, path.n))
        return bad_path(err, "guarded tree", path, "must be an absolute path");
    if (plan->n_roots == GUARD_ROOTS_MAX)
        return over_limit(err, "trees", GUARD_ROOTS_MAX);
    bigger = reallocarray(plan->roots, plan->n_roots + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_sys(err, errno, "memory", "the name guard's plan");
    plan->roots = bigger;
    *out = &bigger[plan->n_roots];
    **out = (struct guard_root){ .path = copy_path(path, err) };
    if ((*out)->path == NULL)
        return -1;
    plan->n_roots++;
    return 0;
}

static int
add_rule(struct guard_plan *plan, struct guard_root *root, struct str path, enum rule_kind kind, struct err *err)
{
    struct guard_rule *bigger;

    for (size_t i = 0; i < root->n_rules; i++)
        if (str_eq_c(path, root->rules[i].path) && root->rules[i].allow == (kind == RULE_ALLOW)) {
            root->rules[i].own |= kind == RULE_OWN;
            return 0;
        }
    if (!relative_ok(path.p, path.n))
        return bad_path(err, "protected name", path, "must be a relative path without empty, \".\" and \"..\" parts");
    if (count_rules(plan) == GUARD_RULES_MAX)
        return over_limit(err, "names", GUARD_RULES_MAX);
    bigger = reallocarray(root->rules, root->n_rules + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_sys(err, errno, "memory", "the name guard's plan");
    root->rules = bigger;
    bigger[root->n_rules] = (struct guard_rule){ .path = copy_path(path, err), .allow = kind == RULE_ALLOW,
                                                 .own = kind == RULE_OWN };
    if (bigger[root->n_rules].path == NULL)
        return -1;
    root->n_rules++;
    return 0;
}

static int
add_path(char ***list, size_t *n, struct str path, const char *what, struct err *err)
{
    char **bigger;

    for (size_t i = 0; i < *n; i++)
        if (str_eq_c(path, (*list)[i]))
            return 0;
    if (!absolute_ok(path.p, path.n))
        return bad_path(err, what, path, "must be an absolute path");
    if (*n == GUARD_PATHS_MAX)
        return over_limit(err, "paths of one kind", GUARD_PATHS_MAX);
    bigger = reallocarray(*list, *n + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_sys(err, errno, "memory", "the name guard's plan");
    *list = bigger;
    bigger[*n] = copy_path(path, err);
    if (bigger[*n] == NULL)
        return -1;
    ++*n;
    return 0;
}

static int
plan_rule(struct guard_plan *plan, const char *root, const char *path, enum rule_kind kind, struct err *err)
{
    struct guard_root *r = NULL;

    if (add_root(plan, str_of(root), &r, err) < 0)
        return -1;
    return add_rule(plan, r, str_of(path), kind, err);
}

int
guard_plan_protect(struct guard_plan *plan, const char *root, const char *path, struct err *err)
{
    return plan_rule(plan, root, path, RULE_PROTECT, err);
}

int
guard_plan_allow(struct guard_plan *plan, const char *root, const char *path, struct err *err)
{
    return plan_rule(plan, root, path, RULE_ALLOW, err);
}

int
guard_plan_own(struct guard_plan *plan, const char *root, const char *path, struct err *err)
{
    return plan_rule(plan, root, path, RULE_OWN, err);
}

int
guard_plan_socket(struct guard_plan *plan, const char *path, struct err *err)
{
    return add_path(&plan->sockets, &plan->n_sockets, str_of(path), "unix socket", err);
}

int
guard_plan_socket_tree(struct guard_plan *plan, const char *path, struct err *err)
{
    return add_path(&plan->socket_trees, &plan->n_socket_trees, str_of(path), "tree of unix sockets", err);
}

int
guard_plan_tree(struct guard_plan *plan, const char *path, struct err *err)
{
    return add_path(&plan->trees, &plan->n_trees, str_of(path), "writable tree", err);
}

static void
free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void
guard_plan_free(struct guard_plan *plan)
{
    for (size_t i = 0; i < plan->n_roots; i++) {
        for (size_t k = 0; k < plan->roots[i].n_rules; k++)
            free(plan->roots[i].rules[k].path);
        free(plan->roots[i].rules);
        free(plan->roots[i].path);
    }
    free(plan->roots);
    free_list(plan->sockets, plan->n_sockets);
    free_list(plan->socket_trees, plan->n_socket_trees);
    free_list(plan->trees, plan->n_trees);
    *plan = (struct guard_plan)GUARD_PLAN_INIT;
}

static void
put_path(struct buf *out, const char *path)
{
    size_t n = strlen(path);

    (void)buf_put_be16(out, (uint16_t)n);
    (void)buf_append(out, path, n);
}

static void
put_list(struct buf *out, char *const *list, size_t n)
{
    (void)buf_put_be16(out, (uint16_t)n);
    for (size_t i = 0; i < n; i++)
        put_path(out, list[i]);
}

int
guard_plan_emit(const struct guard_plan *plan, struct buf *out, struct err *err)
{
    size_t start = out->n;

    (void)buf_put_u8(out, WIRE_VERSION);
    (void)buf_put_be32(out, plan->flags);
    (void)buf_put_be16(out, (uint16_t)plan->n_roots);
    for (size_t i = 0; i < plan->n_roots; i++) {
        const struct guard_root *r = &plan->roots[i];

        put_path(out, r->path);
        (void)buf_put_be16(out, (uint16_t)r->n_rules);
        for (size_t k = 0; k < r->n_rules; k++) {
            (void)buf_put_u8(out, r->rules[k].own ? RULE_OWN : r->rules[k].allow ? RULE_ALLOW : RULE_PROTECT);
            put_path(out, r->rules[k].path);
        }
    }
    put_list(out, plan->sockets, plan->n_sockets);
    put_list(out, plan->socket_trees, plan->n_socket_trees);
    put_list(out, plan->trees, plan->n_trees);
    if (!buf_ok(out) || out->n - start > GUARD_WIRE_MAX)
        return err_set(err, ERR_LIMIT, "guard.plan.limit", "the name guard's plan is larger than %d bytes",
                       GUARD_WIRE_MAX);
    return 0;
}

/* What is left of the input; broken once something was missing. */
struct input {
    const uint8_t *p;
    size_t n;
    bool broken;
};

static const uint8_t *
take(struct input *in, size_t n)
{
    const uint8_t *p = in->p;

    if (in->broken || n > in->n) {
        in->broken = true;
        return NULL;
    }
    in->p += n;
    in->n -= n;
    return p;
}

static uint32_t
take_be(struct input *in, size_t bytes)
{
    const uint8_t *p = take(in, bytes);
    uint32_t v = 0;

    for (size_t i = 0; p != NULL && i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static struct str
take_path(struct input *in)
{
    size_t n = take_be(in, 2);
    const uint8_t *p = take(in, n);

    return p != NULL ? (struct str){ (const char *)p, n } : (struct str){ "", 0 };
}

static int
truncated(struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "the name guard's plan ends early");
}

static int
parse_root(struct input *in, struct guard_plan *plan, struct err *err)
{
    struct str path = take_path(in);
    size_t n = take_be(in, 2);
    size_t at = plan->n_roots;
    struct guard_root *root = NULL;

    if (in->broken)
        return truncated(err);
    if (add_root(plan, path, &root, err) < 0)
        return -1;
    if (plan->n_roots == at)
        return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "a guarded tree comes twice");
    for (size_t i = 0; i < n; i++) {
        uint32_t kind = take_be(in, 1);
        struct str rule = take_path(in);

        if (in->broken)
            return truncated(err);
        if (kind > RULE_OWN)
            return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "unknown kind of rule %u", kind);
        if (add_rule(plan, root, rule, (enum rule_kind)kind, err) < 0)
            return -1;
    }
    return 0;
}

static int
parse_list(struct input *in, char ***list, size_t *n, const char *what, struct err *err)
{
    size_t count = take_be(in, 2);

    for (size_t i = 0; i < count; i++) {
        struct str path = take_path(in);

        if (in->broken)
            return truncated(err);
        if (add_path(list, n, path, what, err) < 0)
            return -1;
    }
    return 0;
}

int
guard_plan_parse(const void *p, size_t n, struct guard_plan *plan, struct err *err)
{
    struct input in = { p, n, n > GUARD_WIRE_MAX };
    uint32_t version = take_be(&in, 1);
    uint32_t flags = take_be(&in, 4);
    size_t n_roots = take_be(&in, 2);

    if (in.broken)
        return truncated(err);
    if (version != WIRE_VERSION || (flags & ~GUARD_FLAGS_ALL) != 0)
        return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "version %u with flags %#x is not known", version, flags);
    plan->flags = flags;
    for (size_t i = 0; i < n_roots; i++)
        if (parse_root(&in, plan, err) < 0)
            return -1;
    if (parse_list(&in, &plan->sockets, &plan->n_sockets, "unix socket", err) < 0 ||
        parse_list(&in, &plan->socket_trees, &plan->n_socket_trees, "tree of unix sockets", err) < 0 ||
        parse_list(&in, &plan->trees, &plan->n_trees, "writable tree", err) < 0)
        return -1;
    if (in.broken)
        return truncated(err);
    if (in.n != 0)
        return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "%zu bytes follow the name guard's plan", in.n);
    return 0;
}
