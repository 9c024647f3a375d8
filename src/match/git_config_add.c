/* match/git_config_add.c: see git_config_add.h */
#include "match/git_config_add.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "match/git_config.h"
#include "match/git_config_url.h"

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

/* Its entries. 0, or -1: the text is not read to its end. */
static int
set_fill(struct set *s, struct str text)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0)
        if (set_put(s, hash_of(&e, PART_ALL)) < 0)
            return -1;
    set_sort(s);
    return got;
}

/* --- the owner's side */

#define REMOTE_MAX 64   /* bytes of a remote's name; longer ones are not added, and nothing follows them */

/* What the owner's configuration says, here and elsewhere. */
struct owner {
    const struct git_config_owner *texts;
    struct buf rules;           /* of these, what they make of addresses */
    struct set said;            /* stems, keys, entries */
    struct set words;           /* of values, and names of remotes: what a new remote must not be called */
    size_t n_remotes;           /* 0, 1, or more */
    char only[REMOTE_MAX + 1];  /* a remote: the only one, if there is one */
    bool has_origin, only_fresh, origin_fresh;  /* _fresh: with the mark of one that was added */
};

static bool
is_nick_char(char c)
{
    char letter = ascii_lower(c);

    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/* Without case: a file system may take two names of refs for one. */
static uint64_t
hash_word(struct str s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)ascii_lower(s.p[i])) * 0x100000001b3u;
    return h;
}

static int
put_words(struct owner *o, struct str value)
{
    for (size_t at = 0, end; at < value.n; at = end + 1) {
        for (end = at; end < value.n && is_nick_char(value.p[end]); end++)
            ;
        if (end > at && set_put(&o->words, hash_word((struct str){ value.p + at, end - at })) < 0)
            return -1;
    }
    return 0;
}

/* Whether words of its value may be remotes: those of addresses and of people's names are not. */
static bool
may_name_remotes(const struct git_config_entry *e)
{
    static const char *const sections[] = { "url", "user", "author", "committer", "core" };

    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        if (str_eq_c(e->section, sections[i]))
            return false;
    return !str_eq_c(e->name, "url") && !str_eq_c(e->name, "pushurl");
}

static int
note_remote(struct owner *o, const struct git_config_entry *e)
{
    bool origin = str_eq_c(e->subsection, "origin"), mark = str_eq_c(e->name, "skipfetchall");

    if (o->n_remotes == 0 || !str_eq_c(e->subsection, o->only)) {
        o->n_remotes++;
        o->only_fresh = false;
        o->only[0] = '\0';
        if (e->subsection.n <= REMOTE_MAX)
            snprintf(o->only, sizeof(o->only), "%.*s", (int)e->subsection.n, e->subsection.p);
    }
    o->only_fresh |= mark;
    o->origin_fresh |= origin && mark;
    o->has_origin |= origin;
    return set_put(&o->words, hash_word(e->subsection));
}

static int
note_text(struct owner *o, struct str text)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0) {
        if (str_eq_c(e.section, "remote") && e.has_subsection && note_remote(o, &e) < 0)
            return -1;
        if (may_name_remotes(&e) && put_words(o, e.value) < 0)
            return -1;
        if (str_eq_c(e.section, "url") || str_eq_c(e.section, "includeif"))
            git_config_write(&o->rules, &e);
        for (enum part part = PART_STEM; part <= PART_ALL; part++)
            if (set_put(&o->said, hash_of(&e, part)) < 0)
                return -1;
    }
    return got;
}

static int
note_owner(struct owner *o, const struct git_config_owner *texts)
{
    o->texts = texts;
    if (note_text(o, texts->now) < 0 || note_text(o, texts->elsewhere) < 0)
        return -1;
    set_sort(&o->said);
    set_sort(&o->words);
    return buf_ok(&o->rules) ? 0 : -1;
}

/* The remote to which git goes by itself from a branch that follows none; "": none, or one that was added. */
static const char *
default_remote(const struct owner *o)
{
    if (o->n_remotes == 1)
        return o->only_fresh ? "" : o->only;
    return o->has_origin && !o->origin_fresh ? "origin" : "";
}

/* --- judging */

/* A plain name, of which git makes nothing else: no path, no address. */
static bool
is_nick(struct str s)
{
    if (s.n == 0 || s.n > REMOTE_MAX || s.p[0] == '-' || s.p[0] == '.' || s.p[s.n - 1] == '.' ||
        str_ends(s, STR_LIT(".lock")))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_nick_char(s.p[i]) || (s.p[i] == '.' && s.p[i - 1] == '.'))
            return false;
    return true;
}

/* The rest of a ref's name: git's own rules are wider. */
static bool
is_branch(struct str s)
{
    if (s.n == 0 || s.p[0] == '-' || str_ends(s, STR_LIT(".lock")))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char last = i > 0 ? s.p[i - 1] : '/', c = s.p[i];

        if (c != '/' && !is_nick_char(c) && memchr("+=,@#%!&()", c, 10) == NULL)
            return false;
        if ((c == '/' || c == '.') && (last == '/' || last == '.'))
            return false;
    }
    return s.p[s.n - 1] != '/' && s.p[s.n - 1] != '.' && !str_eq_c(s, "@");
}

