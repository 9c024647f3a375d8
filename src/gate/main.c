/* gate/main.c: cloche-gate: `cloche gate`, in a program of its own because cloche has no regular expressions */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gate/gate.h"

#define EXIT_REFUSED 125
#define PARAMS_MAX   (1024 * 1024)

struct options {
    const char *verb, *file, *tool, *params;
    bool json;
};

static int
usage(void)
{
    printf("usage: cloche gate check [--json] FILE\n"
           "       cloche gate why --tool TOOL [--params JSON] [--gate FILE] [--json]\n\n"
           "Shows which operations of agents need approval: checks a file of rules, or judges one operation.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n\n"
           "docs/gate.md describes the built-in rules and the format of a file.\n",
           "--tool TOOL", "such as code_execute", "--params JSON", "its parameters, an object; - reads standard input",
           "--gate FILE", "file of rules, or the configuration of cloche serve (built-in rules)",
           "--json", "one JSON object");
    return 0;
}

/* Control bytes of what people wrote do not reach their terminal. */
static void
print_safe(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

/* As cloche itself says it (cli_fail). */
static void
fail_json(const struct err *err)
{
    json_t *j = json_pack("{s:i, s:s, s:{s:s, s:s, s:s}, s:i}", "version", 1, "reason", "refused", "error", "code",
                          err->code, "message", err->msg, "hint", err->hint, "exit_code", EXIT_REFUSED);

    if (j == NULL)      /* a message that is no UTF-8 */
        j = json_pack("{s:i, s:s, s:{s:s}, s:i}", "version", 1, "reason", "refused", "error", "code", err->code,
                      "exit_code", EXIT_REFUSED);
    json_dumpf(j, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(j);
}

static int
fail(const struct err *err, bool json)
{
    if (json)
        fail_json(err);
    fputs("cloche: ", stderr);
    print_safe(stderr, err->msg);
    fputs("\n        ", stderr);
    print_safe(stderr, err->hint);
    fprintf(stderr, "%s[%s]\n", err->hint[0] != '\0' ? "  " : "", err->code);
    return EXIT_REFUSED;
}

static struct gate *
load(const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(GATE_FILE_MAX);

    if (path == NULL)
        return gate_new("built-in", NULL, 0, err);
    if (io_read_file(AT_FDCWD, path, &text) < 0) {
        err_sys(err, errno, "gate.read", "%s", path);
        return NULL;
    }
    return gate_new(path, text.p != NULL ? text.p : (const uint8_t *)"", text.n, err);
}

static int
check(const struct options *o, struct err *err)
{
    struct gate *g = load(o->file, err);

    if (g == NULL)
        return -1;
    if (o->json)
        printf("{\"version\": 1, \"ok\": true, \"off\": %s, \"rules\": %zu}\n", gate_is_off(g) ? "true" : "false",
               gate_n_rules(g));
    else if (gate_is_off(g))
        printf("well-formed: the gate is off, nobody is asked about anything\n");
    else
        printf("well-formed: %zu rules; approved without asking: %s; judged: what %s for\n", gate_n_rules(g),
               gate_levels(g), gate_for_all(g) ? "everybody asks" : "agents ask");
    gate_free(g);
    return 0;
}

static json_t *
params_of(const char *text, struct err *err)
{
    cleanup_buf struct buf in = BUF_INIT(PARAMS_MAX);
    json_error_t why;
    json_t *params;

    if (text == NULL)
        return json_object();
    if (strcmp(text, "-") != 0)
        params = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    else if (io_read_all(STDIN_FILENO, &in) < 0 || buf_nul(&in) < 0) {
        err_sys(err, errno, "gate.params", "standard input");
        return NULL;
    } else {
        params = json_loadb((const char *)in.p, in.n, JSON_REJECT_DUPLICATES, &why);
    }
    if (params != NULL && json_is_object(params))
        return params;
    err_set(err, ERR_USAGE, "gate.params", "--params is no JSON object%s%s", params == NULL ? ": " : "",
            params == NULL ? why.text : "");
    json_decref(params);
    return NULL;
}

static void
print_verdict(const struct options *o, const struct gate_verdict *v)
{
    json_t *j;
    char *text;

    if (!o->json) {
        printf("%s: %s, rule %s%s%s%s", v->ask ? "asked" : "allowed", gate_risk_name(v->risk),
               v->rule[0] != '\0' ? v->rule : "(none is about this tool)", v->description[0] != '\0' ? " (" : "",
               v->description, v->description[0] != '\0' ? ")" : "");
        if (v->ask)
            printf("; denied after %u s", v->timeout_s);
        printf("%s\n", v->unsure ? "; a rule could not be decided, the stricter verdict stands" : "");
        return;
    }
    j = json_pack("{s:i, s:s, s:s, s:o, s:s, s:i, s:b}", "version", 1, "verdict", v->ask ? "ask" : "allow", "risk",
                  gate_risk_name(v->risk), "rule", v->rule[0] != '\0' ? json_string(v->rule) : json_null(),
                  "description", v->description, "timeout", (int)v->timeout_s, "unsure", v->unsure);
    text = json_dumps(j, JSON_COMPACT);
    puts(text != NULL ? text : "{}");
    free(text);
    json_decref(j);
}

static int
why(const struct options *o, struct err *err)
{
    struct gate_verdict v;
    json_t *params;
    struct gate *g;

    if (!gate_tool_well(o->tool))
        return err_set(err, ERR_USAGE, "gate.tool", "a tool's name has at most 63 letters, digits and ._:/-");
    params = params_of(o->params, err);
    g = params != NULL ? load(o->file, err) : NULL;
    if (g != NULL) {
        if (!gate_settle(o->tool, params, NULL))
            err_set(err, ERR_SYSTEM, "memory", "out of memory");
        gate_judge(g, o->tool, params, NULL, GATE_FUEL, &v);
        print_verdict(o, &v);
    }
    json_decref(params);
    gate_free(g);
    return g != NULL && err->kind == ERR_NONE ? 0 : -1;
}

static int
misused(const struct options *o, struct err *err)
{
    if (o->verb == NULL)
        err_set(err, ERR_USAGE, "cli.gate.verb", "`cloche gate` wants one of check, why");
    else if (strcmp(o->verb, "check") == 0)
        err_set(err, ERR_USAGE, "cli.gate.verb", o->file == NULL ? "check: which file?" : "check takes a FILE alone");
    else if (strcmp(o->verb, "why") == 0)
        err_set(err, ERR_USAGE, "cli.gate.verb", "why: about which tool? --tool NAME");
    else
        err_set(err, ERR_USAGE, "cli.gate.verb", "\"%.64s\" is not one of check, why", o->verb);
    return err_hint(err, "`cloche gate --help` shows how it is called");
}

static int
read_words(struct options *o, int argc, char **argv, struct err *err)
{
    static const char *const names[] = { "--tool", "--params", "--gate" };
    const char **values[] = { &o->tool, &o->params, &o->file };

    for (int i = 1; i < argc; i++) {
        const char *eq = strchr(argv[i], '=');
        size_t n = eq != NULL ? (size_t)(eq - argv[i]) : strlen(argv[i]), k;
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
            continue;
        }
        for (k = 0; k < 3 && (strncmp(argv[i], names[k], n) != 0 || names[k][n] != '\0'); k++)
            ;
        if (k < 3 && (eq != NULL || i + 1 < argc))
            *values[k] = eq != NULL ? eq + 1 : argv[++i];
        else if (k < 3)
            return err_set(err, ERR_USAGE, "cli.flag-value", "%s needs a value", names[k]);
        else if (argv[i][0] != '-' && o->verb == NULL)
            o->verb = argv[i];
        else if (argv[i][0] != '-' && o->file == NULL && strcmp(o->verb, "check") == 0)
            o->file = argv[i];
        else if (argv[i][0] != '-' && strcmp(o->verb, "check") != 0 && strcmp(o->verb, "why") != 0)
            return misused(o, err);
        else if (argv[i][0] != '-')
            return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", argv[i]);
        else {
            err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", argv[i]);
            return err_hint(err, "`cloche gate --help` lists the flags");
        }
    }
    return 0;
}

int
main(int argc, char **argv)
{
    struct options o = { .verb = NULL };
    struct err err = ERR_INIT;
    int r;

    /* argv[1] is the word "gate" */
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return usage();
        o.json |= strcmp(argv[i], "--json") == 0;       /* a refusal is JSON as well */
    }
    if (argc < 2 || read_words(&o, argc - 1, argv + 1, &err) < 0)
        return err.kind != ERR_NONE ? fail(&err, o.json) : usage();
    if (o.verb != NULL && strcmp(o.verb, "check") == 0 && o.file != NULL && o.tool == NULL && o.params == NULL)
        r = check(&o, &err);
    else if (o.verb != NULL && strcmp(o.verb, "why") == 0 && o.tool != NULL)
        r = why(&o, &err);
    else
        r = misused(&o, &err);
    return r < 0 ? fail(&err, o.json) : 0;
}
