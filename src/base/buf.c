/* base/buf.c: see buf.h */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_free(struct buf *b)
{
    if (!b->lent)
        free(b->p);
    b->p = NULL;
    b->n = b->cap = 0;
    b->lent = false;
}

void
buf_reset(struct buf *b)
{
    b->n = 0;
    b->broken = false;
}

bool
buf_ok(const struct buf *b)
{
    return !b->broken;
}

int
buf_reserve(struct buf *b, size_t extra)
{
    size_t need, cap;
    uint8_t *p;

    if (b->broken)
        return -1;
    if (__builtin_add_overflow(b->n, extra, &need) || need > b->max) {
        b->broken = true;
        return -1;
    }
    if (need <= b->cap)
        return 0;
    cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need && cap <= b->max / 2)
        cap *= 2;
    if (cap < need)     /* beyond half of it: not a bit more for each append from there on */
        cap = b->max;
    p = realloc(b->lent ? NULL : b->p, cap);
    if (p == NULL) {
        b->broken = true;
        return -1;
    }
    if (b->lent && b->n > 0)
        memcpy(p, b->p, b->n);
    b->lent = false;
    b->p = p;
    b->cap = cap;
    return 0;
}

int
buf_append(struct buf *b, const void *data, size_t n)
{
    if (buf_reserve(b, n) < 0)
        return -1;
    if (n > 0)
        memcpy(b->p + b->n, data, n);
    b->n += n;
    return 0;
}

int
buf_puts(struct buf *b, const char *cstr)
{
    return buf_append(b, cstr, strlen(cstr));
}

int
buf_nul(struct buf *b)
{
    if (buf_reserve(b, 1) < 0)
        return -1;
    b->p[b->n] = 0;
    return 0;
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
    size_t room = b->broken || b->cap > b->max ? 0 : b->cap - b->n;
    va_list ap;
    int need;

    /* into the room that there is, and once more where it was too little */
    va_start(ap, fmt);
    need = vsnprintf(room > 0 ? (char *)b->p + b->n : NULL, room, fmt, ap);
    va_end(ap);
    if (need < 0) {
        b->broken = true;
        return -1;
    }
    if ((size_t)need < room) {
        b->n += (size_t)need;
        return 0;
    }
    if (buf_reserve(b, (size_t)need + 1) < 0)
        return -1;
    va_start(ap, fmt);
    vsnprintf((char *)b->p + b->n, (size_t)need + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)need;
    return 0;
}

void
buf_consume(struct buf *b, size_t n)
{
    if (n >= b->n) {
        b->n = 0;
        return;
    }
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

int
buf_put_u8(struct buf *b, uint8_t v)
{
    return buf_append(b, &v, 1);
}

static int
put_be(struct buf *b, uint64_t v, size_t bytes)
{
    uint8_t raw[8];

    for (size_t i = 0; i < bytes; i++)
        raw[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
    return buf_append(b, raw, bytes);
}

int
buf_put_be16(struct buf *b, uint16_t v)
{
    return put_be(b, v, 2);
}

int
buf_put_be32(struct buf *b, uint32_t v)
{
    return put_be(b, v, 4);
}

int
buf_put_be64(struct buf *b, uint64_t v)
{
    return put_be(b, v, 8);
}
