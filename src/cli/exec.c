/* cli/exec.c: `cloche exec`: a command in a sandbox of cloche serve */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec_live.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/tty.h"
#include "proto/edge.h"

#define TIME_MAX_MS (24UL * 3600 * 1000)

enum { LIMIT_MEMORY, LIMIT_CPUS, LIMIT_PIDS, LIMIT_OUTPUT, EXEC_LIMITS };

struct options {
    struct api_verb v;
    bool input, terminal, detach;
    const char *cwd, *box;
    uint64_t timeout_ms;            /* 0: the policy's */
    const char *limits[EXEC_LIMITS];    /* as they were said; NULL: the sandbox's alone */
    json_t *env;
    char **argv;                    /* the command; NULL at the end */
};

static int
set_env(void *at, const char *text, struct err *err)
{
    json_t *env = *(json_t **)at;
    const char *eq = strchr(text, '=');
    char name[256];

    if (eq == NULL || eq == text || (size_t)(eq - text) >= sizeof(name))
        return err_set(err, ERR_USAGE, "cli.flag-value", "--env takes NAME=VALUE");
    snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
    return json_object_set_new(env, name, json_string(eq + 1)) == 0
               ? 0 : err_set(err, ERR_USAGE, "cli.flag-value", "--env %s: the value is not UTF-8", name);
}

static int
set_timeout(void *at, const char *text, struct err *err)
{
    uint64_t *ms = at;

    return str_parse_duration_ms(str_of(text), TIME_MAX_MS, ms) && *ms > 0
               ? 0 : err_set(err, ERR_USAGE, "cli.flag-value", "--timeout %s is not a time up to 24h", text);
}

/* The daemon reads the values. */
static void
add_limits(const struct options *o, json_t *said)
{
    static const char *const names[EXEC_LIMITS] = { "memory", "cpus", "pids", "output" };
    json_t *limits = json_object();

    for (size_t i = 0; i < EXEC_LIMITS; i++)
        if (o->limits[i] != NULL)
            json_object_set_new(limits, names[i], json_string(o->limits[i]));
    if (json_object_size(limits) > 0)
        json_object_set(said, "limits", limits);
    json_decref(limits);
}

/* What is asked of the daemon; NULL with @err. */
static json_t *
command_of(const struct options *o, struct err *err)
{
    json_t *words = json_array(), *said;
    uint16_t rows = 24, cols = 80;

    for (char **word = o->argv; *word != NULL; word++) {
        if (json_array_append_new(words, json_string(*word)) < 0) {
            json_decref(words);
            err_set(err, ERR_USAGE, "cli.exec", "a word of the command is not UTF-8");
            return NULL;
        }
    }
    said = json_pack("{s:o}", "command", words);
    if (o->cwd != NULL)
        json_object_set_new(said, "cwd", json_string(o->cwd));
    if (json_object_size(o->env) > 0)
        json_object_set(said, "env", o->env);
    if (o->timeout_ms > 0)
        json_object_set_new(said, "timeout_ms", json_integer((json_int_t)o->timeout_ms));
    add_limits(o, said);
    if (o->terminal) {
        (void)tty_size(STDIN_FILENO, &rows, &cols);
        json_object_set_new(said, "pty", json_pack("{s:i, s:i}", "rows", rows, "cols", cols));
    }
    if (o->detach) {
        json_object_set_new(said, "background", json_true());
        json_object_set_new(said, "stdin", json_boolean(o->input));
    }
    if (said == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return said;
}

static int
detach(const struct options *o, const char *path, const json_t *command, struct err *err)
{
    json_t *answer;
    const char *id;

    if (api_ask(&o->v.api, "POST", path, command, &answer, err) < 0)
        return -1;
    id = json_string_value(json_object_get(answer, "exec_id"));
    if (id != NULL && id[strspn(id, "0123456789")] == '\0')
        puts(id);
    else
        err_set(err, ERR_PROTOCOL, "api.answer", "the daemon says no exec_id");
    json_decref(answer);
    return err->kind == ERR_NONE ? 0 : -1;
}

static int
failed_code(const struct err *err)
{
    uint32_t code = edge_shells_code(err);

    return code != 0 ? (int)code : EXIT_REFUSED;
}

static int
ask(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *command = command_of(o, err);
    int r = -1;

    if (command == NULL)
        return -1;
    if (api_verb_sandbox(&path, o->box, o->detach ? "/exec" : "/exec/ws", err) == 0)
        r = o->detach ? detach(o, (const char *)path.p, command, err)
                      : exec_live(&o->v.api, (const char *)path.p, command, o->input, o->terminal, err);
    json_decref(command);
    return r;
}

static int
run(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;
    int r;

    if (w->n < 2) {
        err_set(err, ERR_USAGE, "cli.exec", w->n == 0 ? "in which sandbox?" : "which command?");
        return err_hint(err, "cloche exec NAME -- COMMAND; `cloche ps` lists the sandboxes");
    }
    o->box = w->v[0];
    o->argv = w->v + 1;
    r = ask(o, err);
    if (r >= 0)
        return r;
    (void)cli_fail(err, false);
    return failed_code(err);
}

int
cmd_exec(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[-i] [-t] [flags] SANDBOX [--] COMMAND [ARG...]", 0, VERB_ANY, .run = run },
        { NULL, "--detach [flags] SANDBOX [--] COMMAND [ARG...]", .run = NULL },
    };
    static const struct verb_flag flags[] = {
        { "--interactive", 'i', NULL, "pass our stdin to the command", FLAG_ON(struct options, input) },
        { "--tty", 't', NULL, "run it in a terminal", FLAG_ON(struct options, terminal) },
        { "--detach", 'd', NULL, "run it in the background, and print its exec_id", FLAG_ON(struct options, detach) },
        { "--cwd", 0, "DIR", "the working directory", FLAG_TEXT(struct options, cwd) },
        { "--env", 0, "NAME=VALUE", "a variable, besides the sandbox's", FLAG_SET(struct options, env, set_env) },
        { "--memory", 0, "SIZE", "memory that it may hold, such as 64m",
          FLAG_TEXT(struct options, limits[LIMIT_MEMORY]) },
        { "--cpus", 0, "N", "processors that it may use, such as 0.5", FLAG_TEXT(struct options, limits[LIMIT_CPUS]) },
        { "--pids", 0, "N", "processes and threads of it", FLAG_TEXT(struct options, limits[LIMIT_PIDS]) },
        { "--output", 0, "SIZE", "bytes of its stdout and of its stderr, each; the rest is cut",
          FLAG_TEXT(struct options, limits[LIMIT_OUTPUT]) },
        { "--timeout", 0, "TIME", "when to end it, such as 5m (the policy's limit)",
          FLAG_SET(struct options, timeout_ms, set_timeout) },
        API_ROW_SOCKET,
    };
    static const struct verb verb = {
        .name = "exec", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .command = true,
        .about = "Run a command in a sandbox of a running cloche serve, by its id or name.",
        .after = "Exit codes: the command's; 124 time limit; 125 refused; 126 it cannot be run; 127 it does not "
                 "exist;\n"
                 "128 plus a signal's number.",
    };
    struct options o = { .env = json_object() };
    int code = verb_main(&verb, &o, argc, argv);

    json_decref(o.env);
    return code;
}
