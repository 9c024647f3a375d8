/* addresses, against the C library: what it takes we take, to the same bytes, and what it refuses we refuse */
#include "fuzz.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "match/ip.h"

static void
check_strict(struct str text, const char *cstr)
{
    uint8_t want[16];
    struct ip ip, again;
    char out[IP_TEXT_MAX], theirs[INET6_ADDRSTRLEN];
    bool v6 = strchr(cstr, ':') != NULL;
    bool expected = inet_pton(v6 ? AF_INET6 : AF_INET, cstr, want) == 1;

    FUZZ_ASSERT(ip_parse(text, &ip) == expected);
    if (!expected)
        return;
    FUZZ_ASSERT(memcmp(ip.b, want, v6 ? 16 : 4) == 0);
    FUZZ_ASSERT(ip_format(&ip, out) == strlen(out));
    FUZZ_ASSERT(ip_parse(str_of(out), &again) && ip_eq(&ip, &again));
    inet_ntop(v6 ? AF_INET6 : AF_INET, want, theirs, sizeof(theirs));
    FUZZ_ASSERT(strchr(theirs, '.') != NULL || strcmp(out, theirs) == 0);
    FUZZ_ASSERT(ip_classify(ip) <= IP_PUBLIC);
    /* unwrapping never makes an address more public than it was */
    FUZZ_ASSERT(ip_classify(ip) <= ip_classify(ip_unwrap(ip)));
    FUZZ_ASSERT(!ip_is_always_blocked(ip) || ip_is_blocked_private_or_link_local(text));
}

static void
check_loose(struct str text, const char *cstr)
{
    struct in_addr want;
    struct ip ip;
    /* inet_aton also stops at a blank: not an address to us. "0x" alone is zero to us, as it is to browsers. */
    bool differs = false;

    for (size_t i = 0; i < text.n; i++) {
        differs |= isspace((unsigned char)text.p[i]) != 0;
        differs |= (text.p[i] == 'x' || text.p[i] == 'X') && (i + 1 == text.n || text.p[i + 1] == '.');
    }
    if (differs || strchr(cstr, ':') != NULL || text.n > 64)
        return;
    FUZZ_ASSERT(ip_parse_loose(text, &ip) == (inet_aton(cstr, &want) != 0));
    if (ip_parse_loose(text, &ip))
        FUZZ_ASSERT(memcmp(ip.b, &want, 4) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char cstr[256];
    struct str text = { cstr, n };

    if (n >= sizeof(cstr) || memchr(data, 0, n) != NULL) {
        struct ip ip;
        ip_parse_loose((struct str){ (const char *)data, n }, &ip);
        return 0;
    }
    memcpy(cstr, data, n);
    cstr[n] = '\0';
    if (n > 0 && n < IP_TEXT_MAX)
        check_strict(text, cstr);
    check_loose(text, cstr);
    ip_is_loopback_host(text);
    return 0;
}
