/* front/templates.c: /v1/templates, and sandboxes that begin with another one's files (docs/daemon.md)
 *
 * A fork is a template that nobody sees, and sandboxes that are made of it one after the other. All of them are made,
 * or none stays: where one is refused, those that are there already are deleted before the client hears why.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "front/front.h"

#define CODE      "sandbox.request"
#define FORKS_MAX 64

struct fork {
    struct edge_create create;          /* what each is made of; its texts are owned */
    char *labels, name[EDGE_NAME_MAX + 1];
    char base[EDGE_ID + 1];
    size_t count;
    uint64_t bytes, paused_us;
    struct err why;                     /* one was refused */
    size_t undone;                      /* of those that are there, so many are deleted */
};

void
fork_free(struct request *r)
{
    if (r->fork != NULL)
        free(r->fork->labels);
    free(r->fork);
    r->fork = NULL;
}

static json_t *
json_of_template(const struct edge_volume *v)
{
    return json_pack("{s:s, s:o, s:s, s:I, s:I}", "id", v->id, "owner",
                     v->owner[0] != '\0' ? json_string(v->owner) : json_null(), "name", v->name, "bytes",
                     (json_int_t)v->bytes, "created_ms", (json_int_t)v->created_ms);
}

/* --- templates ---------------------------------------------------------------------------------------------------- */

static void
on_item(struct request *r, const struct edge_volume *v)
{
    json_array_append_new(r->list, json_of_template(v));
}

static void
on_removed(struct request *r, const struct edge_volume *v)
{
    reply_json(r, MHD_HTTP_OK, json_of_template(v));
}

static void
on_made(struct request *r, const struct edge_volume *v)
{
    json_t *made = json_of_template(v);

    json_object_set_new(made, "paused_us", json_integer((json_int_t)v->paused_us));
    reply_json(r, MHD_HTTP_CREATED, made);
}

static const struct answers list_answers = { .volume = on_item, .end = reply_list, .list = "templates" };
static const struct answers removed_answers = { .volume = on_removed };
static const struct answers made_answers = { .volume = on_made };

static void
templates_list(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_TEMPLATES, &list_answers, .id = "");
}

static void
take_away(struct request *r)
{
    ASK(r, EDGE_ASK_TEMPLATES, &removed_answers, .id = r->id);
}

static void
snapshot(struct request *r)
{
    static const char *const known[] = { "name", NULL };
    const char *name, *member = json_unknown(r->json, known);

    if (!json_is_object(r->json) || json_object_get(r->json, "name") == NULL)
        reply_unfit(r, CODE, "the body is an object with the name of the template");
    else if (member != NULL)
        reply_member(r, CODE, member, "known members: name");
    else if (box_name_of(r, &name))
        ASK(r, EDGE_ASK_SNAPSHOT, &made_answers, .id = r->id, .name = name);
}

/* --- forks -------------------------------------------------------------------------------------------------------- */

static void undo(struct request *r);

static void
on_undone(struct request *r, const struct edge_box *box)
{
    (void)box;
    undo(r);
}

static void
on_not_undone(struct request *r, const struct err *err)
{
    (void)err;      /* it has ended by itself, or whoever may not end it will find it in the list */
    undo(r);
}

static const struct answers undo_answers = { .box = on_undone, .no = on_not_undone };

static void
undo(struct request *r)
{
    struct fork *f = r->fork;
    const json_t *one = json_array_get(r->list, f->undone++);

    if (one == NULL)
        reply_err(r, &f->why);
    else
        ASK(r, EDGE_ASK_DELETE, &undo_answers, .id = json_string_value(json_object_get(one, "id")));
}

static void fork_next(struct request *r);

static void
on_forked(struct request *r, const struct edge_box *box)
{
    json_t *one = json_of_box(box);

    json_object_set_new(one, "key", r->key[0] != '\0' ? json_string(r->key) : json_null());
    explicit_bzero(r->key, sizeof(r->key));
    json_array_append_new(r->list, one);
    fork_next(r);
}

