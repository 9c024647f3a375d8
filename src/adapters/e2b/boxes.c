/* adapters/e2b/boxes.c: E2B's sandboxes: make, list, connect, pause, end (e2b.h) */
#include <stdio.h>
#include <string.h>

#include "adapters/e2b/e2b.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/form.h"
#include "wire/json_text.h"

/* What their templates are here: the daemon's own sandbox. Any other name is a template of its owner's. */
static const char *const plain_templates[] = { "base", "code-interpreter-v1", "" };

static const char *
template_of(const struct edge_box *box)
{
    struct str asked = edge_line(box->labels, "e2b-template");
    static char room[EDGE_NAME_MAX + 1];

    if (asked.p == NULL || asked.n > EDGE_NAME_MAX)
        return box->base[0] != '\0' ? box->base : "base";
    snprintf(room, sizeof(room), "%.*s", (int)asked.n, asked.p);
    return room;
}

/* --- what is told of one ------------------------------------------------------------------------------------------ */

static json_t *
made_json(const struct edge_box *box)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:n}", "templateID", template_of(box), "sandboxID", box->id,
                     "clientID", "cloche", "envdVersion", E2B_ENVD, "envdAccessToken", ADAPT_KEY,
                     "trafficAccessToken", ADAPT_KEY, "domain");
}

static json_t *
metadata_of(const struct edge_box *box)
{
    json_t *all = json_object();

    for (const char *at = box->labels; *at == '\n' && at[1] != '\0';) {
        const char *name = at + 1, *equals = strchr(name, '='), *end = strchr(name, '\n');
        char key[EDGE_NAME_MAX + 1];
        if (equals == NULL || end == NULL || equals > end)
            break;
        snprintf(key, sizeof(key), "%.*s", (int)(equals - name), name);
        if (strncmp(key, "e2b-", 4) != 0)
            json_object_set_new(all, key, json_of_text((const uint8_t *)equals + 1, (size_t)(end - equals - 1)));
        at = end;
    }
    return all;
}

/* Of processors and memory only what was asked for is on record, and in another place: 0 is what is not told. */
static json_t *
box_json(const struct edge_box *box)
{
    uint64_t begun = box->started_ms != 0 ? box->started_ms : box->created_ms;
    char started[CLOCK_TEXT + 1], ends[CLOCK_TEXT + 1];

    clock_text((int64_t)begun, started);
    clock_text((int64_t)(begun + (box->life_s != 0 ? box->life_s : E2B_FAR_S) * 1000ULL), ends);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:o}", "templateID", template_of(box),
                     "sandboxID", box->id, "clientID", "cloche", "startedAt", started, "endAt", ends, "cpuCount", 0,
                     "memoryMB", 0, "diskSizeMB", 0, "state", box->paused ? "paused" : "running", "envdVersion",
                     E2B_ENVD, "metadata", metadata_of(box));
}

static bool
lives(const struct edge_box *box)
{
    return box->state == BOX_READY || box->state == BOX_DEGRADED;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void
on_made(struct visit *r, const struct edge_box *box)
{
    visit_told(r);
    visit_keyed(r);
    visit_json(r, HTTP_CREATED, made_json(box));
}

static const struct visit_answers made = { .box = on_made };

/* "NAME=VALUE\n" of an object of texts. False: not of these forms, which is said. */
static bool
labels_of(struct visit *r, json_t *metadata, const char *template, struct buf *out)
{
    bool well = metadata == NULL || json_is_object(metadata);
    const char *name;
    json_t *value;

    (void)buf_printf(out, "\n%s%s%s", template[0] != '\0' ? "e2b-template=" : "", template,
                     template[0] != '\0' ? "\n" : "");
    json_object_foreach(metadata, name, value) {
        const char *text = json_cstr(value);
        /* a line of its own, that says what it says here */
        well = well && text != NULL && strncmp(name, "e2b-", 4) != 0 && strpbrk(name, "=\n") == NULL &&
               strchr(text, '\n') == NULL;
        if (!well)
            break;
        (void)buf_printf(out, "%s=%s\n", name, text);
    }
    if (out->n == 1)
        buf_reset(out);
    if (well && buf_nul(out) == 0 && edge_labels_well((const char *)out->p))
        return true;
    e2b_unfit(r, "metadata is an object of texts: names of letters, digits and ._/-, at most 63 bytes and not "
              "beginning with e2b-; values of at most 255 bytes without control characters");
    return false;
}

/* The members of @o are among these. */
static bool
only(struct visit *r, const json_t *o, const char *const known[], const char *what)
{
    const char *name;
    json_t *value;
    char text[200];

    json_object_foreach((json_t *)(uintptr_t)o, name, value) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], name) != 0)
            i++;
        /* what is switched off, or empty, asks for nothing */
        if (known[i] != NULL || json_is_false(value) || (json_is_object(value) && json_object_size(value) == 0) ||
            (json_is_array(value) && json_array_size(value) == 0))
            continue;
        snprintf(text, sizeof(text), "cloche does not offer \"%.64s\" of %s", name, what);
        visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "docs/e2b.md says what to use", text);
        return false;
    }
    return true;
}

