/* cli/policy.c: `cloche policy check FILE` and `cloche policy show [flags]`
 *
 * check: is this settings file one that a run would take? show: what would a run with these flags be held to, and
 * which file, line, flag or mode said each value.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "cli/cli.h"
#include "policy/describe.h"
#include "program/caller.h"
#include "program/policy_json.h"
#include "program/say.h"
#include "program/verb.h"
#include "run/args.h"
#include "run/policy_here.h"

struct options {
    bool json, all, help;
    const char *verb;
};

static void
policy_help(FILE *to)
{
    fprintf(to, "\npolicy flags:\n");
    cli_policy_flags(to);
}

static const struct verb_form policy_forms[] = {
    { NULL, "check [--json] FILE", .run = NULL },
    { NULL, "show [--json] [--all] [--for run|code|shell|srt] [policy flags]", .run = NULL },
};
static const struct verb_flag policy_flags[] = {
    { "--json", 0, NULL, "one JSON object", FLAG_ON(struct options, json) },
    { "--all", 0, NULL, "also print the entries of the built-in lists", FLAG_ON(struct options, all) },
    { "--for", 0, "WHICH", "whose defaults to start from: run, code, shell or srt (run)",
      FLAG_TEXT(struct options, verb) },
    { "--help", 'h', NULL, NULL, FLAG_ON(struct options, help) },
};
static const struct verb policy_verb = {
    .name = "policy", VERB_FORMS(policy_forms), VERB_FLAGS(policy_flags), .more = policy_help,
    .about = "check: exit 0 if a run would accept FILE; else 125, with the line and the fix.\n"
             "show: the effective policy, each value with its origin.",
};

static int
help(FILE *to, int code)
{
    verb_help(&policy_verb, to);
    return code;
}

struct printer {
    bool all;
    const char *folded;     /* a built-in list whose entries are counted, not printed */
    size_t n_folded;
    const struct origin *folded_from;
};

static void
print_line(const char *key, const char *value, const struct origin *from)
{
    char origin[POLICY_ORIGIN_TEXT_MAX];

    printf("%-30s %-36s %s\n", key, value, policy_origin_text(from, origin));
}

static void
print_folded(struct printer *printer)
{
    char count[64];

    if (printer->folded == NULL)
        return;
    snprintf(count, sizeof(count), "%zu entries", printer->n_folded);
    print_line(printer->folded, count, printer->folded_from);
    printer->folded = NULL;
}

static int
print_row(void *ctx, const struct policy_row *row)
{
    struct printer *printer = ctx;
    char number[32];

    if (printer->folded != NULL && strcmp(printer->folded, row->key) != 0)
        print_folded(printer);
    if (row->type == ROW_ENTRY && row->from->kind == ORIGIN_BUILTIN && !printer->all) {
        if (printer->folded == NULL)
            printer->n_folded = 0;
        printer->folded = row->key;
        printer->folded_from = row->from;
        printer->n_folded++;
        return 0;
    }
    if (row->type == ROW_NO_ENTRIES)
        return 0;       /* an empty list says nothing to a reader; --json has it */
    snprintf(number, sizeof(number), "%" PRIu64, row->number);
    if (row->scope != NULL)
        print_line(row->key, row->written, row->from);
    else
        print_line(row->key, row->text != NULL ? row->text : row->type == ROW_NUMBER ? number : "-", row->from);
    return 0;
}

