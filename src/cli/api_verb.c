/* cli/api_verb.c: see api_verb.h */
#include "cli/api_verb.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/cli.h"

/* How many words, -1 with @err. */
static int
flag(struct api_verb *v, api_verb_flag *own, void *ctx, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int r;

    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&v->api, f.name, f.value, err)) < 0)
        return -1;
    if (r == 0 && (r = own(ctx, f.name, f.value, err)) < 0)
        return -1;
    if (r == 0)
        return err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", f.name);
    return cli_flag_words(&f, err);
}

static int
operand(struct api_verb *v, size_t most, const char *word, struct err *err)
{
    if (v->n_words == API_VERB_WORDS)
        return err_set(err, ERR_USAGE, "cli.operand", "more than %d operands", API_VERB_WORDS);
    if (v->n_words == most)
        return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", word);
    v->words[v->n_words++] = word;
    return 1;
}

int
api_verb_words(struct api_verb *v, size_t most, api_verb_flag *own, void *ctx, int argc, char **argv,
               struct err *err)
{
    int n;

    *v = (struct api_verb){ .json = false };
    if (api_init(&v->api, err) < 0)
        return -1;
    for (int i = 1; i < argc; i += n) {
        n = 1;
        if (strcmp(argv[i], "--json") == 0)
            v->json = true;
        else
            n = argv[i][0] == '-' ? flag(v, own, ctx, argc, argv, i, err) : operand(v, most, argv[i], err);
        if (n < 0)
            return -1;
    }
    return 0;
}

static void
print_json(json_t *said)
{
    cleanup_free char *text = NULL;

    json_object_set_new(said, "version", json_integer(1));
    text = json_dumps(said, JSON_COMPACT);
    puts(text != NULL ? text : "{}");
}

int
api_verb_ask(const struct api_verb *v, const char *method, const char *path, const json_t *body,
             api_verb_show *show, struct err *err)
{
    json_t *said;

    if (api_ask(&v->api, method, path, body, &said, err) < 0)
        return -1;
    if (v->json)
        print_json(said);
    else if (show != NULL)
        show(said);
    json_decref(said);
    return 0;
}

const char *
api_verb_word(const json_t *o, const char *member, const char *more)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *text = json_string_value(json_object_get(o, member)), *c = text;

    while (c != NULL && *c != '\0' && (strchr(plain, *c) != NULL || strchr(more, *c) != NULL))
        c++;
    return c != NULL && *c == '\0' ? text : "?";
}

struct report_time
api_verb_time(const json_t *o, const char *member)
{
    json_int_t ms = json_integer_value(json_object_get(o, member));

    return ms > 0 ? report_time(&(struct timespec){ .tv_sec = (time_t)(ms / 1000) }) : (struct report_time){ "never" };
}
