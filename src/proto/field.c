/* proto/field.c: see field.h */
#include "proto/field.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

PROTO_SHAPE(nothing, PROTO_NOTHING)

/* --- members ------------------------------------------------------------------------------------------------------ */

static void *
member(void *m, uint32_t at)
{
    return (uint8_t *)m + at;
}

static const void *
member_of(const void *m, uint32_t at)
{
    return (const uint8_t *)m + at;
}

static const void *
pointer_of(const void *m, const struct field *f)
{
    const void *p;

    memcpy(&p, member_of(m, f->at), sizeof(p));
    return p;
}

static void
set_pointer(void *m, const struct field *f, const void *p)
{
    memcpy(member(m, f->at), &p, sizeof(p));
}

static size_t
length_of(const void *m, const struct field *f)
{
    size_t n;

    memcpy(&n, member_of(m, f->n_at), sizeof(n));
    return n;
}

static void
set_length(void *m, const struct field *f, size_t n)
{
    memcpy(member(m, f->n_at), &n, sizeof(n));
}

static uint64_t
load(const void *p, size_t size)
{
    uint64_t v = 0;
    uint8_t v1;
    uint16_t v2;
    uint32_t v4;

    switch (size) {
    case 1: memcpy(&v1, p, 1); return v1;
    case 2: memcpy(&v2, p, 2); return v2;
    case 4: memcpy(&v4, p, 4); return v4;
    default: memcpy(&v, p, 8); return v;
    }
}

static void
store(void *p, size_t size, uint64_t v)
{
    uint8_t v1 = (uint8_t)v;
    uint16_t v2 = (uint16_t)v;
    uint32_t v4 = (uint32_t)v;

    switch (size) {
    case 1: memcpy(p, &v1, 1); break;
    case 2: memcpy(p, &v2, 2); break;
    case 4: memcpy(p, &v4, 4); break;
    default: memcpy(p, &v, 8);
    }
}

static void
put_number(struct buf *b, size_t width, uint64_t v)
{
    switch (width) {
    case 1: buf_put_u8(b, (uint8_t)v); break;
    case 2: buf_put_be16(b, (uint16_t)v); break;
    case 4: buf_put_be32(b, (uint32_t)v); break;
    default: buf_put_be64(b, v);
    }
}

static uint64_t
get_number(struct wire_in *in, size_t width)
{
    switch (width) {
    case 1: return wire_u8(in);
    case 2: return wire_be16(in);
    case 4: return wire_be32(in);
    default: return wire_be64(in);
    }
}

