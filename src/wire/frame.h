/* wire/frame.h: frames over a byte stream, and the primitives their payloads are made of
 *
 * A frame is an 8-byte header and a payload:
 *
 *     type u8 | flags u8 | channel be16 | length be32 | payload (length bytes)
 *
 * Nothing here touches the OS or allocates: decoding looks at bytes that the caller holds, and what it hands
 * out points into them. Whether a type is known, permitted now, and how long it may be is the message table's
 * business (wire/table.h), which is asked as soon as the header is there, so that no memory is ever reserved
 * on the word of a peer.
 */
#ifndef CLOCHE_WIRE_FRAME_H
#define CLOCHE_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FRAME_HEADER 8

struct frame {
    uint8_t type;
    uint8_t flags;
    uint16_t channel;
    uint32_t length;
    const uint8_t *payload;     /* @length bytes, borrowed from the buffer that was decoded */
};

/* Decode the header at @p. False when @n < FRAME_HEADER; @f->payload is then unset. No judgement on the values. */
bool frame_header_decode(const uint8_t *p, size_t n, struct frame *f);
void frame_header_encode(uint8_t out[FRAME_HEADER], uint8_t type, uint8_t flags, uint16_t channel, uint32_t length);

/* Append a whole frame. 0, or -1 when @b cannot take it (ceiling, memory). */
int frame_append(struct buf *b, uint8_t type, uint8_t flags, uint16_t channel, const void *payload, size_t n);

/* Append a header whose length is not known yet; frame_end() fills it in. Returns the header's offset in @b, or
 * SIZE_MAX with @b broken. Payload bytes are appended between the two calls with buf_put_*. */
size_t frame_begin(struct buf *b, uint8_t type, uint8_t flags, uint16_t channel);
/* 0, or -1 with @b broken when the payload does not fit the length field (or @b was broken on the way). */
int frame_end(struct buf *b, size_t at);

/* A cursor over a payload. Reading past the end, or a malformed value, sets @bad, and from then on every read
 * gives zero: a chain of reads is checked once, at its end, by wire_done(). */
struct wire_in {
    const uint8_t *p;
    size_t n;
    bool bad;
};

struct wire_in wire_in_of(const void *p, size_t n);
uint8_t wire_u8(struct wire_in *in);
uint16_t wire_be16(struct wire_in *in);
uint32_t wire_be32(struct wire_in *in);
uint64_t wire_be64(struct wire_in *in);
/* @n bytes, borrowed; NULL when they are not there. */
const uint8_t *wire_bytes(struct wire_in *in, size_t n);
/* A string: be32 length, that many bytes, one NUL that the length does not count. Refuses (bad) a NUL among the
 * bytes, a missing one after them, and a length above @max. Borrowed and usable as a C string; NULL when bad. */
const char *wire_cstr(struct wire_in *in, uint32_t max, uint32_t *length);
/* True when nothing was bad and nothing is left over. */
bool wire_done(const struct wire_in *in);

/* The writer's side of wire_cstr. -1 (and @b broken) when @s is longer than @max. */
int wire_put_cstr(struct buf *b, const char *s, uint32_t max);

#endif
