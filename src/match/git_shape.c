/* match/git_shape.c: see git_shape.h */
#include "match/git_shape.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* @name against @want, which is in lower case. */
static bool
named(struct str name, const char *want)
{
    /* mostly the first byte tells, and this is asked of every name on a path for each row below */
    for (size_t i = 0; i < name.n; i++)
        if (want[i] == '\0' || ascii_lower(name.p[i]) != want[i])
            return false;
    return want[name.n] == '\0';
}

enum git_part
git_part_of(struct str name)
{
    if (named(name, "head"))
        return GIT_PART_HEAD;
    if (named(name, "objects"))
        return GIT_PART_OBJECTS;
    if (named(name, "refs"))
        return GIT_PART_REFS;
    return named(name, "commondir") ? GIT_PART_COMMONDIR : GIT_PART_NONE;
}

bool
git_parts_place(unsigned parts)
{
    const unsigned whole = GIT_PART_OBJECTS | GIT_PART_REFS, shared = GIT_PART_HEAD | GIT_PART_COMMONDIR;

    return (parts & whole) == whole || (parts & shared) == shared;
}

/* Directory and name below a git place, and what they are. A row with no name stands for every name that no row before
 * it has. */
static const struct row {
    const char *dir, *name;
    enum git_state state;
} rows[] = {
    { "", "config", GIT_STATE_CONFIG },
    { "", "config.worktree", GIT_STATE_CONFIG },
    { "", "hooks", GIT_STATE_HOOKS },
    { "", "commondir", GIT_STATE_COMMONDIR },
    { "", "gitdir", GIT_STATE_REDIRECT },
    { "", "index", GIT_STATE_INDEX },
    { "", "merge_rr", GIT_STATE_RERERE },
    { "", "rebase-merge", GIT_STATE_DIR },
    { "", "rebase-apply", GIT_STATE_DIR },
    { "", "sequencer", GIT_STATE_DIR },
    { "", "remotes", GIT_STATE_DIR },
    { "", "branches", GIT_STATE_DIR },
    { "rebase-merge", "git-rebase-todo", GIT_STATE_TODO },
    { "rebase-merge", "git-rebase-todo.backup", GIT_STATE_TODO },
    { "rebase-merge", "strategy", GIT_STATE_OPTION },
    { "rebase-merge", "strategy_opts", GIT_STATE_OPTION },
    { "rebase-merge", "author-script", GIT_STATE_OPTION },
    { "rebase-apply", "apply-opt", GIT_STATE_OPTION },
    { "rebase-apply", "strategy", GIT_STATE_OPTION },
    { "rebase-apply", "strategy_opts", GIT_STATE_OPTION },
    { "rebase-apply", "author-script", GIT_STATE_OPTION },
    { "sequencer", "todo", GIT_STATE_TODO },
    { "sequencer", "opts", GIT_STATE_OPTION },
    { "hooks", NULL, GIT_STATE_HOOK },
    { "remotes", NULL, GIT_STATE_REMOTE },
    { "branches", NULL, GIT_STATE_REMOTE },
};

static bool
sample(struct str name)
{
    return git_name_ends(name, STR_LIT(".sample"));
}

/* The part of a split index that several have: its name goes on with its checksum. */
static bool
is_shared_index(struct str name)
{
    return git_name_begins(name, STR_LIT("sharedindex."));
}

static bool
is_copy(struct str name)
{
    static const struct str begin = STR_LIT(GIT_COPY_NAME);

    if (name.n != begin.n + GIT_COPY_DIGITS || !git_name_begins(name, begin))
        return false;
    for (size_t i = begin.n; i < name.n; i++)
        if (str_hex_digit(name.p[i]) < 0)
            return false;
    return true;
}

/* Only such state comes by a lock that git itself renames. */
static bool
comes_by_lock(enum git_state state)
{
    return state == GIT_STATE_CONFIG || state == GIT_STATE_INDEX || state == GIT_STATE_TODO ||
           state == GIT_STATE_OPTION || state == GIT_STATE_RERERE;
}

