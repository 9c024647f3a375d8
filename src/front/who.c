/* front/who.c: whose a request is
 *
 * A credential comes as `Authorization: Bearer TOKEN` (RFC 6750; the scheme in any case) or, a sandbox's key, as
 * `X-Sandbox-Key: KEY`. It is handed to the warden at once and not kept: the warden's handle for it is what the
 * request's questions carry. Where a connection has an owner, a request with a credential has that one's rights and no
 * more.
 */
#include <string.h>
#include <strings.h>

#include "front/front.h"

struct presented {
    unsigned n;                 /* of either header */
    enum edge_credential kind;
    const char *value;
};

static enum MHD_Result
on_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct presented *p = ctx;
    bool bearer = strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0;

    (void)kind;
    if (bearer || strcasecmp(name, "X-Sandbox-Key") == 0) {
        p->n++;
        p->kind = bearer ? EDGE_BEARER : EDGE_SANDBOX_KEY;
        p->value = value != NULL ? value : "";
    }
    return MHD_YES;
}

/* The credential in an Authorization of the one scheme there is; NULL in any other. */
static const char *
bearer_of(const char *value)
{
    if (strncasecmp(value, "bearer", 6) != 0 || value[6] != ' ')
        return NULL;
    value += 6;
    return value + strspn(value, " ");
}

static void
on_who(struct request *r)
{
    (void)r;        /* it goes on when it is woken */
}

static const struct answers who_answers = { .who = on_who };

bool
who_admit(struct request *r)
{
    struct presented p = { .n = 0 };
    const char *text;

    (void)MHD_get_connection_values(r->c, MHD_HEADER_KIND, on_header, &p);
    if (p.n == 0 && !r->f->strangers)
        return true;
    if (p.n == 0) {
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.required", "Authorization: Bearer TOKEN; `cloche token create` "
                    "makes one", "this needs a credential");
        return false;
    }
    text = p.kind == EDGE_BEARER ? bearer_of(p.value) : p.value;
    if (p.n > 1)
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "one Authorization or one X-Sandbox-Key, not both",
                    "the request has more than one credential");
    else if (text == NULL || !edge_credential_well(p.kind, text))
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "Authorization: Bearer cloche_ROLE_..., or "
                    "X-Sandbox-Key: cloche_key_...", "the credential is malformed");
    else
        ask_who(r, p.kind, text, &who_answers);
    return false;
}
