/* program/words.c: see words.h */
#include "program/words.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

bool
cli_has(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

bool
cli_wants_help(int argc, char **argv)
{
    return cli_has(argc, argv, "--help") || cli_has(argc, argv, "-h");
}

bool
cli_asks_json(int argc, char **argv, bool runs_command)
{
    int end = 1;

    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    return (end < argc || !runs_command) && cli_has(end, argv, "--json");
}

int
cli_flag_at(struct cli_flag *f, int argc, char **argv, int i, struct err *err)
{
    const char *eq = strchr(argv[i], '=');
    size_t n = eq != NULL ? (size_t)(eq - argv[i]) : strlen(argv[i]);

    if (n >= sizeof(f->name))
        return err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %.60s...", argv[i]);
    memcpy(f->name, argv[i], n);
    f->name[n] = '\0';
    f->attached = eq != NULL;
    f->value = eq != NULL ? eq + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    return 0;
}

int
cli_flag_words(const struct cli_flag *f, struct err *err)
{
    if (f->value == NULL)
        return err_set(err, ERR_USAGE, "cli.flag-value", "%s needs a value", f->name);
    return f->attached ? 1 : 2;
}

int
cli_flag_alone(const struct cli_flag *f, struct err *err)
{
    return !f->attached ? 1 : err_set(err, ERR_USAGE, "cli.flag-value", "%s takes no value", f->name);
}

const char *
cli_nearest(const char *word, const char *const *known, size_t n)
{
    const char *nearest = NULL;
    size_t best = 3, typed = strlen(word), prefixes = 0;

    for (size_t i = 0; i < n; i++) {
        size_t d = str_distance(str_of(word), str_of(known[i]));
        if (known[i][0] == '-' && strlen(known[i]) == 2)
            continue;       /* it is near to every other letter */
        if (d < best) {
            best = d;
            nearest = known[i];
        }
    }
    /* the beginning of exactly one word is that word */
    for (size_t i = 0; nearest == NULL && typed > 2 && i < n; i++)
        prefixes += strncmp(word, known[i], typed) == 0;
    for (size_t i = 0; prefixes == 1 && i < n; i++)
        if (strncmp(word, known[i], typed) == 0)
            nearest = known[i];
    return nearest;
}

int
cli_misused(const char *code, const char *verb, const char *word, const char *const *known, struct err *err)
{
    char list[256] = "";
    const char *nearest = NULL;
    bool is = false;
    size_t n = 0, at = 0;

    for (; known[n] != NULL; n++) {
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", n > 0 ? ", " : "", known[n]);
        is = is || strcmp(known[n], word) == 0;
    }
    if (is)
        err_set(err, ERR_USAGE, code, "that is not how `cloche %s %s` is called", verb, word);
    else if (word[0] == '\0')
        err_set(err, ERR_USAGE, code, "`cloche %s` wants one of %s", verb, list);
    else
        err_set(err, ERR_USAGE, code, "\"%.64s\" is not one of %s", word, list);
    nearest = is || word[0] == '\0' ? NULL : cli_nearest(word, known, n);
    return nearest != NULL ? err_hint(err, "did you mean `cloche %s %s`?", verb, nearest)
                           : err_hint(err, "`cloche %s --help` shows how it is called", verb);
}