enum git_state
git_state_in(struct str dir, struct str name)
{
    enum git_state state = GIT_STATE_NONE;

    if (git_is_lock(name)) {
        struct str base = git_without_lock(name);

        if (dir.n == 0 && git_is_index_lock(name))
            return GIT_STATE_INDEX;
        if (base.n < name.n && comes_by_lock(state = git_state_in(dir, base)))
            return state;
    }
    if (dir.n == 0 && is_shared_index(name))
        return GIT_STATE_INDEX;
    if (is_copy(name))
        return GIT_STATE_COPY;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!named(dir, rows[i].dir) || (rows[i].name != NULL && !named(name, rows[i].name)))
            continue;
        return rows[i].state == GIT_STATE_HOOK && sample(name) ? GIT_STATE_SAMPLE : rows[i].state;
    }
    return GIT_STATE_NONE;
}

enum git_state
git_state_of(struct str path)
{
    const char *slash = path.n > 0 ? memchr(path.p, '/', path.n) : NULL;

    if (slash == NULL)
        return git_state_in(STR_LIT(""), path);
    struct str dir = { path.p, (size_t)(slash - path.p) };
    struct str rest = { slash + 1, path.n - dir.n - 1 };
    if (memchr(rest.p, '/', rest.n) == NULL)
        return git_state_in(dir, rest);
    if (named(dir, "hooks"))
        return GIT_STATE_HOOK;
    return named(dir, "remotes") || named(dir, "branches") ? GIT_STATE_REMOTE : GIT_STATE_NONE;
}

const char *
git_state_name(enum git_state state)
{
    switch (state) {
    case GIT_STATE_NONE: break;
    case GIT_STATE_CONFIG: return "git configuration";
    case GIT_STATE_HOOKS: return "directory of git hooks";
    case GIT_STATE_HOOK: return "git hook";
    case GIT_STATE_SAMPLE: return "sample of a git hook";
    case GIT_STATE_FILE: case GIT_STATE_COMMONDIR: case GIT_STATE_REDIRECT: return "redirection of git";
    case GIT_STATE_DIR: return "directory of git's state";
    case GIT_STATE_TODO: return "git todo list";
    case GIT_STATE_OPTION: return "options of an interrupted git command";
    case GIT_STATE_REMOTE: return "git remote in the old form";
    case GIT_STATE_INDEX: return "git index";
    case GIT_STATE_RERERE: return "list of git rerere";
    case GIT_STATE_COPY: return "judged copy";
    case GIT_STATE_LEAD: return "link where git writes";
    }
    return NULL;
}

