/* vault/cmd.c: the verbs of `cloche secret` and their flags */
#include "vault/cmd.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum operand { OPERAND_NONE, OPERAND_NAME, OPERAND_WORD, OPERAND_MAYBE };

static const struct verb {
    const char *name;
    int (*run)(struct cmd_options *o, struct err *err);
    enum operand operand;
    const char *flags;          /* which of them it takes, by letter */
    const char *usage, *help;
} verbs[] = {
    { "set", cmd_set, OPERAND_NAME, "bBeExfck", "NAME", "store a value, or replace it" },
    { "ls", cmd_ls, OPERAND_NONE, "j", "", "names and bindings; never values" },
    { "rm", cmd_rm, OPERAND_NAME, "", "NAME", "remove a secret; running sandboxes lose it" },
    { "import", cmd_import, OPERAND_WORD, "bk", "FILE|-", "store every NAME=VALUE line of a file" },
    { "rotate", cmd_rotate, OPERAND_NAME, "Exfck", "NAME", "set a new value; running sandboxes lose the old one" },
    { "revoke", cmd_revoke, OPERAND_NAME, "", "NAME", "end a secret's use, in running sandboxes too" },
    { "ca", cmd_ca, OPERAND_MAYBE, "", "[export|rotate]", "the CA that sandboxes trust" },
};
#define N_VERBS ARRAY_LEN(verbs)

static const struct flag {
    const char *name, *value;
    char letter;
    const char *help;
    const char *line;           /* for those that become a line of the binding */
} flags[] = {
    { "--binding", "NAME", 'b', "anthropic, openai, github, gitlab, npm, pypi, aws", NULL },
    { "--host", "HOST", 'B', "host that may receive it; may be repeated, like the flags below", "host" },
    { "--place", "PLACE", 'B', "bearer, basic, body, sigv4, \"header NAME\", \"query NAME\", \"cookie NAME\"",
      "place" },
    { "--add", "HEADER: TEXT", 'B', "header to add to every such request; {} in TEXT is the value", "add" },
    { "--port", "PORT", 'B', "443 by default", "port" },
    { "--scheme", "SCHEME", 'B', "https by default", "scheme" },
    { "--method", "METHOD", 'B', "GET, HEAD, POST, PUT, PATCH and DELETE by default", "method" },
    { "--path", "GLOB", 'B', "every path by default", "path" },
    { "--region", "NAME", 'B', "for sigv4; all by default", "region" },
    { "--service", "NAME", 'B', "for sigv4; all by default", "service" },
    { "--env", "VARIABLE", 'e', "variable for the placeholder in the sandbox", NULL },
    { "--expires", "TIME", 'E', "when it expires, such as 12h or 30m", NULL },
    { "--from-env", "VARIABLE", 'x', "take the value from this variable", NULL },
    { "--from-file", "FILE", 'f', "take the value from this file", NULL },
    { "--from-command", NULL, 'c', "take the value from the output of what follows \"--\"", NULL },
    { "--keep", NULL, 'k', "let running sandboxes keep the old value", NULL },
    { "--json", NULL, 'j', "one JSON object", NULL },
};
#define N_FLAGS ARRAY_LEN(flags)

/* Those with one of the letters @which; all of them when it is empty. */
static void
print_flags(const char *which)
{
    for (size_t i = 0; i < N_FLAGS; i++) {
        char left[48];
        if (which[0] != '\0' && strchr(which, flags[i].letter) == NULL)
            continue;
        snprintf(left, sizeof(left), "%s%s%s", flags[i].name, flags[i].value != NULL ? " " : "",
                 flags[i].value != NULL ? flags[i].value : "");
        printf("  %-24s %s\n", left, flags[i].help);
    }
}

static int
usage(const struct verb *only)
{
    if (only == NULL) {
        printf("usage: cloche secret VERB ...\n\n");
        for (size_t i = 0; i < N_VERBS; i++)
            printf("  %-8s %-17s %s\n", verbs[i].name, verbs[i].usage, verbs[i].help);
        printf("\n");
        print_flags("");
        printf("\nA value comes from the terminal, standard input, --from-env, --from-file or --from-command, never\n"
               "from the command line. docs/secrets.md says how secrets are kept and used.\n");
        return 0;
    }
    printf("usage: cloche secret %s [flags] %s\n\n%s\n\n", only->name, only->usage, only->help);
    if (only->flags[0] != '\0')
        print_flags(only->flags);
    return 0;
}

