/* front/attach.c: /v1/sandboxes/{}/attach: tickets for editors, sessions, and their connections (docs/attach.md) */
#include <string.h>

#include "base/array.h"
#include "front/live.h"
#include "front/preview.h"

#define FOR_USUAL    1800       /* seconds of a session */
#define WITHIN_USUAL 120        /* and for its ticket to be used */

static json_t *
json_of_attach(const struct edge_attach *a)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "id", a->id, "sandbox", a->box, "mode",
                     edge_attach_mode(a->screen, a->writes), "expires_ms", (json_int_t)a->until_ms, "seconds",
                     (json_int_t)a->seconds, "person", json_of_text((const uint8_t *)a->who, strlen(a->who)), "user",
                     json_of_text((const uint8_t *)a->user, strlen(a->user)), "workspace",
                     json_of_text((const uint8_t *)a->workspace, strlen(a->workspace)));
}

/* A member that is text of at most @most bytes, without NUL; NULL. */
static const char *
text_of(const json_t *body, const char *member, size_t most)
{
    const char *text = json_cstr(json_object_get(body, member));

    return text != NULL && strlen(text) <= most ? text : NULL;
}

/* --- tickets ------------------------------------------------------------------------------------------------------ */

static void
on_ticket(struct request *r, const struct edge_attach *a, const char *text)
{
    json_t *one = json_of_attach(a);

    json_object_set_new(one, "ticket", json_string(text));
    reply_json(r, MHD_HTTP_CREATED, one);
}

static const struct answers ticket_answers = { .attached = on_ticket };

static bool
read_mode(const char *mode, bool *screen, bool *writes)
{
    for (unsigned how = 0; how < 4; how++) {
        *screen = (how & 1) != 0;
        *writes = (how & 2) != 0;
        if (strcmp(mode, edge_attach_mode(*screen, *writes)) == 0)
            return true;
    }
    return false;
}

static void
mint(struct request *r)
{
    static const char *const known[] = { "mode", "seconds", "within", NULL };
    uint32_t seconds = FOR_USUAL, within = WITHIN_USUAL;
    bool screen, writes;
    const char *mode = text_of(r->json, "mode", 16);

    if (!json_is_object(r->json) || json_unknown(r->json, known) != NULL)
        reply_unfit(r, "attach.request", "the body is an object; known members: mode, seconds, within");
    else if (mode == NULL || !read_mode(mode, &screen, &writes))
        reply_unfit(r, "attach.request", "mode is \"inspect\" or \"write\", or for the desktop \"view\" or "
                    "\"control\"");
    else if (!json_number(json_object_get(r->json, "seconds"), 1, EDGE_ATTACH_FOR_MAX, &seconds))
        reply_unfit(r, "attach.request", "seconds, of the session, is a whole number from 1 to 43200");
    else if (!json_number(json_object_get(r->json, "within"), 1, EDGE_ATTACH_WITHIN_MAX, &within))
        reply_unfit(r, "attach.request", "within, the seconds for the ticket to be used, is from 1 to 600");
    else
        ASK(r, EDGE_ASK_ATTACH, &ticket_answers, .id = r->id, .writes = writes, .screen = screen,
            .seconds = seconds, .within = within);
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

static void
on_opened(struct request *r, const struct edge_attach *a, const char *text)
{
    json_t *one = json_of_attach(a);

    json_object_set_new(one, "token", json_string(text));
    if (a->screen)
        ports_put(r, one, json_sprintf("/desktop#%s=%s:%s", edge_attach_mode(true, a->writes), text, a->box));
    reply_json(r, MHD_HTTP_CREATED, one);
}

static void
on_item(struct request *r, const struct edge_attach *a, const char *text)
{
    (void)text;
    json_array_append_new(r->list, json_of_attach(a));
}

static void
on_ended(struct request *r, const struct edge_attach *a, const char *text)
{
    (void)text;
    reply_json(r, MHD_HTTP_OK, json_of_attach(a));
}

static const struct answers open_answers = { .attached = on_opened };
static const struct answers list_answers = { .attached = on_item, .end = reply_list, .list = "sessions" };
static const struct answers ended_answers = { .attached = on_ended };

static void
open_it(struct request *r)
{
    static const char *const known[] = { "ticket", NULL };
    const char *ticket = text_of(r->json, "ticket", EDGE_TICKET_MAX);

    if (!json_is_object(r->json) || json_unknown(r->json, known) != NULL || ticket == NULL)
        reply_unfit(r, "attach.request", "the body is an object with a ticket, which is text");
    else
        ASK(r, EDGE_ASK_OPEN, &open_answers, .id = r->id, .ticket = ticket);
}

static void
list(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_SESSIONS, &list_answers, .id = r->id);
}

static void
end_it(struct request *r)
{
    static const char none[] = "00000000000000000000000000000000";

    /* what is no id is asked for too: whether the sandbox is the caller's comes first */
    ASK(r, EDGE_ASK_DETACH, &ended_answers, .id = r->id, .which = edge_is_id(r->rest) ? r->rest : none);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static void
on_session(struct request *r, const struct edge_attach *a, const char *text)
{
    (void)text;
    if (a->screen)
        reply_error(r, MHD_HTTP_FORBIDDEN, "attach.mode", "GET .../desktop/view", "this session is for the desktop");
    else
        live_upgrade(r);
}

static const struct answers session_answers = { .attached = on_session };

static void
tunnel(struct request *r)
{
    ASK(r, EDGE_ASK_SESSION, &session_answers, .id = r->id);    /* before anything is upgraded: whose it is */
}

void
attach_connect(struct request *r, const struct answers *answers)
{
    static const char *const known[] = { "host_key", "user_key", NULL };
    const char *host = text_of(r->json, "host_key", EDGE_ATTACH_KEY_MAX);
    const char *user = text_of(r->json, "user_key", EDGE_ATTACH_KEY_MAX);

    if (!json_is_object(r->json) || json_unknown(r->json, known) != NULL || host == NULL || user == NULL ||
        !edge_attach_keys_well(host, user))
        reply_unfit(r, "attach.request", "the first message is an object with host_key, an Ed25519 private key as "
                    "ssh-keygen writes it, and user_key, the type and the base64 of a public one");
    else
        ASK(r, EDGE_ASK_TUNNEL, answers, .id = r->id, .host_key = host, .user_key = user);
}

const struct route attach_routes[] = {
    { "POST",   "/v1/sandboxes/{}/attach",      mint,    true,  false },
    { "GET",    "/v1/sandboxes/{}/attach",      list,    false, false },
    { "POST",   "/v1/sandboxes/{}/attach/open", open_it, true,  false },
    { "GET",    "/v1/sandboxes/{}/attach/ws",   tunnel,  false, false, .endless = true },
    { "DELETE", "/v1/sandboxes/{}/attach/sessions/{*}", end_it, false, false },
};
const size_t attach_n_routes = ARRAY_LEN(attach_routes);
