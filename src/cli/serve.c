/* cli/serve.c: cloche serve and cloche config */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "launcher/serve.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/words.h"
#include "run/policy_here.h"

static int
usage(void)
{
    printf("usage: cloche serve [flags]\n\n"
           "Run sandboxes for other programs over HTTP: create them, run commands in them, move files.\n"
           "SIGTERM ends it and all its sandboxes. SIGHUP reads the configuration again.\n\n"
           "  %-32s %s\n", "--config FILE", "YAML with these flags as keys, without the dashes");
    for (size_t i = 0; i < serve_n_keys; i++) {
        char flag[64];
        snprintf(flag, sizeof(flag), "--%s %s", serve_keys[i].name, serve_keys[i].value);
        printf("  %-32s %s\n", flag, serve_keys[i].help);
    }
    printf("  %-32s %s\n\ndocs/daemon.md, docs/openapi.yaml\n", "--json", "print the listening addresses as JSON");
    return 0;
}

/* As `cloche serve` with these flags would have it. NULL with @err. */
static struct serve_plan *
load(int argc, char **argv, struct err *err)
{
    char cwd[PATH_MAX];

    if (getcwd(cwd, sizeof(cwd)) == NULL) {
        err_sys(err, errno, "serve.path", "the working directory");
        return NULL;
    }
    return serve_plan_load(argc, argv, cwd, err);
}

int
cmd_serve(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct serve_plan *plan;
    bool json = cli_has(argc, argv, "--json");

    if (cli_wants_help(argc, argv))
        return usage();
    plan = load(argc, argv, &err);
    if (plan == NULL || serve_signer_check(plan, &err) < 0 || launcher_run(plan, argc, argv, json, &err) < 0)
        return cli_fail(&err, json);
    return 0;
}

/* --- cloche config ------------------------------------------------------------------------------------------------ */

static int
config_usage(void)
{
    printf("usage: cloche config check [--json] FILE\n"
           "       cloche config show [--json] [flags of cloche serve]\n\n"
           "  check      exit 0 if cloche serve accepts FILE; else 125, with the line and the fix\n"
           "  show       the resulting configuration of cloche serve\n"
           "  %-10s one JSON object\n", "--json");
    return 0;
}

/* A sandbox by the settings in the file and nothing else. */
static bool
refused_here(const struct serve_plan *plan, struct err *why)
{
    cleanup_policy struct policy p = { .srt = false };
    struct policy_host host;

    return cli_host(&host, NULL) == 0 &&
           serve_policy(&p, plan->config, plan->security, plan->settings, &host, NULL) == 0 &&
           policy_validate(&p, NULL) == 0 && policy_refused_here(&p, why);
}

static int
check(int argc, char **argv)
{
    char flag[] = "--config";
    char *words[] = { argv[0], flag, NULL, NULL };
    struct err err = ERR_INIT;
    bool json = cli_has(argc, argv, "--json");
    struct serve_plan *plan;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            continue;
        if (words[2] != NULL || argv[i][0] == '-') {
            err_set(&err, ERR_USAGE, "cli.usage", "config check takes one FILE and --json, not \"%s\"", argv[i]);
            return cli_fail(&err, json);
        }
        words[2] = argv[i];
    }
    if (words[2] == NULL) {
        err_set(&err, ERR_USAGE, "cli.usage", "config check needs a FILE");
        err_hint(&err, "cloche config check /etc/cloche/serve.yaml");
        return cli_fail(&err, json);
    }
    plan = load(3, words, &err);
    if (plan == NULL || serve_gate_check(plan, json, &err) < 0 || serve_signer_check(plan, &err) < 0)
        return cli_fail(&err, json);
    if (refused_here(plan, &err))
        policy_warn_here(words[2], &err);
    if (json)
        printf("{\"ok\": true}\n");
    else
        printf("%s: good\n", words[2]);
    serve_plan_free(plan);
    return 0;
}

/* Paths may hold bytes that are no UTF-8. */
static json_t *
json_value(const char *text)
{
    json_t *out = json_string(text);

    return out != NULL ? out : json_null();
}

static void
show_json(const struct serve_plan *plan)
{
    json_t *top = json_object();
    char room[SERVE_VALUE_MAX];

    for (size_t k = 0; k < serve_n_keys; k++) {
        const char *text = serve_value(plan, &serve_keys[k], 0, room);
        json_t *list = serve_keys[k].list ? json_array() : NULL;
        for (size_t i = 0; list != NULL && text != NULL; text = serve_value(plan, &serve_keys[k], ++i, room))
            json_array_append_new(list, json_value(text));
        json_object_set_new(top, serve_keys[k].name,
                            list != NULL ? list : text != NULL ? json_value(text) : json_null());
    }
    (void)cli_json(top, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
}

static int
show(int argc, char **argv)
{
    struct err err = ERR_INIT;
    bool json = cli_has(argc, argv, "--json");
    struct serve_plan *plan = load(argc, argv, &err);
    char room[SERVE_VALUE_MAX];
    int width = 0;

    if (plan == NULL)
        return cli_fail(&err, json);
    for (size_t k = 0; k < serve_n_keys; k++)
        width = (int)strlen(serve_keys[k].name) > width ? (int)strlen(serve_keys[k].name) : width;
    for (size_t k = 0; k < serve_n_keys && !json; k++) {
        const char *text = serve_value(plan, &serve_keys[k], 0, room);
        printf("%-*s %s\n", width, serve_keys[k].name, text != NULL ? text : "-");
        for (size_t i = 1; text != NULL; i++) {
            text = serve_value(plan, &serve_keys[k], i, room);
            if (text != NULL)
                printf("%-*s %s\n", width, "", text);
        }
    }
    if (json)
        show_json(plan);
    serve_plan_free(plan);
    return 0;
}

int
cmd_config(int argc, char **argv)
{
    static const char *const words[] = { "check", "show", NULL };
    struct err err = ERR_INIT;

    if (argc < 2 || cli_wants_help(argc, argv))
        return config_usage(), argc < 2 ? EXIT_REFUSED : 0;
    if (strcmp(argv[1], "check") == 0)
        return check(argc - 1, argv + 1);
    if (strcmp(argv[1], "show") == 0)
        return show(argc - 1, argv + 1);
    cli_misused("cli.usage", "config", argv[1], words, &err);
    return cli_fail(&err, cli_has(argc, argv, "--json"));
}
