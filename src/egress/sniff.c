/* egress/sniff.c: see sniff.h */
#include "egress/sniff.h"

#include <stdbool.h>
#include <string.h>

#include "base/array.h"

#define SNIFF_VERSION_MAX 64    /* bytes of one, with blanks around it: with more it is one, whatever follows */

const char *
sniff_name(enum sniff what)
{
    static const char *const names[] = {
        [SNIFF_MORE] = "more",     [SNIFF_HTTP] = "http",     [SNIFF_HTTP2] = "http2",     [SNIFF_TLS] = "tls",
        [SNIFF_SOCKS4] = "socks4", [SNIFF_SOCKS5] = "socks5", [SNIFF_UNKNOWN] = "unknown",
    };
    return (size_t)what < ARRAY_LEN(names) ? names[what] : "unknown";
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

/* What some reader splits a line at: ASCII's blanks, Latin-1's, and what Python takes for one. */
static bool
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' || (c >= 0x1c && c <= 0x1f) || c == 0x85 ||
           c == 0xa0;
}

/* A version at the end of its line, behind the blank at @p. */
static enum sniff_line
sniff_version(const uint8_t *p, size_t n)
{
    static const char name[] = "http/";
    size_t at = 1;

    for (; at <= sizeof(name) - 1; at++) {
        if (at == n)
            return SNIFF_LINE_MORE;
        if ((p[at] >= 'A' && p[at] <= 'Z' ? p[at] | 0x20 : p[at]) != name[at - 1])
            return SNIFF_LINE_NONE;
    }
    while (at < n && at < SNIFF_VERSION_MAX && ((p[at] >= '0' && p[at] <= '9') || p[at] == '.'))
        at++;
    while (at < n && at < SNIFF_VERSION_MAX && is_blank(p[at]) && p[at] != '\r')
        at++;
    if (at == SNIFF_VERSION_MAX)
        return SNIFF_LINE_REQUEST;
    if (at == n)
        return SNIFF_LINE_MORE;
    return p[at] == '\n' || p[at] == '\r' ? SNIFF_LINE_REQUEST : SNIFF_LINE_NONE;
}

enum sniff_line
sniff_line(const uint8_t *p, size_t n, size_t *safe)
{
    bool word = false;

    for (size_t i = 0; i < n; i++) {
        enum sniff_line version = is_blank(p[i]) ? sniff_version(p + i, n - i) : SNIFF_LINE_NONE;
        *safe = i;
        if (version != SNIFF_LINE_NONE)
            return version;
        if (p[i] == '\n' && word)
            return SNIFF_LINE_NONE;
        word |= p[i] != '\n' && !is_blank(p[i]);
    }
    *safe = n;
    return SNIFF_LINE_MORE;
}
