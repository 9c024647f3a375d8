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

struct jw {
    int fd;
    bool failed;                    /* a write failed, or nesting is too deep: the output is worthless */
    unsigned depth;
    bool more[JSON_DEPTH_MAX + 1];  /* something was already put at that depth */
    size_t n;
    char buf[4096];
};

void jw_open(struct jw *j, int fd);
/* Flush; 0 when everything was written and everything is closed. */
int jw_finish(struct jw *j);

void jw_object(struct jw *j, const char *key);
void jw_array(struct jw *j, const char *key);
void jw_end_object(struct jw *j);
void jw_end_array(struct jw *j);
void jw_text(struct jw *j, const char *key, const char *value);     /* NULL is null */
void jw_bytes(struct jw *j, const char *key, const char *p, size_t n);
void jw_int(struct jw *j, const char *key, int64_t value);
void jw_uint(struct jw *j, const char *key, uint64_t value);
void jw_bool(struct jw *j, const char *key, bool value);
void jw_null(struct jw *j, const char *key);

#endif