/* Directories in which git makes, changes and removes files of its own. */
static bool
is_own_directory(struct str name)
{
    static const char *const names[] = { "logs", "refs", "objects", "info", "worktrees", "modules", "hooks",
        "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches", "rr-cache", "reftable", "lost-found",
        "notes_merge_worktree", "lfs", "svn" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (named(name, names[i]))
            return true;
    return false;
}

/* Files at the top of a git place. Most are called like FETCH_HEAD or COMMIT_EDITMSG, and new ones will be. A lock
 * becomes what it is the lock of, link or not. */
static bool
is_own_file(struct str name)
{
    static const char *const names[] = { "head", "index", "packed-refs", "shallow", "config", "config.worktree",
        "commondir", "gitdir", "description", "gc.log", "gc.pid", "add_edit.patch", "addp-hunk-edit.diff",
        "merge_msg", "squash_msg", "commit_editmsg", "tag_editmsg", "fetch_head", "orig_head" };
    size_t i = 0;

    name = git_without_lock(name);
    if (git_name_ends(name, STR_LIT(".new")))
        name.n -= strlen(".new");
    while (i < name.n && ((name.p[i] >= 'A' && name.p[i] <= 'Z') || name.p[i] == '_'))
        i++;
    if (name.n > 0 && i == name.n)
        return true;
    for (i = 0; i < ARRAY_LEN(names); i++)
        if (named(name, names[i]))
            return true;
    return is_shared_index(name) || git_is_lock(name);
}

static struct str
first_name(struct str path)
{
    const char *slash = path.n > 0 ? memchr(path.p, '/', path.n) : NULL;

    return (struct str){ path.p, slash != NULL ? (size_t)(slash - path.p) : path.n };
}

bool
git_writes_below(struct str path)
{
    return is_own_directory(first_name(path));
}

bool
git_writes(struct str path)
{
    struct str first = first_name(path);

    return is_own_directory(first) || (first.n == path.n && is_own_file(path));
}

size_t
git_modules_depth(struct str path)
{
    size_t depth = 0, at = 0;
    bool dot_git = false;

    while (at <= path.n && path.n > 0) {
        const char *slash = at < path.n ? memchr(path.p + at, '/', path.n - at) : NULL;
        size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
        struct str name = { path.p + at, end - at };

        if (dot_git && named(name, "modules"))
            depth = 2;
        else if (depth > 0)
            depth++;
        dot_git = named(name, ".git");
        at = end + 1;
    }
    return depth;
}

size_t
git_worktree_ups(struct str path)
{
    size_t depth = git_modules_depth(path);

    return depth > 2 ? depth : path.n > 0 ? 1 : 0;
}

/* Cut the first line off @text, without its line end. */
static struct str
cut_line(struct str *text)
{
    const char *end = memchr(text->p, '\n', text->n);
    struct str line = { text->p, end != NULL ? (size_t)(end - text->p) : text->n };
    size_t skip = end != NULL ? line.n + 1 : line.n;

    *text = (struct str){ text->p + skip, text->n - skip };
    return line;
}

static bool
blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cut the first word off @s. */
static struct str
cut_word(struct str *s)
{
    size_t from = 0, to;

    while (from < s->n && blank(s->p[from]))
        from++;
    for (to = from; to < s->n && !blank(s->p[to]);)
        to++;
    struct str word = { s->p + from, to - from };
    *s = (struct str){ s->p + to, s->n - to };
    return word;
}

static bool
among(const char *const *words, size_t n, struct str word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(word, words[i]))
            return true;
    return false;
}

bool
git_todo_harmless(struct str text)
{
    static const char *const commands[] = { "pick", "p", "revert", "reword", "r", "edit", "e", "squash", "s", "fixup",
        "f", "drop", "d", "label", "l", "reset", "t", "merge", "m", "noop", "update-ref", "u", "break", "b" };

    if (text.n > GIT_TODO_MAX || memchr(text.p, '\0', text.n) != NULL)
        return false;
    while (text.n > 0) {
        struct str line = cut_line(&text), word = cut_word(&line);
        if (word.n > 0 && word.p[0] != '#' && !among(commands, ARRAY_LEN(commands), word))
            return false;
    }
    return true;
}

/* Only git's own: any other is a program of that name, and `../x` is a path. */
static bool
strategy_harmless(struct str name)
{
    static const char *const known[] = { "ort", "recursive", "resolve", "octopus", "ours", "subtree" };

    return among(known, ARRAY_LEN(known), name);
}

/* sequencer/opts is written in the form of a configuration. */
static bool
opts_harmless(struct str text)
{
    static const char *const known[] = { "no-commit", "edit", "allow-empty", "allow-empty-message",
        "drop-redundant-commits", "keep-redundant-commits", "signoff", "record-origin", "allow-ff", "mainline",
        "strategy-option", "allow-rerere-auto", "default-msg-cleanup" };
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0) {
        if (!str_eq_c(e.section, "options") || e.has_subsection)
            return false;
        if (str_eq_c(e.name, "strategy") ? !strategy_harmless(e.value)
                                         : !among(known, ARRAY_LEN(known), e.name))
            return false;
    }
    return got == 0;
}

