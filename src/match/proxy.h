/* match/proxy.h: the address of a parent proxy, and the hosts that are not asked of it
 *
 * Text of the user's, as in `http_proxy` and `no_proxy`. Pure; what comes back are slices of the text.
 */
#ifndef CLOCHE_MATCH_PROXY_H
#define CLOCHE_MATCH_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "match/host.h"

#define PROXY_URL_MAX 512           /* bytes of a URL */
#define PROXY_USER_MAX 256          /* bytes of "user:password", decoded */
#define NO_PROXY_MAX 8192           /* bytes of a list */

enum proxy_fault {
    PROXY_OK = 0,
    PROXY_TOO_LONG,
    PROXY_SCHEME,           /* another than http */
    PROXY_HOST,
    PROXY_PORT,
    PROXY_USER,             /* a malformed %XX, a control byte, or too long */
    PROXY_PATH,             /* something behind the authority */
};

const char *proxy_fault_text(enum proxy_fault fault);

struct proxy_url {
    struct host host;
    uint16_t port;                      /* 80 when none was written */
    char user[PROXY_USER_MAX];          /* "user:password", decoded */
    size_t user_n;                      /* 0: none */
};

/* "http://[USER:PASSWORD@]HOST[:PORT][/]", or HOST:PORT alone. */
enum proxy_fault proxy_parse(struct str url, struct proxy_url *out);

/* Whether @host at @port is not asked of the proxy. @list is what `no_proxy` holds: names (they and all below them; a
 * dot or "*." in front says only what is below), addresses, ranges (10.0.0.0/8), each with a port if that alone is
 * meant; separated by commas or blanks; "*" is everything. What is none of these fits nothing. */
bool proxy_skips(struct str list, const struct host *host, uint16_t port);

#endif
