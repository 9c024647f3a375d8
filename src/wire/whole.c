/* wire/whole.c: see whole.h; the depth is the JSON parser's, which refuses what is nested deeper */
#include "wire/whole.h"

#include <stdbool.h>
#include <string.h>

#define WHOLE_MAX 9007199254740992.0    /* 2^53 */

static bool
is_whole(const json_t *v)
{
    double d = json_real_value(v);

    return json_is_real(v) && d >= -WHOLE_MAX && d <= WHOLE_MAX && (double)(json_int_t)d == d;
}

void
json_whole_numbers(json_t *json)
{
    json_t *v;
    size_t i;

    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        v = json_object_iter_value(at);
        if (is_whole(v))
            (void)json_object_iter_set_new(json, at, json_integer((json_int_t)json_real_value(v)));
        else
            json_whole_numbers(v);
    }
    json_array_foreach(json, i, v) {
        if (is_whole(v))
            (void)json_array_set_new(json, i, json_integer((json_int_t)json_real_value(v)));
        else
            json_whole_numbers(v);
    }
}

void
json_drop_nulls(json_t *json, const char *but)
{
    const char *name;
    json_t *v;
    void *next;
    size_t i;

    json_object_foreach_safe(json, next, name, v) {
        if (json_is_null(v))
            (void)json_object_del(json, name);
        else if (but == NULL || strcmp(name, but) != 0)
            json_drop_nulls(v, NULL);
    }
    for (i = 0; i < json_array_size(json); i++)
        json_drop_nulls(json_array_get(json, i), NULL);
}
