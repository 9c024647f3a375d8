/* match/publish.h: a port of a sandbox that is reached from the host, as it is written: [[ADDRESS:]HPORT:]PORT, or
 * ADDRESS:PORT
 *
 * ADDRESS is one of the host's, IPv6 in brackets; without it 127.0.0.1. HPORT is the port there, 0 any free one;
 * without it the same as PORT, which is the sandbox's.
 */
#ifndef CLOCHE_MATCH_PUBLISH_H
#define CLOCHE_MATCH_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "match/ip.h"

#define PUBLISH_TEXT_MAX (IP_TEXT_MAX + 16)     /* bytes that publish_format needs, with the NUL */
#define PUBLISH_MAX 16                          /* of one sandbox */
#define PUBLISH_PRIVILEGED 1024                 /* host ports below it are root's */

struct publish {
    struct ip ip;
    uint16_t host_port, port;
};

/* NULL; or what is wrong. Pure. */
const char *publish_parse(struct str text, struct publish *out);
/* "127.0.0.1:3000:3000", "[::1]:0:80" */
void publish_format(const struct publish *p, char out[PUBLISH_TEXT_MAX]);
/* Nobody but this host reaches it there. */
bool publish_is_local(const struct publish *p);

#endif
