/* egress/socks5.c: see socks5.h (RFC 1928) */
#include "egress/socks5.h"

#include <errno.h>
#include <string.h>

enum { VERSION_4 = 4, VERSION_5 = 5 };
enum { METHOD_NONE = 0x00, METHOD_UNACCEPTABLE = 0xff };
enum { COMMAND_CONNECT = 1 };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };
enum { SOCKS4_REJECTED = 0x5b };

enum socks_status
socks5_greeting(const uint8_t *p, size_t n, struct socks5_greeting *out)
{
    size_t methods;
    bool none;

    *out = (struct socks5_greeting){ .answer = { VERSION_5, METHOD_UNACCEPTABLE } };
    if (n > 0 && p[0] != VERSION_5)
        return SOCKS_NOT_SOCKS;
    if (n < 2)
        return SOCKS_MORE;
    methods = p[1];
    if (n < 2 + methods)
        return SOCKS_MORE;
    out->consumed = 2 + methods;
    none = methods > 0 && memchr(p + 2, METHOD_NONE, methods) != NULL;
    if (none)
        out->answer[1] = METHOD_NONE;
    return none ? SOCKS_OK : SOCKS_REFUSED;
}

static bool
is_host_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* Where the address ends (the port's two bytes follow), or 0 when the type is unknown. @n is at least 5. */
static size_t
address_end(const uint8_t *p)
{
    switch (p[3]) {
    case TYPE_IPV4:
        return 4 + 4;
    case TYPE_IPV6:
        return 4 + 16;
    case TYPE_NAME:
        return 4 + 1 + (size_t)p[4];
    default:
        return 0;
    }
}

static bool
read_address(const uint8_t *p, struct socks5_request *out)
{
    size_t n = p[4];

    if (p[3] != TYPE_NAME) {
        out->ip = (struct ip){ .family = p[3] == TYPE_IPV4 ? 4 : 6 };
        memcpy(out->ip.b, p + 4, p[3] == TYPE_IPV4 ? 4 : 16);
        return true;
    }
    if (n == 0 || n > HOST_NAME_MAX_LEN)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_host_byte(p[5 + i]))
            return false;
    out->is_name = true;
    out->host_n = n;
    memcpy(out->host, p + 5, n);
    return true;
}

static enum socks_status
socks5_refuse(struct socks5_request *out, enum socks5_code code, size_t consumed)
{
    *out = (struct socks5_request){ .consumed = consumed, .code = code };
    return SOCKS_REFUSED;
}

enum socks_status
socks5_request(const uint8_t *p, size_t n, struct socks5_request *out)
{
    size_t end;

    *out = (struct socks5_request){ .consumed = 0 };
    if (n > 0 && p[0] != VERSION_5)
        return SOCKS_NOT_SOCKS;
    if (n < 5)      /* no request is shorter, and the fifth byte is a name's length */
        return SOCKS_MORE;
    end = address_end(p);
    if (end == 0)
        return socks5_refuse(out, SOCKS5_ADDRESS_TYPE, n);     /* where it ends cannot be known */
    if (n < end + 2)
        return SOCKS_MORE;
    if (p[1] != COMMAND_CONNECT)
        return socks5_refuse(out, SOCKS5_COMMAND, end + 2);
    out->port = (uint16_t)(p[end] << 8 | p[end + 1]);
    if (p[2] != 0 || out->port == 0 || !read_address(p, out))
        return socks5_refuse(out, SOCKS5_FAILURE, end + 2);
    out->consumed = end + 2;
    return SOCKS_OK;
}

size_t
socks5_reply(enum socks5_code code, const struct ip *bound, uint16_t port, uint8_t out[SOCKS5_REPLY_MAX])
{
    bool v6 = bound != NULL && bound->family == 6;
    size_t address = v6 ? 16 : 4;

    memset(out, 0, SOCKS5_REPLY_MAX);
    out[0] = VERSION_5;
    out[1] = (uint8_t)code;
    out[3] = v6 ? TYPE_IPV6 : TYPE_IPV4;
    if (bound != NULL) {
        memcpy(out + 4, bound->b, address);
        out[4 + address] = (uint8_t)(port >> 8);
        out[5 + address] = (uint8_t)port;
    }
    return 4 + address + 2;
}

enum socks5_code
socks5_code_of(int saved_errno)
{
    switch (saved_errno) {
    case 0:
        return SOCKS5_SUCCEEDED;
    case EACCES:
    case EPERM:
        return SOCKS5_NOT_ALLOWED;
    case ENETUNREACH:
    case ENETDOWN:
        return SOCKS5_NET_UNREACHABLE;
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENOENT:            /* the name has no address */
        return SOCKS5_HOST_UNREACHABLE;
    case ECONNREFUSED:
        return SOCKS5_REFUSED;
    case ETIMEDOUT:
        return SOCKS5_TTL_EXPIRED;
    default:
        return SOCKS5_FAILURE;
    }
}

/* Past the NUL-terminated text at *@at. REFUSED when it is longer than any may be. */
static enum socks_status
skip_text(const uint8_t *p, size_t n, size_t *at)
{
    size_t room = n - *at;
    size_t look = room < SOCKS4_TEXT_MAX + 1 ? room : SOCKS4_TEXT_MAX + 1;
    const uint8_t *nul = memchr(p + *at, 0, look);

    if (nul == NULL)
        return look <= SOCKS4_TEXT_MAX ? SOCKS_MORE : SOCKS_REFUSED;
    *at = (size_t)(nul - p) + 1;
    return SOCKS_OK;
}

enum socks_status
socks4_request(const uint8_t *p, size_t n, struct socks4_refusal *out)
{
    size_t at = 8;
    enum socks_status status;

    *out = (struct socks4_refusal){ .answer = { 0, SOCKS4_REJECTED } };
    if (n > 0 && p[0] != VERSION_4)
        return SOCKS_NOT_SOCKS;
    if (n < 8)
        return SOCKS_MORE;
    out->is_4a = p[4] == 0 && p[5] == 0 && p[6] == 0 && p[7] != 0;
    status = skip_text(p, n, &at);              /* the user */
    if (status == SOCKS_OK && out->is_4a)
        status = skip_text(p, n, &at);          /* the name */
    if (status == SOCKS_MORE)
        return SOCKS_MORE;
    out->consumed = status == SOCKS_OK ? at : n;
    return SOCKS_REFUSED;
}
