/* workspace/protect.c: see protect.h */
#include "workspace/protect.h"

#include "base/array.h"
#include "workspace/planted.h"

/* Git reads its configuration and hooks from where these say. */
static const char *const git_redirects[] = { ".git/commondir", ".git/worktrees" };

/* Split the first component off @path. False at the end. */
static bool
next_name(struct str *path, struct str *name)
{
    size_t n = 0;

    if (path->n == 0)
        return false;
    while (n < path->n && path->p[n] != '/')
        n++;
    *name = (struct str){ .p = path->p, .n = n };
    size_t skip = n < path->n ? n + 1 : n;
    *path = (struct str){ .p = path->p + skip, .n = path->n - skip };
    return true;
}

static bool
same_name(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        unsigned char x = (unsigned char)a.p[i], y = (unsigned char)b.p[i];
        x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 32) : x;
        y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 32) : y;
        if (x != y)
            return false;
    }
    return true;
}

/* @names against the beginning of @path. */
static enum protect_match
match_here(struct str names, struct str path)
{
    struct str want, have;

    while (next_name(&names, &want)) {
        if (!next_name(&path, &have))
            return PROTECT_ABOVE;   /* all of @path agrees, and @names goes on */
        if (!same_name(want, have))
            return PROTECT_NOT;
    }
    return PROTECT_AT;
}

/* @names against every place in @path. */
static enum protect_match
match_anywhere(struct str names, struct str path)
{
    enum protect_match best = PROTECT_NOT;
    struct str name;

    do {
        enum protect_match m = path.n > 0 ? match_here(names, path) : PROTECT_NOT;
        if (m > best)
            best = m;
    } while (best != PROTECT_AT && next_name(&path, &name));
    return best;
}

/* What package managers unpack. */
static bool
is_unpacked(struct str path)
{
    struct str name;

    while (next_name(&path, &name))
        if (str_eq(name, STR_LIT("node_modules")))
            return true;
    return false;
}

/* The names @i in @path, or in the @end of it, that @there says is in the project. As the guard has it: what is obeyed
 * in a home directory only is looked for at the top, and further down where it is one already, perhaps. */
static enum protect_match
match_names(const struct protect *rules, size_t i, struct str path, struct str end, bool there)
{
    struct str names = str_of(rules->names[i]);
    enum protect_match best = match_anywhere(names, end);
    bool given = i + rules->n_given >= rules->n_names;

    return best == PROTECT_NOT || given || !planted_of_home(names) || (there && !is_unpacked(path))
               ? best : match_here(names, path);
}

/* .git/modules/NAME/{hooks,config}, where NAME may have several components: the repositories of submodules. Branches
 * may be called so too: they are below refs and logs. */
static bool
submodule_configuration(struct str path)
{
    struct str name, before = STR_LIT("");
    bool modules = false;

    while (next_name(&path, &name)) {
        if (!modules) {
            modules = same_name(before, STR_LIT(".git")) && same_name(name, STR_LIT("modules"));
            before = name;
            continue;
        }
        if (same_name(name, STR_LIT("refs")) || same_name(name, STR_LIT("logs")))
            return false;
        if (same_name(name, STR_LIT("hooks")) || same_name(name, STR_LIT("config")) ||
            same_name(name, STR_LIT("config.worktree")) || same_name(name, STR_LIT("commondir")))
            return true;
    }
    return false;
}

static enum protect_match
stronger(enum protect_match a, enum protect_match b)
{
    return a > b ? a : b;
}

/* Whether a rule with these names, which fits @path as @m, is about what git reads: that is judged by what it holds
 * (git_mark.c), and so is a ".git" itself, whatever is protected below it. Other names below ".git" are other
 * programs'. */
static bool
about_git(struct str names, struct str path, enum protect_match m)
{
    static const char *const own[] = { "hooks", "config", "config.worktree", "commondir", "info" };
    struct str first, second, last = STR_LIT("");

    if (!next_name(&names, &first) || !same_name(first, STR_LIT(".git")) || !next_name(&names, &second))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (same_name(second, str_of(own[i])))
            return true;
    while (next_name(&path, &last))
        ;
    return m == PROTECT_ABOVE && same_name(last, STR_LIT(".git"));
}

/* Against the given names, but those about what git reads. */
static enum protect_match
given_names(const struct protect *rules, struct str path)
{
    enum protect_match best = PROTECT_NOT;

    for (size_t i = 0; i < rules->n_names && best != PROTECT_AT; i++) {
        struct str names = str_of(rules->names[i]);
        enum protect_match m = match_names(rules, i, path, path, false);
        if (!about_git(names, path, m))
            best = stronger(best, m);
    }
    return best;
}

static enum protect_match
not_of_git(const struct protect *rules, struct str path)
{
    enum protect_match best = given_names(rules, path);

    for (size_t i = 0; i < rules->n_places && best != PROTECT_AT; i++)
        best = stronger(best, match_here(str_of(rules->places[i]), path));
    return best;
}

static size_t
count_names(const char *names)
{
    size_t n = 1;

    for (; *names != '\0'; names++)
        n += *names == '/';
    return n;
}

/* The last names of @path, as many as the longest rule has. */
static struct str
end_of(const struct protect *rules, struct str path)
{
    size_t n = 2, at = path.n;      /* git_redirects */

    for (size_t i = 0; i < rules->n_names; i++) {
        size_t has = count_names(rules->names[i]);
        n = has > n ? has : n;
    }
    for (; at > 0; at--)
        if (path.p[at - 1] == '/' && --n == 0)
            break;
    return (struct str){ .p = path.p + at, .n = path.n - at };
}

/* @end: of @path, where the given names are looked for. */
static enum protect_match
match_in(const struct protect *rules, struct str path, struct str end, bool there)
{
    enum protect_match best = submodule_configuration(path) ? PROTECT_AT : PROTECT_NOT;

    for (size_t i = 0; i < rules->n_names && best != PROTECT_AT; i++)
        best = stronger(best, match_names(rules, i, path, end, there));
    for (size_t i = 0; i < ARRAY_LEN(git_redirects) && best != PROTECT_AT; i++)
        best = stronger(best, match_anywhere(str_of(git_redirects[i]), end));
    for (size_t i = 0; i < rules->n_places && best != PROTECT_AT; i++)
        best = stronger(best, match_here(str_of(rules->places[i]), path));
    return best;
}

enum protect_match
protect_test(const struct protect *rules, struct str path, bool there)
{
    return path.n == 0 ? PROTECT_NOT : match_in(rules, path, path, there);
}

enum protect_match
protect_below(const struct protect *rules, struct str path, enum protect_match above, bool there)
{
    return above == PROTECT_AT ? PROTECT_AT : match_in(rules, path, end_of(rules, path), there);
}

bool
protect_only_git(const struct protect *rules, struct str path)
{
    return path.n > 0 && not_of_git(rules, path) == PROTECT_NOT;
}

bool
protect_link_inside(struct str target, size_t depth)
{
    struct str name;
    bool down = false;

    if (target.n == 0 || target.p[0] == '/')
        return false;
    while (next_name(&target, &name)) {
        if (name.n == 0 || str_eq(name, STR_LIT(".")))
            continue;
        if (!str_eq(name, STR_LIT(".."))) {
            down = true;
            continue;
        }
        if (down || depth == 0)
            return false;
        depth--;
    }
    return true;
}