static bool
cut_start(struct str *s, struct str start)
{
    if (!str_starts(*s, start))
        return false;
    *s = (struct str){ s->p + start.n, s->n - start.n };
    return true;
}

/* Of @remote: its branches, or one of them, to its own refs. */
static bool
refspec_fits(struct str s, struct str remote)
{
    const char *colon = s.n > 0 ? memchr(s.p, ':', s.n) : NULL;
    struct str from, to;

    if (colon == NULL)
        return false;
    from = (struct str){ s.p, (size_t)(colon - s.p) };
    to = (struct str){ colon + 1, s.n - from.n - 1 };
    (void)cut_start(&from, STR_LIT("+"));
    return cut_start(&from, STR_LIT("refs/heads/")) && cut_start(&to, STR_LIT("refs/remotes/")) &&
           cut_start(&to, remote) && cut_start(&to, STR_LIT("/")) && str_eq(from, to) &&
           (str_eq_c(from, "*") || is_branch(from));
}

/* Whether that remote would take the place of something: of what the owner says, or of a path (`git push x.git`). */
static bool
is_taken(struct str nick, const struct owner *o)
{
    char name[REMOTE_MAX + 1];

    snprintf(name, sizeof(name), "%.*s", (int)nick.n, nick.p);
    return set_has(&o->words, hash_word(nick)) || str_ends(nick, STR_LIT(".git")) ||
           (o->texts->is_taken != NULL && o->texts->is_taken(o->texts->ctx, name));
}

static bool
remote_fits(const struct git_config_entry *e, const struct owner *o)
{
    if (!is_nick(e->subsection) || is_taken(e->subsection, o))
        return false;
    /* beside the first one, git would go somewhere else by itself */
    if ((o->n_remotes > 0 && str_eq_c(e->subsection, "origin")) || (o->n_remotes == 1 && !o->has_origin))
        return false;
    if (str_eq_c(e->name, "url") || str_eq_c(e->name, "pushurl"))
        return git_config_url_fits(e->value, (struct str){ (const char *)o->rules.p, o->rules.n });
    if (str_eq_c(e->name, "fetch"))
        return refspec_fits(e->value, e->subsection);
    return str_eq_c(e->name, "tagopt") && (str_eq_c(e->value, "--tags") || str_eq_c(e->value, "--no-tags"));
}

/* What it follows is the branch of its name where git would go anyhow. */
static bool
follows_fits(const struct git_config_entry *e, const struct owner *o)
{
    struct str merge = e->value;

    if (str_eq_c(e->name, "remote"))
        return e->value.n > 0 && str_eq_c(e->value, default_remote(o));
    return str_eq_c(e->name, "merge") && cut_start(&merge, STR_LIT("refs/heads/")) && str_eq(merge, e->subsection);
}

static bool
has_key(const struct set *said, const struct git_config_entry *e, const char *name)
{
    struct git_config_entry other = *e;
    char key[GIT_CONFIG_KEY_MAX + 1 + 32];
    size_t stem = e->key.n - e->name.n;

    memcpy(key, e->key.p, stem);
    memcpy(key + stem, name, strlen(name));
    other.key = (struct str){ key, stem + strlen(name) };
    return set_has(said, hash_of(&other, PART_KEY));
}

/* Whether the owner says anything of where this branch goes. */
static bool
is_led(const struct set *said, const struct git_config_entry *e)
{
    return has_key(said, e, "remote") || has_key(said, e, "merge") || has_key(said, e, "pushremote") ||
           has_key(said, e, "rebase");
}

static bool
branch_fits(const struct git_config_entry *e, const struct owner *o, const struct set *bad)
{
    if (!is_branch(e->subsection))
        return false;
    if (str_eq_c(e->name, "description"))
        return git_config_plain_text(e->value) && !has_key(&o->said, e, "description");
    if (str_eq_c(e->name, "vscode-merge-base"))
        return is_branch(e->value) && !has_key(&o->said, e, "vscode-merge-base");
    return follows_fits(e, o) && !is_led(&o->said, e) && !set_has(bad, hash_of(e, PART_STEM));
}

/* Versions of git before 2.40.1 that remove or rename a section read lines of so many bytes, and take what is left of a
 * longer one for a line of its own. */
#define LINE_MAX_OLD 1000

static bool
is_short(const struct git_config_entry *e)
{
    size_t n = e->key.n + e->value.n;

    for (size_t i = 0; i < e->value.n; i++)
        n += memchr("\n\t\b\"\\", e->value.p[i], 5) != NULL;
    return n <= LINE_MAX_OLD;
}

