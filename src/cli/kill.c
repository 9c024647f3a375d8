/* cli/kill.c: `cloche kill`: end sandboxes of cloche serve */
#include <stdio.h>

#include "base/array.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"

static int
end_all(const struct api_verb *v, json_int_t *n, struct err *err)
{
    json_t *said;

    if (api_ask(&v->api, "POST", "/v1/kill", NULL, &said, err) < 0)
        return -1;
    *n = json_integer_value(json_object_get(said, "stopped"));
    json_decref(said);
    return 0;
}

struct options {
    struct api_verb v;
    bool all;
};

static int
end(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    json_int_t n = 0;
    json_t *failed;
    int code;

    if (o->all == (w->n > 0)) {
        err_set(err, ERR_USAGE, "cli.kill", o->all ? "either --all or some sandboxes" : "which sandbox?");
        return err_hint(err, "cloche kill --all, or cloche kill NAME");
    }
    if (o->all && end_all(&o->v, &n, err) < 0)
        return -1;
    failed = json_array();
    if (!o->all)
        n = api_verb_delete(&o->v, w, "/v1/sandboxes/", failed);
    code = json_array_size(failed) > 0 ? EXIT_REFUSED : 0;
    if (o->v.json)
        (void)cli_json(json_pack("{s:i, s:I, s:O}", "version", 1, "ended", n, "failed", failed), JSON_COMPACT);
    else if (n > 0 || o->all)
        fprintf(stderr, "cloche: %lld %s ended\n", (long long)n, n == 1 ? "sandbox" : "sandboxes");
    json_decref(failed);
    return code;
}

int
cmd_kill(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--json] [--socket PATH] --all", .run = NULL },
        { NULL, "[--json] [--socket PATH] SANDBOX...", 0, VERB_ANY, .run = end },
    };
    static const struct verb_flag flags[] = {
        { "--all", 0, NULL, "all sandboxes", FLAG_ON(struct options, all) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb kill = {
        .name = "kill", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "End sandboxes of cloche serve at once, by id or name, with everything that runs in them and their "
                 "network.\n"
                 "If the daemon does not answer, `kill -USR1` of cloche serve ends all of them.",
    };
    struct options o = { .all = false };

    return verb_main(&kill, &o, argc, argv);
}
