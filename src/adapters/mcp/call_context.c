/* adapters/mcp/call_context.c: contexts: processes that run code for one call after the other (docs/daemon.md) */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "adapters/mcp/mcp.h"
#include "base/array.h"
#include "base/str.h"
#include "match/language.h"
#include "wire/json_text.h"

bool
context_of(struct visit *r, uint64_t *number)
{
    const char *id = mcp_text(r, "context_id");

    if (id != NULL && str_parse_u64(str_of(id), INT64_MAX, number) && *number > EDGE_CONTEXT_NEW)
        return true;
    mcp_fail(r, "context.unknown", "context_id names no context");
    return false;
}

/* --- code in one -------------------------------------------------------------------------------------------------- */

void
context_result(struct visit *r, const uint8_t *p, size_t n, bool last)
{
    struct rich *rich = &r->mcp->rich;
    size_t had = rich->values;

    (void)rich_add(rich, p, n, last, visit_room(r, 2 * n));
    if (!visit_room(r, RICH_VALUE * (rich->values - had)))
        rich->values = RICH_VALUES;     /* no more of them */
}

void
context_ran(struct visit *r, const struct edge_run *run)
{
    r->mcp->context_state = edge_context_state(run);
}

/* Pictures are told as such, and not once more as text. */
static void
take_picture(json_t *one, const char *key, const char *type, json_t *pictures)
{
    json_t *data = json_object_get(one, key);

    if (data == NULL)
        return;
    json_array_append_new(pictures, json_pack("{s:s, s:O, s:s}", "type", "image", "data", data, "mimeType", type));
    json_object_set_new(one, key, json_sprintf("content[%zu]", json_array_size(pictures)));
}

json_t *
context_put(struct visit *r, json_t *body)
{
    json_t *pictures = json_array(), *raised, *one;
    size_t i;

    json_object_set_new(body, "context_id", json_string(mcp_text(r, "context_id")));
    json_object_set_new(body, "context_state", json_string(r->mcp->context_state != NULL ? r->mcp->context_state
                                                                                           : "dead"));
    raised = json_incref(json_object_get(body, "error"));       /* of the time, or the memory */
    rich_put(&r->mcp->rich, body);
    if (!json_is_null(raised))
        json_object_set(body, "error", raised);
    else if (r->mcp->rich.error != NULL)
        json_object_set_new(body, "error", json_sprintf("%s: %s",
                            json_string_value(json_object_get(r->mcp->rich.error, "name")),
                            json_string_value(json_object_get(r->mcp->rich.error, "value"))));
    json_decref(raised);
    json_array_foreach(json_object_get(body, "results"), i, one) {
        take_picture(one, "png", "image/png", pictures);
        take_picture(one, "jpeg", "image/jpeg", pictures);
    }
    return pictures;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static void
add(struct visit *r, const struct edge_run *run)
{
    if ((run->state & RUN_CONTEXT) == 0)
        return;
    if (r->list == NULL)
        r->list = json_array();
    json_array_append_new(r->list, json_pack("{s:o, s:s, s:o}", "context_id", json_sprintf("%" PRIu64, run->number),
                                             "state", edge_context_state(run), "language",
                                             json_of_text((const uint8_t *)run->name, strlen(run->name))));
}

static void
on_done(struct visit *r, uint64_t count)
{
    json_t *contexts = r->list != NULL ? json_incref(r->list) : json_array(), *body;
    bool all = strcmp(mcp_text(r, "action"), "list") == 0;

    (void)count;
    if (!all && json_array_size(contexts) == 0) {
        json_decref(contexts);
        mcp_fail(r, "context.unknown", "context_id names no context");
        return;
    }
    body = json_pack("{s:b, s:s, s:n}", "success", 1, "sandbox_id", r->mcp->box, "error");
    if (all)
        json_object_set(body, "contexts", contexts);
    else
        json_object_update(body, json_array_get(contexts, 0));
    json_decref(contexts);
    mcp_done(r, body, false);
}

static const struct visit_answers plain = { .gate = mcp_verdict, .no = mcp_fail_err };
static const struct visit_op_answers told = { .run = add, .done = on_done, .failed = mcp_fail_err };

static void
create(struct visit *r)
{
    static struct edge_op op;
    const struct language *l = language_find(mcp_text(r, "language"));

    if (l == NULL) {
        mcp_fail(r, "InvalidArguments", "create needs a language");
        return;
    }
    if (!mcp_gate_own(r))
        return;
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.flags = OP_BACKGROUND;
    op.context = EDGE_CONTEXT_NEW;
    op.path = "";
    op.argv[0] = l->name;
    op.n_argv = 1;
    adapters_packages(l, &op);
    visit_op(r, r->mcp->box, &op, &plain, &told);
}

void
call_context(struct visit *r)
{
    static const struct { const char *action; enum run_ask ask; uint8_t signal; } rows[] = {
        { "list", RUN_LIST, 0 }, { "restart", RUN_RESTART, 0 }, { "interrupt", RUN_SIGNAL, SIGINT },
        { "delete", RUN_END, 0 },
    };
    const char *action = mcp_text(r, "action");
    struct edge_run_ask ask = { .number = 0 };

    if (!call_names_box(r))
        return;
    if (strcmp(action, "create") == 0) {
        create(r);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].action, action) != 0)
            continue;
        ask.what = rows[i].ask;
        ask.signal = rows[i].signal;
        ask.context = ask.what != RUN_LIST;
        if (!ask.context || context_of(r, &ask.number))
            visit_run(r, r->mcp->box, &ask, &plain, &told);
        return;
    }
    mcp_fail(r, "InvalidArguments", "action is not one of create, list, restart, interrupt, delete");
}
