/* match/git_config_add.c: see git_config_add.h */
#include "match/git_config_add.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "match/git_config.h"

/* What may be added: @fresh: only to a section that the owner does not have, and nothing else may be in that. */
static const struct may {
    const char *section;
    bool fresh;
    const char *names;
} may[] = {
    { "remote", true, "url pushurl fetch tagopt followremotehead" },
    { "branch", false, "remote merge rebase description vscode-merge-base gh-merge-base" },
    { "branch", true, "pushremote" },
    { "submodule", true, "url active branch update" },
};

/* --- sets of entries, by a hash: one that is taken for another is not added */

struct set {
    uint64_t *v;
    size_t n, room;
};

static uint64_t
hash_more(uint64_t h, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return h;
}

enum part { PART_STEM, PART_KEY, PART_ALL };

static uint64_t
hash_of(const struct git_config_entry *e, enum part part)
{
    struct str key = part == PART_STEM ? (struct str){ e->key.p, e->key.n - e->name.n } : e->key;
    uint64_t h = hash_more(0xcbf29ce484222325u ^ (uint64_t)part, key);

    if (part != PART_ALL)
        return h;
    return hash_more((h ^ (e->has_value ? 1u : 2u)) * 0x100000001b3u, e->value);
}

static int
set_put(struct set *s, uint64_t h)
{
    if (s->n == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 64;
        uint64_t *bigger = reallocarray(s->v, room, sizeof(*bigger));

        if (bigger == NULL)
            return -1;
        s->v = bigger;
        s->room = room;
    }
    s->v[s->n++] = h;
    return 0;
}

static int
by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void
set_sort(struct set *s)
{
    if (s->n > 0)
        qsort(s->v, s->n, sizeof(*s->v), by_number);
}

static bool
set_has(const struct set *s, uint64_t h)
{
    return s->n > 0 && bsearch(&h, s->v, s->n, sizeof(h), by_number) != NULL;
}

static void
set_free(struct set *s)
{
    free(s->v);
}
#define cleanup_set __attribute__((cleanup(set_free)))

/* 0, or -1: the text is not read to its end. */
static int
set_fill(struct set *s, struct str text, unsigned parts)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0)
        for (enum part part = PART_STEM; part <= PART_ALL; part++)
            if ((parts & 1u << part) != 0 && set_put(s, hash_of(&e, part)) < 0)
                return -1;
    set_sort(s);
    return got;
}

/* --- judging */

static bool
is_named(const char *names, struct str name)
{
    for (; *names != '\0'; names += strspn(names, " ")) {
        size_t n = strcspn(names, " ");

        if (n == name.n && memcmp(names, name.p, n) == 0)
            return true;
        names += n;
    }
    return false;
}

/* @now: what the owner has; @bad: new sections with something else in them. */
static bool
may_be_added(const struct git_config_entry *e, const struct set *now, const struct set *bad)
{
    if (!e->has_subsection || !git_config_entry_harmless(e, 0))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(may); i++)
        if (str_eq_c(e->section, may[i].section) && is_named(may[i].names, e->name))
            return may[i].fresh ? !set_has(now, hash_of(e, PART_STEM)) && !set_has(bad, hash_of(e, PART_STEM))
                                : !set_has(now, hash_of(e, PART_KEY));
    return false;
}

/* --- writing */

static void
put_quoted(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '\n' || c == '\t') {
            buf_puts(out, c == '\n' ? "\\n" : "\\t");
            continue;
        }
        if (c == '"' || c == '\\')
            buf_put_u8(out, '\\');
        buf_put_u8(out, (uint8_t)c);
    }
}

static void
put_entry(struct buf *out, const struct git_config_entry *e, bool headed)
{
    if (!headed) {
        buf_printf(out, "[%.*s \"", (int)e->section.n, e->section.p);
        put_quoted(out, e->subsection);
        buf_puts(out, "\"]\n");
    }
    buf_printf(out, "\t%.*s", (int)e->name.n, e->name.p);
    if (e->has_value) {
        buf_puts(out, " = \"");
        put_quoted(out, e->value);
        buf_puts(out, "\"");
    }
    buf_puts(out, "\n");
}

