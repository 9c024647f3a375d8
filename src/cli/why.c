/* cli/why.c: `cloche why`: would this be allowed, which rule says so, and what would change it */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "egress/why_host.h"
#include "engine/engine.h"
#include "engine/rules.h"
#include "policy/why.h"
#include "program/caller.h"
#include "program/choice_json.h"
#include "program/policy_json.h"
#include "program/say.h"
#include "program/verb.h"
#include "run/args.h"
#include "run/planted.h"
#include "wall/addresses.h"

struct options {
    const char *path, *host, *op, *port, *call;
    struct why_request request;
    bool json, help, planted, engines;
};

static void
policy_help(FILE *to)
{
    fprintf(to, "\npolicy flags: cloche policy --help\n");
}

static const struct verb_form why_forms[] = {
    { NULL, "--path PATH [--op read|write|exec] [--json] [policy flags]", .run = NULL },
    { NULL, "--host HOST[:PORT] [--method METHOD] [--url-path PATH] [--tool NAME] [--json]\n"
            "                  [policy flags]", .run = NULL },
    { NULL, "--port PORT [--json] [policy flags]", .run = NULL },
    { NULL, "--syscall NAME [--json] [policy flags]", .run = NULL },
    { NULL, "--engines [--json] [policy flags]", .run = NULL },
    { NULL, "--planted [--json] [DIR]", .run = NULL },
};
static const struct verb_flag why_flags[] = {
    { "--path", 0, "PATH", "a file or directory; -: read paths from standard input, one a line",
      FLAG_TEXT(struct options, path) },
    { "--op", 0, "OP", "read (default), write or exec", FLAG_TEXT(struct options, op) },
    { "--host", 0, "HOST", "a host name or address; without a port 443 is asked about",
      FLAG_TEXT(struct options, host) },
    { "--method", 0, "METHOD", "method of a request to that host; GET with --url-path alone",
      FLAG_TEXT(struct options, request.method) },
    { "--url-path", 0, "PATH", "path of that request; / with --method alone", FLAG_TEXT(struct options, request.path) },
    { "--tool", 0, "NAME", "tool of an MCP server that the request calls; POST without --method",
      FLAG_TEXT(struct options, request.tool) },
    { "--port", 0, "PORT", "whether the host reaches what listens on that port inside",
      FLAG_TEXT(struct options, port) },
    { "--syscall", 0, "NAME", "whether commands may make that system call", FLAG_TEXT(struct options, call) },
    { "--engines", 0, NULL, "which engine would make the sandbox, and why not the others",
      FLAG_ON(struct options, engines) },
    { "--planted", 0, NULL, "search for files that other programs run", FLAG_ON(struct options, planted) },
    { "--json", 0, NULL, "one JSON object", FLAG_ON(struct options, json) },
    { "--help", 'h', NULL, NULL, FLAG_ON(struct options, help) },
};
static const struct verb why_verb = {
    .name = "why", VERB_FORMS(why_forms), VERB_FLAGS(why_flags), .more = policy_help,
    .about = "Says what a run with the same policy flags would allow, without starting one. PATH may be a path of "
             "the\n"
             "host or of the sandbox. Exit 0 when allowed, 1 when denied, 125 on error.\n"
             "With --planted: which files in the folder DIR (default: the current one) make git, direnv, an editor "
             "or\n"
             "another tool run something when somebody works there. Exit 0 when there are none.",
};

/* What the question is about. */
static const char *
asked(const struct options *o)
{
    return o->path != NULL ? o->path : o->host != NULL ? o->host : o->call != NULL ? o->call : o->port;
}

static const char *
what(const struct options *o)
{
    return o->path != NULL ? "path" : o->host != NULL ? "host" : o->call != NULL ? "syscall" : "port";
}

