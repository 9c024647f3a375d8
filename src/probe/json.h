/* probe/json.h: writing one JSON object to a descriptor
 *
 * The probe runs where nothing may be assumed, so it has its own writer: no allocation, one buffer, no library.
 * Values are put in order; commas and closing are kept here. Bytes that are not UTF-8 are written as U+FFFD, so the
 * output is always valid JSON. A key is NULL inside an array.
 */
#ifndef CLOCHE_PROBE_JSON_H
#define CLOCHE_PROBE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 16

struct json {
    int fd;
    bool failed;                    /* a write failed, or nesting is too deep: the output is worthless */
    unsigned depth;
    bool more[JSON_DEPTH_MAX + 1];  /* something was already put at that depth */
    size_t n;
    char buf[4096];
};

void json_open(struct json *j, int fd);
/* Flush; 0 when everything was written and everything is closed. */
int json_finish(struct json *j);

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_array(struct json *j);
void json_text(struct json *j, const char *key, const char *value);     /* NULL is null */
void json_bytes(struct json *j, const char *key, const char *p, size_t n);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
