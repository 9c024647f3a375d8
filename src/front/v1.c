/* front/v1.c: /v1: sandboxes, commands, events, the kill switch (docs/openapi.yaml) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "front/front.h"

#define DAY_S   (24UL * 3600)
#define KEY_MAX 255     /* characters of an idempotency key */

/* --- what most answers are ---------------------------------------------------------------------------------------- */

static void
on_box(struct request *r, const struct edge_box *box)
{
    reply_json(r, MHD_HTTP_OK, json_of_box(box));
}

/* What became of "reattach": the one that was there is it, or it was destroyed, or there was none. */
static bool
add_how(json_t *made, const char *how)
{
    struct str was = edge_line(how, "replaced"), differs = edge_line(how, "differs");
    bool taken = str_eq_c(edge_line(how, "reattached"), "yes");
    json_t *replaced = json_null();

    if (was.p != NULL && differs.p != NULL) {
        json_t *names = json_array();
        for (size_t at = 0, n; at < differs.n; at += n + 1) {
            n = strcspn(differs.p + at, ",\n");
            json_array_append_new(names, json_stringn(differs.p + at, n));
        }
        replaced = json_pack("{s:o, s:o}", "id", json_stringn(was.p, was.n), "differs", names);
    }
    json_object_set_new(made, "reattached", json_boolean(taken));
    json_object_set_new(made, "replaced", replaced);
    return taken;
}

static void
on_created(struct request *r, const struct edge_box *box)
{
    json_t *made = json_of_box(box);
    bool taken = box->how[0] != '\0' && add_how(made, box->how);
    char at[sizeof("/v1/sandboxes/") + EDGE_ID];

    json_object_set_new(made, "key", r->key[0] != '\0' ? json_string(r->key) : json_null());
    reply_json(r, taken ? MHD_HTTP_OK : MHD_HTTP_CREATED, made);
    snprintf(at, sizeof(at), "/v1/sandboxes/%s", box->id);
    if (!taken)
        reply_location(r, at);
}

static void
on_key(struct request *r, const struct edge_box *box)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s, s:s}", "id", box->id, "key", r->key));
}

static const struct answers box_answers = { .box = on_box };
static const struct answers created_answers = { .box = on_created };
static const struct answers key_answers = { .box = on_key };

/* --- creating ----------------------------------------------------------------------------------------------------- */

static bool
seconds_of(struct request *r, const char *name, uint32_t *out)
{
    const json_t *v = json_object_get(r->json, name);

    *out = 0;
    if (v == NULL)
        return true;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > (json_int_t)(365 * DAY_S))
        return reply_unfit(r, "sandbox.request",
                           "idle_timeout and max_lifetime are whole numbers of seconds; 0 is the daemon's own");
    *out = (uint32_t)json_integer_value(v);
    return true;
}

#define LABEL_FORM "a label's name has at most 63 letters, digits and ._/-, its value at most 255 bytes without " \
                   "control characters; all together 4096 bytes"

static bool
labels_of(struct request *r, struct buf *out)
{
    json_t *labels = json_object_get(r->json, "labels"), *value;
    const char *name;

    if (labels == NULL)
        return buf_nul(out) == 0;
    if (!json_is_object(labels))
        return reply_unfit(r, "sandbox.request", "labels is an object of strings");
    if (json_object_size(labels) > 0)
        buf_put_u8(out, '\n');
    json_object_foreach(labels, name, value) {
        if (json_cstr(value) == NULL)
            return reply_unfit(r, "sandbox.request", "labels is an object of strings");
        if (strpbrk(name, "=\n") != NULL)      /* they would part it elsewhere */
            return reply_unfit(r, "sandbox.request", LABEL_FORM);
        buf_printf(out, "%s=", name);
        buf_puts(out, json_string_value(value));
        buf_put_u8(out, '\n');
    }
    if (buf_nul(out) < 0 || !edge_labels_well((const char *)out->p))
        return reply_unfit(r, "sandbox.request", LABEL_FORM);
    return true;
}

static bool
members_known(struct request *r)
{
    static const char *const known[] = { "name", "labels", "policy", "idle_timeout", "max_lifetime",
                                         "workspace_key", "reattach", "volume", "recovery",
                                         "template", "persistent", NULL };
    const char *name = json_unknown(r->json, known);

    return name == NULL || reply_member(r, "sandbox.request", name, "known members: name, labels, policy, "
                                        "idle_timeout, max_lifetime, workspace_key, reattach, volume, recovery, "
                                        "template, persistent");
}

