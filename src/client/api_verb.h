/* client/api_verb.h: what the verbs share that ask something of cloche serve and print it
 *
 * Their options, --json and --socket among them (program/verb.h reads the words); a request; its answer as JSON or as a
 * table. The daemon is another process: what is printed of its words holds nothing that moves a cursor.
 */
#ifndef CLOCHE_CLIENT_API_VERB_H
#define CLOCHE_CLIENT_API_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/api_client.h"
#include "program/say.h"
#include "program/verb.h"

/* The first member of such a verb's options. */
struct api_verb {
    struct api api;
    bool json;
};

/* The rows of --socket and --json, and what fills @options before any flag is read (struct verb's begin). */
#define API_ROW_SOCKET     { "--socket", .value = "PATH", .help = API_FLAG_HELP, .set = api_flag_socket }
#define API_ROW_JSON(help) { "--json", 0, NULL, help, FLAG_ON(struct api_verb, json) }
int api_verb_begin(void *options, struct err *err);

/* Ask it (api_ask), and print the answer: one JSON object with --json, else by @show (NULL: nothing). 0, or -1 with
 * @err. */
typedef void api_verb_show(const json_t *said);
int api_verb_ask(const struct api_verb *v, const char *method, const char *path, const json_t *body,
                 api_verb_show *show, struct err *err);

/* Put "/v1/sandboxes/WHICH@more" to the empty @path. 0, or -1 with @err (cli.sandbox). */
int api_verb_sandbox(struct buf *path, const char *which, const char *more, struct err *err);

/* A duration of whole seconds, at most @most ("12h"), from a flag to @body's @member; @text NULL: none. 0 or -1 with
 * @err. */
int api_verb_seconds(json_t *body, const char *member, const char *flag, const char *text, const char *most,
                     struct err *err);

/* Delete what each operand names below @folder ("/v1/volumes/"). One that cannot be deleted keeps no other: it is said
 * on standard error, and put to the array @failed. How many were deleted. */
json_int_t api_verb_delete(const struct api_verb *v, const struct verb_words *w, const char *folder, json_t *failed);
/* The same as a whole verb, which ends with the status that is given back. */
int api_verb_remove(const struct api_verb *v, const struct verb_words *w, const char *folder);

/* Print @o on a line; the data of an event (api_events) with its name in it. */
void api_verb_line(const json_t *o);
void api_verb_event(const char *name, json_t *data);

/* A member of @o as text of letters, digits, "._-" and the bytes of @more; "?" when it is anything else. */
const char *api_verb_word(const json_t *o, const char *member, const char *more);
/* A member of @o that is a time in milliseconds since 1970; "never" for none. */
struct cli_time api_verb_time(const json_t *o, const char *member);

#endif
