/* egress/sniff.c: see sniff.h */
#include "egress/sniff.h"

#include <string.h>

const char *
sniff_name(enum sniff what)
{
    static const char *const names[] = {
        [SNIFF_MORE] = "more",     [SNIFF_HTTP] = "http",     [SNIFF_HTTP2] = "http2",     [SNIFF_TLS] = "tls",
        [SNIFF_SOCKS4] = "socks4", [SNIFF_SOCKS5] = "socks5", [SNIFF_UNKNOWN] = "unknown",
    };
    return (size_t)what < sizeof(names) / sizeof(names[0]) ? names[what] : "unknown";
}

/* A handshake record of TLS 1.x, or SSL 3: type, major and minor version. */
static enum sniff
sniff_tls(const uint8_t *p, size_t n)
{
    if (n > 1 && p[1] != 3)
        return SNIFF_UNKNOWN;
    if (n > 2 && p[2] > 4)
        return SNIFF_UNKNOWN;
    return n < 3 ? SNIFF_MORE : SNIFF_TLS;
}

static enum sniff
sniff_http(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n && i <= SNIFF_METHOD_MAX; i++) {
        if (p[i] == ' ' && i > 0)
            return i == 3 && memcmp(p, "PRI", 3) == 0 ? SNIFF_HTTP2 : SNIFF_HTTP;
        if (!((p[i] >= 'A' && p[i] <= 'Z') || (p[i] == '-' && i > 0)))
            return SNIFF_UNKNOWN;
    }
    return n > SNIFF_METHOD_MAX ? SNIFF_UNKNOWN : SNIFF_MORE;
}

enum sniff
sniff(const uint8_t *p, size_t n)
{
    if (n == 0)
        return SNIFF_MORE;
    switch (p[0]) {
    case 0x04:
        return SNIFF_SOCKS4;
    case 0x05:
        return SNIFF_SOCKS5;
    case 0x16:
        return sniff_tls(p, n);
    default:
        return sniff_http(p, n);
    }
}
