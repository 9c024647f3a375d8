/* wire/ws.h: WebSocket frames (RFC 6455) as one end sends them, read strictly and written again
 *
 * What passes is not the sender's frames but its messages: their bytes go through the caller's function as they come,
 * and out in frames of our own, so that what is held back (a placeholder may go on in the next fragment) never keeps a
 * control frame waiting. That is an intermediary's right as long as no extension was agreed on (RFC 6455 §5.4), and
 * none may be: reserved bits are refused.
 *
 * Refused: reserved bits and opcodes, a length that is not written in the fewest bytes, frames of a client without a
 * mask and of a server with one (§5.1), control frames in pieces or above 125 bytes, a fragment of no message, a
 * message within another. What follows a Close frame is dropped.
 *
 * Pure but for the masks of what is sent to servers, which are new and random for every frame (§5.3).
 */
#ifndef CLOCHE_WIRE_WS_H
#define CLOCHE_WIRE_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define WS_HEAD_MAX    14
#define WS_CONTROL_MAX 125
#define WS_FLUSH       (64 * 1024)      /* bytes of a message that are sent at once at most, about */

enum ws_opcode { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

struct ws_frame {
    bool fin, masked;
    uint8_t opcode;
    uint8_t key[4];
    uint64_t length;        /* of its payload */
    size_t head;            /* bytes before that */
};

enum ws_result {
    WS_OK, WS_MORE, WS_RESERVED, WS_OPCODE, WS_LENGTH, WS_CONTROL, WS_MASK, WS_ORDER, WS_REFUSED, WS_ROOM,
};

/* The head that @p begins with. OK with @out filled, MORE, or what is wrong with it by itself. */
enum ws_result ws_head(const uint8_t *p, size_t n, struct ws_frame *out);
/* Append a head; @key NULL: no mask. 0 or -1. */
int ws_write_head(struct buf *out, bool fin, uint8_t opcode, uint64_t length, const uint8_t *key);

/* What becomes of @n more bytes of a message; @end: they are its last. @control: of a control frame, which comes whole.
 * Append to @out; not more than came in so far, and all of it at the end. -1 refuses. */
typedef int ws_bytes_fn(void *ctx, bool control, const uint8_t *p, size_t n, bool end, struct buf *out);

/* One direction. Fields are ws.c's. */
struct ws_way {
    bool client;                    /* it is the client's: masked */
    bool inside;                    /* of @frame's payload @left bytes are to come */
    bool message, begun;            /* a message is open; a frame of it went out */
    bool closed;
    uint8_t opcode;                 /* the message's */
    struct ws_frame frame;
    uint64_t left;
    uint8_t head[WS_HEAD_MAX], control[WS_CONTROL_MAX];
    size_t head_n, control_n;
    struct buf text;                /* of the message, to be sent */
};

void ws_init(struct ws_way *w, bool client);
void ws_free(struct ws_way *w);     /* wipes what it has */

/* Take all of @p and append what goes out to @out. Anything but WS_OK ends the connection: REFUSED is the function's
 * word, ROOM a full buffer or no random bytes. */
enum ws_result ws_feed(struct ws_way *w, const uint8_t *p, size_t n, ws_bytes_fn *fn, void *ctx, struct buf *out);

#endif