/* @bad: new sections with something else in them. */
static bool
may_be_added(const struct git_config_entry *e, const struct owner *o, const struct set *bad)
{
    if (!e->has_subsection || !git_config_entry_harmless(e, 0) || !is_short(e))
        return false;
    if (str_eq_c(e->section, "branch"))
        return branch_fits(e, o, bad);
    return str_eq_c(e->section, "remote") && !set_has(&o->said, hash_of(e, PART_STEM)) &&
           !set_has(bad, hash_of(e, PART_STEM)) && remote_fits(e, o);
}

/* --- writing */

static void
put_quoted(struct buf *out, struct str s, bool value)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        /* in the name of a section, git reads these as letters */
        if (value && (c == '\n' || c == '\t' || c == '\b')) {
            buf_puts(out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\b");
            continue;
        }
        if (c == '"' || c == '\\')
            buf_put_u8(out, '\\');
        buf_put_u8(out, (uint8_t)c);
    }
}

static void
put_header(struct buf *out, const struct git_config_entry *e)
{
    buf_printf(out, "[%.*s", (int)e->section.n, e->section.p);
    if (e->has_subsection) {
        buf_puts(out, " \"");
        put_quoted(out, e->subsection, false);
        buf_puts(out, "\"");
    }
    buf_puts(out, "]\n");
}

static void
put_line(struct buf *out, const struct git_config_entry *e)
{
    buf_printf(out, "\t%.*s", (int)e->name.n, e->name.p);
    if (e->has_value) {
        buf_puts(out, " = \"");
        put_quoted(out, e->value, true);
        buf_puts(out, "\"");
    }
    buf_puts(out, "\n");
}

void
git_config_write(struct buf *out, const struct git_config_entry *e)
{
    put_header(out, e);
    put_line(out, e);
}

/* A remote gets a mark: by itself git asks none that the owner has not named. */
static void
put_entry(struct buf *out, const struct git_config_entry *e, bool headed)
{
    if (!headed)
        put_header(out, e);
    if (!headed && str_eq_c(e->section, "remote"))
        buf_puts(out, "\tskipFetchAll = true\n");
    put_line(out, e);
}

struct adding {
    struct set base, bad;
    struct owner owner;
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
    bool kept = a->n < GIT_CONFIG_ADD_MAX && may_be_added(e, &a->owner, &a->bad);

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
    int got = -1, want = -1;

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

/* Whether what was written is what was allowed. */
static bool
is_as_judged(const struct adding *a, struct str rest)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, rest);
    while ((got = git_config_next(&r, &e)) > 0)
        if (!may_be_added(&e, &a->owner, &a->bad) &&
            !(str_eq_c(e.section, "remote") && str_eq_c(e.name, "skipfetchall")))
            return false;
    return got == 0;
}

/* Appended, it must be read as it is by itself: the file may end within a line. */
static bool
can_be_appended(const struct adding *a, struct str now, const struct buf *out)
{
    size_t n = now.n + out->n;
    cleanup_free char *whole = malloc(n + 1);
    struct str rest = { (const char *)out->p, out->n };

    if (whole == NULL)
        return false;
    if (now.n > 0)
        memcpy(whole, now.p, now.n);
    memcpy(whole + now.n, out->p, out->n);
    return is_as_judged(a, rest) && is_read_as((struct str){ whole, n }, now, rest);
}

/* Not in the copy from the start, and not with the owner by now. */
static bool
is_new(const struct adding *a, const struct git_config_entry *e)
{
    uint64_t all = hash_of(e, PART_ALL);

    return !set_has(&a->base, all) && !set_has(&a->owner.said, all);
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
        if (is_new(a, &e) && !may_be_added(&e, &a->owner, &none) && set_put(&a->bad, hash_of(&e, PART_STEM)) < 0)
            return -1;
    set_sort(&a->bad);
    return got;
}

static int
add_all(struct adding *a, struct str base, struct str copy, const struct git_config_owner *owner)
{
    cleanup_set struct set after = { 0 };
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    if (set_fill(&a->base, base) < 0 || set_fill(&after, copy) < 0 ||
        note_owner(&a->owner, owner) < 0 || find_bad(a, copy) < 0)
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
git_config_add(struct str base, struct str copy, const struct git_config_owner *owner, struct buf *out,
               git_config_said *said, void *ctx)
{
    struct adding a = { .owner.rules = BUF_INIT(2 * GIT_CONFIG_MAX), .out = out, .said = said, .ctx = ctx };
    struct str now = owner->now;
    int r;

    if (now.n > 0 && now.p[now.n - 1] != '\n')
        buf_puts(out, "\n");
    r = add_all(&a, base, copy, owner);
    if (a.n == 0)
        buf_reset(out);
    if (!buf_ok(out) || (r == 0 && a.n > 0 && !can_be_appended(&a, now, out)))
        r = -1;
    set_free(&a.base);
    set_free(&a.owner.said);
    set_free(&a.owner.words);
    buf_free(&a.owner.rules);
    set_free(&a.bad);
    return r < 0 ? -1 : 0;
}
