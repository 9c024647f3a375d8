/* proto/field.h: a message is a list of its fields, and the list is all that has to be written
 *
 * The list gives the struct, the reader and writer, and the shortest and longest payload:
 *
 *     #define EDGE_PORT(F)                                     in a header
 *         F(COPY, id, EDGE_ID, edge_is_id)
 *         F(U16_IN, port, 1, UINT16_MAX)
 *         F(TEXT, name, EDGE_NAME_MAX)
 *     PROTO_STRUCT(edge_port, EDGE_PORT);                      struct edge_port, edge_port_put(), edge_port_get(), ...
 *
 *     PROTO_SHAPE(edge_port, EDGE_PORT, NULL)                  in one .c; or a function that judges the whole
 *
 * Each side of an edge lists the messages that it sends, with their numbers (PROTO_EDGE). The receiver lists which
 * function handles which (PROTO_RULES), for its table (wire/table.h).
 *
 * Reading is strict: every value in its range, every text within its limit and well-formed, nothing left over; anything
 * that the list does not contain is refused. It allocates nothing, and its results point into the bytes that were read.
 * Writing refuses only what cannot be encoded: a text or a list that is too long.
 */
#ifndef CLOCHE_PROTO_FIELD_H
#define CLOCHE_PROTO_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/frame.h"
#include "wire/packet.h"
#include "wire/table.h"

enum field_kind {
    FIELD_END, FIELD_NUMBER, FIELD_FLAGS, FIELD_TEXT, FIELD_COPY, FIELD_BYTES, FIELD_RAW, FIELD_REF, FIELD_REST,
    FIELD_WORDS, FIELD_LIST, FIELD_STRUCT, FIELD_ERR, FIELD_UNSAID, FIELD_BLANK,
};

struct shape;

struct field {
    enum field_kind kind;
    uint8_t width;                      /* bytes: of a number, of a list's length */
    uint32_t at, size;                  /* the member */
    uint32_t n_at;                      /* the member with its length */
    uint64_t least, most;               /* of a number; of a length */
    bool (*well)(const char *text);
    bool (*when)(const void *m);        /* it is there only then; else all zero */
    const struct shape *of;
};

struct shape {
    const struct field *(*fields)(void);
    bool (*well)(const void *m);        /* what the fields do not say; NULL */
    uint32_t size, most;                /* of the struct; of the payload */
};

int proto_put(struct buf *b, const struct shape *shape, const void *m);         /* 0, or -1 with @b broken */
bool proto_get(struct wire_in *in, const struct shape *shape, void *m);         /* all of @in, or false */
bool proto_get_some(struct wire_in *in, const struct shape *shape, void *m);    /* the beginning of it */
/* A whole frame. 0, or -1 with @b broken. */
int proto_frame(struct buf *b, uint8_t type, const struct shape *shape, const void *m);
/* The same with flags, of several messages one behind the other. */
struct proto_part { const struct shape *shape; const void *m; };
int proto_frame_of(struct buf *b, uint8_t type, uint8_t flags, const struct proto_part *parts, size_t n);
/* The same, sent at once, or when its turn comes (wire/packet.h). 0, or -1 with errno. */
int proto_send(int socket, uint8_t type, const struct shape *shape, const void *m, int fd);
int proto_queue(struct packet_queue *q, int socket, uint8_t type, const struct shape *shape, const void *m, int fd);

/* The room that a frame starts in, on the stack; what is longer moves to the heap. */
#define PROTO_ROOM 512
#define PROTO_BUF(room, shape_) BUF_INIT_IN(room, (shape_)->most + FRAME_HEADER)

/* --- kinds of fields: what each is in the struct, its row, its least and its most bytes --------------------------- */

#define PROTO_AT(name) .at = offsetof(struct_here, name), .size = sizeof(((struct_here *)0)->name)
#define PROTO_NUMBER(take, type, name, width_, low, high)                                                          \
    take((type name;), (.kind = FIELD_NUMBER, PROTO_AT(name), .width = (width_), .least = (low), .most = (high)),  \
         width_, width_)

#define PROTO_U8(take, name)                PROTO_NUMBER(take, uint8_t, name, 1, 0, UINT8_MAX)
#define PROTO_U16(take, name)               PROTO_NUMBER(take, uint16_t, name, 2, 0, UINT16_MAX)
#define PROTO_U32(take, name)               PROTO_NUMBER(take, uint32_t, name, 4, 0, UINT32_MAX)
#define PROTO_U64(take, name)               PROTO_NUMBER(take, uint64_t, name, 8, 0, UINT64_MAX)
#define PROTO_U8_IN(take, name, low, high)  PROTO_NUMBER(take, uint8_t, name, 1, low, high)
#define PROTO_U16_IN(take, name, low, high) PROTO_NUMBER(take, uint16_t, name, 2, low, high)
#define PROTO_U32_IN(take, name, low, high) PROTO_NUMBER(take, uint32_t, name, 4, low, high)
#define PROTO_U64_IN(take, name, low, high) PROTO_NUMBER(take, uint64_t, name, 8, low, high)
#define PROTO_BOOL(take, name)              PROTO_NUMBER(take, bool, name, 1, 0, 1)
/* An enum, in one byte. */
#define PROTO_ENUM(take, type, name, low, high) PROTO_NUMBER(take, enum type, name, 1, low, high)
/* Several numbers of eight bytes. */
#define PROTO_U64S(take, name, n)                                                                                  \
    take((uint64_t name[n];), (.kind = FIELD_NUMBER, PROTO_AT(name), .width = 8, .most = UINT64_MAX), 8 * (n), 8 * (n))
