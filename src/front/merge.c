/* front/merge.c: see merge.h; the depth is the JSON parser's, which refuses what is nested deeper */
#include "front/merge.h"

json_t *
json_merge_patch(json_t *target, json_t *patch)
{
    const char *name;
    json_t *value;

    if (!json_is_object(patch)) {
        json_decref(target);
        return json_deep_copy(patch);
    }
    if (!json_is_object(target)) {
        json_decref(target);
        target = json_object();
    }
    json_object_foreach(patch, name, value) {
        json_t *merged;
        if (json_is_null(value)) {
            (void)json_object_del(target, name);
            continue;
        }
        merged = json_merge_patch(json_incref(json_object_get(target, name)), value);
        if (merged == NULL || json_object_set_new(target, name, merged) < 0) {
            json_decref(target);
            return NULL;
        }
    }
    return target;
}
