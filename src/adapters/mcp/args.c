/* adapters/mcp/args.c: what a tool may be given (see message.h) */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "adapters/mcp/message.h"

#define DOMAIN_MAX  260

/* --- schemas ------------------------------------------------------------------------------------------------------ */

static bool
type_fits(const char *type, const json_t *v)
{
    return (strcmp(type, "string") == 0 && json_is_string(v)) || (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(v)) || (strcmp(type, "array") == 0 && json_is_array(v)) ||
           (strcmp(type, "object") == 0 && json_is_object(v)) || (strcmp(type, "number") == 0 && json_is_number(v));
}

static bool
is_one_of(const json_t *list, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), v))
            return true;
    return false;
}

static bool
value_fits(const char *name, const json_t *schema, const json_t *v, char *why, size_t size)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    const json_t *list = json_object_get(schema, "enum"), *low = json_object_get(schema, "minimum");
    const json_t *high = json_object_get(schema, "maximum"), *length = json_object_get(schema, "maxLength");
    const json_t *items = json_object_get(schema, "items"), *most = json_object_get(schema, "maxItems");

    if (type != NULL && !type_fits(type, v))
        snprintf(why, size, "%.64s is of type %s", name, type);
    else if (list != NULL && !is_one_of(list, v))
        snprintf(why, size, "%.64s is not one of the values that it can have", name);
    else if (json_is_integer(v) && ((low != NULL && json_integer_value(v) < json_integer_value(low)) ||
                                    (high != NULL && json_integer_value(v) > json_integer_value(high))))
        snprintf(why, size, "%.64s is outside of its range", name);
    else if (length != NULL && json_is_string(v) && json_string_length(v) > (size_t)json_integer_value(length))
        snprintf(why, size, "%.64s is longer than %lld bytes", name, (long long)json_integer_value(length));
    else if (most != NULL && json_array_size(v) > (size_t)json_integer_value(most))
        snprintf(why, size, "%.64s has more than %lld entries", name, (long long)json_integer_value(most));
    else {
        for (size_t i = 0; items != NULL && i < json_array_size(v); i++)
            if (!value_fits(name, items, json_array_get(v, i), why, size))
                return false;
        return true;
    }
    return false;
}

bool
mcp_schema_fits(const json_t *schema, const json_t *args, char *why, size_t size)
{
    const json_t *known = json_object_get(schema, "properties"), *needed = json_object_get(schema, "required");
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    const char *name;
    json_t *v;

    for (size_t i = 0; i < json_array_size(needed); i++) {
        const char *want = json_string_value(json_array_get(needed, i));
        if (want != NULL && json_object_get(args, want) == NULL) {
            snprintf(why, size, "%.64s is missing", want);
            return false;
        }
    }
    json_object_foreach((json_t *)(uintptr_t)args, name, v) {
        const json_t *one = json_object_get(known, name);
        if (one == NULL && closed) {
            snprintf(why, size, "there is no argument %.64s", name);
            return false;
        }
        if (one != NULL && !value_fits(name, one, v, why, size))
            return false;
    }
    return true;
}

/* --- domains ------------------------------------------------------------------------------------------------------ */

bool
mcp_domain_well(const char *domain)
{
    const char *p = strncmp(domain, "**.", 3) == 0 ? domain + 3 : strncmp(domain, "*.", 2) == 0 ? domain + 2 : domain;
    const char *label = p, *last = p;
    uint64_t port;

    if (strlen(domain) > DOMAIN_MAX)
        return false;
    for (; *p != '\0' && *p != ':'; p++) {
        if (*p == '.' && p == label)
            return false;
        if (*p == '.')
            label = last = p + 1;
        else if (isalnum((unsigned char)*p) == 0 && *p != '-' && *p != '_')
            return false;
    }
    if (p == label || isalpha((unsigned char)*last) == 0)      /* the last label of an address begins with a digit */
        return false;
    return *p == '\0' || (str_parse_u64(str_of(p + 1), 65535, &port) && port > 0);
}
