/* front/tokens.c: /v1/tokens: credentials of callers (docs/daemon.md) */
#include <string.h>

#include "base/array.h"
#include "front/console.h"

static json_t *
json_of_token(const struct edge_token *token)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:o}", "id", token->id, "role", edge_role_name(token->role), "name",
                     token->name, "created_ms", (json_int_t)token->created_ms, "expires_ms", token->expires_ms > 0
                     ? json_integer((json_int_t)token->expires_ms) : json_null());
}

void
token_reply(struct request *r, const struct edge_token *token, const char *text)
{
    json_t *made = json_of_token(token);

    json_object_set_new(made, "token", json_string(text));
    reply_json(r, MHD_HTTP_CREATED, made);
}

static void
on_item(struct request *r, const struct edge_token *token, const char *text)
{
    (void)text;
    json_array_append_new(r->list, json_of_token(token));
}

static void
on_revoked(struct request *r, const struct edge_token *token, const char *text)
{
    (void)text;
    reply_json(r, MHD_HTTP_OK, json_of_token(token));
}

static const struct answers made_answers = { .token = token_reply };
static const struct answers list_answers = { .token = on_item, .end = reply_list, .list = "tokens" };
static const struct answers revoked_answers = { .token = on_revoked };

static bool
members_known(const json_t *body)
{
    static const char *const known[] = { "role", "name", "expires", NULL };

    return json_is_object(body) && json_unknown(body, known) == NULL;
}

static void
create(struct request *r)
{
    const json_t *role = json_object_get(r->json, "role"), *name = json_object_get(r->json, "name");
    const json_t *expires = json_object_get(r->json, "expires");
    const char *text = name != NULL ? json_cstr(name) : "";
    enum edge_role which;

    if (!members_known(r->json))
        reply_unfit(r, "token.request", "the body is an object; known members: role, name, expires");
    else if (!json_is_string(role) || !edge_role_parse(json_string_value(role), &which) || which >= EDGE_KEY)
        reply_unfit(r, "token.request", "role is operator, agent, approver or auditor");
    else if (text == NULL || (name != NULL && !edge_name_well(text)))
        reply_unfit(r, "token.request", "a name begins with a letter or digit and has at most 63 of these and ._-");
    else if (expires != NULL && (!json_is_integer(expires) || json_integer_value(expires) < 0 ||
                                 json_integer_value(expires) > (json_int_t)TOKEN_LIVES_MAX))
        reply_unfit(r, "token.request", "expires is a whole number of seconds, at most ten years; 0 or absent: never");
    else
        ASK(r, EDGE_ASK_TOKEN, &made_answers, .what = TOKEN_MAKE, .role = (uint8_t)which,
            .seconds = expires != NULL ? (uint64_t)json_integer_value(expires) : 0, .text = text);
}

static void
tokens_list(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_TOKEN, &list_answers, .what = TOKEN_LIST);
}

static void
end_it(struct request *r)
{
    if (edge_is_id(r->id))
        ASK(r, EDGE_ASK_TOKEN, &revoked_answers, .what = TOKEN_REVOKE, .text = r->id);
    else
        reply_unfit(r, "token.request", "a token is named by its id, 32 hexadecimal digits");
}

const struct route token_routes[] = {
    { "POST",   "/v1/tokens",    create,      true,  false },
    { "GET",    "/v1/tokens",    tokens_list, false, false },
    { "DELETE", "/v1/tokens/{}", end_it,      false, false },
};
const size_t token_n_routes = ARRAY_LEN(token_routes);