/* One option of git apply, as `git am` keeps it: nothing that leaves the work tree or writes another file. */
static bool
apply_option(struct str word)
{
    static const char *const whole[] = { "--ignore-space-change", "--ignore-whitespace", "--reject" };
    static const char *const valued[] = { "-p", "-C", "--whitespace=", "--exclude=", "--include=" };

    if (among(whole, ARRAY_LEN(whole), word))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(valued); i++)
        if (str_starts(word, str_of(valued[i])))
            return true;
    return false;
}

/* rebase-apply/apply-opt: options, each in single quotes. */
static bool
apply_options(struct str text)
{
    while (text.n > 0) {
        struct str line = cut_line(&text), word;
        while ((word = cut_word(&line)).n > 0) {
            if (word.n < 3 || word.p[0] != '\'' || word.p[word.n - 1] != '\'')
                return false;
            word = (struct str){ word.p + 1, word.n - 2 };
            if (memchr(word.p, '\'', word.n) != NULL || memchr(word.p, '\\', word.n) != NULL || !apply_option(word))
                return false;
        }
    }
    return true;
}

/* rebase-merge/strategy_opts: options of a merge strategy, in quotes or not. Older versions of git let a shell read
 * them. */
static bool
strategy_options(struct str text)
{
    while (text.n > 0) {
        struct str line = cut_line(&text), word;
        while ((word = cut_word(&line)).n > 0) {
            if (word.n > 2 && (word.p[0] == '\'' || word.p[0] == '"') && word.p[word.n - 1] == word.p[0])
                word = (struct str){ word.p + 1, word.n - 2 };
            if (word.p[0] != '-')
                return false;
            for (size_t i = 0; i < word.n; i++)
                if (strchr("\\'\"`$!&|;<>(){}[]*?~#^", word.p[i]) != NULL)
                    return false;
        }
    }
    return true;
}

/* author-script: three assignments, quoted for a shell. Older versions of git let a shell read them. */
static bool
author_script(struct str text)
{
    static const char *const names[] = { "GIT_AUTHOR_NAME='", "GIT_AUTHOR_EMAIL='", "GIT_AUTHOR_DATE='" };
    size_t i = 0;

    while (i < text.n) {
        struct str rest = { text.p + i, text.n - i };
        size_t k = 0;
        while (k < 3 && !str_starts(rest, str_of(names[k])))
            k++;
        if (k == 3)
            return false;
        for (i += strlen(names[k]); ; ) {
            while (i < text.n && text.p[i] != '\'')
                i++;
            rest = (struct str){ text.p + i, text.n - i };
            if (!str_starts(rest, STR_LIT("'\\''")) && !str_starts(rest, STR_LIT("'\\!'")))
                break;
            i += 4;
        }
        if (i >= text.n || (i + 1 < text.n && text.p[i + 1] != '\n'))
            return false;
        i += 2;
    }
    return true;
}

static bool
option_harmless(struct str name, struct str text)
{
    if (text.n > GIT_HEAD_MAX || memchr(text.p, '\0', text.n) != NULL)
        return false;
    if (named(name, "strategy"))
        return strategy_harmless(cut_line(&text)) && text.n == 0;
    if (named(name, "opts"))
        return opts_harmless(text);
    if (named(name, "strategy_opts"))
        return strategy_options(text);
    return named(name, "apply-opt") ? apply_options(text) : author_script(text);
}

bool
git_state_harmless(enum git_state state, struct str name, struct str text, size_t depth, struct git_config_fault *fault)
{
    struct str target;

    if (fault != NULL)
        fault->key[0] = '\0';
    switch (state) {
    case GIT_STATE_CONFIG: return git_config_judge(text, depth, fault) == 0;
    case GIT_STATE_TODO: return git_todo_harmless(text);
    case GIT_STATE_OPTION: return option_harmless(git_without_lock(name), text);
    case GIT_STATE_FILE: return git_file_harmless(text);
    case GIT_STATE_COMMONDIR: case GIT_STATE_REDIRECT: return git_redirect_target(text, &target);
    case GIT_STATE_RERERE: return text.n == 0;
    case GIT_STATE_HOOK: case GIT_STATE_REMOTE: case GIT_STATE_HOOKS: case GIT_STATE_DIR: case GIT_STATE_LEAD:
    case GIT_STATE_INDEX: case GIT_STATE_COPY:
        return false;
    case GIT_STATE_NONE: case GIT_STATE_SAMPLE: break;
    }
    return true;
}

