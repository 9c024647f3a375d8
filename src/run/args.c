/* run/args.c: see args.h */
#include "run/args.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "hosts/preset.h"
#include "hosts/registry.h"
#include "program/words.h"
#include "run/image_pin.h"

void
cli_policy_flags(FILE *to)
{
    const struct policy_flag *flag = NULL;
    char left[64];

    while ((flag = policy_flag_next(flag)) != NULL) {
        snprintf(left, sizeof(left), "%s%s%s", flag->name, flag->value != NULL ? " " : "",
                 flag->value != NULL ? flag->value : "");
        fprintf(to, "  %-31s  %s\n", left, flag->help);
    }
}

/* What docker, bubblewrap, firejail and systemd-run call it, or people do who guess. */
static const struct {
    const char *said, *meant;
} elsewhere[] = {
    { "--allow-host", "--allow-domain" },   { "--allow-net", "--allow-domain" },
    { "--allow-port", "--allow-host-port" }, { "--chdir", "--workdir" },
    { "--config", "--settings" },           { "--cwd", "--workdir" },
    { "--domain", "--allow-domain" },       { "--expose", "--publish" },
    { "--mount", "--bind" },                { "--net", "--network" },
    { "--pids-limit", "--pids" },           { "--policy", "--settings" },
    { "--port", "--publish" },              { "--project", "--workspace" },
    { "--ro-bind", "--bind" },
    { "--setenv", "--env" },                { "--share-net", "--network" },
    { "--tty", "--pty" },                   { "--volume", "--bind" },
    { "-e", "--env" },                      { "-m", "--memory" },
    { "-p", "--publish" },                  { "-t", "--pty" },
    { "-u", "--user" },                     { "-v", "--bind" },
    { "-w", "--workdir" },
};

static const char *
meant_by(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        if (strcmp(name, elsewhere[i].said) == 0)
            return elsewhere[i].meant;
    return NULL;
}

static int
unknown_flag(const struct verb *own, const char *name, struct err *err)
{
    const struct policy_flag *flag = NULL;
    const char *known[160] = { "--help", "--settings", "--mode" }, *nearest = meant_by(name);
    size_t n = 3;

    for (size_t i = 0; i < own->n_flags; i++)
        known[n++] = own->flags[i].name;
    while ((flag = policy_flag_next(flag)) != NULL && n < ARRAY_LEN(known))
        known[n++] = flag->name;
    if (nearest == NULL)
        nearest = cli_nearest(name, known, n);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
    return nearest != NULL ? err_hint(err, "did you mean %s? put `--` before the command's own flags", nearest)
                           : err_hint(err, "`cloche VERB --help` lists the flags; put `--` before the command's own "
                                      "flags");
}

/* Words that the flag at argv[i] takes; 0 for the end of the flags, -1 with @err. */
static int
flag_words(int argc, char **argv, int i, struct cli_flag *w, bool *policy_flag, const struct verb *own, void *options,
           struct err *err)
{
    const struct policy_flag *flag;
    bool builtin;
    int n;

    if (argv[i][0] != '-' || argv[i][1] == '\0' || strcmp(argv[i], "--") == 0)
        return 0;
    if (cli_flag_at(w, argc, argv, i, err) < 0)
        return -1;
    flag = policy_flag_lookup(w->name);
    builtin = strcmp(w->name, "--mode") == 0 || strcmp(w->name, "--settings") == 0;
    *policy_flag = flag != NULL || builtin;
    if (flag == NULL && !builtin) {
        n = verb_take(own, options, w, err);
        return n == 0 ? unknown_flag(own, w->name, err) : n;
    }
    if (builtin || flag->value != NULL)
        return cli_flag_words(w, err);
    n = cli_flag_alone(w, err);
    w->value = NULL;
    return n;
}

/* Where the flags end, or -1 with @err; and those two of them that come before all others. NULL: not there. */
static int
flags_end(int argc, char **argv, const struct verb *own, void *options, const char **mode, const char **settings,
          struct err *err)
{
    struct cli_flag w;
    bool is_policy;
    int i, n;

    *mode = *settings = NULL;
    for (i = 1; i < argc; i += n) {
        n = flag_words(argc, argv, i, &w, &is_policy, own, options, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        if (strcmp(w.name, "--mode") == 0)
            *mode = w.value;
        else if (strcmp(w.name, "--settings") == 0)
            *settings = w.value;
    }
    return i;
}

int
cli_policy_flags_end(int argc, char **argv, const struct verb *own, void *options, struct err *err)
{
    const char *mode, *settings;

    return flags_end(argc, argv, own, options, &mode, &settings, err);
}

int
cli_policy_args_in(const char *forced, struct policy *p, enum policy_verb verb, int argc, char **argv,
                   const struct policy_host *host, const struct verb *own, void *options, struct err *err)
{
    enum policy_mode mode = MODE_STANDARD;
    const char *settings, *mode_name;
    struct cli_flag w;
    bool is_policy;
    int i = flags_end(argc, argv, own, options, &mode_name, &settings, err), n, end;

    if (i < 0)
        return -1;
    mode_name = forced != NULL ? forced : mode_name;
    end = i < argc && strcmp(argv[i], "--") == 0 ? i + 1 : i;
    if (mode_name != NULL && !policy_mode_parse(mode_name, &mode)) {
        err_set(err, ERR_USAGE, "policy.mode", "--mode \"%s\" is not one of off, light, standard, max", mode_name);
        return err_hint(err, "standard is the default");
    }
    if (policy_init(p, mode, verb, host, err) < 0)
        return -1;
    if (mode_name != NULL && policy_apply_flag(p, "--mode", mode_name, host, err) < 0)
        return -1;
    if (settings != NULL && policy_load_file(p, settings, POLICY_AUTO, host, err) < 0)
        return -1;
    /* the command line has the last word, whatever its place relative to --settings */
    if (settings != NULL && mode_name != NULL && policy_apply_flag(p, "--mode", mode_name, host, err) < 0)
        return -1;
    for (i = 1; i < argc; i += n) {
        n = flag_words(argc, argv, i, &w, &is_policy, own, options, err);
        if (n == 0)
            break;
        if (n < 0)
            return -1;
        if (is_policy && strcmp(w.name, "--mode") != 0 && strcmp(w.name, "--settings") != 0 &&
            policy_apply_flag(p, w.name, w.value, host, err) < 0)
            return -1;
    }
    if (preset_open(p, err) < 0 || registry_open(p, err) < 0 || image_pin(p, err) < 0)
        return -1;
    return policy_validate(p, err) < 0 ? -1 : end;
}

int
cli_policy_args(struct policy *p, enum policy_verb verb, int argc, char **argv, const struct policy_host *host,
                const struct verb *own, void *options, struct err *err)
{
    return cli_policy_args_in(NULL, p, verb, argc, argv, host, own, options, err);
}
