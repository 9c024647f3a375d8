/* wire/rich.c: see rich.h */
#include "wire/rich.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "wire/json_text.h"

enum form { FORM_TEXT, FORM_BASE64, FORM_JSON, FORM_MAIN };

static const struct { const char *key; enum form form; bool error; } keys[] = {
    { "main", FORM_MAIN, false }, { "text", FORM_TEXT, false }, { "html", FORM_TEXT, false },
    { "markdown", FORM_TEXT, false }, { "latex", FORM_TEXT, false }, { "svg", FORM_TEXT, false },
    { "png", FORM_BASE64, false }, { "jpeg", FORM_BASE64, false }, { "json", FORM_JSON, false },
    { "name", FORM_TEXT, true }, { "value", FORM_TEXT, true }, { "traceback", FORM_TEXT, true },
};

static bool
is_base64(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'z') || p[i] == '+' ||
              p[i] == '/' || (p[i] == '=' && (n - i == 1 || (n - i == 2 && p[i + 1] == '=')))))
            return false;
    return n % 4 == 0;
}

/* A few bytes of text can be a hundred of values: they are counted before they are made, strings' commas with them. */
static json_t *
json_of(const uint8_t *p, size_t n, size_t *values)
{
    size_t count = 1, depth = 0, deepest = 0;
    json_t *out;

    for (size_t i = 0; i < n; i++) {
        count += p[i] == ',' || p[i] == '[' || p[i] == '{';
        depth += p[i] == '[' || p[i] == '{';
        deepest = depth > deepest ? depth : deepest;
        depth -= depth > 0 && (p[i] == ']' || p[i] == '}');
    }
    if (deepest > RICH_DEPTH)
        return NULL;
    if (*values + count > RICH_VALUES) {
        *values = RICH_VALUES + 1;
        return NULL;
    }
    out = json_loadb((const char *)p, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    *values += out != NULL ? count : 0;
    return out;
}

/* NULL: it is not told. */
static json_t *
value_of(enum form form, const uint8_t *p, size_t n, size_t *values)
{
    switch (form) {
    case FORM_MAIN: return json_boolean(n == 1 && p[0] == '1');
    case FORM_JSON: return json_of(p, n, values);
    case FORM_BASE64: return is_base64(p, n) ? json_stringn((const char *)p, n) : NULL;
    default: return json_of_text(p, n);
    }
}

/* The head of a part: the row of its key, -1. */
static int
key_of(const uint8_t *p, size_t n, size_t *size)
{
    const uint8_t *space = memchr(p, ' ', n);
    size_t length = space != NULL ? (size_t)(space - p) : 0;
    uint64_t v;

    if (space == NULL || !str_parse_u64((struct str){ (const char *)space + 1, n - length - 1 }, RICH_MAX, &v))
        return -1;
    *size = (size_t)v;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].key) == length && memcmp(keys[i].key, p, length) == 0)
            return (int)i;
    return -1;
}

/* The next part of p[0..n) into @out; how many bytes it has, 0: it is malformed. @errors: a part of an error. */
static size_t
part(const uint8_t *p, size_t n, json_t *out, bool *errors, size_t *values)
{
    const uint8_t *line = memchr(p, '\n', n < 64 ? n : 64);
    size_t head = line != NULL ? (size_t)(line - p) + 1 : 0, size;
    int row = line != NULL ? key_of(p, head - 1, &size) : -1;
    json_t *value;

    if (row < 0 || size > n - head || json_object_get(out, keys[row].key) != NULL)
        return 0;
    *errors = keys[row].error;
    value = value_of(keys[row].form, p + head, size, values);
    if (value != NULL && json_object_set_new(out, keys[row].key, value) < 0)
        return 0;
    return head + size;
}

json_t *
rich_read(const uint8_t *p, size_t n, size_t *values)
{
    json_t *out = json_object();
    bool first = false;

    for (size_t at = 0, took; at < n; at += took) {
        bool errors;
        took = part(p + at, n - at, out, &errors, values);
        if (at == 0)
            first = errors;
        if (took == 0 || errors != first) {
            json_decref(out);
            return NULL;
        }
    }
    if (json_object_get(out, first ? "name" : "main") != NULL && (!first || json_object_get(out, "value") != NULL))
        return out;
    json_decref(out);
    return NULL;
}

/* What has come of one is of an error: that is told however much was shown before it. */
static bool
is_error(const struct buf *part)
{
    static const char first[] = "name ";
    size_t n = part->n < sizeof(first) - 1 ? part->n : sizeof(first) - 1;

    return n == 0 || memcmp(part->p, first, n) == 0;
}

json_t *
rich_add(struct rich *r, const uint8_t *p, size_t n, bool last, bool room)
{
    json_t *one;

    if (r->part.cap == 0)
        r->part = (struct buf)BUF_INIT(RICH_MAX);
    if (!room || (!r->lost && buf_append(&r->part, p, n) < 0) ||
        (!is_error(&r->part) && (r->bytes + r->part.n > RICH_MAX || json_array_size(r->results) >= RICH_RESULTS)))
        r->lost = true;
    if (r->lost)
        buf_free(&r->part);
    if (!last)
        return NULL;
    one = r->lost ? NULL : rich_read(r->part.p, r->part.n, &r->values);
    r->cut = r->cut || one == NULL || r->values > RICH_VALUES;
    r->lost = false;
    if (one != NULL && json_object_get(one, "name") != NULL) {      /* the last one counts */
        json_decref(r->error);
        r->error = one;
        r->error_bytes = r->part.n;
    } else if (one != NULL) {
        r->bytes += r->part.n;
    }
    buf_free(&r->part);
    if (one == NULL || one == r->error)
        return one;
    if (r->results == NULL)
        r->results = json_array();
    return json_array_append_new(r->results, one) == 0 ? one : NULL;
}

size_t
rich_held(const struct rich *r)
{
    return r->part.cap + 2 * (r->bytes + r->error_bytes) + RICH_VALUE * r->values;
}

void
rich_put(const struct rich *r, json_t *answer)
{
    json_object_set_new(answer, "results", r->results != NULL ? json_incref(r->results) : json_array());
    json_object_set_new(answer, "results_truncated", json_boolean(r->cut));
    json_object_set_new(answer, "error", r->error != NULL ? json_incref(r->error) : json_null());
}

void
rich_free(struct rich *r)
{
    buf_free(&r->part);
    json_decref(r->results);
    json_decref(r->error);
    *r = (struct rich){ .lost = false };
}