struct adding {
    struct set base, now, bad;
    struct buf *out;
    git_config_said *said;
    void *ctx;
    uint64_t stem;              /* of the section that @out ends with */
    size_t n;
};

static void
add(struct adding *a, const struct git_config_entry *e)
{
    uint64_t stem = hash_of(e, PART_STEM);
    bool kept = a->n < GIT_CONFIG_ADD_MAX && may_be_added(e, &a->now, &a->bad);

    if (kept) {
        put_entry(a->out, e, a->n > 0 && stem == a->stem);
        a->stem = stem;
        a->n++;
    }
    a->said(a->ctx, e->key, kept);
}

/* Whether @whole is read as @first and then @rest. */
static bool
is_read_as(struct str whole, struct str first, struct str rest)
{
    struct git_config_reader *r = calloc(2, sizeof(*r));
    struct git_config_entry a, b;
    bool in_rest = false;
    int got, want = -1;

    if (r == NULL)
        return false;
    git_config_open(&r[0], whole);
    git_config_open(&r[1], first);
    do {
        got = git_config_next(&r[0], &a);
        want = git_config_next(&r[1], &b);
        if (want == 0 && !in_rest) {
            in_rest = true;
            git_config_open(&r[1], rest);
            want = git_config_next(&r[1], &b);
        }
    } while (got == 1 && want == 1 && str_eq(a.key, b.key) && str_eq(a.value, b.value) && a.has_value == b.has_value);
    free(r);
    return got == 0 && want == 0 && in_rest;
}

/* Appended, it must be read as it is by itself: the file may end within a line. */
static bool
can_be_appended(struct str now, const struct buf *out)
{
    size_t n = now.n + out->n;
    cleanup_free char *whole = malloc(n + 1);
    struct str rest = { (const char *)out->p, out->n };

    if (whole == NULL)
        return false;
    if (now.n > 0)
        memcpy(whole, now.p, now.n);
    memcpy(whole + now.n, out->p, out->n);
    return git_config_judge(rest, 0, NULL) == 0 && is_read_as((struct str){ whole, n }, now, rest);
}

/* Not in the copy from the start, and not with the owner by now. */
static bool
is_new(const struct adding *a, const struct git_config_entry *e)
{
    uint64_t all = hash_of(e, PART_ALL);

    return !set_has(&a->base, all) && !set_has(&a->now, all);
}

static int
find_bad(struct adding *a, struct str copy)
{
    static const struct set none = { 0 };
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, copy);
    while ((got = git_config_next(&r, &e)) > 0)
        if (is_new(a, &e) && !may_be_added(&e, &a->now, &none) && set_put(&a->bad, hash_of(&e, PART_STEM)) < 0)
            return -1;
    set_sort(&a->bad);
    return got;
}

static int
add_all(struct adding *a, struct str base, struct str copy, struct str now)
{
    cleanup_set struct set after = { 0 };
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    if (set_fill(&a->base, base, 1u << PART_ALL) < 0 || set_fill(&after, copy, 1u << PART_ALL) < 0 ||
        set_fill(&a->now, now, 1u << PART_STEM | 1u << PART_KEY | 1u << PART_ALL) < 0 || find_bad(a, copy) < 0)
        return -1;
    git_config_open(&r, copy);
    while ((got = git_config_next(&r, &e)) > 0)
        if (is_new(a, &e))
            add(a, &e);
    git_config_open(&r, base);
    while (got == 0 && (got = git_config_next(&r, &e)) > 0) {
        if (!set_has(&after, hash_of(&e, PART_ALL)))
            a->said(a->ctx, e.key, false);
        got = 0;
    }
    return got;
}

int
git_config_add(struct str base, struct str copy, struct str now, struct buf *out, git_config_said *said, void *ctx)
{
    struct adding a = { .out = out, .said = said, .ctx = ctx };
    int r;

    if (now.n > 0 && now.p[now.n - 1] != '\n')
        buf_puts(out, "\n");
    r = add_all(&a, base, copy, now);
    set_free(&a.base);
    set_free(&a.now);
    set_free(&a.bad);
    if (a.n == 0)
        buf_reset(out);
    return r < 0 || !buf_ok(out) || (a.n > 0 && !can_be_appended(now, out)) ? -1 : 0;
}
