/* client/api_verb.c: see api_verb.h */
#include "client/api_verb.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "program/say.h"
#include "program/words.h"

/* A flag that nobody knows: maybe one was meant that there is. */
static int
unknown(const struct api_verb_flag *own, const char *verb, const char *name, struct err *err)
{
    const char *known[API_VERB_FLAGS + 3] = { "--json", "--socket", "--help" }, *nearest;
    size_t n = 3;

    for (; own->name != NULL; own++)
        known[n++] = own->name;
    nearest = cli_nearest(name, known, n);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
    return nearest != NULL ? err_hint(err, "did you mean %s?", nearest)
                           : err_hint(err, "`cloche %s --help` lists the flags", verb);
}

/* How many words, -1 with @err. */
static int
flag(struct api_verb *v, const struct api_verb_flag *own, int argc, char **argv, int i, struct err *err)
{
    const struct api_verb_flag json[] = { { "--json", .on = &v->json }, { .name = NULL } }, *known = own;
    struct cli_flag f;
    int r;

    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&v->api, f.name, f.value, err)) < 0)
        return -1;
    if (r > 0)
        return cli_flag_words(&f, err);
    if (strcmp(f.name, json[0].name) == 0)
        known = json;
    while (known->name != NULL && strcmp(known->name, f.name) != 0)
        known++;
    if (known->name == NULL)
        return unknown(own, argv[0], f.name, err);
    if (known->value != NULL) {
        *known->value = f.value;
        return cli_flag_words(&f, err);
    }
    if (f.attached)
        return err_set(err, ERR_USAGE, "cli.flag-value", "%s takes no value", f.name);
    *known->on = true;
    return 1;
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
api_verb_words(struct api_verb *v, size_t most, const struct api_verb_flag *own, int argc, char **argv,
               struct err *err)
{
    static const struct api_verb_flag none[] = { { .name = NULL } };
    bool flags = true;
    int n = 1;

    *v = (struct api_verb){ .json = false };
    if (api_init(&v->api, err) < 0)
        n = -1;
    for (int i = 1; i < argc && n > 0; i += n) {
        if (!flags || argv[i][0] != '-') {
            n = operand(v, most, argv[i], err);
        } else if (strcmp(argv[i], "--") == 0) {
            flags = false;
            n = 1;
        } else {
            n = flag(v, own != NULL ? own : none, argc, argv, i, err);
        }
    }
    if (n > 0)
        return 0;
    v->json = cli_has(argc, argv, "--json");    /* a refusal is JSON as well */
    return -1;
}

void
api_verb_line(const json_t *o)
{
    (void)cli_json(json_incref((json_t *)(uintptr_t)o), JSON_COMPACT);
}

void
api_verb_event(const char *name, json_t *data)
{
    json_object_set_new(data, "event", json_string(name));
    api_verb_line(data);
}

int
api_verb_ask(const struct api_verb *v, const char *method, const char *path, const json_t *body,
             api_verb_show *show, struct err *err)
{
    json_t *said;

    if (api_ask(&v->api, method, path, body, &said, err) < 0)
        return -1;
    if (v->json) {
        said = said != NULL ? said : json_object();
        json_object_set_new(said, "version", json_integer(1));
        api_verb_line(said);
    } else if (show != NULL) {
        show(said);
    }
    json_decref(said);
    return 0;
}

static int
delete_one(const struct api_verb *v, const char *folder, const char *name, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (buf_puts(&path, folder) < 0 || name[0] == '\0' || api_escape(&path, name) < 0)
        return err_set(err, ERR_USAGE, "cli.name", "an empty name, or one that is too long");
    return api_ask(&v->api, "DELETE", (const char *)path.p, NULL, NULL, err);
}

json_int_t
api_verb_delete(const struct api_verb *v, size_t from, const char *folder, json_t *failed)
{
    json_int_t n = 0;

    for (size_t i = from; i < v->n_words; i++) {
        struct err err = ERR_INIT;
        if (delete_one(v, folder, v->words[i], &err) == 0) {
            n++;
            continue;
        }
        cli_fail(&err, false);
        json_array_append_new(failed, json_pack("{s:s, s:s, s:s}", "name", v->words[i], "code", err.code, "message",
                                                err.msg));
        if (err_is(&err, "api.down"))
            break;
    }
    return n;
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

struct cli_time
api_verb_time(const json_t *o, const char *member)
{
    json_int_t ms = json_integer_value(json_object_get(o, member));

    return ms > 0 ? cli_time(&(struct timespec){ .tv_sec = (time_t)(ms / 1000) }) : (struct cli_time){ "never" };
}