bool
git_redirect_target(struct str text, struct str *target)
{
    while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    *target = text;
    return text.n > 0 && text.n <= GIT_HEAD_MAX && memchr(text.p, '\0', text.n) == NULL &&
           memchr(text.p, '\n', text.n) == NULL;
}

bool
git_file_target(struct str text, struct str *target)
{
    static const struct str start = STR_LIT("gitdir: ");

    *target = STR_LIT("");
    return str_starts(text, start) && git_redirect_target((struct str){ text.p + start.n, text.n - start.n }, target);
}

/* --- where they may lead */

/* Cut the first component off @path, empty ones and `.` left out. None: "". */
static struct str
cut_component(struct str *path)
{
    for (;;) {
        const char *slash = path->n > 0 ? memchr(path->p, '/', path->n) : NULL;
        struct str name = { path->p, slash != NULL ? (size_t)(slash - path->p) : path->n };
        size_t skip = slash != NULL ? name.n + 1 : name.n;

        *path = (struct str){ path->p + skip, path->n - skip };
        if ((name.n > 0 && !str_eq_c(name, ".")) || skip == 0)
            return name;
    }
}

bool
git_below_dot_git(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0)
        if (named(name, ".git"))
            return true;
    return false;
}

static bool
has_up(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0)
        if (str_eq_c(name, ".."))
            return true;
    return false;
}

/* Whether @path ends in a `.git`, or in what that has for its submodules and worktrees: there no link leads on. */
static bool
ends_in_dot_git(struct str path)
{
    struct str name;

    while ((name = cut_component(&path)).n > 0) {
        struct str rest = path, next = cut_component(&rest);

        if (str_eq_c(name, ".git") && !has_up(path) &&
            (next.n == 0 || str_eq_c(next, "modules") || str_eq_c(next, "worktrees")))
            return true;
    }
    return false;
}

bool
git_file_harmless(struct str text)
{
    struct str target;

    return git_file_target(text, &target) && ends_in_dot_git(target);
}

/* Without its last component; false when it has none. */
static bool
cut_last(struct str *path)
{
    size_t was = path->n;

    while (path->n > 0 && path->p[path->n - 1] == '/')
        path->n--;
    while (path->n > 0 && path->p[path->n - 1] != '/')
        path->n--;
    return path->n < was;
}

bool
git_common_harmless(struct str text, struct str place)
{
    char joined[2 * GIT_HEAD_MAX + 2];
    struct str target, rest, name;
    int n;

    if (!git_redirect_target(text, &target))
        return false;
    if (target.p[0] == '/')
        return ends_in_dot_git(target);
    if (!git_below_dot_git(place) && str_eq_c(target, "../.."))
        return true;
    for (rest = target; name = cut_component(&rest), str_eq_c(name, ".."); target = rest)
        if (!cut_last(&place))
            return false;
    n = snprintf(joined, sizeof(joined), "%.*s/%.*s", (int)place.n, place.p, (int)target.n, target.p);
    return n > 0 && (size_t)n < sizeof(joined) && ends_in_dot_git((struct str){ joined, (size_t)n });
}

bool
git_head_harmless(struct str text)
{
    struct str line;

    if (text.n > GIT_HEAD_MAX || text.n == 0 || memchr(text.p, '\0', text.n) != NULL)
        return false;
    line = cut_line(&text);
    if (text.n > 0)
        return false;
    if (str_starts(line, STR_LIT("ref:"))) {
        line = (struct str){ line.p + 4, line.n - 4 };
        return str_starts(cut_word(&line), STR_LIT("refs/")) && cut_word(&line).n == 0;
    }
    for (size_t i = 0; i < line.n; i++)
        if (str_hex_digit(line.p[i]) < 0)
            return false;
    return line.n == 40 || line.n == 64;
}
