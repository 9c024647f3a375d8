/* client/sse.c: see sse.h */
#include "client/sse.h"

#include <errno.h>
#include <string.h>

static void
sse_put(char *out, size_t max, const char *p, size_t n)
{
    n = n < max ? n : max;
    memcpy(out, p, n);
    out[n] = '\0';
}

static bool
is(const char *p, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(p, name, n) == 0;
}

static int
dispatch(struct sse *s, sse_fn *fn, void *ctx)
{
    int r = 0;

    if (s->data.n > 0) {
        s->data.n--;        /* the last line's end */
        if (buf_nul(&s->data) < 0)
            return -1;
        r = fn(ctx, s->name[0] != '\0' ? s->name : "message", s->id, (const char *)s->data.p, s->data.n);
    }
    buf_reset(&s->data);
    s->name[0] = '\0';
    return r;
}

/* One line without its end. */
static int
take(struct sse *s, sse_fn *fn, void *ctx)
{
    const char *line = (const char *)s->line.p, *colon = s->line.n > 0 ? memchr(line, ':', s->line.n) : NULL, *value;
    size_t n = colon != NULL ? (size_t)(colon - line) : s->line.n, length;

    if (s->line.n == 0)
        return dispatch(s, fn, ctx);
    value = colon != NULL ? colon + 1 : line + s->line.n;
    length = s->line.n - (size_t)(value - line);
    if (length > 0 && value[0] == ' ') {
        value++;
        length--;
    }
    if (is(line, n, "data"))
        return buf_append(&s->data, value, length) < 0 || buf_put_u8(&s->data, '\n') < 0 ? -1 : 0;
    if (is(line, n, "event"))
        sse_put(s->name, SSE_NAME_MAX, value, length);
    else if (is(line, n, "id") && (length == 0 || memchr(value, '\0', length) == NULL))
        sse_put(s->id, SSE_ID_MAX, value, length);
    return 0;
}

int
sse_feed(struct sse *s, const void *bytes, size_t n, sse_fn *fn, void *ctx)
{
    const char *p = bytes, *end = p + n;

    while (p < end) {
        const char *at = p;
        int r;
        if (s->cr && *p == '\n') {
            s->cr = false;
            p++;
            continue;
        }
        s->cr = false;
        while (at < end && *at != '\n' && *at != '\r')
            at++;
        if (at > p && buf_append(&s->line, p, (size_t)(at - p)) < 0) {
            errno = EMSGSIZE;
            return -1;
        }
        if (at == end)
            return 0;
        s->cr = *at == '\r';
        p = at + 1;
        r = take(s, fn, ctx);
        if (!buf_ok(&s->data)) {
            errno = EMSGSIZE;
            return -1;
        }
        buf_reset(&s->line);
        if (r != 0)
            return r;
    }
    return 0;
}

void
sse_free(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}