/* Without their network, none; otherwise what they name, within what the daemon allows. */
static bool
network_of(struct visit *r, json_t *policy)
{
    static const char *const known[] = { "allowOut", "denyOut", "allowPublicTraffic", NULL };
    json_t *network = json_object_get(r->json, "network"), *allow = json_object_get(network, "allowOut");
    json_t *deny = json_object_get(network, "denyOut");

    if (network != NULL && !json_is_object(network)) {
        e2b_unfit(r, "network is an object");
        return false;
    }
    if (!only(r, network, known, "a network"))
        return false;
    for (size_t i = 0; i < json_array_size(deny); i++) {
        const char *text = json_cstr(json_array_get(deny, i));
        if (text == NULL || (strcmp(text, "0.0.0.0/0") != 0 && strcmp(text, "::/0") != 0)) {
            visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "denyOut: [\"0.0.0.0/0\"], and allowOut",
                         "here everything is denied but what is named: a denial of less is not offered");
            return false;
        }
    }
    if (json_array_size(allow) > 0)
        json_object_set_new(policy, "network", json_pack("{s:s, s:O}", "mode", "allowlist", "allow", allow));
    else if (json_is_false(json_object_get(r->json, "allow_internet_access")) || json_array_size(deny) > 0)
        json_object_set_new(policy, "network", json_string("none"));
    return true;
}

static bool
seconds_of(struct visit *r, uint32_t usual, uint32_t *out)
{
    const json_t *v = json_object_get(r->json, "timeout");

    if (v == NULL)
        v = json_object_get(r->json, "duration");
    *out = usual;
    if (v == NULL)
        return true;
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > EDGE_SECONDS_MAX) {
        e2b_unfit(r, "timeout is a whole number of seconds, from 1");
        return false;
    }
    *out = (uint32_t)json_integer_value(v);
    return true;
}

/* The template's name; "" none. NULL: said. */
static const char *
base_of(struct visit *r, const char **asked)
{
    *asked = json_cstr(json_object_get(r->json, "templateID"));
    if (*asked == NULL || (*asked)[0] == '\0') {
        e2b_unfit(r, "templateID is the name of a template, or \"base\"");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(plain_templates); i++)
        if (strcmp(*asked, plain_templates[i]) == 0)
            return "";
    if (edge_name_well(*asked))
        return *asked;
    visit_refuse(r, HTTP_NOT_FOUND, "template.not-found", "GET /v1/templates lists them",
                 "there is no template of that name");
    return NULL;
}

void
e2b_create(struct visit *r)
{
    static const char *const known[] = { "templateID", "timeout", "metadata", "envVars", "allow_internet_access",
                                         "network", "secure", "autoPauseMemory", "autoResume", NULL };
    const json_t *resume = json_object_get(r->json, "autoResume");
    struct edge_create c = { .flags = EDGE_FLEETING, .name = "", .workspace = "", .volume = "", .language = "" };
    cleanup_buf struct buf labels = BUF_INIT(EDGE_LABELS_MAX);
    json_t *policy = json_object(), *env = json_object_get(r->json, "envVars");
    cleanup_free char *text = NULL;
    const char *asked;

    c.base = base_of(r, &asked);
    if (c.base != NULL && json_is_true(json_object_get(resume, "enabled")))
        visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "connect() resumes it",
                     "no sandbox resumes by itself here");
    else if (c.base != NULL && only(r, r->json, known, "a new sandbox") && seconds_of(r, E2B_TIMEOUT_S, &c.life_s) &&
             labels_of(r, json_object_get(r->json, "metadata"), asked, &labels) && network_of(r, policy)) {
        if (json_object_size(env) > 0)
            json_object_set(policy, "env", env);
        text = json_object_size(policy) > 0 ? json_dumps(policy, JSON_COMPACT) : NULL;
        c.policy = text != NULL ? text : "";
        c.labels = labels.p != NULL ? (const char *)labels.p : "";
        visit_create(r, &c, &made);
    }
    json_decref(policy);
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void
not_running(struct visit *r, const struct edge_box *box)
{
    char text[128];

    snprintf(text, sizeof(text), "the sandbox is %s", box_state_name(box->state));
    visit_refuse(r, HTTP_NOT_FOUND, "sandbox.not-found", "", text);
}

