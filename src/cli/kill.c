/* cli/kill.c: `cloche kill`: end sandboxes of cloche serve */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/api_client.h"
#include "cli/cli.h"

#define WORDS_MAX 64

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

struct options {
    struct api api;
    bool all, json;
    const char *words[WORDS_MAX];
    size_t n_words;
};

/* How many words, -1 with @err. */
static int
flag(struct options *o, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int r;

    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&o->api, f.name, f.value, err)) < 0)
        return -1;
    if (r > 0)
        return cli_flag_words(&f, err);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", argv[i]);
    return err_hint(err, "`cloche kill --help` lists the flags");
}

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    int n;

    for (int i = 1; i < argc; i += n) {
        n = 1;
        if (strcmp(argv[i], "--all") == 0)
            o->all = true;
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (argv[i][0] == '-' && (n = flag(o, argc, argv, i, err)) < 0)
            return -1;
        else if (argv[i][0] != '-' && o->n_words == WORDS_MAX)
            return err_set(err, ERR_USAGE, "cli.kill", "more than %d sandboxes at once", WORDS_MAX);
        else if (argv[i][0] != '-')
            o->words[o->n_words++] = argv[i];
    }
    if (o->all == (o->n_words == 0))
        return 0;
    err_set(err, ERR_USAGE, "cli.kill", o->all ? "either --all or some sandboxes" : "which sandbox?");
    return err_hint(err, "cloche kill --all, or cloche kill NAME");
}

static int
end_one(const struct options *o, const char *which, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    buf_puts(&path, "/v1/sandboxes/");
    if (api_escape(&path, which) < 0)
        return err_set(err, ERR_USAGE, "cli.kill", "that is no sandbox's name");
    return api_ask(&o->api, "DELETE", (const char *)path.p, NULL, NULL, err);
}

static int
end_all(const struct options *o, json_int_t *n, struct err *err)
{
    json_t *said;

    if (api_ask(&o->api, "POST", "/v1/kill", NULL, &said, err) < 0)
        return -1;
    *n = json_integer_value(json_object_get(said, "stopped"));
    json_decref(said);
    return 0;
}

int
cmd_kill(int argc, char **argv)
{
    struct options o = { .all = false };
    struct err err = ERR_INIT;
    json_int_t n = 0;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_init(&o.api, &err) < 0 || take_words(&o, argc, argv, &err) < 0)
        return cli_fail(&err, o.json);
    r = o.all ? end_all(&o, &n, &err) : 0;
    for (size_t i = 0; i < o.n_words && r == 0; i++, n++)
        r = end_one(&o, o.words[i], &err);
    if (r < 0)
        return cli_fail(&err, o.json);
    if (o.json)
        printf("{\"ended\":%lld}\n", (long long)n);
    else
        fprintf(stderr, "cloche: %lld %s ended\n", (long long)n, n == 1 ? "sandbox" : "sandboxes");
    return 0;
}
