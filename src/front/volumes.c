/* front/volumes.c: /v1/volumes: durable workspaces (docs/daemon.md) */
#include <string.h>

#include "base/array.h"
#include "front/front.h"

static json_t *
json_of_volume(const struct edge_volume *v)
{
    return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:o}", "id", v->id, "owner",
                     v->owner[0] != '\0' ? json_string(v->owner) : json_null(), "name",
                     json_of_text((const uint8_t *)v->name, strlen(v->name)), "retention", (json_int_t)v->keep_s,
                     "created_ms", (json_int_t)v->created_ms, "unused_ms", (json_int_t)v->unused_ms, "sandbox",
                     v->box[0] != '\0' ? json_string(v->box) : json_null());
}

static void
on_item(struct request *r, const struct edge_volume *v)
{
    json_array_append_new(r->list, json_of_volume(v));
}

static void
on_removed(struct request *r, const struct edge_volume *v)
{
    reply_json(r, MHD_HTTP_OK, json_of_volume(v));
}

static const struct answers list_answers = { .volume = on_item, .end = reply_list, .list = "volumes" };
static const struct answers removed_answers = { .volume = on_removed };

static void
volumes_list(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_VOLUMES, &list_answers, .id = "");
}

static void
take_away(struct request *r)
{
    if (edge_is_id(r->id))
        ASK(r, EDGE_ASK_VOLUMES, &removed_answers, .id = r->id);
    else
        reply_error(r, MHD_HTTP_BAD_REQUEST, "volume.request", "GET /v1/volumes lists them",
                    "a volume is named by its id, 32 hexadecimal digits");
}

const struct route volume_routes[] = {
    { "GET",    "/v1/volumes",    volumes_list, false, false },
    { "DELETE", "/v1/volumes/{}", take_away,    false, false },
};
const size_t volume_n_routes = ARRAY_LEN(volume_routes);
