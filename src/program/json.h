/* program/json.h: texts of JSON that another process said */
#ifndef CLOCHE_PROGRAM_JSON_H
#define CLOCHE_PROGRAM_JSON_H

#include <jansson.h>

/* The text of @o's member @name; "" where there is none. Borrowed. */
static inline const char *
json_text(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));

    return text != NULL ? text : "";
}

#endif