static void
print_json(const struct options *o, const char *op, const struct why *why)
{
    static const char *const kinds[] = {
        [ORIGIN_DEFAULT] = "default", [ORIGIN_MODE] = "mode", [ORIGIN_FILE] = "file", [ORIGIN_FLAG] = "flag",
        [ORIGIN_BUILTIN] = "builtin" };
    const char *verdict = why->allowed ? "allowed" : "denied";
    json_t *root = json_pack("{s:i, s:s, s:s, s:s}", "version", 1, "status", verdict, "verdict", verdict, "reason",
                             why->reason);
    json_t *source = json_object();

    json_object_set_new(root, what(o), policy_json_text(asked(o)));
    if (o->path != NULL) {
        json_object_set_new(root, "op", policy_json_text(op));
        json_object_set_new(root, "inside", why->inside[0] != '\0' ? policy_json_text(why->inside) : json_null());
    }
    if (o->request.method != NULL)
        json_object_set_new(root, "method", policy_json_text(o->request.method));
    if (o->request.path != NULL)
        json_object_set_new(root, "url_path", policy_json_text(o->request.path));
    if (o->request.tool != NULL)
        json_object_set_new(root, "tool", policy_json_text(o->request.tool));
    json_object_set_new(root, "text", policy_json_text(why->text));
    json_object_set_new(root, "rule", why->rule[0] != '\0' ? policy_json_text(why->rule) : json_null());
    json_object_set_new(source, "kind", policy_json_text(kinds[why->source.kind]));
    json_object_set_new(source, "name", policy_json_text(why->source.name));
    json_object_set_new(source, "line", why->source.line > 0 ? json_integer(why->source.line) : json_null());
    json_object_set_new(root, "source", source);
    json_object_set_new(root, "suggested_flag", why->flag[0] != '\0' ? policy_json_text(why->flag) : json_null());
    (void)cli_json(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
}

static void
print_text(const struct options *o, const char *op, const struct why *why)
{
    bool colour = cli_colour(STDOUT_FILENO);
    char origin[POLICY_ORIGIN_TEXT_MAX];
    const char *tint = !colour ? "" : why->allowed ? "\033[1;32m" : "\033[1;31m";

    printf("%s%s%s: %s%s%s\n", tint, why->allowed ? "allowed" : "denied", colour ? "\033[0m" : "",
           o->path != NULL ? op : o->host != NULL ? "" : what(o), o->host == NULL ? " " : "", asked(o));
    printf("  because   %s [%s]\n", why->text, why->reason);
    if (why->inside[0] != '\0' && o->path != NULL && strcmp(why->inside, o->path) != 0)
        printf("  inside    %s\n", why->inside);
    if (why->rule[0] != '\0')
        printf("  rule      %s\n", why->rule);
    printf("  from      %s\n", policy_origin_text(&why->source, origin));
    if (why->flag[0] != '\0')
        printf("  to change %s\n", why->flag);
    else if (!why->allowed)
        printf("  to change no flag does; %s\n",
               why->source.kind == ORIGIN_FILE || why->source.kind == ORIGIN_FLAG ? "take the rule out"
                                                                                  : "it is built in");
}

static int
check_question(const struct options *o, enum why_op *op, struct err *err)
{
    if ((o->path != NULL) + (o->host != NULL) + (o->port != NULL) + (o->call != NULL) + o->engines != 1 ||
        (o->path == NULL && o->op != NULL)) {
        err_set(err, ERR_USAGE, "cli.usage",
                "why needs one of --path, --host, --port, --syscall and --engines; --op goes with --path");
        return err_hint(err, "cloche why --path ~/.ssh --op read");
    }
    if (o->host == NULL && (o->request.method != NULL || o->request.path != NULL || o->request.tool != NULL)) {
        err_set(err, ERR_USAGE, "cli.usage", "--method, --url-path and --tool go with --host");
        return err_hint(err, "cloche why --host api.example.org --method POST --url-path /v1/items");
    }
    *op = WHY_READ;
    if (o->op != NULL && !why_op_parse(o->op, op))
        return err_set(err, ERR_USAGE, "cli.usage", "--op takes read, write or exec, not \"%s\"", o->op);
    return 0;
}

static int
why_port(const struct policy *p, const struct options *o, struct why *out, struct err *err)
{
    uint64_t port;

    if (!str_parse_u64(str_of(o->port), UINT16_MAX, &port) || port == 0)
        return err_set(err, ERR_USAGE, "cli.flag-value", "--port takes a number from 1 to 65535, not \"%s\"", o->port);
    policy_why_port(p, (uint16_t)port, out);
    return 0;
}

static bool
exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

static int
why_host(const struct policy *p, const struct options *o, struct why *out, struct err *err)
{
    struct ip own[ADDRESSES_MAX];
    size_t n;

    return interface_addresses(own, &n, err) < 0 ? -1 : egress_why_host(p, own, n, o->host, &o->request, out, err);
}

/* What is asked, by the rules as a run would take them now. @rules is NULL in mode off, which has none. */
static int
why_path(const struct policy *p, const struct engine_rules *rules, const char *asked, enum why_op op, struct why *out,
         struct err *err)
{
    struct place place;

    if (rules == NULL || !engine_rules_place(rules, asked, &place))
        return policy_why_path(p, asked, op, exists, out, err);
    policy_why_place(engine_rules_policy(rules), &place, asked, op, exists, out);
    return 0;
}

static void
print(const struct options *o, enum why_op op, const struct why *why)
{
    static const char *const ops[] = { [WHY_READ] = "read", [WHY_WRITE] = "write", [WHY_EXEC] = "exec" };

    if (o->json)
        print_json(o, ops[op], why);
    else
        print_text(o, ops[op], why);
}

/* Each line of standard input is a path. 0 when all of them are allowed, 1 when not; -1 with @err. */
static int
why_lines(const struct policy *p, const struct engine_rules *rules, struct options *o, enum why_op op, struct err *err)
{
    cleanup_free char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int code = 0;

    while ((n = getline(&line, &room, stdin)) >= 0) {
        struct why why;
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        o->path = line;
        if (why_path(p, rules, line, op, &why, err) < 0)
            return -1;
        print(o, op, &why);
        code |= !why.allowed;
    }
    return code;
}

static int
why_paths(const struct policy *p, struct options *o, enum why_op op, struct err *err)
{
    struct engine_rules *rules = NULL;
    struct why why;
    int r;

    if (p->mode.v != MODE_OFF && engine_rules_make(p, &rules, err) < 0)
        return -1;
    if (strcmp(o->path, "-") == 0) {
        r = why_lines(p, rules, o, op, err);
    } else if ((r = why_path(p, rules, o->path, op, &why, err)) == 0) {
        print(o, op, &why);
        r = !why.allowed;
    }
    engine_rules_free(rules);
    return r;
}

/* `why --planted`: operands from @first on. */
static int
why_planted(const struct options *o, int argc, char **argv, int first, struct err *err)
{
    const char *folder = ".";

    if (o->path != NULL || o->host != NULL || o->port != NULL || o->call != NULL || o->op != NULL || o->engines ||
        o->request.method != NULL || o->request.path != NULL || o->request.tool != NULL)
        return err_set(err, ERR_USAGE, "cli.usage", "--planted goes with --json and a folder only");
    for (int i = first, seen = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            continue;
        if (seen++ > 0)
            return err_set(err, ERR_USAGE, "cli.usage", "--planted takes one folder, not also \"%s\"", argv[i]);
        folder = argv[i];
    }
    return planted_show(folder, o->json, err);
}

static void
print_choice(const struct engine_choice *c)
{
    bool colour = cli_colour(STDOUT_FILENO);
    char name[64];

    for (size_t i = 0; i < c->n; i++) {
        bool taken = i == c->taken;
        printf("%s%-11s %-7s  %s%s\n", taken && colour ? "\033[1;32m" : "", engine_row_name(&c->v[i], name),
               policy_boundary_name(c->v[i].boundary), c->v[i].why, taken && colour ? "\033[0m" : "");
    }
}

/* `why --engines`: 0 when one would make it; 1 when none does. -1 with @err, as a run is refused whatever it is. */
static int
why_engines(const struct policy *p, const struct options *o, struct err *err)
{
    static struct engine_choice choice;     /* large */
    struct err why = ERR_INIT;
    bool allowed;
    json_t *out;

    if (p->mode.v == MODE_OFF) {
        err_set(err, ERR_USAGE, "cli.usage", "mode off has no engine");
        return err_hint(err, "use mode light, standard or max");
    }
    allowed = engine_choose(p, &choice, &why) == 0;
    if (!o->json) {
        print_choice(&choice);
        if (!allowed)
            printf("denied: %s [%s]\n  to change %s\n", why.msg, why.code, why.hint);
        return !allowed;
    }
    out = json_pack("{s:i, s:s, s:o, s:o, s:o}", "version", 1, "status", allowed ? "allowed" : "denied", "code",
                    allowed ? json_null() : policy_json_text(why.code), "text",
                    allowed ? json_null() : policy_json_text(why.msg), "fix",
                    allowed ? json_null() : policy_json_text(why.hint));
    choice_json(&choice, true, out);
    (void)cli_json(out, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return !allowed;
}

int
cmd_why(int argc, char **argv)
{
    struct options o = { 0 };
    struct policy_host host;
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    struct why why;
    enum why_op op = WHY_READ;
    int r;

    for (int i = 1; i < argc; i++)      /* so that a refusal is JSON as well */
        o.json |= strcmp(argv[i], "--json") == 0;
    r = cli_host(&host, &err);
    if (r == 0)
        r = cli_policy_args(&p, VERB_RUN, argc, argv, &host, &why_verb, &o, &err);
    if (o.help) {
        verb_help(&why_verb, stdout);
        return 0;
    }
    if (r >= 0 && o.planted) {
        r = why_planted(&o, argc, argv, r, &err);
        return r < 0 ? cli_fail(&err, o.json) : r;
    }
    if (r >= 0 && r < argc) {
        err_set(&err, ERR_USAGE, "cli.usage", "why takes flags only, not \"%s\"", argv[r]);
        r = err_hint(&err, "--path PATH, --host HOST[:PORT], --port PORT, --syscall NAME, or --engines");
    }
    if (r >= 0)
        r = check_question(&o, &op, &err);
    if (r >= 0 && o.engines) {
        r = why_engines(&p, &o, &err);
        return r < 0 ? cli_fail(&err, o.json) : r;
    }
    if (r >= 0 && o.path != NULL) {
        r = why_paths(&p, &o, op, &err);
        return r < 0 ? cli_fail(&err, o.json) : r;
    }
    if (r >= 0)
        r = o.call != NULL ? policy_why_call(&p, o.call, &why, &err)
            : o.port != NULL ? why_port(&p, &o, &why, &err) : why_host(&p, &o, &why, &err);
    if (r < 0)
        return cli_fail(&err, o.json);
    print(&o, op, &why);
    return why.allowed ? 0 : 1;
}
