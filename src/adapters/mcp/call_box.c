/* adapters/mcp/call_box.c: tools about sandboxes as such */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"
#include "match/language.h"

/* --- making ------------------------------------------------------------------------------------------------------- */

/* The network that was asked for; false: it cannot be had. */
static bool
network_of(struct visit *r, const char *language, json_t *policy)
{
    const json_t *domains = json_object_get(r->mcp->args, "allowed_domains");
    json_t *list = json_array(), *network;

    for (size_t i = 0; i < json_array_size(domains); i++) {
        json_t *one = json_array_get(domains, i);
        if (!mcp_domain_well(json_string_value(one))) {
            mcp_fail(r, "InvalidArguments",
                     "allowed_domains[%zu] is not a name of a host (addresses are never opened here)", i);
            json_decref(list);
            return false;
        }
        json_array_append(list, one);
    }
    if (json_array_size(list) > 0) {
        network = json_pack("{s:s, s:o}", "mode", "allowlist", "allow", list);
    } else {
        const struct language *one = language_find(language);

        /* the shell has none of its own, and uses all */
        for (size_t i = 0; i < LANGUAGES && (one == NULL || one->registry == NULL); i++)
            if (languages[i].registry != NULL)
                json_array_append_new(list, json_string(languages[i].registry));
        if (one != NULL && one->registry != NULL)
            json_array_append_new(list, json_string(one->registry));
        network = json_pack("{s:s, s:o}", "mode", "allowlist", "registries", list);
    }
    json_object_set_new(policy, "network", network);
    return true;
}

bool
call_make(struct visit *r, const char *name, const char *language, const struct visit_answers *answers)
{
    const struct language *l = language_find(language);
    json_t *policy = json_object();
    cleanup_free char *text = NULL;
    struct edge_create create = { .flags = EDGE_FLEETING, .idle_s = MCP_IDLE_S, .name = name,
                                  .labels = "\nmade-by=mcp\n", .workspace = "", .volume = "",
                                  .language = l != NULL && l->parked != NULL ? l->name : "" };

    if (!mcp_true(r, "network_enabled") && json_array_size(json_object_get(r->mcp->args, "allowed_domains")) > 0) {
        mcp_fail(r, "InvalidArguments", "allowed_domains needs network_enabled");
        json_decref(policy);
        return false;
    }
    if (mcp_true(r, "network_enabled") && !network_of(r, language, policy)) {
        json_decref(policy);
        return false;
    }
    /* left out, the daemon's settings say; refused, there is none, whatever they say */
    if (json_is_false(json_object_get(r->mcp->args, "network_enabled")))
        json_object_set_new(policy, "network", json_string("none"));
    text = json_object_size(policy) > 0 ? json_dumps(policy, JSON_COMPACT) : NULL;
    json_decref(policy);
    create.policy = text != NULL ? text : "";
    visit_create(r, &create, answers);
    return true;
}

static json_t *
box_json(const struct edge_box *box)
{
    struct str network = edge_line(box->facts, "network");

    return json_pack("{s:s, s:o, s:s, s:o}", "sandbox_id", box->id, "name",
                     json_of_text((const uint8_t *)box->name, strlen(box->name)), "state", box_state_name(box->state),
                     "network", network.p != NULL ? json_stringn(network.p, network.n) : json_string("unknown"));
}

static void
on_created(struct visit *r, const struct edge_box *box)
{
    json_t *body = box_json(box);

    r->mcp->made = true;
    json_object_set_new(body, "success", json_true());
    json_object_set_new(body, "error", json_null());
    mcp_done(r, body, false);
}

static const struct visit_answers created = { .box = on_created, .gate = mcp_verdict, .no = mcp_fail_err };

