/* client/api_verb.h: what the verbs share that ask something of cloche serve and print it
 *
 * Flags and operands in any order, --json and --socket among them; a request; its answer as JSON or as a table. The
 * daemon is another process: what is printed of its words holds nothing that moves a cursor.
 */
#ifndef CLOCHE_CLIENT_API_VERB_H
#define CLOCHE_CLIENT_API_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/api_client.h"
#include "program/say.h"

#define API_VERB_WORDS 64       /* operands at the most, of any verb */

struct api_verb {
    struct api api;
    bool json;
    const char *words[API_VERB_WORDS];  /* the operands, in order; of argv */
    size_t n_words;
};

/* A flag of the verb's own: one with a value, which goes to @value (of argv; the last one counts), or one without, that
 * sets @on. A row without a name is the last. */
struct api_verb_flag {
    const char *name;
    const char **value;
    bool *on;
};
#define API_VERB_FLAGS 16       /* at the most, with the last row */

/* Fill @v from the words behind argv[0], the verb's name: flags that every verb has and those of @own (NULL: none), and
 * at most @most operands; behind "--" all are operands. 0, or -1 with @err, @v->json then set wherever --json was. */
int api_verb_words(struct api_verb *v, size_t most, const struct api_verb_flag *own, int argc, char **argv,
                   struct err *err);

/* Ask it (api_ask), and print the answer: one JSON object with --json, else by @show (NULL: nothing). 0, or -1 with
 * @err. */
typedef void api_verb_show(const json_t *said);
int api_verb_ask(const struct api_verb *v, const char *method, const char *path, const json_t *body,
                 api_verb_show *show, struct err *err);

/* Delete what each operand from number @from on names below @folder ("/v1/volumes/"). One that is not keeps no other:
 * it is said on standard error, and put to the array @failed. How many were deleted. */
json_int_t api_verb_delete(const struct api_verb *v, size_t from, const char *folder, json_t *failed);

/* Print @o on a line; the data of an event (api_events) with its name in it. */
void api_verb_line(const json_t *o);
void api_verb_event(const char *name, json_t *data);

/* A member of @o as text of letters, digits, "._-" and the bytes of @more; "?" when it is anything else. */
const char *api_verb_word(const json_t *o, const char *member, const char *more);
/* A member of @o that is a time in milliseconds since 1970; "never" for none. */
struct cli_time api_verb_time(const json_t *o, const char *member);

#endif
