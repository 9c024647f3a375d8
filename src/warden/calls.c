/* warden/calls.c: calls of tools, for the transcripts of the sandboxes that they are about
 *
 * What a client of MCP calls is asked about as a whole before it begins (EDGE_ASK_GATE), in the words of the tool. Of a
 * sandbox that lives its keeper is told at once. A call that makes one is kept until the question comes that does it,
 * which is known by its request's span.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "warden/warden.h"

struct call {
    struct work work;               /* the request's */
    char by[EDGE_WHO_MAX + 1];
    char tool[GATE_NAME_MAX + 1];
    char *params;
};

static void
free_call(struct call *c)
{
    if (c != NULL)
        free(c->params);
    free(c);
}

static void
tell(struct box *b, const char *by, const char *tool, const char *params)
{
    if (b->r.state == BOX_READY || b->r.state == BOX_DEGRADED)      /* others keep no transcript now */
        PROTO_SAY(box_say, b, EDGE_CALL, .by = by, .tool = tool, .params = params);
}

void
call_let_through(struct warden *w, struct box *b, const char *tool, const char *params)
{
    struct call **at = &w->calls[w->n_calls % WARDEN_CALLS], *c;
    char by[EDGE_WHO_MAX + 1];

    if (strlen(params) > EDGE_MESSAGE_TEXT)
        params = "";
    who_text(w, &w->who, by);
    if (b != NULL)
        return tell(b, by, tool, params);
    c = calloc(1, sizeof(*c));
    if (c == NULL || (c->params = strdup(params)) == NULL) {
        free_call(c);
        return;
    }
    c->work = w->work;
    memcpy(c->by, by, sizeof(c->by));
    memcpy(c->tool, tool, strnlen(tool, GATE_NAME_MAX));
    free_call(*at);
    *at = c;
    w->n_calls++;
}

void
call_asked_for(struct box *b)
{
    struct warden *w = b->w;

    for (size_t i = 0; i < WARDEN_CALLS && !b->tries && w->work.trace[0] != '\0'; i++) {
        struct call *c = w->calls[i];
        if (c == NULL || memcmp(c->work.id, w->work.id, EDGE_TRACE) != 0 ||
            memcmp(c->work.span, w->work.span, EDGE_SPAN) != 0)
            continue;
        call_free(b);
        b->call = c;
        w->calls[i] = NULL;
        return;
    }
}

void
call_made(struct box *b)
{
    if (b->call != NULL)
        tell(b, b->call->by, b->call->tool, b->call->params);
    call_free(b);
}

void
call_free(struct box *b)
{
    free_call(b->call);
    b->call = NULL;
}
