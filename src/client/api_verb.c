/* client/api_verb.c: see api_verb.h */
#include "client/api_verb.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "program/say.h"

int
api_verb_begin(void *options, struct err *err)
{
    return api_init(&((struct api_verb *)options)->api, err);
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

int
api_verb_sandbox(struct buf *path, const char *which, const char *more, struct err *err)
{
    if (buf_puts(path, "/v1/sandboxes/") < 0 || which[0] == '\0' || api_escape(path, which) < 0 ||
        buf_puts(path, more) < 0 || buf_nul(path) < 0)
        return err_set(err, ERR_USAGE, "cli.sandbox", "that is not a sandbox's id or name");
    return 0;
}

int
api_verb_seconds(json_t *body, const char *member, const char *flag, const char *text, const char *most,
                 struct err *err)
{
    uint64_t ms, most_ms = 0;

    (void)str_parse_duration_ms(str_of(most), INT64_MAX, &most_ms);
    if (text == NULL)
        return 0;
    if (!str_parse_duration_ms(str_of(text), most_ms, &ms) || ms < 1000 || ms % 1000 != 0) {
        err_set(err, ERR_USAGE, "cli.flag-value", "%s %s is not a whole number of seconds", flag, text);
        return err_hint(err, "such as 90s or 5m; %s takes at most %s", flag, most);
    }
    json_object_set_new(body, member, json_integer((json_int_t)(ms / 1000)));
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
api_verb_delete(const struct api_verb *v, const struct verb_words *w, const char *folder, json_t *failed)
{
    json_int_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct err err = ERR_INIT;
        if (delete_one(v, folder, w->v[i], &err) == 0) {
            n++;
            continue;
        }
        cli_fail(&err, false);
        json_array_append_new(failed, json_pack("{s:s, s:s, s:s}", "name", w->v[i], "code", err.code, "message",
                                                err.msg));
        if (err_is(&err, "api.down"))
            break;
    }
    return n;
}

int
api_verb_remove(const struct api_verb *v, const struct verb_words *w, const char *folder)
{
    json_t *failed = json_array();
    json_int_t n = api_verb_delete(v, w, folder, failed);
    int code = json_array_size(failed) > 0 ? EXIT_REFUSED : 0;

    if (v->json)
        (void)cli_json(json_pack("{s:i, s:I, s:O}", "version", 1, "removed", n, "failed", failed), JSON_COMPACT);
    json_decref(failed);
    return code;
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
