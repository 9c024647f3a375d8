/* cli/fork.c: `cloche fork`, `cloche snapshot` and `cloche template`: sandboxes of cloche serve that begin with another
 * one's files (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"

#define FORKS_MAX 64

struct options {
    struct api_verb v;
    const char *count, *name;
};

static void
print_made(const json_t *said)
{
    printf("%s  %s\n", api_verb_word(said, "id", ""), api_verb_word(said, "name", ""));
}

static void
print_forks(const json_t *said)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(said, "sandboxes"), i, one) {
        print_made(one);
    }
}

static int
do_fork(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    uint64_t count = 1;
    json_t *body;
    int r;

    if (o->count != NULL && (!str_parse_u64(str_of(o->count), FORKS_MAX, &count) || count == 0)) {
        err_set(err, ERR_USAGE, "cli.flag-value", "-n %s: how many is a whole number from 1 to 64", o->count);
        return err_hint(err, "call it again for more than that");
    }
    if (api_verb_sandbox(&path, w->v[0], "/fork", err) < 0)
        return -1;
    body = json_pack("{s:I, s:s*}", "count", (json_int_t)count, "name", o->name);
    r = body == NULL ? err_set(err, ERR_USAGE, "cli.flag-value", "--name is no text")
                     : api_verb_ask(&o->v, "POST", (const char *)path.p, body, print_forks, err);
    json_decref(body);
    return r;
}

static int
do_snapshot(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *body;
    int r;

    if (api_verb_sandbox(&path, w->v[0], "/snapshot", err) < 0)
        return -1;
    body = json_pack("{s:s}", "name", w->v[1]);
    r = body == NULL ? err_set(err, ERR_USAGE, "cli.name", "the template's name is no text")
                     : api_verb_ask(&o->v, "POST", (const char *)path.p, body, print_made, err);
    json_decref(body);
    return r;
}

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "templates"), *one;
    size_t i;

    printf("%-32s  %12s  %-20s  %s\n", "ID", "BYTES", "MADE", "NAME");
    json_array_foreach(list, i, one) {
        printf("%-32.32s  %12lld  %-20s  %s\n", api_verb_word(one, "id", ""),
               (long long)json_integer_value(json_object_get(one, "bytes")), api_verb_time(one, "created_ms").text,
               api_verb_word(one, "name", ""));
    }
}

static int
template_list(void *options, const struct verb_words *w, struct err *err)
{
    (void)w;
    return api_verb_ask(options, "GET", "/v1/templates", NULL, print_list, err);
}

static int
template_remove(void *options, const struct verb_words *w, struct err *err)
{
    (void)err;
    return api_verb_remove(options, w, "/v1/templates/");
}

int
cmd_fork(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[-n COUNT] [--name NAME] SANDBOX", 1, 1, "which sandbox?", "`cloche ps` lists them", do_fork },
    };
    static const struct verb_flag flags[] = {
        { "--count", 'n', "COUNT", "how many: 1 to 64 (1)", FLAG_TEXT(struct options, count) },
        { "--name", 0, "NAME", "their name; of several: NAME-1, NAME-2 ...", FLAG_TEXT(struct options, name) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb verb = {
        .name = "fork", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "New sandboxes that begin with the files of one of cloche serve's, under the same policy. Processes, "
                 "ports,\nsecrets and keys are not copied.",
    };
    struct options o = { .count = NULL };

    return verb_main(&verb, &o, argc, argv);
}

int
cmd_snapshot(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "SANDBOX NAME", 2, 2, "which sandbox, and what is the template to be called?",
          "cloche snapshot SANDBOX NAME", do_snapshot },
    };
    static const struct verb_flag flags[] = { API_ROW_SOCKET, API_ROW_JSON("one JSON object") };
    static const struct verb verb = {
        .name = "snapshot", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "Keep the files of a sandbox of cloche serve as a template: sandboxes can begin with them.",
    };
    struct options o = { .count = NULL };

    return verb_main(&verb, &o, argc, argv);
}

int
cmd_template(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "ls", "ls [--json]", 0, 0, .run = template_list },
        { "rm", "rm [--json] TEMPLATE...", 1, VERB_ANY, "which template?", "`cloche template ls` shows them",
          template_remove },
    };
    static const struct verb_flag flags[] = { API_ROW_SOCKET, API_ROW_JSON("one JSON object") };
    static const struct verb verb = {
        .name = "template", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .needs_word = true,
        .misused = "cli.template", .surplus = "cli.operand",
        .about = "Templates of a running cloche serve: files that sandboxes begin with.",
    };
    struct options o = { .count = NULL };

    return verb_main(&verb, &o, argc, argv);
}
