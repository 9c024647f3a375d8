/* match/git_option.c: how an interrupted git command goes on (its todo list, and files with its options); and HEAD */
#include <string.h>

#include "base/array.h"
#include "match/git_shape.h"

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

/* How far a rebase is: git's own prompt puts the number, as it stands there, into what the shell expands once more. */
static bool
number(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] < '0' || text.p[i] > '9') && text.p[i] != '\n')
            return false;
    return true;
}

/* BISECT_NAMES: paths, each in single quotes. Versions of git before 2.34 let a shell read them; later ones put them
 * behind a "--". */
static bool
quoted_words(struct str text)
{
    struct str line = cut_line(&text);
    bool quoted = false;

    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '\'')
            quoted = !quoted;
        else if (!quoted && line.p[i] == '\\' && i + 1 < line.n && (line.p[i + 1] == '\'' || line.p[i + 1] == '!'))
            i++;
        else if (!quoted && line.p[i] != ' ')
            return false;
    }
    return !quoted && text.n == 0;
}

bool
git_option_harmless(struct str name, struct str text)
{
    static const char *const numbers[] = { "msgnum", "end", "next", "last" };

    if (text.n > GIT_HEAD_MAX || memchr(text.p, '\0', text.n) != NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (git_named(name, numbers[i]))
            return number(text);
    if (git_named(name, "bisect_names"))
        return quoted_words(text);
    if (git_named(name, "strategy"))
        return strategy_harmless(cut_line(&text)) && text.n == 0;
    if (git_named(name, "opts"))
        return opts_harmless(text);
    if (git_named(name, "strategy_opts"))
        return strategy_options(text);
    return git_named(name, "apply-opt") ? apply_options(text) : author_script(text);
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
