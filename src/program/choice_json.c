/* program/choice_json.c: see choice_json.h */
#include "program/choice_json.h"

#include "program/policy_json.h"

static json_t *
row_json(const struct engine_row *row, bool taken)
{
    return json_pack("{s:s, s:o, s:s, s:b, s:o}", "engine", row->engine, "runtime", policy_json_text(row->runtime),
                     "boundary", policy_boundary_name(row->boundary), "taken", (int)taken, "why",
                     policy_json_text(row->why));
}

void
choice_json(const struct engine_choice *choice, bool engine, json_t *object)
{
    const struct engine_row *taken = choice->taken < choice->n ? &choice->v[choice->taken] : NULL;
    json_t *considered = json_array();

    if (engine)
        json_object_set_new(object, "engine", policy_json_text(taken != NULL ? taken->engine : NULL));
    json_object_set_new(object, "runtime", policy_json_text(taken != NULL ? taken->runtime : NULL));
    json_object_set_new(object, "boundary",
                        policy_json_text(taken != NULL ? policy_boundary_name(taken->boundary) : NULL));
    for (size_t i = 0; i < choice->n; i++)
        json_array_append_new(considered, row_json(&choice->v[i], i == choice->taken));
    json_object_set_new(object, "considered", considered);
}
