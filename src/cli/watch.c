/* cli/watch.c: questions of ps, top, events and logs (see watch.h) */
#include "cli/watch.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

int
watch_resolve(const struct watch_options *o, const char *which, char id[EDGE_ID + 1], struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    const char *found;
    json_t *box;

    if (edge_is_id(which)) {
        memcpy(id, which, EDGE_ID + 1);
        return 0;
    }
    if (api_verb_sandbox(&path, which, "", err) < 0 ||
        api_ask(&o->v.api, "GET", (const char *)path.p, NULL, &box, err) < 0)
        return -1;
    found = json_string_value(json_object_get(box, "id"));
    if (found == NULL || !edge_is_id(found)) {
        json_decref(box);
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon says no id of that sandbox");
    }
    memcpy(id, found, EDGE_ID + 1);
    json_decref(box);
    return 0;
}

/* Every page of the list into @all. */
static int
list_all(const struct watch_options *o, json_t *all, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    char after[128] = "";

    for (;;) {
        json_t *page;
        const char *next;
        buf_reset(&path);
        buf_printf(&path, "/v1/sandboxes?limit=200%s", o->all ? "&state=all" : "");
        if ((o->label != NULL && (buf_puts(&path, "&label=") < 0 || api_escape(&path, o->label) < 0)) ||
            (after[0] != '\0' && (buf_puts(&path, "&after=") < 0 || api_escape(&path, after) < 0)) ||
            buf_nul(&path) < 0)
            return err_set(err, ERR_USAGE, "cli.flag-value", "--label is too long");
        if (api_ask(&o->v.api, "GET", (const char *)path.p, NULL, &page, err) < 0)
            return -1;
        if (json_array_extend(all, json_object_get(page, "sandboxes")) < 0) {
            json_decref(page);
            return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon's list holds no sandboxes");
        }
        next = json_string_value(json_object_get(page, "next"));
        snprintf(after, sizeof(after), "%s", next != NULL ? next : "");
        json_decref(page);
        if (after[0] == '\0')
            return 0;
    }
}

static void
add_usage(json_t *boxes, const json_t *usage)
{
    json_t *box;
    const json_t *one;
    size_t i, j;

    json_array_foreach(boxes, i, box) {
        json_object_set_new(box, "usage", json_null());
        json_array_foreach(usage, j, one) {
            const char *id = json_string_value(json_object_get(one, "id"));
            const char *of = json_string_value(json_object_get(box, "id"));
            if (id != NULL && of != NULL && strcmp(id, of) == 0)
                json_object_set(box, "usage", json_array_get(usage, j));
        }
    }
}

json_t *
watch_sandboxes(const struct watch_options *o, struct err *err)
{
    json_t *all = json_array(), *usage = NULL;

    if (all == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    if (list_all(o, all, err) < 0 || api_ask(&o->v.api, "GET", "/v1/usage", NULL, &usage, err) < 0) {
        json_decref(all);
        return NULL;
    }
    add_usage(all, json_object_get(usage, "usage"));
    json_decref(usage);
    return all;
}
