/* cli/token.c: `cloche token`: credentials for callers of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "proto/edge.h"

struct options {
    struct api_verb v;
    const char *role, *name, *expires;
};

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

/* What only a new one has. */
static int
refuse_making(const struct options *o, const char *verb, struct err *err)
{
    if (o->role == NULL && o->name == NULL && o->expires == NULL)
        return 0;
    err_set(err, ERR_USAGE, "cli.token.verb", "--role, --name and --expires are not for `cloche token %s`", verb);
    return err_hint(err, "`cloche token --help` shows how it is called");
}

static int
create(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    enum edge_role role;
    uint64_t ms = 0;
    json_t *body;
    int r;

    (void)w;
    if (o->role == NULL || !edge_role_parse(o->role, &role) || role >= EDGE_KEY) {
        err_set(err, ERR_USAGE, "cli.token.role", o->role == NULL ? "which role?%s" : "\"%s\" is no role of a token",
                o->role == NULL ? "" : o->role);
        return err_hint(err, "--role agent, operator, approver or auditor; docs/daemon.md says what each may");
    }
    if (o->expires != NULL && (!str_parse_duration_ms(str_of(o->expires), TOKEN_LIVES_MAX * 1000, &ms) || ms < 1000 ||
                               ms % 1000 != 0)) {
        err_set(err, ERR_USAGE, "cli.token.expires", "--expires %s is not a whole number of seconds", o->expires);
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
token_list(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;

    (void)w;
    if (refuse_making(o, "ls", err) < 0)
        return -1;
    return api_verb_ask(&o->v, "GET", "/v1/tokens", NULL, print_list, err);
}

static int
revoke(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (refuse_making(o, "revoke", err) < 0)
        return -1;
    buf_puts(&path, "/v1/tokens/");
    if (api_escape(&path, w->v[0]) < 0)
        return err_set(err, ERR_USAGE, "cli.token.id", "that is not a token's id");
    if (api_verb_ask(&o->v, "DELETE", (const char *)path.p, NULL, NULL, err) == 0)
        return 0;
    return err_is(err, "token.request") ? err_hint(err, "`cloche token ls` shows their ids") : -1;
}

int
cmd_token(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "create", "create --role agent|operator|approver|auditor [--name NAME] [--expires TIME] [--json]", 0, 0,
          .run = create },
        { "ls", "ls [--json]", 0, 0, .run = token_list },
        { "revoke", "revoke ID [--json]", 1, 1, .run = revoke },
    };
    static const struct verb_flag flags[] = {
        { "--role", 0, "ROLE", "what its holder may do: agent, operator, approver or auditor",
          FLAG_TEXT(struct options, role) },
        { "--name", 0, "NAME", "a name for your own use", FLAG_TEXT(struct options, name) },
        { "--expires", 0, "TIME", "when it ends: 90s, 30m, 12h (never)", FLAG_TEXT(struct options, expires) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb token = {
        .name = "token", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .needs_word = true,
        .misused = "cli.token.verb",
        .about = "Credentials for clients of a running cloche serve. A token is printed once; only its hash is "
                 "stored.",
    };
    struct options o = { .role = NULL };

    return verb_main(&token, &o, argc, argv);
}
