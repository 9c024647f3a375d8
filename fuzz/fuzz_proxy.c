/* The address of a parent proxy, and no_proxy: what is taken is a host and a port; what a list says, one of its pieces
 * says
 * Input: a URL, a NUL, a list. */
#include "fuzz.h"

#include <string.h>

#include "match/proxy.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n > 0 ? memchr(data, 0, n) : NULL;
    size_t url_n = end != NULL ? (size_t)(end - data) : n;
    struct str list = { end != NULL ? (const char *)end + 1 : "", end != NULL ? n - url_n - 1 : 0 };
    struct proxy_url url;
    struct host host;

    if (proxy_parse((struct str){ (const char *)data, url_n }, &url) != PROXY_OK)
        return 0;
    FUZZ_ASSERT(url.port != 0 && url.host.n > 0 && url.user_n <= sizeof(url.user));
    FUZZ_ASSERT(host_canonical((struct str){ url.host.name, url.host.n }, &host) == HOST_OK);
    if (proxy_skips(list, &url.host, url.port)) {
        bool piece = false;
        for (size_t at = 0, one; at < list.n; at += one + 1) {
            for (one = 0; at + one < list.n && memchr(", \t", list.p[at + one], 3) == NULL; one++)
                ;
            piece |= proxy_skips((struct str){ list.p + at, one }, &url.host, url.port);
        }
        FUZZ_ASSERT(piece);
    }
    return 0;
}
