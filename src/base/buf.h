/* base/buf.h: a growing byte buffer with a ceiling
 *
 * Every buffer states its maximum when it is made. An append that would pass the ceiling (or finds no memory)
 * fails with -1 and marks the buffer broken: later appends fail too, so a chain of appends may be checked once
 * at its end with buf_ok().
 */
#ifndef CLOCHE_BASE_BUF_H
#define CLOCHE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *p;
    size_t n;       /* bytes in use */
    size_t cap;     /* bytes allocated */
    size_t max;     /* ceiling for n */
    bool broken;
    bool lent;      /* p is the caller's array, not the heap's */
};

#define BUF_INIT(limit) { .p = NULL, .n = 0, .cap = 0, .max = (limit), .broken = false }
/* Start in the array @array, which must live as long as the buffer; what grows beyond it moves to the heap. */
#define BUF_INIT_IN(array, limit) \
    { .p = (array), .n = 0, .cap = sizeof(array), .max = (limit), .broken = false, .lent = true }
#define cleanup_buf __attribute__((cleanup(buf_free)))

void buf_free(struct buf *b);
void buf_reset(struct buf *b);                          /* n = 0, keeps the memory; clears broken */
bool buf_ok(const struct buf *b);
int buf_reserve(struct buf *b, size_t extra);           /* room for @extra more bytes at b->p + b->n */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_puts(struct buf *b, const char *cstr);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_consume(struct buf *b, size_t n);              /* drop @n bytes (<= b->n) from the front */
int buf_put_u8(struct buf *b, uint8_t v);
int buf_put_be16(struct buf *b, uint16_t v);
int buf_put_be32(struct buf *b, uint32_t v);
int buf_put_be64(struct buf *b, uint64_t v);
int buf_nul(struct buf *b);                             /* append a NUL that does not count in n */

#endif
