/* guest/guard_plan.c: the name guard's plan and its encoding (see guard.h). Pure: no system calls.
 *
 *   u8 version (3)   u32 flags
 *   u16 roots:         { path }
 *   u16 rules:         { u8 kind (0 protect, 1 allow, 2 own)  path  one bit for each root, the first one the lowest }
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

#define WIRE_VERSION 3
#define TABLE_MIN    256

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
add_root(struct guard_plan *plan, struct str path, size_t *out, struct err *err)
{
    char **bigger;

    /* what comes is mostly about the same one as what came before */
    for (size_t i = 0; i < plan->n_roots; i++) {
        size_t at = (plan->last_root + i) % plan->n_roots;
        if (str_eq_c(path, plan->roots[at])) {
            *out = plan->last_root = at;
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
    bigger[plan->n_roots] = copy_path(path, err);
    if (bigger[plan->n_roots] == NULL)
        return -1;
    *out = plan->last_root = plan->n_roots++;
    return 0;
}

static enum rule_kind
kind_of(const struct guard_rule *rule)
{
    return rule->own ? RULE_OWN : rule->allow ? RULE_ALLOW : RULE_PROTECT;
}

static size_t
rule_hash(struct str path, enum rule_kind kind)
{
    uint64_t h = 0xcbf29ce484222325U + (uint64_t)kind;

    for (size_t i = 0; i < path.n; i++)
        h = (h ^ (unsigned char)path.p[i]) * 0x100000001b3U;
    return (size_t)(h ^ h >> 32);
}

/* The slot of the rule, or the free one that it would have. */
static size_t
slot_of(const struct guard_plan *plan, struct str path, enum rule_kind kind)
{
    size_t at = rule_hash(path, kind) & (plan->n_table - 1);

    for (;; at = (at + 1) & (plan->n_table - 1)) {
        const uint32_t number = plan->table[at];
        if (number == 0 || (kind_of(&plan->rules[number - 1]) == kind && str_eq_c(path, plan->rules[number - 1].path)))
            return at;
    }
}

/* Room for one rule more, and twice as many slots as rules. */
static int
grow(struct guard_plan *plan)
{
    size_t room = plan->room > 0 ? 2 * plan->room : TABLE_MIN / 2;
    struct guard_rule *bigger;
    uint32_t *table;

    if (plan->n_rules < plan->room)
        return 0;
    if ((bigger = reallocarray(plan->rules, room, sizeof(*bigger))) == NULL)
        return -1;
    plan->rules = bigger;
    if ((table = calloc(2 * room, sizeof(*table))) == NULL)
        return -1;
    free(plan->table);
    plan->table = table;
    plan->n_table = 2 * room;
    plan->room = room;
    for (size_t i = 0; i < plan->n_rules; i++)
        plan->table[slot_of(plan, str_of(plan->rules[i].path), kind_of(&plan->rules[i]))] = (uint32_t)i + 1;
    return 0;
}

static int
add_rule(struct guard_plan *plan, struct str path, enum rule_kind kind, struct guard_rule **out, struct err *err)
{
    size_t at;

    if (grow(plan) < 0)
        return err_sys(err, errno, "memory", "the name guard's plan");
    at = slot_of(plan, path, kind);
    if (plan->table[at] != 0) {
        *out = &plan->rules[plan->table[at] - 1];
        return 0;
    }
    if (!relative_ok(path.p, path.n))
        return bad_path(err, "protected name", path, "must be a relative path without empty, \".\" and \"..\" parts");
    if (plan->n_rules == GUARD_RULES_MAX)
        return over_limit(err, "different names", GUARD_RULES_MAX);
    *out = &plan->rules[plan->n_rules];
    **out = (struct guard_rule){ .path = copy_path(path, err), .allow = kind == RULE_ALLOW, .own = kind == RULE_OWN };
    if ((*out)->path == NULL)
        return -1;
    plan->table[at] = (uint32_t)++plan->n_rules;
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
    struct guard_rule *rule;
    size_t in = 0;

    if (add_root(plan, str_of(root), &in, err) < 0 || add_rule(plan, str_of(path), kind, &rule, err) < 0)
        return -1;
    guard_roots_add(&rule->in, in);
    return 0;
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

int
guard_plan_copy(struct guard_plan *plan, const struct guard_plan *from, struct err *err)
{
    struct guard_rule *rule;
    size_t in;

    for (size_t i = 0; i < from->n_roots; i++)
        if (add_root(plan, str_of(from->roots[i]), &in, err) < 0)
            return -1;
    for (size_t i = 0; i < from->n_rules; i++) {
        if (add_rule(plan, str_of(from->rules[i].path), kind_of(&from->rules[i]), &rule, err) < 0)
            return -1;
        rule->in = from->rules[i].in;
    }
    return 0;
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
    free_list(plan->roots, plan->n_roots);
    for (size_t i = 0; i < plan->n_rules; i++)
        free(plan->rules[i].path);
    free(plan->rules);
    free(plan->table);
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
    put_list(out, plan->roots, plan->n_roots);
    (void)buf_put_be16(out, (uint16_t)plan->n_rules);
    for (size_t i = 0; i < plan->n_rules; i++) {
        (void)buf_put_u8(out, (uint8_t)kind_of(&plan->rules[i]));
        put_path(out, plan->rules[i].path);
        for (size_t k = 0; k < plan->n_roots; k += 8)
            (void)buf_put_u8(out, (uint8_t)(plan->rules[i].in.word[k / 64] >> k % 64));
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
parse_roots(struct input *in, struct guard_plan *plan, struct err *err)
{
    size_t n = take_be(in, 2), at;

    for (size_t i = 0; i < n; i++) {
        struct str path = take_path(in);

        if (in->broken)
            return truncated(err);
        if (add_root(plan, path, &at, err) < 0)
            return -1;
        if (plan->n_roots == i)
            return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "a guarded tree comes twice");
    }
    return 0;
}

/* One bit for each root, at least one of them set. */
static int
parse_in(struct input *in, const struct guard_plan *plan, struct guard_roots *out, struct err *err)
{
    const uint8_t *p = take(in, (plan->n_roots + 7) / 8);

    if (p == NULL)
        return truncated(err);
    for (size_t i = 0; i < plan->n_roots; i += 8)
        out->word[i / 64] |= (uint64_t)p[i / 8] << i % 64;
    if (!guard_roots_any(out) || guard_roots_next(out, plan->n_roots, GUARD_ROOTS_MAX) != GUARD_ROOTS_MAX)
        return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "a name is about no tree, or about one that is not there");
    return 0;
}

static int
parse_rules(struct input *in, struct guard_plan *plan, struct err *err)
{
    size_t n = take_be(in, 2);

    for (size_t i = 0; i < n; i++) {
        uint32_t kind = take_be(in, 1);
        struct str path = take_path(in);
        struct guard_rule *rule;

        if (in->broken)
            return truncated(err);
        if (kind > RULE_OWN)
            return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "unknown kind of rule %u", kind);
        if (add_rule(plan, path, (enum rule_kind)kind, &rule, err) < 0)
            return -1;
        if (plan->n_rules == i)
            return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "a name comes twice");
        if (parse_in(in, plan, &rule->in, err) < 0)
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

    if (in.broken)
        return truncated(err);
    if (version != WIRE_VERSION || (flags & ~GUARD_FLAGS_ALL) != 0)
        return err_set(err, ERR_PROTOCOL, "guard.plan.wire", "version %u with flags %#x is not known", version, flags);
    plan->flags = flags;
    if (parse_roots(&in, plan, err) < 0 || parse_rules(&in, plan, err) < 0)
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
