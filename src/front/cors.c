/* front/cors.c: pages of other sites that may ask (allowed-origins), as browsers want it said (Fetch, 3.2)
 *
 * A browser lets such a page's request out and keeps the answer from it, unless the answer names the page's origin; and
 * asks beforehand, without any credential, whether a request of more than a form's kind may come. Both are about what
 * browsers show to whom: what a request may is judged by its own credential, which the page has to have; cookies, of
 * which there are none, are never allowed. Pages of ours are read by nobody else's, and previews speak for themselves.
 */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "front/front.h"

#define MAX_AGE "7200"      /* seconds; a request's own origin is judged each time */

static bool
is_ours_to_say(const struct request *r)
{
    return !r->unshared && !r->host_form;
}

void
cors_put(struct request *r)
{
    struct header origin = header_of(r, MHD_HTTP_HEADER_ORIGIN);
    cleanup_free char *said = NULL;
    static const char exposed[] = "Accept-Patch, Accept-Ranges, Allow, Content-Range, ETag, Location, Mcp-Session-Id, "
                                  "Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id, traceparent";

    if (!is_ours_to_say(r) || r->f->doors.n_origins == 0)
        return;
    (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
    if (!r->shared)
        return;
    /* judged by then, and one of a few (doors.c); as it came, for that is what a browser compares it with */
    said = str_to_cstr((struct str){ origin.value, origin.size });
    if (said != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, said);
    (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

bool
cors_preflight(struct request *r)
{
    static const struct { const char *name, *value; } said[] = {
        { MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
          "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-Range, Last-Event-ID, "
          "Mcp-Protocol-Version, Mcp-Session-Id, Prefer, Range, X-Sandbox-Key, traceparent, tracestate" },
        { MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, MAX_AGE },
    };

    if (!r->shared || !is_ours_to_say(r) || r->allowed[0] == '\0' || strcmp(r->method, MHD_HTTP_METHOD_OPTIONS) != 0 ||
        header_of(r, MHD_HTTP_HEADER_ACCESS_CONTROL_REQUEST_METHOD).n != 1)
        return false;
    reply_empty(r, MHD_HTTP_NO_CONTENT);
    if (r->response == NULL)
        return true;
    (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, r->allowed);
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        (void)MHD_add_response_header(r->response, said[i].name, said[i].value);
    return true;
}
