/* program/verb.c: see verb.h */
#include "program/verb.h"

#include <string.h>

#include "base/array.h"
#include "program/say.h"

#define FLAGS_MAX 160           /* that a misspelt one is compared with */
#define WORDS_MAX 16

/* --- the help ----------------------------------------------------------------------------------------------------- */

static int
left_column(const struct verb_flag *f, char *out, size_t room)
{
    char letter[] = { '-', f->letter, ',', ' ', '\0' };

    return snprintf(out, room, "%s%s%s%s", f->letter != 0 ? letter : "", f->name, f->value != NULL ? " " : "",
                    f->value != NULL ? f->value : "");
}

void
verb_help(const struct verb *v, FILE *to)
{
    static const struct verb_flag help = { "--help", 0, NULL, "print this text", 0, NULL };
    const char *begin = "usage:";
    char left[128];
    int width = left_column(&help, left, sizeof(left));

    for (size_t i = 0; i < v->n_forms; i++) {
        if (v->forms[i].usage == NULL)
            continue;
        fprintf(to, "%-6s cloche %s %s\n", begin, v->name, v->forms[i].usage);
        begin = "";
    }
    fprintf(to, "\n%s\n\n", v->about);
    for (size_t i = 0; i < v->n_flags; i++) {
        int n = v->flags[i].help != NULL ? left_column(&v->flags[i], left, sizeof(left)) : 0;
        width = n > width ? n : width;
    }
    for (size_t i = 0; i <= v->n_flags; i++) {
        const struct verb_flag *f = i < v->n_flags ? &v->flags[i] : &help;
        if (f->help == NULL)
            continue;
        left_column(f, left, sizeof(left));
        fprintf(to, "  %-*s  %s\n", width, left, f->help);
    }
    if (v->more != NULL)
        v->more(to);
    if (v->after != NULL)
        fprintf(to, "\n%s\n", v->after);
}

/* --- flags -------------------------------------------------------------------------------------------------------- */

static const struct verb_flag *
find(const struct verb *v, const char *name)
{
    for (size_t i = 0; i < v->n_flags; i++) {
        const struct verb_flag *f = &v->flags[i];
        if (strcmp(name, f->name) == 0 || (f->letter != 0 && name[0] == '-' && name[1] == f->letter && name[2] == '\0'))
            return f;
    }
    return NULL;
}

static int
verb_put(const struct verb_flag *f, void *options, const char *value, struct err *err)
{
    char *at = (char *)options + f->at;

    if (f->set != NULL)
        return f->set(at, f->value != NULL ? value : NULL, err);
    if (f->value != NULL)
        *(const char **)(void *)at = value;
    else
        *(bool *)(void *)at = true;
    return 0;
}

static int
unknown(const struct verb *v, const char *name, struct err *err)
{
    const char *known[FLAGS_MAX], *nearest;
    size_t n = 0;

    known[n++] = "--help";
    for (size_t i = 0; i < v->n_flags && n < ARRAY_LEN(known); i++)
        known[n++] = v->flags[i].name;
    nearest = cli_nearest(name, known, n);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
    if (nearest != NULL)
        return err_hint(err, "did you mean %s?", nearest);
    return err_hint(err, "`cloche %s --help` lists the flags%s", v->name,
                    v->command ? "; those of the command come behind the sandbox's name" : "");
}

int
verb_take(const struct verb *v, void *options, const struct cli_flag *w, struct err *err)
{
    const struct verb_flag *f = find(v, w->name);
    int n;

    if (f == NULL)
        return 0;
    n = f->value != NULL ? cli_flag_words(w, err) : cli_flag_alone(w, err);
    return n < 0 || verb_put(f, options, w->value, err) < 0 ? -1 : n;
}

/* Several letters in one word ("-it"), none of which has a value: whether that is what @word is. */
static bool
letters(const struct verb *v, const char *word)
{
    if (word[0] != '-' || word[1] == '-' || strlen(word) < 3)
        return false;
    for (const char *c = word + 1; *c != '\0'; c++) {
        const struct verb_flag *f = find(v, (const char[]){ '-', *c, '\0' });
        if (f == NULL || f->value != NULL)
            return false;
    }
    return true;
}

