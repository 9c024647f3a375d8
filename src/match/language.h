/* match/language.h: the languages that cloche runs code of, one row each
 *
 * `cloche code`, `cloche doctor`, MCP's code_execute, its schema and the completions are all made from these rows: a
 * language is added here, and in no other place but the pages that people read (tests/e2e/test_docs.py holds those to
 * it). A user adds rows without code: files in runtimes.d (policy/runtime.h), which come behind these.
 */
#ifndef CLOCHE_MATCH_LANGUAGE_H
#define CLOCHE_MATCH_LANGUAGE_H

#include <stddef.h>

#include "base/array.h"
#include "base/buf.h"

#define LANGUAGE_ARGV_MAX 16
#define LANGUAGE_TEXT_MAX 255       /* bytes of any one text */
#define LANGUAGE_FILE     "{file}"  /* stands for the file's path among the words that run one */
#define LANGUAGES_MORE    64        /* of the user's own */

struct language {
    const char *name, *alias;       /* alias "": none */
    const char *program;            /* found on the sandbox's PATH */
    unsigned major, minor;          /* the oldest version that is held to work (R64) */
    const char *file;               /* what code is called in a sandbox */
    const char *registry;           /* of packages (hosts/registry.c); NULL: it has none */
    const char *packages;           /* the variable that names folders of packages; NULL: it needs none */
    const char *option;             /* before code as an argument, with another standard input; NULL: there is none */
    const char *const *parked;      /* runs the same as @argv, but waits first (match/parked.h); NULL: there is none */
    const char *argv[LANGUAGE_ARGV_MAX + 1];        /* runs what standard input holds; NULL-terminated */
    const char *file_argv[LANGUAGE_ARGV_MAX + 1];   /* runs LANGUAGE_FILE; empty: the program, and it */
};

/* Code as standard input: its size is no question, and no file has to be picked and removed. The shell reads all of it
 * before it runs any: what it starts shall not swallow the rest. */
#define LANGUAGE_ROWS(row, between) \
    row("python", "py", "python3", 3, 11, "script.py", "pypi", "PYTHONPATH", "-c", parked_python, "python3", "-") \
        between \
    row("javascript", "js", "node", 20, 0, "script.js", "npm", NULL, "-e", parked_node, "node", "-") between \
    row("shell", "sh", "bash", 5, 2, "script.sh", NULL, NULL, "-c", NULL, "bash", "-c", "eval \"$(cat)\"")

/* All names, as a string literal. */
#define LANGUAGE_NAME(name, ...)   name

#define LANGUAGE_ROW(name_, alias_, program_, major_, minor_, file_, registry_, packages_, option_, parked_, ...) \
    { .name = name_, .alias = alias_, .program = program_, .major = major_, .minor = minor_, .file = file_, \
      .registry = registry_, .packages = packages_, .option = option_, .parked = parked_, \
      .argv = { __VA_ARGS__, NULL } }
#define LANGUAGE_COMMA ,

extern const struct language languages[];
#define LANGUAGES (0 LANGUAGE_ROWS(LANGUAGE_ONE, ))
#define LANGUAGE_ONE(...) + 1

/* Those of the user's own, instead of the ones that were there; borrowed for as long as they stay. */
void language_more(const struct language *rows, size_t n);
/* The rows above, then those; NULL behind the last one. */
const struct language *language_at(size_t i);
/* The one of that name or alias; NULL: none. @name may be NULL. */
const struct language *language_find(const char *name);
/* The same among @rows. */
const struct language *language_in(const struct language *rows, size_t n, const char *name);
/* The one whose files have @path's ending, as "x.py" has python's; NULL: none. */
const struct language *language_of_path(const char *path);
/* All names, with @between between them. */
void language_names(struct buf *out, const char *between);
/* The words that run the file @path, NULL-terminated. They borrow both. */
void language_words(const struct language *l, const char *path, const char *out[LANGUAGE_ARGV_MAX + 1]);

#endif
