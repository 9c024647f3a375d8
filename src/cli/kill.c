/* cli/kill.c: `cloche kill`: end sandboxes of cloche serve */
#include <stdio.h>

#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"

static int
usage(void)
{
    printf("usage: cloche kill [--json] [--socket PATH] --all\n"
           "       cloche kill [--json] [--socket PATH] SANDBOX...\n\n"
           "End sandboxes of cloche serve at once, with all that runs in them and their network, by id or name.\n"
           "When the daemon does not answer: kill -USR1 of cloche serve ends all of them.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n",
           "--all", "every one", "--socket PATH", API_FLAG_HELP, "--json", "one JSON object", "--help",
           "print the flags");
    return 0;
}

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

int
cmd_kill(int argc, char **argv)
{
    struct api_verb v;
    bool all = false;
    const struct api_verb_flag flags[] = { { "--all", .on = &all }, { .name = NULL } };
    struct err err = ERR_INIT;
    json_int_t n = 0;
    json_t *failed;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    r = api_verb_words(&v, API_VERB_WORDS, flags, argc, argv, &err);
    if (r == 0 && all == (v.n_words > 0)) {
        err_set(&err, ERR_USAGE, "cli.kill", all ? "either --all or some sandboxes" : "which sandbox?");
        r = err_hint(&err, "cloche kill --all, or cloche kill NAME");
    }
    if (r == 0 && all)
        r = end_all(&v, &n, &err);
    if (r < 0)
        return cli_fail(&err, v.json);
    failed = json_array();
    if (!all)
        n = api_verb_delete(&v, 0, "/v1/sandboxes/", failed);
    r = json_array_size(failed) > 0 ? EXIT_REFUSED : 0;
    if (v.json)
        (void)cli_json(json_pack("{s:i, s:I, s:O}", "version", 1, "ended", n, "failed", failed), JSON_COMPACT);
    else if (n > 0 || all)
        fprintf(stderr, "cloche: %lld %s ended\n", (long long)n, n == 1 ? "sandbox" : "sandboxes");
    json_decref(failed);
    return r;
}
