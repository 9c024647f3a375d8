/* program/words.h: the words of a command line: flags, their values, and what a misspelt one was meant to be
 */
#ifndef CLOCHE_PROGRAM_WORDS_H
#define CLOCHE_PROGRAM_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The word of @known that @word was probably meant to be, or NULL. */
const char *cli_nearest(const char *word, const char *const *known, size_t n);

/* What is wrong with a call of `cloche @verb` by its first word, of which there are @known (NULL at the end): there is
 * none (""), it is another one, or else what is around it. -1 with @err. */
int cli_misused(const char *code, const char *verb, const char *word, const char *const *known, struct err *err);

/* Whether that word is among argv[1..]; and whether "--help" or "-h" is. */
bool cli_has(int argc, char **argv, const char *word);
bool cli_wants_help(int argc, char **argv);

/* Whether "--json" is asked for, of a call that may be refused before its flags were read up to there. Behind a "--"
 * nothing is ours; and where a command may follow the flags without one, nobody can tell which words are its own. */
bool cli_asks_json(int argc, char **argv, bool runs_command);

/* A flag as it was written. */
struct cli_flag {
    char name[64];          /* "--name" */
    const char *value;      /* what was behind an '=', else the word that follows; NULL: there is none */
    bool attached;          /* it was behind an '=' */
};
/* argv[@i] as a flag. 0, or -1 with @err: its name is longer than that of any. */
int cli_flag_at(struct cli_flag *f, int argc, char **argv, int i, struct err *err);
/* How many words it takes with its value, 1 or 2; -1 with @err where there is no value. */
int cli_flag_words(const struct cli_flag *f, struct err *err);
/* The same of one that takes no value: 1; -1 with @err where one is attached. */
int cli_flag_alone(const struct cli_flag *f, struct err *err);

#endif
