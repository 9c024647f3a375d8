/* cli/token.c: `cloche token`: credentials for callers of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/api_client.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "warden/edge.h"

struct options {
    struct api api;
    bool json;
    const char *role, *name, *expires;
    const char *words[3];
    size_t n_words;
};

static int
usage(void)
{
    printf("usage: cloche token create --role agent|operator|approver|auditor [--name NAME] [--expires TIME] [--json]\n"
           "       cloche token ls [--json]\n"
           "       cloche token revoke ID [--json]\n\n"
           "Credentials for callers of a running cloche serve. A token is printed once, and only its hash is kept.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n", "--role ROLE",
           "what its holder may: agent, operator, approver or auditor", "--name NAME",
           "for your own list", "--expires TIME", "ends it after 90s, 30m, 12h (never)", "--socket PATH", API_FLAG_HELP,
           "--json", "one JSON object", "--help", "print the flags");
    return 0;
}

/* How many words, -1 with @err. */
static int
flag(struct options *o, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int r;

    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&o->api, f.name, f.value, err)) < 0)
        return -1;
    if (strcmp(f.name, "--role") == 0)
        o->role = f.value;
    else if (strcmp(f.name, "--name") == 0)
        o->name = f.value;
    else if (strcmp(f.name, "--expires") == 0)
        o->expires = f.value;
    else if (r == 0)
        return err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", f.name);
    return cli_flag_words(&f, err);
}

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    int n;

    for (int i = 1; i < argc; i += n) {
        n = 1;
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (argv[i][0] == '-' && (n = flag(o, argc, argv, i, err)) < 0)
            return -1;
        else if (argv[i][0] != '-' && o->n_words == 3)
            return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", argv[i]);
        else if (argv[i][0] != '-')
            o->words[o->n_words++] = argv[i];
    }
    return 0;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void
print_json(json_t *said)
{
    cleanup_free char *text = NULL;

    json_object_set_new(said, "version", json_integer(1));
    text = json_dumps(said, JSON_COMPACT);
    puts(text != NULL ? text : "{}");
}

static const char *
text_of(const json_t *token, const char *member)
{
    const char *text = json_string_value(json_object_get(token, member));

    /* of the daemon's own making, and a name has no byte that moves a cursor; but it is another process */
    return text != NULL && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
           strlen(text) ? text : "?";
}

static struct report_time
time_of(const json_t *token, const char *member)
{
    json_int_t ms = json_integer_value(json_object_get(token, member));

    return ms > 0 ? report_time(&(struct timespec){ .tv_sec = (time_t)(ms / 1000) }) : (struct report_time){ "never" };
}

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "tokens"), *token;
    size_t i;

    printf("%-32s  %-8s  %-20.20s  %-20.20s  %s\n", "ID", "ROLE", "CREATED", "EXPIRES", "NAME");
    json_array_foreach(list, i, token) {
        struct report_time made = time_of(token, "created_ms"), over = time_of(token, "expires_ms");
        /* to the second */
        printf("%-32s  %-8s  %-20.19s  %-20.19s  %s\n", text_of(token, "id"), text_of(token, "role"), made.text,
               over.text, text_of(token, "name"));
    }
}

/* --- verbs -------------------------------------------------------------------------------------------------------- */

static int
create(struct options *o, struct err *err)
{
    enum edge_role role;
    uint64_t ms = 0;
    json_t *body, *said;
    int r;

    if (o->role == NULL || !edge_role_parse(o->role, &role) || role == EDGE_KEY) {
        err_set(err, ERR_USAGE, "cli.token.role", o->role == NULL ? "which role?%s" : "\"%s\" is no role of a token",
                o->role == NULL ? "" : o->role);
        return err_hint(err, "--role agent, operator, approver or auditor; docs/daemon.md says what each may");
    }
    if (o->expires != NULL && (!str_parse_duration_ms(str_of(o->expires), TOKEN_LIVES_MAX * 1000, &ms) || ms < 1000 ||
                               ms % 1000 != 0)) {
        err_set(err, ERR_USAGE, "cli.token.expires", "--expires %s is no whole number of seconds", o->expires);
        return err_hint(err, "90s, 30m, 12h; at most ten years");
    }
    body = json_pack("{s:s, s:I}", "role", o->role, "expires", (json_int_t)(ms / 1000));
    if (o->name != NULL)
        json_object_set_new(body, "name", json_string(o->name));
    r = api_ask(&o->api, "POST", "/v1/tokens", body, &said, err);
    json_decref(body);
    if (r < 0)
        return -1;
    if (o->json) {
        print_json(said);
    } else {
        puts(text_of(said, "token"));
        fprintf(stderr, "cloche: this is shown once; its id is %s\n", text_of(said, "id"));
    }
    json_decref(said);
    return 0;
}

static int
list(struct options *o, struct err *err)
{
    json_t *said;

    if (api_ask(&o->api, "GET", "/v1/tokens", NULL, &said, err) < 0)
        return -1;
    if (o->json)
        print_json(said);
    else
        print_list(said);
    json_decref(said);
    return 0;
}

static int
end_it(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *said;

    buf_puts(&path, "/v1/tokens/");
    if (api_escape(&path, o->words[1]) < 0)
        return err_set(err, ERR_USAGE, "cli.token.id", "that is no token's id");
    if (api_ask(&o->api, "DELETE", (const char *)path.p, NULL, &said, err) < 0)
        return -1;
    if (o->json)
        print_json(said);
    json_decref(said);
    return 0;
}

int
cmd_token(int argc, char **argv)
{
    struct options o = { .json = false };
    struct err err = ERR_INIT;
    const char *verb;
    bool making;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_init(&o.api, &err) < 0 || take_words(&o, argc, argv, &err) < 0)
        return cli_fail(&err, o.json);
    verb = o.n_words > 0 ? o.words[0] : "";
    making = o.role != NULL || o.name != NULL || o.expires != NULL;
    if (strcmp(verb, "create") == 0 && o.n_words == 1)
        r = create(&o, &err);
    else if (strcmp(verb, "ls") == 0 && o.n_words == 1 && !making)
        r = list(&o, &err);
    else if (strcmp(verb, "revoke") == 0 && o.n_words == 2 && !making)
        r = end_it(&o, &err);
    else
        r = err_set(&err, ERR_USAGE, "cli.token.verb", "`cloche token --help` shows how it is called");
    return r < 0 ? cli_fail(&err, o.json) : 0;
}
