/* probe/json.c: see json.h */
#include "probe/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static void
flush(struct jw *j)
{
    size_t at = 0;

    while (at < j->n && !j->failed) {
        ssize_t put = write(j->fd, j->buf + at, j->n - at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            j->failed = true;
        else
            at += (size_t)put;
    }
    j->n = 0;
}

static void
json_put(struct jw *j, const char *p, size_t n)
{
    while (n > 0) {
        size_t room = sizeof(j->buf) - j->n;
        size_t take = n < room ? n : room;

        memcpy(j->buf + j->n, p, take);
        j->n += take;
        p += take;
        n -= take;
        if (j->n == sizeof(j->buf))
            flush(j);
    }
}

static void
put_c(struct jw *j, const char *cstr)
{
    json_put(j, cstr, strlen(cstr));
}

static void
put_string(struct jw *j, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;

    put_c(j, "\"");
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_char(p + i, n - i, &c);
        char escaped[8];

        if (len == 0) {
            put_c(j, "\\ufffd");
            i++;
            continue;
        }
        if (p[i] < 0x20 || p[i] == 0x7f) {
            snprintf(escaped, sizeof(escaped), "\\u%04x", p[i]);
            put_c(j, escaped);
        } else if (p[i] == '"' || p[i] == '\\') {
            escaped[0] = '\\';
            escaped[1] = (char)p[i];
            json_put(j, escaped, 2);
        } else {
            json_put(j, s + i, len);
        }
        i += len;
    }
    put_c(j, "\"");
}

static void
begin_value(struct jw *j, const char *key)
{
    if (j->more[j->depth])
        put_c(j, ",");
    j->more[j->depth] = true;
    if (key != NULL) {
        put_string(j, key, strlen(key));
        put_c(j, ":");
    }
}

static void
begin_nested(struct jw *j, const char *key, const char *bracket)
{
    begin_value(j, key);
    put_c(j, bracket);
    if (j->depth == JSON_DEPTH_MAX) {
        j->failed = true;
        return;
    }
    j->more[++j->depth] = false;
}

static void
end_nested(struct jw *j, const char *bracket)
{
    if (j->depth == 0) {
        j->failed = true;
        return;
    }
    j->depth--;
    put_c(j, bracket);
}

void
jw_open(struct jw *j, int fd)
{
    memset(j, 0, sizeof(*j));
    j->fd = fd;
}

int
jw_finish(struct jw *j)
{
    put_c(j, "\n");
    flush(j);
    return j->failed || j->depth != 0 ? -1 : 0;
}

void
jw_object(struct jw *j, const char *key)
{
    begin_nested(j, key, "{");
}

void
jw_array(struct jw *j, const char *key)
{
    begin_nested(j, key, "[");
}

void
jw_end_object(struct jw *j)
{
    end_nested(j, "}");
}

void
jw_end_array(struct jw *j)
{
    end_nested(j, "]");
}

void
jw_bytes(struct jw *j, const char *key, const char *p, size_t n)
{
    begin_value(j, key);
    put_string(j, p, n);
}

void
jw_text(struct jw *j, const char *key, const char *value)
{
    if (value == NULL)
        jw_null(j, key);
    else
        jw_bytes(j, key, value, strlen(value));
}

void
jw_int(struct jw *j, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    begin_value(j, key);
    put_c(j, text);
}

void
jw_uint(struct jw *j, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    begin_value(j, key);
    put_c(j, text);
}

void
jw_bool(struct jw *j, const char *key, bool value)
{
    begin_value(j, key);
    put_c(j, value ? "true" : "false");
}

void
jw_null(struct jw *j, const char *key)
{
    begin_value(j, key);
    put_c(j, "null");
}