/* Look at the one that it is about first. */
static void
look_first(struct visit *r, const struct visit_answers *then)
{
    const char *id = e2b_box(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_GET, then, .id = id);
}

static void
on_shown(struct visit *r, const struct edge_box *box)
{
    if (lives(box))
        visit_json(r, HTTP_OK, box_json(box));
    else
        not_running(r, box);
}

static const struct visit_answers shown = { .box = on_shown };

void
e2b_get(struct visit *r)
{
    look_first(r, &shown);
}

static void
on_done(struct visit *r, const struct edge_box *box)
{
    (void)box;
    visit_empty(r, HTTP_NO_CONTENT);
}

static const struct visit_answers done = { .box = on_done };

static void
on_to_kill(struct visit *r, const struct edge_box *box)
{
    if (lives(box))
        VISIT_ASK(r, EDGE_ASK_DELETE, &done, .id = box->id);
    else
        not_running(r, box);        /* it is a record, and that stays */
}

static const struct visit_answers to_kill = { .box = on_to_kill };

void
e2b_kill(struct visit *r)
{
    look_first(r, &to_kill);
}

void
e2b_timeout(struct visit *r)
{
    const char *id = e2b_box(r);
    uint32_t seconds;

    if (id != NULL && seconds_of(r, E2B_TIMEOUT_S, &seconds))
        VISIT_ASK(r, EDGE_ASK_LIFE, &done, .id = id, .seconds = seconds);
}

static void
on_to_pause(struct visit *r, const struct edge_box *box)
{
    if (!lives(box))
        not_running(r, box);
    else if (box->paused)
        visit_refuse(r, HTTP_CONFLICT, "sandbox.paused", "", "the sandbox is paused already");
    else
        VISIT_ASK(r, EDGE_ASK_PAUSE, &done, .id = box->id);
}

static const struct visit_answers to_pause = { .box = on_to_pause };

void
e2b_pause(struct visit *r)
{
    look_first(r, &to_pause);
}

/* --- connecting: it goes on if it was paused, lives for so long from now, and who comes has a key ----------------- */

static void
on_keyed(struct visit *r, const struct edge_box *box)
{
    visit_keyed(r);
    visit_json(r, HTTP_OK, made_json(box));
}

static const struct visit_answers keyed = { .box = on_keyed };

static void
on_lengthened(struct visit *r, const struct edge_box *box)
{
    VISIT_ASK(r, EDGE_ASK_KEY, &keyed, .id = box->id, .more = true);
}

static const struct visit_answers lengthened = { .box = on_lengthened };

/* No timeout is made shorter by who connects. */
static void
lengthen(struct visit *r, const struct edge_box *box)
{
    const uint64_t now = clock_wall_ms(), ends = box->started_ms + box->life_s * 1000ULL;
    uint32_t seconds;

    if (!seconds_of(r, E2B_TIMEOUT_S, &seconds))
        return;
    if (box->life_s == 0 || now + seconds * 1000ULL <= ends)
        on_lengthened(r, box);
    else
        VISIT_ASK(r, EDGE_ASK_LIFE, &lengthened, .id = box->id, .seconds = seconds);
}

static const struct visit_answers resumed = { .box = lengthen };

static void
on_to_connect(struct visit *r, const struct edge_box *box)
{
    if (!lives(box))
        not_running(r, box);
    else if (box->paused)
        VISIT_ASK(r, EDGE_ASK_RESUME, &resumed, .id = box->id);
    else
        lengthen(r, box);
}

