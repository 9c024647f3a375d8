/* match/language.h: the languages that cloche runs code of, one row each
 *
 * `cloche code`, `cloche doctor`, MCP's code_execute, its schema and the completions are all made from these rows: a
 * language is added here, and in no other place but the pages that people read (tests/e2e/test_docs.py holds those to
 * it).
 */
#ifndef CLOCHE_MATCH_LANGUAGE_H
#define CLOCHE_MATCH_LANGUAGE_H

#include <stddef.h>
#include <string.h>

#include "base/array.h"

#define LANGUAGE_ARGV_MAX 4

struct language {
    const char *name, *alias;
    const char *program;            /* found on the sandbox's PATH */
    unsigned major, minor;          /* the oldest version that is held to work (R64) */
    const char *file;               /* what code is called in a sandbox */
    const char *registry;           /* of packages (hosts/registry.c); NULL: it has none */
    const char *packages;           /* the variable that names folders of packages; NULL: it needs none */
    const char *argv[LANGUAGE_ARGV_MAX];    /* runs what standard input holds; NULL-terminated */
};

/* Code as standard input: its size is no question, and no file has to be picked and removed. The shell reads all of it
 * before it runs any: what it starts shall not swallow the rest. */
#define LANGUAGE_ROWS(row, between) \
    row("python", "py", "python3", 3, 11, "script.py", "pypi", "PYTHONPATH", "python3", "-") between \
    row("javascript", "js", "node", 20, 0, "script.js", "npm", NULL, "node", "-") between \
    row("shell", "sh", "bash", 5, 2, "script.sh", NULL, NULL, "bash", "-c", "eval \"$(cat)\"")

/* Texts of all names, as string literals. */
#define LANGUAGE_NAME(name, ...)   name
#define LANGUAGE_QUOTED(name, ...) "\"" name "\""
#define LANGUAGES_LISTED LANGUAGE_ROWS(LANGUAGE_NAME, ", ")     /* python, javascript, shell */
#define LANGUAGES_JSON   "[" LANGUAGE_ROWS(LANGUAGE_QUOTED, ", ") "]"

#define LANGUAGE_ROW(name_, alias_, program_, major_, minor_, file_, registry_, packages_, ...) \
    { .name = name_, .alias = alias_, .program = program_, .major = major_, .minor = minor_, .file = file_, \
      .registry = registry_, .packages = packages_, .argv = { __VA_ARGS__, NULL } }
#define LANGUAGE_COMMA ,

static const struct language languages[] = { LANGUAGE_ROWS(LANGUAGE_ROW, LANGUAGE_COMMA) };
#define LANGUAGES ARRAY_LEN(languages)

/* The one of that name or alias; NULL: none. @name may be NULL. */
static inline const struct language *
language_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < LANGUAGES; i++)
        if (strcmp(languages[i].name, name) == 0 || strcmp(languages[i].alias, name) == 0)
            return &languages[i];
    return NULL;
}

#endif
