/* wire/rfb.h: what a viewer says to a display by the Remote Framebuffer Protocol (RFC 6143), and what of it passes
 *
 * The viewer's direction is read message by message, with the extensions that noVNC and TigerVNC speak. A message
 * passes whole or not at all, so that the display reads what was judged and nothing else. Of who looks only those pass
 * that ask for pixels: no key, no pointer, no text, no other size; they are left out, since a viewer's pointer moves
 * over the picture whether it may do something there or not. What is not known has no length, so it ends the
 * connection: so does what is longer than it may be.
 *
 * A display speaks another way to a viewer that says it understands more (an encoding), and reads its messages another
 * way then. So encodings are a list too: what is not in it is left out of what the viewer says.
 *
 * Pure.
 */
#ifndef CLOCHE_WIRE_RFB_H
#define CLOCHE_WIRE_RFB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define RFB_TEXT_MAX      (64U * 1024)      /* bytes of a text for the clipboard */
#define RFB_ENCODINGS_MAX 256               /* in one message */
#define RFB_MESSAGE_MAX   (RFB_TEXT_MAX + 8)

/* Fields are rfb.c's. */
struct rfb {
    bool control;               /* or who it is looks only */
    enum { RFB_VERSION, RFB_SECURITY, RFB_INIT, RFB_TALKS, RFB_ENDED } state;
    struct buf part;            /* of it, what has come */
};

void rfb_init(struct rfb *r, bool control);
void rfb_free(struct rfb *r);

/* Take all of @p, and append what passes to @out, which has room for RFB_MESSAGE_MAX more than @n. 0, or -1 with @err
 * ("desktop.viewer"): nothing passes any more, and what @out was given before is good. */
int rfb_feed(struct rfb *r, const uint8_t *p, size_t n, struct buf *out, struct err *err);

#endif