/* draft-ietf-httpapi-idempotency-key-header; neither the key nor the body is kept, only what tells them from others. */
static bool
key_of(struct request *r, struct edge_create *c, uint8_t key[SHA256_SIZE], uint8_t body[SHA256_SIZE])
{
    const char *text = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Idempotency-Key");
    size_t n = text != NULL ? strlen(text) : 0;

    if (text == NULL)
        return true;
    for (size_t i = 0; i < n; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            n = 0;
    if (n == 0 || n > KEY_MAX) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, "idempotency.key", "a UUID is a good one",
                    "an Idempotency-Key has 1 to %d visible characters", KEY_MAX);
        return false;
    }
    sha256_of(text, n, key);
    sha256_of(r->body.p, r->body.n, body);
    c->key = key;
    c->body = body;
    return true;
}

static bool
workspace_of(struct request *r, struct edge_create *c)
{
    const json_t *key = json_object_get(r->json, "workspace_key"), *reattach = json_object_get(r->json, "reattach");

    c->workspace = key != NULL ? json_cstr(key) : "";
    if (key != NULL && (c->workspace == NULL || c->workspace[0] == '\0' || !edge_workspace_well(c->workspace)))
        return reply_unfit(r, "sandbox.request",
                           "workspace_key is a string of 1 to 255 bytes without control characters");
    if (reattach != NULL && !json_is_boolean(reattach))
        return reply_unfit(r, "sandbox.request", "reattach is true or false");
    if (json_is_true(reattach) && key == NULL)
        return reply_unfit(r, "sandbox.request",
                           "reattach needs a workspace_key: it says which sandboxes may be taken");
    if (json_is_true(reattach))
        c->flags |= EDGE_REATTACH;
    return true;
}

/* {"name": TEXT, "retention": SECONDS}; a volume of a workspace need not be named. */
static bool
volume_of(struct request *r, struct edge_create *c)
{
    static const char *const known[] = { "name", "retention", NULL };
    const json_t *volume = json_object_get(r->json, "volume");
    const json_t *name = json_object_get(volume, "name"), *keep = json_object_get(volume, "retention");
    const char *member = json_unknown(volume, known);

    c->volume = "";
    c->keep_s = EDGE_KEEP_SAME;
    if (volume == NULL)
        return true;
    if (member != NULL)
        return reply_member(r, "sandbox.request", member, "a volume's known members: name, retention");
    c->volume = name != NULL ? json_cstr(name) : c->workspace;
    if (!json_is_object(volume) || c->volume == NULL || c->volume[0] == '\0' || !edge_workspace_well(c->volume))
        return reply_unfit(r, "sandbox.request",
                           "volume is an object with a name of 1 to 255 bytes without control characters, or none "
                           "where there is a workspace_key");
    return json_number(keep, 0, (json_int_t)(365 * DAY_S), &c->keep_s) ||
           reply_unfit(r, "sandbox.request", "retention is a whole number of seconds; 0: until it is removed");
}

/* What comes back is its volume, so it has one. */
static bool
persists(struct request *r, struct edge_create *c)
{
    const json_t *v = json_object_get(r->json, "persistent");

    if (v != NULL && !json_is_boolean(v))
        return reply_unfit(r, "sandbox.request", "persistent is true or false");
    if (json_is_true(v) && c->volume[0] == '\0')
        return reply_unfit(r, "sandbox.request", "persistent needs a volume: its files are what comes back");
    if (json_is_true(v))
        c->flags |= EDGE_PERSISTS;
    return true;
}

/* The name or id of the template that its files begin as. */
static bool
base_of(struct request *r, struct edge_create *c)
{
    const json_t *v = json_object_get(r->json, "template");

    c->base = v != NULL ? json_cstr(v) : "";
    if (v == NULL || (c->base != NULL && edge_name_well(c->base)))
        return c->base[0] == '\0' || c->volume[0] == '\0' ||
               reply_unfit(r, "sandbox.request", "template or volume: both bring files of the workspace");
    return reply_unfit(r, "sandbox.request", "template is the name or the id of one: GET /v1/templates");
}

