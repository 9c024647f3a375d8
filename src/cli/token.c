/* cli/token.c: `cloche token`: credentials for callers of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"
#include "proto/edge.h"

struct options {
    struct api_verb v;
    const char *role, *name, *expires;
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

/* --- output ------------------------------------------------------------------------------------------------------- */

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "tokens"), *token;
    size_t i;

    printf("%-32s  %-8s  %-20.20s  %-20.20s  %s\n", "ID", "ROLE", "CREATED", "EXPIRES", "NAME");
    json_array_foreach(list, i, token) {
        struct cli_time made = api_verb_time(token, "created_ms"), over = api_verb_time(token, "expires_ms");
        /* to the second */
        printf("%-32s  %-8s  %-20.19s  %-20.19s  %s\n", api_verb_word(token, "id", ""),
               api_verb_word(token, "role", ""), made.text, over.text, api_verb_word(token, "name", ""));
    }
}

static void
print_made(const json_t *said)
{
    puts(api_verb_word(said, "token", ""));
    fprintf(stderr, "cloche: this is shown once; its id is %s\n", api_verb_word(said, "id", ""));
}

/* --- verbs -------------------------------------------------------------------------------------------------------- */

static int
create(struct options *o, struct err *err)
{
    enum edge_role role;
    uint64_t ms = 0;
    json_t *body;
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
    r = api_verb_ask(&o->v, "POST", "/v1/tokens", body, print_made, err);
    json_decref(body);
    return r;
}

static int
list(struct options *o, struct err *err)
{
    return api_verb_ask(&o->v, "GET", "/v1/tokens", NULL, print_list, err);
}

static int
end_it(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    buf_puts(&path, "/v1/tokens/");
    if (api_escape(&path, o->v.words[1]) < 0)
        return err_set(err, ERR_USAGE, "cli.token.id", "that is no token's id");
    if (api_verb_ask(&o->v, "DELETE", (const char *)path.p, NULL, NULL, err) == 0)
        return 0;
    return err_is(err, "token.request") ? err_hint(err, "`cloche token ls` shows their ids") : -1;
}

int
cmd_token(int argc, char **argv)
{
    struct options o = { .role = NULL };
    const struct api_verb_flag flags[] = {
        { "--role", .value = &o.role }, { "--name", .value = &o.name }, { "--expires", .value = &o.expires },
        { .name = NULL },
    };
    static const char *const words[] = { "create", "ls", "revoke", NULL };
    struct err err = ERR_INIT;
    const char *verb;
    bool making;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_verb_words(&o.v, 3, flags, argc, argv, &err) < 0)
        return cli_fail(&err, o.v.json);
    verb = o.v.n_words > 0 ? o.v.words[0] : "";
    making = o.role != NULL || o.name != NULL || o.expires != NULL;
    if (strcmp(verb, "create") == 0 && o.v.n_words == 1)
        r = create(&o, &err);
    else if (strcmp(verb, "ls") == 0 && o.v.n_words == 1 && !making)
        r = list(&o, &err);
    else if (strcmp(verb, "revoke") == 0 && o.v.n_words == 2 && !making)
        r = end_it(&o, &err);
    else
        r = cli_misused("cli.token.verb", "token", verb, words, &err);
    return r < 0 ? cli_fail(&err, o.v.json) : 0;
}
