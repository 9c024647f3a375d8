/* adapters/adapters.c: from a request to the adapter that answers it (see visit.h) */
#include <stdio.h>
#include <string.h>

#include "adapters/api.h"
#include "adapters/desktop.h"
#include "adapters/e2b/e2b.h"
#include "adapters/mcp/mcp.h"
#include "match/package.h"
#include "wire/whole.h"

#define FUNCTION(method, path, function, flags) function,
#define FLAGS(method, path, function, flags) flags,
#define PATH(method, path, function, flags) path,

static void (*const functions[])(struct visit *r) = { VISIT_ROUTES(FUNCTION) };
static const uint8_t flags_of[] = { VISIT_ROUTES(FLAGS) };
static const char *const paths[] = { VISIT_ROUTES(PATH) };

struct visit *adapters_visits;

int
adapters_open(const char *engine)
{
    api_platform_look(engine);
    return mcp_open();
}

int
adapters_languages(void)
{
    return mcp_tools_open();
}

/* False: said. Which route has which words is the sheet's that other programs match on. */
static void
refuse_json(struct visit *r, unsigned status, const char *what)
{
    if ((flags_of[r->row] & (VISIT_API_KEY | VISIT_BOX_KEY)) != 0)
        visit_refuse(r, status, "http.json", "", what);
    else
        api_refuse(r, status, what);
}

static bool
json_well(struct visit *r)
{
    if (r->body.n == 0)
        return true;
    if (r->no_room) {
        refuse_json(r, HTTP_TOO_LARGE, "the body has too many values");
        return false;
    }
    r->json = json_loadb(r->body.p, r->body.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    json_whole_numbers(r->json);
    json_drop_nulls(r->json, NULL);
    if (r->json == NULL)
        refuse_json(r, HTTP_BAD_REQUEST, strcmp(paths[r->row], "/api/sandbox/screen/screenshot") == 0
                                            ? "Invalid JSON body" : "Invalid JSON in request body");
    return r->json != NULL;
}

void
adapters_packages(const struct language *l, struct edge_op *op)
{
    static char packages[128];

    if (l->packages == NULL)
        return;
    snprintf(packages, sizeof(packages), "%s=" PACKAGES_PYTHON, l->packages);
    op->env[op->n_env++] = packages;
}

void
adapters_begin(struct visit *r)
{
    r->out = r->err_out = (struct buf)BUF_INIT(VISIT_RESULT_MAX);
    r->next = adapters_visits;
    adapters_visits = r;
    if ((flags_of[r->row] & VISIT_JSON) == 0 || json_well(r))
        functions[r->row](r);
}

void
adapters_gone(struct visit *r)
{
    for (struct visit **at = &adapters_visits; *at != NULL; at = &(*at)->next) {
        if (*at != r)
            continue;
        *at = r->next;
        break;
    }
    mcp_gone(r);
    desktop_gone(r);
    e2b_gone(r);
    json_decref(r->json);
    json_decref(r->list);
    buf_free(&r->out);
    buf_free(&r->err_out);
}