#define PROTO_FLAGS(take, name, mask)                                                                              \
    take((uint8_t name;), (.kind = FIELD_FLAGS, PROTO_AT(name), .most = (mask)), 1, 1)

/* A text without NUL: borrowed, or copied. "" is written for NULL. @well_, unless NULL, judges it. */
#define PROTO_TEXT_IF(take, name, max, well_)                                                                      \
    take((const char *name;), (.kind = FIELD_TEXT, PROTO_AT(name), .most = (max), .well = (well_)), 5, (max) + 5)
#define PROTO_TEXT(take, name, max) PROTO_TEXT_IF(take, name, max, NULL)
#define PROTO_COPY(take, name, max, well_)                                                                         \
    take((char name[(max) + 1];), (.kind = FIELD_COPY, PROTO_AT(name), .most = (max), .well = (well_)), 5, (max) + 5)

/* Bytes behind their length, borrowed: as pointer and n_NAME, or as a struct str. */
#define PROTO_BYTES(take, name, max)                                                                               \
    take((const uint8_t *name; size_t n_##name;),                                                                  \
         (.kind = FIELD_BYTES, PROTO_AT(name), .n_at = offsetof(struct_here, n_##name), .most = (max)), 4, (max) + 4)
#define PROTO_STR(take, name, max)                                                                                 \
    take((struct str name;), (.kind = FIELD_BYTES, .at = offsetof(struct_here, name.p),                            \
                              .n_at = offsetof(struct_here, name.n), .most = (max)), 4, (max) + 4)
/* So many bytes: copied; borrowed; borrowed behind their length, or NULL. */
#define PROTO_RAW(take, name, n)                                                                                   \
    take((uint8_t name[n];), (.kind = FIELD_RAW, PROTO_AT(name)), n, n)
#define PROTO_REF(take, name, n)                                                                                   \
    take((const uint8_t *name;), (.kind = FIELD_REF, PROTO_AT(name), .least = (n), .most = (n)), n, n)
#define PROTO_MAYBE(take, name, n)                                                                                 \
    take((const uint8_t *name;), (.kind = FIELD_REF, PROTO_AT(name), .width = 4, .most = (n)), 4, (n) + 4)
/* All that is left, borrowed. */
#define PROTO_REST(take, name, low, high)                                                                          \
    take((const uint8_t *name; size_t n_##name;),                                                                  \
         (.kind = FIELD_REST, PROTO_AT(name), .n_at = offsetof(struct_here, n_##name), .least = (low),             \
          .most = (high)), low, high)

/* Up to @max texts, each of @each bytes at most, with a NULL behind them, and all together of @bytes at most; behind
 * their number, of @width_ bytes. */
#define PROTO_WORDS(take, name, width_, max, each, bytes)                                                          \
    take((const char *name[(max) + 1]; size_t n_##name;),                                                          \
         (.kind = FIELD_WORDS, PROTO_AT(name), .n_at = offsetof(struct_here, n_##name), .width = (width_),         \
          .least = (each), .most = (max)), width_, (bytes) + width_)
/* Other messages: up to @max of them, one, one that is there only when @when_ says so. */
#define PROTO_LIST(take, type, name, width_, max)                                                                  \
    take((struct type name[max]; size_t n_##name;),                                                                \
         (.kind = FIELD_LIST, PROTO_AT(name), .n_at = offsetof(struct_here, n_##name), .width = (width_),          \
          .most = (max), .of = &type##_shape), width_, (max) * type##_MOST + width_)
#define PROTO_STRUCT_IN(take, type, name)                                                                          \
    take((struct type name;), (.kind = FIELD_STRUCT, PROTO_AT(name), .of = &type##_shape), type##_LEAST, type##_MOST)
#define PROTO_STRUCT_IF(take, type, name, when_)                                                                   \
    take((struct type name;), (.kind = FIELD_STRUCT, PROTO_AT(name), .of = &type##_shape, .when = (when_)), 0,     \
         type##_MOST)
/* An error, as the last field. */
#define PROTO_ERR(take, name)                                                                                      \
    take((struct err name;), (.kind = FIELD_ERR, PROTO_AT(name)), PACKET_ERR_MIN, PACKET_ERR_MAX)
#define PROTO_ERR_IF(take, name, when_)                                                                            \
    take((struct err name;), (.kind = FIELD_ERR, PROTO_AT(name), .when = (when_)), 0, PACKET_ERR_MAX)

/* Members that are not said: all zero when the rest is read, or "". */
#define PROTO_UNSAID(take, declared, name) take((declared;), (.kind = FIELD_UNSAID, PROTO_AT(name)), 0, 0)
#define PROTO_BLANK(take, name) take((const char *name;), (.kind = FIELD_BLANK, PROTO_AT(name)), 0, 0)

/* --- what a list becomes ------------------------------------------------------------------------------------------ */

#define PROTO_OPEN(...) __VA_ARGS__
#define PROTO_TAKE_MEMBER(member, row, low, high) PROTO_OPEN member
#define PROTO_TAKE_ROW(member, row, low, high) { PROTO_OPEN row },
#define PROTO_TAKE_LEAST(member, row, low, high) + (low)
#define PROTO_TAKE_MOST(member, row, low, high) + (high)
#define PROTO_MEMBERS(kind, ...) PROTO_##kind(PROTO_TAKE_MEMBER, __VA_ARGS__)
#define PROTO_ROWS(kind, ...) PROTO_##kind(PROTO_TAKE_ROW, __VA_ARGS__)
#define PROTO_LEAST(kind, ...) PROTO_##kind(PROTO_TAKE_LEAST, __VA_ARGS__)
#define PROTO_MOST(kind, ...) PROTO_##kind(PROTO_TAKE_MOST, __VA_ARGS__)

/* Not every message is written and read where it is listed; clang says so of inline functions in a .c. */
#define PROTO_OWN static inline __attribute__((unused))
#define PROTO_STRUCT(name, list)                                                                                   \
    struct name { list(PROTO_MEMBERS) };                                                                           \
    PROTO_OF(name, list)
/* The same for a struct that is declared elsewhere. */
#define PROTO_OF(name, list)                                                                                       \
    enum { name##_LEAST = 0 list(PROTO_LEAST), name##_MOST = 0 list(PROTO_MOST) };                                 \
    extern const struct shape name##_shape;                                                                        \
    PROTO_OWN int name##_put(struct buf *b, const struct name *m) { return proto_put(b, &name##_shape, m); }       \
    PROTO_OWN bool name##_get(struct wire_in *in, struct name *m) { return proto_get(in, &name##_shape, m); }      \
    struct name

#if defined(CLOCHE_CPPCHECK)    /* whose 2.10 does not expand a macro whose name comes from another one's argument */
#define PROTO_SHAPE_(name, list, well_) const struct shape name##_shape = { .well = well_ };
#else
#define PROTO_SHAPE_(name, list, well_)                                                                            \
    static const struct field *name##_fields(void)                                                                 \
    {                                                                                                              \
        typedef __typeof__(struct name) struct_here;                                                               \
        static const struct field fields[] = { list(PROTO_ROWS) { .kind = FIELD_END } };                           \
        return fields;                                                                                             \
    }                                                                                                              \
    const struct shape name##_shape = { name##_fields, well_, sizeof(struct name), name##_MOST };
#endif
#define PROTO_SHAPE(name, list) PROTO_SHAPE_(name, list, NULL)
/* @fn takes the struct, and says whether its fields go together. */
#define PROTO_SHAPE_WELL(name, list, fn)                                                                           \
    static bool name##_is_well(const void *m) { return fn(m); }                                                       \
    PROTO_SHAPE_(name, list, name##_is_well)

/* A message that is its number and nothing else. */
#define PROTO_NOTHING(F) F(UNSAID, char none, none)
PROTO_STRUCT(nothing, PROTO_NOTHING);

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* What one side says, each M(NUMBER, value, message): the constants, and the message of each. */
#define PROTO_EDGE(name, list)                                                                                     \
    enum name { list(PROTO_CONSTANT) };                                                                            \
    list(PROTO_TIED)                                                                                               \
    enum name
#define PROTO_CONSTANT(number, value, message, ...) number = (value),
#define PROTO_TIED(number, value, message, ...)                                                                    \
    typedef __typeof__(struct message) number##_IS;                                                                \
    enum { number##_LEAST = message##_LEAST, number##_MOST = message##_MOST };                                     \
    static inline const struct shape *number##_SHAPE(void) { return &message##_shape; }

/* say(@ctx, number, shape, message): what a side has to send a message with. */
#define PROTO_SAY(say, ctx, number, ...) say(ctx, number, number##_SHAPE(), &(const number##_IS){ __VA_ARGS__ })

/* The table of who listens, each R(NUMBER, function, once, states): int function(ctx, const MESSAGE *m), 0 or more to
 * go on, negative to end the peer. */
#define PROTO_RULES(table, list)                                                                                   \
    list(PROTO_TAKER)                                                                                              \
    static const struct msg_rule table[] = { list(PROTO_RULE) };
#define PROTO_TAKER(number, fn, once_, states_)                                                                    \
    static int fn##_##number(void *ctx, const struct frame *f)                                                     \
    {                                                                                                              \
        struct wire_in in = wire_in_of(f->payload, f->length);                                                     \
        number##_IS m;                                                                                             \
        return proto_get(&in, number##_SHAPE(), &m) ? fn(ctx, &m) : -1;                                            \
    }
#define PROTO_RULE(number, fn, once_, states_)                                                                     \
    { .type = number, .once = (once_), .states = (states_), .min_length = number##_LEAST,                          \
      .max_length = number##_MOST, .handler = fn##_##number },

#endif
