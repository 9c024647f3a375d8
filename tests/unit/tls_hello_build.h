/* what tests of TLS need: a ClientHello made by hand, part by part, so that every part can be wrong */
#ifndef CLOCHE_TESTS_TLS_HELLO_BUILD_H
#define CLOCHE_TESTS_TLS_HELLO_BUILD_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define HELLO_BUF_MAX (1 << 20)

/* Extension @type with the @n bytes of @data. */
static inline void
hello_ext(struct buf *exts, uint16_t type, const void *data, size_t n)
{
    buf_put_be16(exts, type);
    buf_put_be16(exts, (uint16_t)n);
    buf_append(exts, data, n);
}

/* server_name with one host_name entry. */
static inline void
hello_sni(struct buf *exts, const void *name, size_t n)
{
    buf_put_be16(exts, 0);
    buf_put_be16(exts, (uint16_t)(n + 5));
    buf_put_be16(exts, (uint16_t)(n + 3));
    buf_put_u8(exts, 0);
    buf_put_be16(exts, (uint16_t)n);
    buf_append(exts, name, n);
}

/* The ClientHello message (with its handshake header) around @exts; without extensions where that is NULL. */
static inline void
hello_message(struct buf *out, uint16_t version, const struct buf *exts)
{
    static const uint8_t head[] = { 0x20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                    24, 25, 26, 27, 28, 29, 30, 31, 32, 0, 4, 0x13, 0x01, 0xc0, 0x2b, 1, 0 };
    size_t n = 2 + 32 + sizeof(head) + (exts != NULL ? 2 + exts->n : 0);

    buf_put_be32(out, (uint32_t)(1u << 24 | n));
    buf_put_be16(out, version);
    for (uint8_t i = 0; i < 32; i++)
        buf_put_u8(out, i);
    buf_append(out, head, sizeof(head));
    if (exts == NULL)
        return;
    buf_put_be16(out, (uint16_t)exts->n);
    buf_append(out, exts->p, exts->n);
}

/* @message in records of @step bytes. */
static inline void
hello_records(struct buf *out, const struct buf *message, size_t step)
{
    for (size_t at = 0; at < message->n; at += step) {
        size_t n = message->n - at < step ? message->n - at : step;
        buf_put_u8(out, 22);
        buf_put_be16(out, 0x0301);
        buf_put_be16(out, (uint16_t)n);
        buf_append(out, message->p + at, n);
    }
}

#endif