static const struct visit_answers to_connect = { .box = on_to_connect };

void
e2b_connect(struct visit *r)
{
    look_first(r, &to_connect);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Names and values that each has to have, and the states: r->json. */
static bool
wanted(const struct visit *r, const struct edge_box *box)
{
    json_t *metadata = metadata_of(box), *value;
    const char *states = json_string_value(json_object_get(r->json, "state")), *name;
    bool is = lives(box) && (states == NULL || strstr(states, box->paused ? "paused" : "running") != NULL);

    json_object_foreach(json_object_get(r->json, "metadata"), name, value)
        is = is && json_equal(json_object_get(metadata, name), value);
    json_decref(metadata);
    return is;
}

static void
on_item(struct visit *r, const struct edge_box *box)
{
    snprintf(r->id, sizeof(r->id), "%s", box->id);
    json_object_set_new(r->json, "last", json_integer((json_int_t)box->created_ms));
    if (wanted(r, box))
        json_array_append_new(r->list, box_json(box));
}

static void
on_listed(struct visit *r, uint32_t count, bool more)
{
    char next[EDGE_CURSOR_MAX + 1];

    (void)count;
    if (more) {
        snprintf(next, sizeof(next), "%.32s-%lld", r->id,
                 (long long)json_integer_value(json_object_get(r->json, "last")));
        visit_put(r, "X-Next-Token", next);
    }
    visit_json(r, HTTP_OK, json_incref(r->list));
}

static const struct visit_answers listed = { .item = on_item, .end = on_listed };

/* "user=abc&app=prod", which was encoded once more as a whole. False: it is no such text. */
static bool
metadata_asked(char *text, json_t *out)
{
    for (char *at = text, *next; at != NULL && *at != '\0'; at = next) {
        char *equals, name[EDGE_NAME_MAX + 1], value[256];
        next = strchr(at, '&');
        if (next != NULL)
            *next++ = '\0';
        equals = strchr(at, '=');
        if (equals == NULL || !url_decode(at, (size_t)(equals - at), true, name, sizeof(name)) ||
            !url_decode(equals + 1, strlen(equals + 1), true, value, sizeof(value)) ||
            json_object_set_new(out, name, json_string(value)) < 0)
            return false;
    }
    return true;
}

void
e2b_list(struct visit *r)
{
    static char text[ADAPT_QUERY_MAX + 1];
    char after[EDGE_CURSOR_MAX + 1], states[64], limit[8], id[EDGE_ID + 1];
    bool bad = false;
    const char *a = visit_query(r, "nextToken", after, sizeof(after), &bad);
    const char *s = visit_query(r, "state", states, sizeof(states), &bad);
    const char *l = visit_query(r, "limit", limit, sizeof(limit), &bad);
    const char *m = visit_query(r, "metadata", text, sizeof(text), &bad);
    json_t *metadata = json_object();
    uint64_t created, most = 100;

    r->json = json_pack("{s:o}", "metadata", metadata);
    r->list = json_array();
    if (s != NULL)
        json_object_set_new(r->json, "state", json_string(s));
    if (bad || r->json == NULL || (l != NULL && (!str_parse_u64(str_of(l), 1000, &most) || most == 0)) ||
        (a != NULL && a[0] != '\0' && !edge_cursor(a, id, &created)) || (m != NULL && !metadata_asked(text, metadata)))
        e2b_unfit(r, "state, limit (1 to 1000), nextToken, as it was told, and metadata are what a list takes");
    else
        VISIT_ASK(r, EDGE_ASK_LIST, &listed, .limit = (uint16_t)(most < EDGE_LIST_MAX ? most : EDGE_LIST_MAX),
                  .prefix = "", .label = "", .after = a != NULL ? a : "", .workspace = "");
}

/* --- is it there? ------------------------------------------------------------------------------------------------- */

static void
on_health(struct visit *r, const struct edge_box *box)
{
    if (lives(box) && !box->paused)
        visit_empty(r, HTTP_NO_CONTENT);
    else
        visit_refuse(r, 502, "sandbox.not-found", "", box->paused ? "it is paused" : "it has ended");
}

static const struct visit_answers health = { .box = on_health };

void
e2b_health(struct visit *r)
{
    look_first(r, &health);
}
