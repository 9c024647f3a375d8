/* egress/socks5 and egress/sniff: a verdict never changes with more bytes, what is accepted is within its limits, and
 * what the sniffer calls SOCKS is never called something else by its parser */
#include "fuzz.h"

#include <string.h>

#include "egress/sniff.h"
#include "egress/socks5.h"

static void
check_request(const struct socks5_request *request, size_t n)
{
    FUZZ_ASSERT(request->consumed >= 8 && request->consumed <= n && request->consumed <= SOCKS5_REQUEST_MAX);
    FUZZ_ASSERT(request->port != 0 && request->code == SOCKS5_SUCCEEDED);
    FUZZ_ASSERT(request->is_name == (request->host_n > 0) && request->host_n <= HOST_NAME_MAX_LEN);
    FUZZ_ASSERT(strlen(request->host) == request->host_n);
    for (size_t i = 0; i < request->host_n; i++)
        FUZZ_ASSERT(strchr("%/\\:@[]*?# \t\r\n", request->host[i]) == NULL && (uint8_t)request->host[i] < 0x7f);
    if (!request->is_name)
        FUZZ_ASSERT(request->ip.family == 4 || request->ip.family == 6);
}

/* Every shorter input says MORE, or what the whole says. */
static void
check_prefixes(const uint8_t *data, size_t n, enum socks_status greeting, enum socks_status request,
               enum socks_status old)
{
    struct socks5_greeting g;
    struct socks5_request r;
    struct socks4_refusal o;

    for (size_t cut = 0; cut < n; cut += 1 + n / 128) {
        enum socks_status status = socks5_greeting(data, cut, &g);
        FUZZ_ASSERT(status == SOCKS_MORE || status == greeting);
        status = socks5_request(data, cut, &r);
        FUZZ_ASSERT(status == SOCKS_MORE || status == request);
        status = socks4_request(data, cut, &o);
        FUZZ_ASSERT(status == SOCKS_MORE || status == old);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct socks5_greeting g;
    struct socks5_request r;
    struct socks4_refusal o;
    uint8_t reply[SOCKS5_REPLY_MAX];
    enum socks_status greeting = socks5_greeting(data, n, &g);
    enum socks_status request = socks5_request(data, n, &r);
    enum socks_status old = socks4_request(data, n, &o);
    enum sniff what = sniff(data, n);

    FUZZ_ASSERT(what != SNIFF_MORE || n < SNIFF_MAX);
    FUZZ_ASSERT((what == SNIFF_SOCKS5) == (n > 0 && greeting != SOCKS_NOT_SOCKS));
    FUZZ_ASSERT((what == SNIFF_SOCKS4) == (n > 0 && old != SOCKS_NOT_SOCKS));
    FUZZ_ASSERT(old != SOCKS_OK);
    if (greeting == SOCKS_OK || greeting == SOCKS_REFUSED)
        FUZZ_ASSERT(g.consumed == 2u + data[1] && (greeting == SOCKS_OK) == (g.answer[1] == 0));
    if (old == SOCKS_REFUSED)
        FUZZ_ASSERT(o.consumed >= 9 && o.consumed <= n && o.answer[0] == 0 && o.answer[1] == 0x5b);
    if (request == SOCKS_REFUSED)
        FUZZ_ASSERT(r.code != SOCKS5_SUCCEEDED && r.host_n == 0 && r.port == 0 && r.consumed <= n);
    if (request == SOCKS_OK) {
        check_request(&r, n);
        FUZZ_ASSERT(socks5_reply(r.code, &r.ip, r.port, reply) == (r.ip.family == 6 ? 22u : 10u));
    }
    check_prefixes(data, n, greeting, request, old);
    return 0;
}
