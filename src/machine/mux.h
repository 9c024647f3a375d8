/* machine/mux.h: connections of a machine over one stream
 *
 * A machine has no network device. In its own network every address leads to listeners (wall/capture.h), as in other
 * sandboxes; what arrives there is carried over a serial port to a process of the host's, which connects to the same
 * address in the sandbox's network there. cloche-egress listens on that one, and cannot tell the difference.
 *
 * A frame is a channel, a type, a length, and so many bytes. The machine opens channels. Each end sends MUX_END (no
 * more of its bytes) or MUX_RESET (nor are yours wanted) once; then the channel is free. An end has at most MUX_WINDOW
 * bytes under way, and may send more when MUX_ROOM says so. Neither end believes the other: what does not fit ends all.
 */
#ifndef CLOCHE_MACHINE_MUX_H
#define CLOCHE_MACHINE_MUX_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MUX_CHANNELS 256
#define MUX_HEADER   5
#define MUX_PIECE    16384
#define MUX_WINDOW   65536
#define MUX_ADDRESS  18         /* an IPv6 address, or an IPv4 one mapped into it, and a port */

enum mux_type { MUX_OPEN = 1, MUX_DATA, MUX_ROOM, MUX_END, MUX_RESET };

struct mux_frame {
    uint16_t channel;
    enum mux_type type;
    const uint8_t *p;           /* MUX_OPEN: MUX_ADDRESS bytes; MUX_ROOM: 4; MUX_DATA: 1 to MUX_PIECE; else none */
    size_t n;
};

/* The frame at the start of @p: 1, with the bytes that it takes in @size; 0: it is not complete; -1: it is none.
 * Pure. */
int mux_read(const uint8_t *p, size_t n, struct mux_frame *out, size_t *size);
void mux_put(struct buf *out, const struct mux_frame *f);

/* Carry until @port is at its end, or broken. @listeners, of wall/capture.h: this is the machine's end; NULL: the
 * host's. -1 with @err. */
int mux_run(int port, const int *listeners, struct err *err);

#endif
