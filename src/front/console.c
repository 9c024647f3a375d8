/* front/console.c: /console, a page for the people who look after sandboxes (docs/console.md)
 *
 * The page is files of ours (console/), the same for whoever opens it. It speaks the public routes as any client does,
 * with a token of its own, which it has for a ticket: POST /v1/console makes one, POST /v1/console/open takes it.
 */
#include <string.h>

#include "base/array.h"
#include "front/console.h"
#include "front/preview.h"

#define FOR_USUAL    28800      /* seconds of a session */
#define WITHIN_USUAL 120        /* and for its ticket to be used */

/* --- tickets ------------------------------------------------------------------------------------------------------ */

static void
on_ticket(struct request *r, const struct edge_token *token, const char *text)
{
    json_t *one = json_pack("{s:s, s:s, s:I}", "ticket", text, "role", edge_role_name(token->role), "expires_ms",
                            (json_int_t)token->expires_ms);

    ports_put(r, one, json_sprintf("/console#ticket=%s", text));
    reply_json(r, MHD_HTTP_CREATED, one);
}

static const struct answers ticket_answers = { .token = on_ticket };

static void
mint(struct request *r)
{
    static const char *const known[] = { "role", "seconds", "within", NULL };
    const json_t *role = json_object_get(r->json, "role");
    uint32_t seconds = FOR_USUAL, within = WITHIN_USUAL;
    enum edge_role which = EDGE_OPERATOR;

    if (r->json != NULL && (!json_is_object(r->json) || json_unknown(r->json, known) != NULL))
        reply_unfit(r, "console.request", "the body is an object; known members: role, seconds, within");
    else if (role != NULL && (!json_is_string(role) || !edge_role_parse(json_string_value(role), &which) ||
                              !edge_role_of_person((uint8_t)which)))
        reply_unfit(r, "console.request", "role is operator, approver or auditor");
    else if (!json_number(json_object_get(r->json, "seconds"), 1, EDGE_CONSOLE_FOR_MAX, &seconds))
        reply_unfit(r, "console.request", "seconds, of the session, is a whole number from 1 to 86400");
    else if (!json_number(json_object_get(r->json, "within"), 1, EDGE_CONSOLE_WITHIN_MAX, &within))
        reply_unfit(r, "console.request", "within, the seconds for the ticket to be used, is from 1 to 600");
    else
        ASK(r, EDGE_ASK_CONSOLE, &ticket_answers, .role = (uint8_t)which, .seconds = seconds, .within = within);
}

static bool
is_ticket(const char *text)
{
    const size_t n = sizeof(EDGE_CONSOLE_TICKET) - 1;

    return text != NULL && strncmp(text, EDGE_CONSOLE_TICKET, n) == 0 && edge_digest_well(text + n);
}

static const struct answers opened_answers = { .token = token_reply };

static void
open_it(struct request *r)
{
    static const char *const known[] = { "ticket", NULL };
    const char *ticket = json_cstr(json_object_get(r->json, "ticket"));

    if (!doors_own_page(r))
        reply_error(r, MHD_HTTP_FORBIDDEN, "http.origin", "", "the request comes from another site's page");
    else if (!json_is_object(r->json) || json_unknown(r->json, known) != NULL || !is_ticket(ticket))
        reply_unfit(r, "console.request", "the body is an object with a ticket: " EDGE_CONSOLE_TICKET "...");
    else
        ASK(r, EDGE_ASK_CONSOLE_OPEN, &opened_answers, .ticket = ticket);
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

/* No inline script or style, nothing from elsewhere, no form, no frame; and no text is ever read as HTML by a script,
 * where a browser knows Trusted Types. */
static void
file_reply(struct request *r, const struct console_file *file)
{
    static const char *const own[][2] = {
        { "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                                     "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
                                     "require-trusted-types-for 'script'; trusted-types 'none'" },
        { "Referrer-Policy", "no-referrer" },
        { "Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()" },
        { NULL, NULL },
    };

    reply_page(r, MHD_HTTP_OK, file->type, file->text, strlen(file->text), own);
}

static void
page(struct request *r)
{
    file_reply(r, &console_files[0]);
}

static void
file(struct request *r)
{
    for (size_t i = 1; i < console_n_files; i++)
        if (strcmp(console_files[i].name, r->rest) == 0)
            return file_reply(r, &console_files[i]);
    reply_error(r, MHD_HTTP_NOT_FOUND, "http.route", "", "the console has no such file");
}

/* The page is for whoever opens it: it says nothing of any sandbox. */
const struct route console_routes[] = {
    { "POST", "/v1/console",      mint,    true,  false },
    { "POST", "/v1/console/open", open_it, true,  false, .open = true, .ours = true },
    { "GET",  "/console",         page,    false, false, .open = true, .ours = true },
    { "GET",  "/console/{*}",     file,    false, false, .open = true, .ours = true },
};
const size_t console_n_routes = ARRAY_LEN(console_routes);
