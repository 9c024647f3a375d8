/* cli/exec.c: `cloche exec`: a command in a sandbox of cloche serve */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec_live.h"
#include "program/say.h"
#include "program/tty.h"
#include "program/words.h"

#define TIME_MAX_MS (24UL * 3600 * 1000)

struct options {
    struct api api;
    bool input, terminal, detach;
    const char *cwd, *box;
    uint64_t timeout_ms;            /* 0: the policy's */
    json_t *env;
    char **argv;                    /* the command; NULL at the end */
};

static int
usage(void)
{
    printf("usage: cloche exec [-i] [-t] [flags] SANDBOX [--] COMMAND [ARG...]\n"
           "       cloche exec --detach [flags] SANDBOX [--] COMMAND [ARG...]\n\n"
           "Run a command in a sandbox of a running cloche serve, by its id or name.\n\n"
           "  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n\n"
           "Exit codes: the command's; 124 its time was over; 125 it was refused; 126, 127 it cannot be run, or is\n"
           "not there; 128 and a signal's number.\n",
           "-i, --interactive", "stdin is the command's", "-t, --tty", "in a terminal", "-d, --detach",
           "go on without us, and print its exec_id", "--cwd DIR", "the working directory", "--env NAME=VALUE",
           "a variable, beside the sandbox's own", "--timeout TIME", "5m: when it is ended (the policy's)",
           "--socket PATH", API_FLAG_HELP, "--help", "print the flags");
    return 0;
}

/* One word of letters ("-it"). */
static bool
letters(struct options *o, const char *word)
{
    if (word[0] != '-' || word[1] == '-' || word[1] == '\0' || word[1 + strspn(word + 1, "itd")] != '\0')
        return false;
    o->input = o->input || strchr(word, 'i') != NULL;
    o->terminal = o->terminal || strchr(word, 't') != NULL;
    o->detach = o->detach || strchr(word, 'd') != NULL;
    return true;
}

static bool
switches(struct options *o, const char *word)
{
    const struct { const char *name; bool *into; } known[] = {
        { "--interactive", &o->input }, { "--tty", &o->terminal }, { "--detach", &o->detach },
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(word, known[i].name) == 0) {
            *known[i].into = true;
            return true;
        }
    }
    return letters(o, word);
}

static int
variable(struct options *o, const char *text, struct err *err)
{
    const char *eq = strchr(text, '=');
    char name[256];

    if (eq == NULL || eq == text || (size_t)(eq - text) >= sizeof(name))
        return err_set(err, ERR_USAGE, "cli.flag-value", "--env takes NAME=VALUE");
    snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
    return json_object_set_new(o->env, name, json_string(eq + 1)) == 0
               ? 0 : err_set(err, ERR_USAGE, "cli.flag-value", "--env %s: the value is no UTF-8", name);
}

/* How many words, -1 with @err. */
static int
flag(struct options *o, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int r;

    if (switches(o, argv[i]))
        return 1;
    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&o->api, f.name, f.value, err)) < 0)
        return -1;
    if (r == 0 && strcmp(f.name, "--cwd") == 0)
        o->cwd = f.value;
    else if (r == 0 && strcmp(f.name, "--env") == 0 && f.value != NULL) {
        if (variable(o, f.value, err) < 0)
            return -1;
    } else if (r == 0 && strcmp(f.name, "--timeout") == 0 && f.value != NULL) {
        if (!str_parse_duration_ms(str_of(f.value), TIME_MAX_MS, &o->timeout_ms) || o->timeout_ms == 0)
            return err_set(err, ERR_USAGE, "cli.flag-value", "--timeout %s is no time up to 24h", f.value);
    } else if (r == 0 && strcmp(f.name, "--env") != 0 && strcmp(f.name, "--timeout") != 0) {
        err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", f.name);
        return err_hint(err, "flags of the command itself come behind the sandbox's name");
    }
    return cli_flag_words(&f, err);
}

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    int n, i;

    for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i += n)
        if ((n = flag(o, argc, argv, i, err)) < 0)
            return -1;
    if (i < argc)
        o->box = argv[i++];
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    o->argv = argv + i;
    if (o->box != NULL && i < argc)
        return 0;
    err_set(err, ERR_USAGE, "cli.exec", o->box == NULL ? "in which sandbox?" : "which command?");
    return err_hint(err, "cloche exec NAME -- COMMAND; `cloche ps` lists the sandboxes");
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
            err_set(err, ERR_USAGE, "cli.exec", "a word of the command is no UTF-8");
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

    if (api_ask(&o->api, "POST", path, command, &answer, err) < 0)
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
    return err_is(err, "exec.not-found") ? EXIT_NO_COMMAND
           : err_is(err, "exec.not-runnable") ? EXIT_CANNOT_EXEC : EXIT_REFUSED;
}

static int
run(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *command = command_of(o, err);
    int r = -1;

    if (command == NULL)
        return -1;
    if (buf_puts(&path, "/v1/sandboxes/") < 0 || o->box[0] == '\0' || api_escape(&path, o->box) < 0 ||
        buf_puts(&path, o->detach ? "/exec" : "/exec/ws") < 0 || buf_nul(&path) < 0)
        err_set(err, ERR_USAGE, "cli.sandbox", "that is no sandbox's id or name");
    else
        r = o->detach ? detach(o, (const char *)path.p, command, err)
                      : exec_live(&o->api, (const char *)path.p, command, o->input, o->terminal, err);
    json_decref(command);
    return r;
}

int
cmd_exec(int argc, char **argv)
{
    struct options o = { .env = json_object() };
    struct err err = ERR_INIT;
    int r = -1;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        json_decref(o.env);
        return usage();
    }
    if (api_init(&o.api, &err) == 0 && take_words(&o, argc, argv, &err) == 0)
        r = run(&o, &err);
    json_decref(o.env);
    if (r >= 0)
        return r;
    (void)cli_fail(&err, false);
    return failed_code(&err);
}