/* {"after": SECONDS, "tries": N, "window": SECONDS}, or false. What is not said is the daemon's own. */
static bool
recovery_of(struct request *r, struct edge_create *c)
{
    static const char *const known[] = { "after", "tries", "window", NULL };
    const json_t *recovery = json_object_get(r->json, "recovery");
    const char *member = json_unknown(recovery, known);

    if (recovery == NULL)
        return true;
    if (json_is_false(recovery)) {
        c->recovery.after_s = EDGE_RECOVER_NEVER;
        return true;
    }
    if (member != NULL)
        return reply_member(r, "sandbox.request", member, "known members of recovery: after, tries, window");
    if (!json_number(json_object_get(recovery, "after"), 1, EDGE_RECOVER_AFTER, &c->recovery.after_s) ||
        !json_number(json_object_get(recovery, "tries"), 1, EDGE_RECOVER_TRIES, &c->recovery.tries) ||
        !json_number(json_object_get(recovery, "window"), EDGE_RECOVER_WINDOW_MIN, EDGE_RECOVER_WINDOW,
                     &c->recovery.window_s) ||
        c->recovery.after_s == 0)       /* not named, or this is no object */
        return reply_unfit(r, "sandbox.request",
                           "recovery is false, or an object with after (seconds, 1 to 86400), and if you like tries "
                           "(1 to 20) and window (seconds, 60 to 2592000)");
    return true;
}

bool
box_name_of(struct request *r, const char **out)
{
    const json_t *v = json_object_get(r->json, "name");

    *out = v != NULL ? json_cstr(v) : "";
    return v == NULL || (*out != NULL && edge_name_well(*out) && !edge_is_id(*out)) ||
           reply_unfit(r, "sandbox.request", "a name begins with a letter or digit and has at most 63 of these and "
                       "._- (32 hexadecimal digits are an id)");
}

static void
create(struct request *r)
{
    cleanup_buf struct buf labels = BUF_INIT(EDGE_LABELS_MAX);
    const json_t *policy = json_object_get(r->json, "policy");
    struct edge_create c = { .flags = 0 };
    uint8_t key[SHA256_SIZE], body[SHA256_SIZE];
    char *text = NULL;

    if (r->json != NULL && !json_is_object(r->json)) {
        reply_unfit(r, "sandbox.request", "the body is an object");
        return;
    }
    if (!members_known(r) || !seconds_of(r, "idle_timeout", &c.idle_s) || !seconds_of(r, "max_lifetime", &c.life_s) ||
        !labels_of(r, &labels) || !workspace_of(r, &c) || !volume_of(r, &c) || !recovery_of(r, &c) ||
        !base_of(r, &c) || !persists(r, &c) || !key_of(r, &c, key, body) || !box_name_of(r, &c.name))
        return;
    if (policy != NULL && !json_is_object(policy)) {
        reply_unfit(r, "sandbox.request", "policy is an object, as a settings file in JSON");
        return;
    }
    if (policy != NULL && json_object_size(policy) > 0)
        text = json_dumps(policy, JSON_COMPACT | JSON_DIGITS);
    c.labels = labels.p != NULL ? (const char *)labels.p : "";
    c.policy = text != NULL ? text : "";
    c.language = "";
    ask_create(r, &c, &created_answers);
    free(text);
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static void
on_item(struct request *r, const struct edge_box *box)
{
    json_t *one = json_of_box(box);

    json_object_set_new(one, "policy", json_null());        /* not said in lists */
    json_array_append_new(r->list, one);
}

static void
on_list_end(struct request *r, uint32_t count, bool more)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O, s:o}", "sandboxes", r->list, "next", json_of_next(r->list, more)));
}

static const struct answers list_answers = { .item = on_item, .end = on_list_end };

static bool
limit_of(const struct request *r, uint64_t max, uint64_t usual, uint16_t *out)
{
    char room[16];
    bool bad = false;
    const char *text = query_get(r, "limit", room, sizeof(room), &bad);
    uint64_t v = usual;

    if (bad || (text != NULL && (!str_parse_u64(str_of(text), max, &v) || v == 0)))
        return false;
    *out = (uint16_t)v;
    return true;
}