/* The flag at argv[@i]. How many words, -1 with @err. */
static int
flag(const struct verb *v, void *options, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag w;
    int n;

    if (letters(v, argv[i])) {
        for (const char *c = argv[i] + 1; *c != '\0'; c++)
            if (verb_take(v, options, &(struct cli_flag){ .name = { '-', *c } }, err) < 0)
                return -1;
        return 1;
    }
    if (cli_flag_at(&w, argc, argv, i, err) < 0)
        return -1;
    n = verb_take(v, options, &w, err);
    return n == 0 ? unknown(v, w.name, err) : n;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static bool
is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Flags into @options, operands to argv[1..]. 1: help is asked for; 0, or -1 with @err. */
static int
read_words(const struct verb *v, void *options, int argc, char **argv, struct verb_words *w, struct err *err)
{
    bool flags = true;
    int n = 1;

    *w = (struct verb_words){ .v = argv + 1, .n_before = VERB_ANY };
    for (int i = 1; i < argc; i += n) {
        n = 1;
        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
            w->n_before = w->n;
        } else if (flags && is_help(argv[i])) {
            return 1;
        } else if (flags && argv[i][0] == '-' && argv[i][1] != '\0') {
            n = flag(v, options, argc, argv, i, err);
            if (n < 0)
                return -1;
        } else {
            w->v[w->n++] = argv[i];
            flags = flags && !v->command;
            if (v->command && w->n == 1 && i + 1 < argc && strcmp(argv[i + 1], "--") == 0)
                n = 2;
        }
    }
    w->v[w->n] = NULL;
    w->n_before = w->n_before == VERB_ANY ? w->n : w->n_before;
    return 0;
}

/* Which operand a form's word is. */
static size_t
word_at(const struct verb *v)
{
    return v->before != NULL ? 1 : 0;
}

static int
misused(const struct verb *v, const char *word, struct err *err)
{
    const char *known[WORDS_MAX + 1];
    char called[64];
    size_t n = 0;

    for (size_t i = 0; i < v->n_forms && n < WORDS_MAX; i++)
        if (v->forms[i].word != NULL && v->forms[i].run != NULL)
            known[n++] = v->forms[i].word;
    known[n] = NULL;
    snprintf(called, sizeof(called), "%s%s%s", v->name, v->before != NULL ? " " : "",
             v->before != NULL ? v->before : "");
    return cli_misused(v->misused, called, word, known, err);
}

static const struct verb_form *
form_of(const struct verb *v, const struct verb_words *w)
{
    const char *word = w->n > word_at(v) ? w->v[word_at(v)] : NULL;

    for (size_t i = 0; i < v->n_forms; i++) {
        const struct verb_form *form = &v->forms[i];
        bool meant = form->word == NULL || (word == NULL ? !v->needs_word : strcmp(form->word, word) == 0);
        if (form->run != NULL && meant)
            return form;
    }
    return NULL;
}

/* Whether the operands are what @form takes; its word is taken from them. */
static int
fits(const struct verb *v, const struct verb_form *form, struct verb_words *w, struct err *err)
{
    if (form->word != NULL && w->n > word_at(v)) {
        memmove(w->v + word_at(v), w->v + word_at(v) + 1, (w->n - word_at(v)) * sizeof(*w->v));
        w->n--;
        w->n_before -= w->n_before > word_at(v);
    }
    if (w->n > form->most) {
        err_set(err, ERR_USAGE, v->surplus != NULL ? v->surplus : v->misused != NULL ? v->misused : "cli.operand",
                "one operand too many: %.256s", w->v[form->most]);
        return err_hint(err, "`cloche %s --help` shows how it is called", v->name);
    }
    if (w->n >= form->least)
        return 0;
    if (form->lacks == NULL)
        return misused(v, form->word != NULL ? form->word : "", err);
    err_set(err, ERR_USAGE, v->lacking != NULL ? v->lacking : v->misused != NULL ? v->misused : "cli.operand", "%s",
            form->lacks);
    return form->lacks_hint != NULL ? err_hint(err, "%s", form->lacks_hint) : -1;
}

int
verb_main(const struct verb *v, void *options, int argc, char **argv)
{
    const struct verb_form *form;
    struct verb_words w;
    struct err err = ERR_INIT;
    bool json = find(v, "--json") != NULL && cli_asks_json(argc, argv, v->command);
    int r;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0 && (!v->command || argv[i][0] == '-'); i++) {
        if (!is_help(argv[i]))
            continue;
        verb_help(v, stdout);
        return 0;
    }
    r = v->begin != NULL ? v->begin(options, &err) : 0;
    if (r == 0)
        r = read_words(v, options, argc, argv, &w, &err);
    if (r > 0) {
        verb_help(v, stdout);
        return 0;
    }
    if (r == 0) {
        form = form_of(v, &w);
        r = form == NULL ? misused(v, w.n > word_at(v) ? w.v[word_at(v)] : "", &err) : fits(v, form, &w, &err);
        if (r == 0)
            r = form->run(options, &w, &err);
    }
    return r < 0 ? cli_fail(&err, json) : r;
}