static int
apply(struct cmd_options *o, const struct flag *f, const char *value, struct err *err)
{
    if (f->line != NULL) {
        if (strchr(value, '\n') != NULL || buf_printf(&o->lines, "%s %s\n", f->line, value) < 0)
            return err_set(err, ERR_USAGE, "vault.flag", "%s: a value of one line, please", f->name);
        return 0;
    }
    switch (f->letter) {
    case 'b': o->builtin = value; break;
    case 'e': o->env = value; break;
    case 'E': o->expires = value; break;
    case 'x': o->from_env = value; break;
    case 'f': o->from_file = value; break;
    case 'k': o->keep = true; break;
    case 'j': o->json = true; break;
    default: break;
    }
    return 0;
}

/* One word that begins with a dash: how many words it took, or -1. */
static int
flag(struct cmd_options *o, const struct verb *v, int argc, char **argv, struct err *err)
{
    const char *equals = strchr(argv[0], '=');
    size_t length = equals != NULL ? (size_t)(equals - argv[0]) : strlen(argv[0]);

    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        o->help = true;
        return 1;
    }
    for (size_t i = 0; i < N_FLAGS; i++) {
        const struct flag *f = &flags[i];
        if (strlen(f->name) != length || strncmp(f->name, argv[0], length) != 0 || strchr(v->flags, f->letter) == NULL)
            continue;
        if (f->letter == 'c') {
            if (argc < 3 || strcmp(argv[1], "--") != 0)
                return err_set(err, ERR_USAGE, "vault.flag", "--from-command needs -- COMMAND [ARG...] behind it");
            o->command = argv + 2;
            return argc;
        }
        if (f->value == NULL && equals != NULL)
            return err_set(err, ERR_USAGE, "vault.flag", "%s takes no value", f->name);
        if (f->value != NULL && equals == NULL && argc < 2)
            return err_set(err, ERR_USAGE, "vault.flag", "%s needs a value", f->name);
        if (apply(o, f, equals != NULL ? equals + 1 : argv[1], err) < 0)
            return -1;
        return f->value != NULL && equals == NULL ? 2 : 1;
    }
    /* what stands behind "=" may be a value that somebody tried to give */
    err_set(err, ERR_USAGE, "vault.flag", "`cloche secret %s` has no flag %.*s", v->name,
            length > 20 ? 20 : (int)length, argv[0]);
    return err_hint(err, "`cloche secret %s --help` lists them; a value is never given on the command line", v->name);
}

static int
parse(struct cmd_options *o, const struct verb *v, int argc, char **argv, struct err *err)
{
    int sources;

    for (int i = 0; i < argc;) {
        int took = 1;
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            took = flag(o, v, argc - i, argv + i, err);
        } else if (v->operand == OPERAND_NONE || o->name != NULL) {
            /* it may well be a value that somebody tried to give: it is not repeated */
            err_set(err, ERR_USAGE, "vault.operand", "`cloche secret %s` takes %s", v->name,
                    v->operand == OPERAND_NONE ? "no operand" : "one operand");
            return err_hint(err, "a value is never given on the command line: every user of the host could read it");
        } else {
            o->name = argv[i];
        }
        if (took < 0)
            return -1;
        i += took;
    }
    if (o->help)
        return 0;
    if (o->name == NULL && (v->operand == OPERAND_NAME || v->operand == OPERAND_WORD))
        return err_set(err, ERR_USAGE, "vault.operand", "`cloche secret %s` needs %s", v->name, v->usage);
    if (v->operand == OPERAND_NAME && !store_name_valid(str_of(o->name))) {
        err_set(err, ERR_USAGE, "vault.name", "that is not a secret's name");
        return err_hint(err, "up to %d letters, digits, \"-\", \"_\" and \".\"", VAULT_NAME_MAX);
    }
    sources = (o->from_env != NULL) + (o->from_file != NULL) + (o->command != NULL);
    return sources > 1 ? err_set(err, ERR_USAGE, "vault.flag", "only one of --from-env, --from-file, --from-command")
                       : 0;
}

int
vault_cmd(int argc, char **argv)
{
    struct cmd_options o = { .lines = BUF_INIT(BINDING_TEXT_MAX) };
    const struct verb *v = NULL;
    struct err err = ERR_INIT;
    int r;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(NULL);
        return argc < 2 ? EXIT_REFUSED : 0;
    }
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(verbs[i].name, argv[1]) == 0)
            v = &verbs[i];
    if (v == NULL) {
        err_set(&err, ERR_USAGE, "vault.verb", "`cloche secret` has no verb \"%.40s\"", argv[1]);
        err_hint(&err, "set, ls, rm, import, rotate, revoke, ca");
        return cmd_fail(&err);
    }
    r = parse(&o, v, argc - 2, argv + 2, &err);
    if (r == 0 && o.help)
        usage(v);
    else if (r == 0)
        r = v->run(&o, &err);
    buf_free(&o.lines);
    if (r == 0 && fflush(stdout) != 0)
        r = err_set(&err, ERR_SYSTEM, "vault.output", "the answer could not be written");
    return r < 0 ? cmd_fail(&err) : 0;
}