static void
v1_list(struct request *r)
{
    char prefix[EDGE_NAME_MAX + 1], label[400], line[512] = "", after[EDGE_CURSOR_MAX + 1], state[32];
    char workspace[EDGE_WORKSPACE_MAX + 1], id[EDGE_ID + 1];
    const char *p, *l, *a, *s, *k;
    uint64_t created;
    bool bad = false;
    uint16_t limit;

    p = query_get(r, "prefix", prefix, sizeof(prefix), &bad);
    l = query_get(r, "label", label, sizeof(label), &bad);
    a = query_get(r, "after", after, sizeof(after), &bad);
    s = query_get(r, "state", state, sizeof(state), &bad);
    k = query_get(r, "workspace_key", workspace, sizeof(workspace), &bad);
    if (l != NULL) {
        size_t n = strlen(l);
        memcpy(line + 1, l, n);
        line[0] = line[n + 1] = '\n';
        line[n + 2] = '\0';
    }
    if (bad || !edge_labels_well(line) || (k != NULL && !edge_workspace_well(k)) ||
        (a != NULL && a[0] != '\0' && !edge_cursor(a, id, &created)) ||        /* "": from the beginning */
        (s != NULL && strcmp(s, "all") != 0 && strcmp(s, "live") != 0) ||
        !limit_of(r, EDGE_LIST_MAX, 100, &limit)) {
        reply_unfit(r, "sandbox.request",
                    "prefix=TEXT, label=NAME=VALUE, state=live or all, limit=1..200, after=NEXT of the former answer, "
                    "workspace_key=TEXT");
        return;
    }
    r->list = json_array();
    ASK(r, EDGE_ASK_LIST, &list_answers, .all = s != NULL && strcmp(s, "all") == 0, .limit = limit, .prefix = p,
        .label = line, .after = a, .workspace = k);
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void
get(struct request *r)
{
    ASK(r, EDGE_ASK_GET, &box_answers, .id = r->id);
}

static void
delete_it(struct request *r)
{
    ASK(r, EDGE_ASK_DELETE, &box_answers, .id = r->id);
}

static void
pause_it(struct request *r)
{
    ASK(r, EDGE_ASK_PAUSE, &box_answers, .id = r->id);
}

static void
resume(struct request *r)
{
    ASK(r, EDGE_ASK_RESUME, &box_answers, .id = r->id);
}

static void
recover(struct request *r)
{
    ASK(r, EDGE_ASK_RECOVER, &box_answers, .id = r->id);
}

static void
new_key(struct request *r)
{
    ASK(r, EDGE_ASK_KEY, &key_answers, .id = r->id, .more = false);
}

static void
exec(struct request *r)
{
    static struct edge_op op;

    if (!exec_request(r, &op))
        return;
    if ((op.flags & OP_BACKGROUND) != 0)
        run_begin(r, &op);
    else
        exec_run(r, r->id, &op, wants_events(r));
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void
on_event(struct request *r, const struct edge_event *event)
{
    json_array_append_new(r->list, json_of_event(event));
}

static const struct answers event_answers = { .event = on_event, .end = reply_list, .list = "events" };

static void
events(struct request *r)
{
    char room[EDGE_NAME_MAX + 1];
    bool bad = false;
    const char *id = query_get(r, "sandbox", room, sizeof(room), &bad);
    uint16_t limit;

    if (bad || (id != NULL && !edge_is_id(id) && !edge_name_well(id)) || !limit_of(r, 1000, 100, &limit)) {
        reply_unfit(r, "events.request", "sandbox=ID or name, limit=1..1000");
        return;
    }
    r->list = json_array();
    ASK(r, EDGE_ASK_EVENTS, &event_answers, .limit = limit, .id = id);
}

static void
on_stopped(struct request *r, uint32_t count, bool more)
{
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:I}", "stopped", (json_int_t)count));
}

static const struct answers stopped_answers = { .end = on_stopped };

static void
stop_all(struct request *r)
{
    ASK(r, EDGE_ASK_STOP_ALL, &stopped_answers, .none = 0);
}

static void
health(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s, s:s}", "status", "ok", "version", CLOCHE_VERSION));
}

const struct route v1_routes[] = {
    { "GET",    "/v1/health",               health,    false, false, .open = true },
    { "GET",    "/v1/events",               events,    false, false },
    { "POST",   "/v1/kill",                 stop_all,  true,  false },
    { "POST",   "/v1/sandboxes",            create,    true,  false },
    { "GET",    "/v1/sandboxes",            v1_list,   false, false },
    { "GET",    "/v1/sandboxes/{}",         get,       false, false },
    { "DELETE", "/v1/sandboxes/{}",         delete_it, false, false },
    { "POST",   "/v1/sandboxes/{}/pause",   pause_it,  true,  false },
    { "POST",   "/v1/sandboxes/{}/resume",  resume,    true,  false },
    { "POST",   "/v1/sandboxes/{}/recover", recover,   true,  false },
    { "POST",   "/v1/sandboxes/{}/key",     new_key,   true,  false },
    { "POST",   "/v1/sandboxes/{}/exec",    exec,      true,  false },
};
const size_t v1_n_routes = ARRAY_LEN(v1_routes);
