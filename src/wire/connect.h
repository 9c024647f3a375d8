/* wire/connect.h: messages of the Connect protocol's streams (connectrpc.com): a byte of flags, a length of four bytes
 *
 * Pure.
 */
#ifndef CLOCHE_WIRE_CONNECT_H
#define CLOCHE_WIRE_CONNECT_H

#include <stdint.h>

#include "base/str.h"

#define CONNECT_HEAD       5
#define CONNECT_COMPRESSED 0x01
#define CONNECT_END        0x02     /* of an answer: its last message */

void connect_head(uint8_t out[CONNECT_HEAD], uint8_t flags, uint32_t n);
/* The one message that a request with one is, all of it, borrowed. NULL; or what is wrong with it. */
const char *connect_one(struct str in, struct str *out);
/* What a client says of its time: at most ten digits, milliseconds. False: it is none. */
bool connect_timeout(const char *text, uint64_t *ms);
/* The code of an error that would have that status. */
const char *connect_code(unsigned status);

#endif