static int
check(void *options, const struct verb_words *w, struct err *why)
{
    bool json = ((struct options *)options)->json, refused;
    const char *file = w->v[0];
    struct policy_host host;
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    int r;

    (void)why;
    if (cli_host(&host, &err) < 0 || policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err) < 0)
        return cli_fail(&err, json);
    r = policy_load_file(&p, file, POLICY_AUTO, &host, &err);
    if (r == 0)
        r = policy_validate(&p, &err);
    if (r < 0)
        return cli_fail(&err, json);
    refused = policy_refused_here(&p, &err);
    if (refused)
        policy_warn_here(file, &err);
    if (json)
        (void)cli_json(json_pack("{s:i, s:b, s:o, s:s, s:s, s:s?}", "version", 1, "valid", 1, "file",
                                 policy_json_text(file), "format", p.srt ? "srt" : "cloche", "mode",
                                 policy_mode_name(p.mode.v), "refused_here", refused ? err.code : NULL),
                       JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    else
        printf("%s: good (%s settings, mode %s)\n", file, p.srt ? "SRT" : "cloche", policy_mode_name(p.mode.v));
    return 0;
}

static int
check_main(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--json] FILE", 1, 1, "policy check needs a FILE", "cloche policy check settings.yaml", check },
    };
    const struct verb verb = {
        .name = "policy check", VERB_FORMS(forms), .flags = policy_flags, .n_flags = 1, .misused = "cli.usage",
        .about = "Would a run accept FILE? Exit 0 if so; else 125, with the line and the fix.",
    };
    struct options o = { .json = false };

    return verb_main(&verb, &o, argc, argv);
}

/* The value of --for decides which preset everything else is laid on, so it is looked up first. */
static int
verb_of(int argc, char **argv, enum policy_verb *verb, struct err *err)
{
    static const char *const names[] = {
        [VERB_RUN] = "run", [VERB_CODE] = "code", [VERB_SHELL] = "shell", [VERB_SRT] = "srt" };
    const char *value = NULL;

    *verb = VERB_RUN;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--for") == 0)
            value = i + 1 < argc ? argv[i + 1] : "";
        else if (strncmp(argv[i], "--for=", 6) == 0)
            value = argv[i] + 6;
    }
    for (size_t i = 0; value != NULL && i < ARRAY_LEN(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            *verb = (enum policy_verb)i;
            return 0;
        }
    }
    if (value == NULL)
        return 0;
    return err_set(err, ERR_USAGE, "cli.usage", "--for takes run, code, shell or srt, not \"%s\"", value);
}

static int
show(int argc, char **argv)
{
    struct options o = { .json = false };
    struct printer printer = { 0 };
    struct policy_host host;
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    enum policy_verb verb;
    int end;

    for (int i = 1; i < argc; i++)      /* so that a refusal is JSON as well */
        o.json |= strcmp(argv[i], "--json") == 0;
    if (cli_host(&host, &err) < 0 || verb_of(argc, argv, &verb, &err) < 0)
        return cli_fail(&err, o.json);
    end = cli_policy_args(&p, verb, argc, argv, &host, &policy_verb, &o, &err);
    if (o.help)
        return help(stdout, 0);
    if (end >= 0 && end < argc)
        end = err_set(&err, ERR_USAGE, "cli.usage", "policy show takes flags only, not \"%s\"", argv[end]);
    if (end < 0)
        return cli_fail(&err, o.json);
    if (o.json) {
        char hex[SHA256_TEXT + 1];
        cli_policy_digest(&p, hex);
        json_t *root = json_pack("{s:i, s:s}", "version", 1, "digest", hex);
        policy_json(&p, true, root);
        (void)cli_json(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    } else {
        printer.all = o.all;
        policy_describe(&p, print_row, &printer);
        print_folded(&printer);
    }
    return 0;
}

int
cmd_policy(int argc, char **argv)
{
    struct err err = ERR_INIT;

    if (argc < 2)
        return help(stderr, EXIT_REFUSED);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(stdout, 0);
    if (strcmp(argv[1], "check") == 0)
        return check_main(argc - 1, argv + 1);
    if (strcmp(argv[1], "show") == 0)
        return show(argc - 1, argv + 1);
    err_set(&err, ERR_USAGE, "cli.usage", "\"%s\" is neither check nor show", argv[1]);
    err_hint(&err, "cloche policy --help");
    return cli_fail(&err, false);
}