/* Of one number, or of each of several of eight bytes. */
static size_t
number_size(const struct field *f)
{
    return f->size > 8 ? 8 : f->size;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void
put_text(struct buf *b, const char *text, uint64_t max)
{
    wire_put_cstr(b, text != NULL ? text : "", (uint32_t)max);
}

static void
put_bytes(struct buf *b, const struct field *f, const void *p, size_t n)
{
    if (n > f->most || n < f->least)
        b->broken = true;
    else if (f->kind == FIELD_BYTES || f->width > 0)
        packet_put_bytes(b, p, n);
    else if (n > 0)
        buf_append(b, p, n);
}

static void put_fields(struct buf *b, const struct shape *shape, const void *m);

static void
put_list(struct buf *b, const struct field *f, const void *m)
{
    size_t n = length_of(m, f);

    if (n > f->most) {
        b->broken = true;
        return;
    }
    put_number(b, f->width, n);
    for (size_t i = 0; i < n && buf_ok(b); i++) {
        if (f->kind == FIELD_WORDS)
            put_text(b, ((const char *const *)member_of(m, f->at))[i], f->least);
        else
            put_fields(b, f->of, (const uint8_t *)member_of(m, f->at) + i * f->of->size);
    }
}

static void
put_field(struct buf *b, const struct field *f, const void *m)
{
    const void *p;

    switch (f->kind) {
    case FIELD_NUMBER:
        for (size_t i = 0; i < f->size; i += number_size(f))
            put_number(b, f->width, load((const uint8_t *)member_of(m, f->at) + i, number_size(f)));
        break;
    case FIELD_FLAGS: put_number(b, 1, load(member_of(m, f->at), 1)); break;
    case FIELD_TEXT: put_text(b, pointer_of(m, f), f->most); break;
    case FIELD_COPY: put_text(b, member_of(m, f->at), f->most); break;
    case FIELD_BYTES:
    case FIELD_REST: put_bytes(b, f, pointer_of(m, f), length_of(m, f)); break;
    case FIELD_RAW: buf_append(b, member_of(m, f->at), f->size); break;
    case FIELD_REF:
        p = pointer_of(m, f);
        put_bytes(b, f, p, p != NULL ? (size_t)f->most : 0);
        break;
    case FIELD_WORDS:
    case FIELD_LIST: put_list(b, f, m); break;
    case FIELD_STRUCT: put_fields(b, f->of, member_of(m, f->at)); break;
    case FIELD_ERR: packet_put_err(b, member_of(m, f->at)); break;
    case FIELD_END:
    case FIELD_UNSAID:
    case FIELD_BLANK: break;
    }
}

static void
put_fields(struct buf *b, const struct shape *shape, const void *m)
{
    for (const struct field *f = shape->fields(); f->kind != FIELD_END; f++)
        if (f->when == NULL || f->when(m))
            put_field(b, f, m);
}

int
proto_put(struct buf *b, const struct shape *shape, const void *m)
{
    put_fields(b, shape, m);
    return buf_ok(b) ? 0 : -1;
}

int
proto_frame_of(struct buf *b, uint8_t type, uint8_t flags, const struct proto_part *parts, size_t n)
{
    size_t at = frame_begin(b, type, flags, 0);

    for (size_t i = 0; i < n; i++)
        put_fields(b, parts[i].shape, parts[i].m);
    return frame_end(b, at);
}

int
proto_frame(struct buf *b, uint8_t type, const struct shape *shape, const void *m)
{
    return proto_frame_of(b, type, 0, &(const struct proto_part){ shape, m }, 1);
}

int
proto_send(int socket, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    uint8_t room[PROTO_ROOM];
    cleanup_buf struct buf b = PROTO_BUF(room, shape);

    errno = EMSGSIZE;
    return proto_frame(&b, type, shape, m) < 0 ? -1 : packet_send(socket, &b, fd);
}

int
proto_queue(struct packet_queue *q, int socket, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    uint8_t room[PROTO_ROOM];
    cleanup_buf struct buf b = PROTO_BUF(room, shape);

    if (proto_frame(&b, type, shape, m) == 0)
        return packet_queue_send(q, socket, &b, fd);
    close_fd(&fd);
    errno = EMSGSIZE;
    return -1;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool
get_text(struct wire_in *in, const struct field *f, void *m)
{
    uint32_t n = 0;
    const char *text = wire_cstr(in, (uint32_t)f->most, &n);

    if (text == NULL || (f->well != NULL && !f->well(text)))
        return false;
    if (f->kind == FIELD_TEXT)
        set_pointer(m, f, text);
    else
        memcpy(member(m, f->at), text, (size_t)n + 1);
    return true;
}

static bool
get_bytes(struct wire_in *in, const struct field *f, void *m)
{
    size_t n = f->kind == FIELD_REF ? (size_t)f->least : in->n;
    const uint8_t *p;

    if (f->kind == FIELD_BYTES || f->width > 0)
        n = wire_be32(in);
    if (in->bad || n > f->most || n < f->least)
        return false;
    p = wire_bytes(in, n);
    if (f->kind != FIELD_REF)
        set_length(m, f, n);
    else if (n == 0)
        p = NULL;
    else if (n != f->most)
        return false;
    set_pointer(m, f, p);
    return !in->bad;
}

static bool
get_list(struct wire_in *in, const struct field *f, void *m)
{
    uint64_t n = get_number(in, f->width);
    const char **words = member(m, f->at);

    if (in->bad || n > f->most)
        return false;
    set_length(m, f, (size_t)n);
    for (size_t i = 0; i < n; i++) {
        if (f->kind == FIELD_WORDS)
            words[i] = wire_cstr(in, (uint32_t)f->least, NULL);
        else if (!proto_get_some(in, f->of, (uint8_t *)member(m, f->at) + i * f->of->size))
            return false;
        if (in->bad)
            return false;
    }
    if (f->kind == FIELD_WORDS)
        words[n] = NULL;
    return true;
}

static bool
get_numbers(struct wire_in *in, const struct field *f, void *m)
{
    for (size_t i = 0; i < f->size; i += number_size(f)) {
        uint64_t v = get_number(in, f->width);
        if (in->bad || v < f->least || v > f->most)
            return false;
        store((uint8_t *)member(m, f->at) + i, number_size(f), v);
    }
    return true;
}

static bool
get_field(struct wire_in *in, const struct field *f, void *m)
{
    const uint8_t *p;

    switch (f->kind) {
    case FIELD_NUMBER: return get_numbers(in, f, m);
    case FIELD_FLAGS:
        store(member(m, f->at), 1, wire_u8(in));
        return (load(member(m, f->at), 1) & ~f->most) == 0;
    case FIELD_TEXT:
    case FIELD_COPY: return get_text(in, f, m);
    case FIELD_BYTES:
    case FIELD_REF:
    case FIELD_REST: return get_bytes(in, f, m);
    case FIELD_RAW:
        p = wire_bytes(in, f->size);
        if (p != NULL)
            memcpy(member(m, f->at), p, f->size);
        return p != NULL;
    case FIELD_WORDS:
    case FIELD_LIST: return get_list(in, f, m);
    case FIELD_STRUCT: return proto_get_some(in, f->of, member(m, f->at));
    case FIELD_ERR: return packet_get_err(in, member(m, f->at));
    case FIELD_BLANK: set_pointer(m, f, ""); return true;
    case FIELD_UNSAID:
    case FIELD_END: break;
    }
    memset(member(m, f->at), 0, f->size);
    return true;
}

bool
proto_get_some(struct wire_in *in, const struct shape *shape, void *m)
{
    for (const struct field *f = shape->fields(); f->kind != FIELD_END; f++) {
        if (f->when != NULL && !f->when(m))
            memset(member(m, f->at), 0, f->size);
        else if (!get_field(in, f, m) || in->bad)
            return false;
    }
    return shape->well == NULL || shape->well(m);
}

bool
proto_get(struct wire_in *in, const struct shape *shape, void *m)
{
    return proto_get_some(in, shape, m) && wire_done(in);
}
