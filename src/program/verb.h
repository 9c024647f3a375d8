/* program/verb.h: the command line of a verb, from one table
 *
 * A verb's flags, forms and help are rows. Parsing, refusing wrong words, `--help` and the hint for a misspelt flag use
 * the rows; the completions are generated from the help. A new flag is a row and its entry in the manual.
 */
#ifndef CLOCHE_PROGRAM_VERB_H
#define CLOCHE_PROGRAM_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "program/words.h"

/* A flag. Its value goes into the verb's options, at the byte @at:
 *   @set is there    it is called with that address and the value (NULL without one); -1 with @err: FLAG_SET
 *   @value is there  a const char * (of argv; the last one counts): FLAG_TEXT
 *   else             a bool becomes true: FLAG_ON */
struct verb_flag {
    const char *name;           /* "--name" */
    char letter;                /* 'n': "-n" too; 0: none */
    const char *value;          /* what the help calls its value; NULL: it takes none */
    const char *help;           /* one line; NULL: not in the help */
    size_t at;
    int (*set)(void *at, const char *value, struct err *err);
};
#define FLAG_ON(type, member)   .at = _Generic((type){ }.member, bool: offsetof(type, member))
#define FLAG_TEXT(type, member) .at = _Generic((type){ }.member, const char *: offsetof(type, member))
#define FLAG_SET(type, member, fn) .at = offsetof(type, member), .set = (fn)

/* What is left of the words: operands, in order. They are argv's own. */
struct verb_words {
    char **v;                   /* NULL behind the last one */
    size_t n;
    size_t n_before;            /* how many stood before a "--" (all, without one) */
};

#define VERB_ANY ((size_t)-1)

/* One way to call it. */
struct verb_form {
    const char *word;           /* its own word ("create"); NULL: the verb has none */
    const char *usage;          /* what stands behind the verb in the help; NULL: not in it */
    size_t least, most;         /* operands, without @word */
    const char *lacks, *lacks_hint;     /* what is said when there are fewer; NULL: how it is called */
    /* The exit code, or -1 with @err. NULL: a line of the help only. */
    int (*run)(void *options, const struct verb_words *w, struct err *err);
};

struct verb {
    const char *name;
    const char *about;          /* the help's text before the flags, */
    const char *after;          /* and behind them; NULL: none */
    void (*more)(FILE *to);     /* prints further flags between them; NULL: none */
    const struct verb_form *forms;      /* the first one is meant where no word is there */
    size_t n_forms;
    const struct verb_flag *flags;
    size_t n_flags;
    const char *before;         /* what the operand is called that stands before a form's word; NULL: none does */
    bool needs_word;            /* no word: refused */
    bool command;               /* what follows the first operand is a command: no flag is looked for in it */
    const char *misused;        /* code of a form that is called wrongly, */
    const char *surplus;        /* of too many operands, and */
    const char *lacking;        /* of too few; NULL: @misused, and "cli.operand" without that */
    /* Before the flags are read: -1 with @err. NULL: nothing to do. */
    int (*begin)(void *options, struct err *err);
};
#define VERB_FORMS(rows) .forms = (rows), .n_forms = ARRAY_LEN(rows)
#define VERB_FLAGS(rows) .flags = (rows), .n_flags = ARRAY_LEN(rows)

/* The whole of cmd_VERB: help, words, the form that they mean, what it refuses. argv[0] is the verb's name; the order
 * of argv[1..] changes. The exit code. */
int verb_main(const struct verb *v, void *options, int argc, char **argv);

void verb_help(const struct verb *v, FILE *to);
/* The flag @w of another parser's words. How many it took (1 or 2), 0: the verb has no such flag, -1 with @err. */
int verb_take(const struct verb *v, void *options, const struct cli_flag *w, struct err *err);

#endif
