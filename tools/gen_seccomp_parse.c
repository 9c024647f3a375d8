/* tools/gen_seccomp_parse.c: read the system call lists. Strict: what is not understood stops the build. */
#include <fcntl.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/str.h"
#include "gen_seccomp.h"

#define LIST_FILE_MAX (1024 * 1024)

struct parser {
    struct sc_data *d;
    const char *file;
    unsigned line;
    struct sc_rule *rule;       /* the call that indented lines belong to; NULL when it takes none */
    struct err *err;
};

static int
fail(const struct parser *ps, const char *what, struct str at)
{
    return err_set(ps->err, ERR_POLICY, "seccomp.syntax", "%s:%u: %s: \"%.*s\"", ps->file, ps->line, what, (int)at.n,
                   at.p);
}

static bool
blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct str
trim(struct str s)
{
    while (s.n > 0 && blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Cut @s at the first @sep (outside braces); what follows goes to @rest (.p == NULL: no separator). */
static struct str
cut(struct str s, char sep, struct str *rest)
{
    size_t depth = 0;

    for (size_t i = 0; i < s.n; i++) {
        depth += s.p[i] == '{';
        depth -= s.p[i] == '}' && depth > 0;
        if (s.p[i] == sep && depth == 0) {
            *rest = (struct str){ .p = s.p + i + 1, .n = s.n - i - 1 };
            return trim((struct str){ .p = s.p, .n = i });
        }
    }
    *rest = (struct str){ .p = NULL, .n = 0 };
    return trim(s);
}

static struct str
word(struct str *s)
{
    struct str w = trim(*s);
    size_t n = 0;

    while (n < w.n && !blank(w.p[n]))
        n++;
    *s = trim((struct str){ .p = w.p + n, .n = w.n - n });
    w.n = n;
    return w;
}

static int
copy_name(struct parser *ps, struct str name, char *out)
{
    if (name.n == 0 || name.n >= SC_NAME_MAX)
        return fail(ps, "not a system call name", name);
    memcpy(out, name.p, name.n);
    out[name.n] = '\0';
    return 0;
}

static int
parse_range(struct parser *ps, struct str s, struct sc_range *out)
{
    struct str hi;
    struct str lo = cut(s, '-', &hi);

    if (!sc_constant(lo.p, lo.n, &out->lo))
        return fail(ps, "not a number or known name", lo);
    out->hi = out->lo;
    hi = trim(hi);
    if (hi.p != NULL && !sc_constant(hi.p, hi.n, &out->hi))
        return fail(ps, "not a number or known name", hi);
    if (out->hi < out->lo)
        return fail(ps, "range is upside down", s);
    return 0;
}

static int
add_range(struct parser *ps, struct sc_cond *c, struct str s)
{
    struct sc_data *d = ps->d;

    if (d->n_ranges == SC_RANGES_MAX)
        return fail(ps, "too many values", s);
    if (parse_range(ps, s, &d->ranges[d->n_ranges]) < 0)
        return -1;
    d->n_ranges++;
    c->n_ranges++;
    return 0;
}

static int
parse_set(struct parser *ps, struct sc_cond *c, struct str s)
{
    if (s.n < 2 || s.p[0] != '{' || s.p[s.n - 1] != '}')
        return fail(ps, "expected { values }", s);
    s = (struct str){ .p = s.p + 1, .n = s.n - 2 };
    while (s.p != NULL) {
        struct str rest;
        struct str item = cut(s, ',', &rest);

        if (add_range(ps, c, item) < 0)
            return -1;
        s = rest;
    }
    return 0;
}

/* the part after `argN`: `== V`, `in {…}`, `& M`, `& M == V` */
static int
parse_test(struct parser *ps, struct sc_cond *c, struct str s)
{
    struct str op = word(&s);

    if (str_eq_c(op, "&")) {
        struct str mask = word(&s);

        if (!sc_constant(mask.p, mask.n, &c->mask))
            return fail(ps, "not a mask", mask);
        c->any = s.n == 0;
        if (c->any)
            return 0;
        op = word(&s);
    }
    if (str_eq_c(op, "=="))
        return add_range(ps, c, s);
    if (str_eq_c(op, "in") && !c->any)
        return parse_set(ps, c, s);
    return fail(ps, "expected ==, in or &", op);
}

static int
parse_cond(struct parser *ps, struct str s)
{
    struct sc_data *d = ps->d;
    struct sc_cond *c = &d->conds[d->n_conds];
    struct str name = word(&s);

    if (d->n_conds == SC_CONDS_MAX)
        return fail(ps, "too many conditions", s);
    if (name.n != 4 || name.p[3] < '0' || name.p[3] > '5')
        return fail(ps, "expected arg0 to arg5, or ptr0 to ptr5", name);
    *c = (struct sc_cond){ .arg = (uint8_t)(name.p[3] - '0'), .mask = UINT32_MAX, .range = d->n_ranges };
    c->wide = str_starts(name, STR_LIT("ptr"));
    if (!c->wide && !str_starts(name, STR_LIT("arg")))
        return fail(ps, "expected arg0 to arg5, or ptr0 to ptr5", name);
    if (c->wide && !str_eq_c(s, "== 0"))
        return fail(ps, "a pointer can only be compared with == 0", s);
    if (parse_test(ps, c, s) < 0)
        return -1;
    d->n_conds++;
    return 0;
}

/* One axis of variants: words of a qualifier and the bits that they stand for. */
static const struct axis {
    const char *prefix;         /* "unix=", or "" for a bare word */
    const char *names[3];
    size_t offset;
    uint8_t all;
} axes[] = {
    { "",      { "standard", "light", "max" },       offsetof(struct sc_clause, lists),        7 },
    { "unix=", { "all", "connected", "pairs" },      offsetof(struct sc_clause, unix_sockets), 7 },
    { "net=",  { "open", "closed", NULL },           offsetof(struct sc_clause, closed),       3 },
    { "",      { NULL, "ptrace", NULL },             offsetof(struct sc_clause, ptrace),       3 },
    { "",      { NULL, "userns", NULL },             offsetof(struct sc_clause, userns),       3 },
};

static uint8_t
axis_bits(const struct axis *ax, struct str value)
{
    uint8_t bits = 0;

    while (value.p != NULL) {
        struct str rest;
        struct str one = cut(value, ',', &rest);
        uint8_t found = 0;

        for (unsigned i = 0; i < 3; i++)
            if (ax->names[i] != NULL && str_eq_c(one, ax->names[i]))
                found = (uint8_t)(1u << i);
        if (found == 0)
            return 0;
        bits |= found;
        value = rest;
    }
    return bits;
}

static int
parse_qualifier(struct parser *ps, struct sc_clause *c, struct str q)
{
    bool negated = q.n > 0 && q.p[0] == '!';
    struct str s = negated ? (struct str){ .p = q.p + 1, .n = q.n - 1 } : q;

    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        const struct axis *ax = &axes[i];
        struct str prefix = str_of(ax->prefix);
        uint8_t bits;
        uint8_t *slot = (uint8_t *)c + ax->offset;

        if (!str_starts(s, prefix))
            continue;
        bits = axis_bits(ax, (struct str){ .p = s.p + prefix.n, .n = s.n - prefix.n });
        if (bits == 0)
            continue;
        *slot &= negated ? (uint8_t)(ax->all & ~bits) : bits;
        if (*slot == 0)
            return fail(ps, "qualifiers exclude each other", q);
        return 0;
    }
    return fail(ps, "unknown qualifier", q);
}

static int
parse_qualifiers(struct parser *ps, struct sc_clause *c, struct str *s)
{
    struct str rest;
    struct str inner;

    if (s->n == 0 || s->p[0] != '[')
        return 0;
    inner = cut((struct str){ .p = s->p + 1, .n = s->n - 1 }, ']', &rest);
    if (rest.p == NULL || inner.n == 0)
        return fail(ps, "expected [qualifiers]", *s);
    while (inner.n > 0)
        if (parse_qualifier(ps, c, word(&inner)) < 0)
            return -1;
    *s = trim(rest);
    return 0;
}

static int
parse_clause(struct parser *ps, struct str s)
{
    struct sc_data *d = ps->d;
    struct sc_clause *c = &d->clauses[d->n_clauses];
    struct str left = s, right = { .p = NULL, .n = 0 };

    if (ps->rule == NULL)
        return fail(ps, "a condition below a call that does not say `rules`", s);
    if (d->n_clauses == SC_CLAUSES_MAX)
        return fail(ps, "too many conditions", s);
    *c = (struct sc_clause){ .lists = 7, .unix_sockets = 7, .ptrace = 3, .userns = 3, .closed = 3,
                             .cond = d->n_conds, .line = ps->line };
    if (parse_qualifiers(ps, c, &left) < 0)
        return -1;
    for (size_t i = 0; i + 1 < left.n; i++)
        if (left.p[i] == '-' && left.p[i + 1] == '>') {
            right = trim((struct str){ .p = left.p + i + 2, .n = left.n - i - 2 });
            left = trim((struct str){ .p = left.p, .n = i });
            break;
        }
    if (right.p == NULL || !sc_answer(right.p, right.n, &c->answer) || c->answer == SC_RULES)
        return fail(ps, "expected `-> ANSWER`", s);
    if (!str_eq_c(left, "otherwise")) {
        while (left.p != NULL) {
            struct str rest;

            if (parse_cond(ps, cut(left, ',', &rest)) < 0)
                return -1;
            left = rest;
        }
    }
    c->n_conds = d->n_conds - c->cond;
    d->n_clauses++;
    ps->rule->n_clauses++;
    return 0;
}

/* The last clause must hold for every variant and every argument: no call may fall off the end. */
static int
finish_rule(struct parser *ps)
{
    const struct sc_rule *r = ps->rule;
    const struct sc_clause *last;

    ps->rule = NULL;
    if (r == NULL)
        return 0;
    if (r->n_clauses == 0)
        return fail(ps, "`rules` without conditions", str_of(r->name));
    last = &ps->d->clauses[r->clause + r->n_clauses - 1];
    if (last->n_conds != 0 || last->lists != 7 || last->unix_sockets != 7 || last->ptrace != 3 || last->userns != 3 ||
        last->closed != 3)
        return fail(ps, "the last line must be an unqualified `otherwise`", str_of(r->name));
    return 0;
}

/* A column: an answer, and behind an errno `+`. */
static bool
parse_column(struct str w, int *answer, bool *opens)
{
    *opens = w.n > 1 && w.p[w.n - 1] == '+';
    return sc_answer(w.p, w.n - *opens, answer) && (!*opens || *answer > 0);
}

static int
parse_rule(struct parser *ps, struct str s, struct str reason)
{
    struct sc_data *d = ps->d;
    struct sc_rule *r = &d->rules[d->n_rules];
    struct str line = s;
    bool rules = false;

    if (finish_rule(ps) < 0)
        return -1;
    if (d->n_rules == SC_RULES_MAX)
        return fail(ps, "too many system calls", s);
    *r = (struct sc_rule){ .clause = d->n_clauses, .file = ps->file, .line = ps->line };
    if (copy_name(ps, word(&line), r->name) < 0)
        return -1;
    for (size_t i = 0; i < SC_N_LISTS; i++) {
        struct str w = word(&line);

        if (!parse_column(w, &r->answer[i], &r->opens[i]))
            return fail(ps, "expected three answers", s);
        rules |= r->answer[i] == SC_RULES;
    }
    if (line.n != 0 || reason.n == 0)
        return fail(ps, "expected NAME STANDARD LIGHT MAX # reason", s);
    if (reason.n >= sizeof(r->why))
        return fail(ps, "the reason is too long", reason);
    memcpy(r->why, reason.p, reason.n);
    for (size_t i = 0; i < d->n_rules; i++)
        if (strcmp(d->rules[i].name, r->name) == 0)
            return fail(ps, "listed twice", str_of(r->name));
    d->n_rules++;
    ps->rule = rules ? r : NULL;
    return 0;
}

static int
parse_number(struct parser *ps, struct str s)
{
    struct sc_data *d = ps->d;
    struct sc_number *n = &d->numbers[d->n_numbers];
    struct str line = s;
    struct str nr, where;
    uint64_t v;

    if (d->n_numbers == SC_NUMBERS_MAX)
        return fail(ps, "too many numbers", s);
    *n = (struct sc_number){ .nr = -1 };
    if (copy_name(ps, word(&line), n->name) < 0)
        return -1;
    nr = word(&line);
    where = word(&line);
    if (!str_parse_u64(nr, SC_NR_MAX - 1, &v) || line.n != 0)
        return fail(ps, "expected NAME NUMBER ARCHITECTURES", s);
    n->nr = (int)v;
    n->x86_64 = str_eq_c(where, "all") || str_eq_c(where, "x86_64");
    n->aarch64 = str_eq_c(where, "all") || str_eq_c(where, "aarch64");
    if (!n->x86_64 && !n->aarch64)
        return fail(ps, "expected all, x86_64 or aarch64", where);
    d->n_numbers++;
    return 0;
}

static int
parse_line(struct parser *ps, struct str line, bool numbers)
{
    struct str comment;
    bool indented = line.n > 0 && blank(line.p[0]);
    struct str s = cut(line, '#', &comment);

    if (s.n == 0)
        return 0;
    if (numbers)
        return parse_number(ps, s);
    if (indented)
        return parse_clause(ps, s);
    return parse_rule(ps, s, trim(comment));
}

static int
parse_file(struct sc_data *d, const char *path, bool numbers, struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(LIST_FILE_MAX);
    struct parser ps = { .d = d, .file = path, .err = err };
    struct str rest;

    if (io_read_file(AT_FDCWD, path, &b) < 0)
        return err_sys(err, errno, "seccomp.read", "%s", path);
    rest = (struct str){ .p = (const char *)b.p, .n = b.n };
    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end != NULL ? (size_t)(end - rest.p) : rest.n;

        ps.line++;
        if (parse_line(&ps, (struct str){ .p = rest.p, .n = n }, numbers) < 0)
            return -1;
        n += end != NULL;
        rest = (struct str){ .p = rest.p + n, .n = rest.n - n };
    }
    return finish_rule(&ps);
}

int
sc_parse_list(struct sc_data *d, const char *path, struct err *err)
{
    return parse_file(d, path, false, err);
}

int
sc_parse_numbers(struct sc_data *d, const char *path, struct err *err)
{
    return parse_file(d, path, true, err);
}

bool
sc_clause_selected(const struct sc_clause *clause, const struct seccomp_plan *plan)
{
    return (clause->lists >> plan->list & 1) != 0 && (clause->unix_sockets >> plan->unix_sockets & 1) != 0 &&
           (clause->ptrace >> plan->ptrace & 1) != 0 && (clause->userns >> plan->nested_userns & 1) != 0 &&
           (clause->closed >> plan->network_closed & 1) != 0;
}
