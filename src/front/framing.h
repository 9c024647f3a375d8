/* front/framing.h: what libmicrohttpd reads is read strictly first
 *
 * The library is lenient: of two lengths it takes one, a coding that it does not know it passes over, a line may end
 * with LF alone, a NUL ends a value. A proxy in front that reads the same bytes otherwise sees other requests than we
 * answer (request smuggling). So each byte that the library takes from a connection goes through the strict codec
 * (wire/http1.h) on its way: the two functions that it reads with, recv(2) and gnutls_record_recv(3), are this
 * program's own, as the dynamic linker has it (ld.so(8)). What is not plainly one request of known length is not
 * handed on: its head ends there for the library, and is answered with what was wrong, and the connection ends; a body
 * that is wrong ends the connection.
 *
 * It fails closed: a request that was not counted here (a library that reads otherwise, what follows on a connection
 * that did not become another protocol) is refused.
 */
#ifndef CLOCHE_FRONT_FRAMING_H
#define CLOCHE_FRONT_FRAMING_H

#include <stdbool.h>

#include "wire/http1.h"

struct framing;

/* @tls: all connections are under TLS. 0, or -1: the functions of the libraries are not found. */
int framing_open(bool tls);
/* From now on that descriptor's bytes are judged. NULL: no memory, and then each of its requests is refused. */
struct framing *framing_begin(int fd);
void framing_end(struct framing *g);
/* The library has the next request. HTTP1_OK: that one was judged, and is well. */
enum http1_result framing_next(struct framing *g);
/* What the client sends next, or has sent, is the rest of what is not read: of a body, or of what is malformed. */
bool framing_unread(const struct framing *g);

#endif