void
call_create(struct visit *r)
{
    const char *name = mcp_text(r, "name");

    if (name != NULL && (!edge_name_well(name) || edge_is_id(name)))
        mcp_fail(r, "InvalidArguments", "a name begins with a letter or digit and has at most 63 of these and ._-");
    else if (mcp_gate_own(r))
        (void)call_make(r, name != NULL ? name : "", mcp_text(r, "language"), &created);
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static void
on_item(struct visit *r, const struct edge_box *box)
{
    json_array_append_new(r->list, box_json(box));
}

static void
on_listed(struct visit *r, uint32_t count, bool more)
{
    (void)count;
    mcp_done(r, json_pack("{s:b, s:O, s:b, s:n}", "success", 1, "sandboxes", r->list, "truncated", more, "error"),
             false);
}

static const struct visit_answers listed = { .item = on_item, .end = on_listed, .no = mcp_fail_err };

void
call_list(struct visit *r)
{
    const json_t *limit = json_object_get(r->mcp->args, "limit");

    r->list = json_array();
    VISIT_ASK(r, EDGE_ASK_LIST, &listed, .limit = limit != NULL ? (uint16_t)json_integer_value(limit) : 100);
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void
on_destroyed(struct visit *r, const struct edge_box *box)
{
    mcp_done(r, json_pack("{s:b, s:s, s:s, s:n}", "success", 1, "sandbox_id", box->id, "message",
                          "Sandbox destroyed successfully", "error"), false);
}

static const struct visit_answers destroyed = { .box = on_destroyed, .no = mcp_fail_err };

void
call_destroy(struct visit *r)
{
    if (call_names_box(r))
        VISIT_ASK(r, EDGE_ASK_DELETE, &destroyed, .id = r->mcp->box);
}

static void
on_port_box(struct visit *r, const struct edge_box *box)
{
    (void)box;
    mcp_fail(r, "NoAddress", "no browser reaches this daemon: it listens at no TCP address (cloche serve --listen "
             "tcp:127.0.0.1:7700)");
}

static void
on_exposed(struct visit *r, json_t *body)
{
    json_object_set(body, "sandbox_id", json_object_get(body, "sandbox"));
    json_object_set_new(body, "success", json_true());
    json_object_set_new(body, "error", json_null());
    mcp_done(r, body, false);
}

static const struct visit_answers port_box = { .box = on_port_box, .no = mcp_fail_err };
static const struct visit_answers exposed = { .port = on_exposed, .no = mcp_fail_err };

void
call_expose(struct visit *r)
{
    const json_t *port = json_object_get(r->mcp->args, "port");

    if (!call_names_box(r))
        return;
    if (r->has_address)
        VISIT_ASK(r, EDGE_ASK_EXPOSE, &exposed, .id = r->mcp->box, .port = (uint16_t)json_integer_value(port));
    else
        VISIT_ASK(r, EDGE_ASK_GET, &port_box, .id = r->mcp->box);
}

/* What a sandbox changed is its user's to look at and to take over, on the host: a result names the command. */
static void
on_workspace_box(struct visit *r, const struct edge_box *box)
{
    struct str cow = edge_line(box->facts, "cow");
    const char *verb = r->mcp->tool->name;

    if (cow.p == NULL) {
        mcp_fail(r, "NoCopyOnWrite", "this sandbox has a workspace of its own and no folder of the user's under it: "
                 "read its files with code_read_file");
        return;
    }
    if (strcmp(verb, "apply") == 0) {
        mcp_fail(r, "UserOnly", "only the user can take changes over, with: cloche apply %.*s", (int)cow.n, cow.p);
        return;
    }
    mcp_done(r, json_pack("{s:b, s:s, s:o, s:n}", "success", 1, "sandbox_id", box->id, "command",
                          json_sprintf("cloche diff %.*s", (int)cow.n, cow.p), "error"), false);
}

static const struct visit_answers workspace_box = { .box = on_workspace_box, .no = mcp_fail_err };

void
call_workspace(struct visit *r)
{
    if (call_names_box(r))
        VISIT_ASK(r, EDGE_ASK_GET, &workspace_box, .id = r->mcp->box);
}

bool
call_names_box(struct visit *r)
{
    const char *id = mcp_text(r, "sandbox_id");

    if (id == NULL || (!edge_is_id(id) && !edge_name_well(id))) {
        mcp_fail(r, "sandbox.not-found", "sandbox_id names no sandbox");
        return false;
    }
    memcpy(r->mcp->box, id, strlen(id) + 1);
    return true;
}