static void
on_not_forked(struct request *r, const struct err *err)
{
    r->fork->why = *err;
    undo(r);
}

static const struct answers fork_answers = { .box = on_forked, .no = on_not_forked };

static void
fork_next(struct request *r)
{
    struct fork *f = r->fork;
    struct edge_create c = f->create;
    size_t n = json_array_size(r->list);
    char name[EDGE_NAME_MAX + 1];

    if (n == f->count) {
        reply_json(r, MHD_HTTP_CREATED, json_pack("{s:O, s:I, s:I}", "sandboxes", r->list, "bytes",
                                                  (json_int_t)f->bytes, "paused_us", (json_int_t)f->paused_us));
        return;
    }
    snprintf(name, sizeof(name), "%s", f->name);
    if (f->name[0] != '\0' && f->count > 1)
        snprintf(name, sizeof(name), "%.*s-%zu", EDGE_NAME_MAX - 3, f->name, n + 1);
    c.name = name;
    c.base = f->base;
    ask_create(r, &c, &fork_answers);
}

static void
on_copied(struct request *r, const struct edge_volume *v)
{
    struct fork *f = r->fork;

    memcpy(f->base, v->id, sizeof(f->base));
    f->bytes = v->bytes;
    f->paused_us = v->paused_us;
    r->async = false;       /* an approval for what is gone by then would be for nothing */
    r->list = json_array();
    fork_next(r);
}

static const struct answers copied_answers = { .volume = on_copied };

/* What it is made of but its files and its policy, which come with the template. */
static void
on_source(struct request *r, const struct edge_box *box)
{
    struct fork *f = r->fork;
    const struct edge_recovery *again = &box->recovery;

    f->labels = strdup(box->labels);
    if (f->labels == NULL) {
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "try again", "out of memory");
        return;
    }
    f->create = (struct edge_create){ .idle_s = box->idle_s, .life_s = box->life_s, .labels = f->labels, .policy = "",
                                      .workspace = "", .volume = "", .keep_s = EDGE_KEEP_SAME, .language = "" };
    f->create.recovery.after_s = again->after_s != 0 ? again->after_s : EDGE_RECOVER_NEVER;
    if (again->after_s != 0) {
        f->create.recovery.tries = again->tries;
        f->create.recovery.window_s = again->window_s;
    }
    ASK(r, EDGE_ASK_SNAPSHOT, &copied_answers, .id = r->id, .name = "");
}

static const struct answers source_answers = { .box = on_source };

static void
fork_it(struct request *r)
{
    static const char *const known[] = { "name", "count", NULL };
    uint32_t count = 1;
    const char *name, *member = json_unknown(r->json, known);

    if (r->json != NULL && !json_is_object(r->json)) {
        reply_unfit(r, CODE, "the body is an object");
        return;
    }
    if (member != NULL) {
        reply_member(r, CODE, member, "known members: name, count");
        return;
    }
    if (!json_number(json_object_get(r->json, "count"), 1, FORKS_MAX, &count)) {
        reply_unfit(r, CODE, "count is a whole number from 1 to 64");
        return;
    }
    if (!box_name_of(r, &name))
        return;
    r->fork = calloc(1, sizeof(*r->fork));
    if (r->fork == NULL) {
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "try again", "out of memory");
        return;
    }
    r->fork->count = count;
    snprintf(r->fork->name, sizeof(r->fork->name), "%s", name);
    ASK(r, EDGE_ASK_GET, &source_answers, .id = r->id);
}

const struct route template_routes[] = {
    { "POST",   "/v1/sandboxes/{}/fork",     fork_it,        true,  false },
    { "POST",   "/v1/sandboxes/{}/snapshot", snapshot,       true,  false },
    { "GET",    "/v1/templates",             templates_list, false, false },
    { "DELETE", "/v1/templates/{}",          take_away,      false, false },
};
const size_t template_n_routes = ARRAY_LEN(template_routes);
