/* match/hook_url.h: the URL of a server that is told something
 *
 * Text of a configuration. Pure; what comes back are slices of the text.
 */
#ifndef CLOCHE_MATCH_HOOK_URL_H
#define CLOCHE_MATCH_HOOK_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "match/host.h"

#define HOOK_URL_MAX 1024       /* bytes */

struct hook_url {
    bool https;
    struct host host;
    uint16_t port;
    struct str authority;       /* as it was written: for Host */
    struct str path;            /* with its query; empty: none was written */
};

/* "https://HOST[:PORT][/PATH]", of visible ASCII, without user and fragment (RFC 3986). "http" is for loopback alone:
 * what is told would be there for everybody on the way. False with @why, a sentence's end. */
bool hook_url(struct str url, struct hook_url *out, const char **why);

#endif
