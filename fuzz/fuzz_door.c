/* match/door: what is taken for an address, a Host or an Origin is one, and comes out the same when written again
 *
 * Input: the first byte chooses, the rest is the text.
 */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "match/door.h"

static void
address(struct str text)
{
    char ip[IP_TEXT_MAX], again[IP_TEXT_MAX + 32];
    struct door door, second;
    const char *why = NULL;

    if (!door_parse(text, &door, &why)) {
        FUZZ_ASSERT(why != NULL && why[0] != '\0');
        return;
    }
    if (!door.tcp) {
        FUZZ_ASSERT(door.path.n > 0 && door.path.n == text.n - 5 && memchr(door.path.p, '\0', door.path.n) == NULL);
        return;
    }
    ip_format(&door.ip, ip);
    snprintf(again, sizeof(again), door.ip.family == 6 ? "tcp:[%s]:%u" : "tcp:%s:%u", ip, door.port);
    FUZZ_ASSERT(door_parse(str_of(again), &second, &why) && second.port == door.port && ip_eq(&second.ip, &door.ip));
}

static void
host(struct str text)
{
    struct host_pattern local;

    FUZZ_ASSERT(host_pattern_cloche(STR_LIT("127.0.0.1:8080"), &local) == HOST_OK);
    FUZZ_ASSERT(!door_host(text, 80, NULL, 0, false));
    if (door_host(text, 80, &local, 1, false))      /* whatever spelling: an address, and its port */
        FUZZ_ASSERT(door_host(text, 80, NULL, 0, true) && memchr(text.p, ':', text.n) != NULL);
}

static void
origin(struct str text)
{
    struct door_origin o, again;
    char url[HOST_NAME_MAX_LEN + 32];

    if (!door_origin(text, &o))
        return;
    FUZZ_ASSERT(o.port != 0 && o.host.n > 0 && memchr(text.p, '\0', text.n) == NULL);
    snprintf(url, sizeof(url), o.host.is_ip && o.host.ip.family == 6 ? "%s[%s]:%u" : "%s%s:%u",
             o.https ? "https://" : "http://", o.host.name, o.port);
    FUZZ_ASSERT(door_origin(str_of(url), &again) && door_origin_eq(&o, &again));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = { (const char *)data + 1, n - 1 };

    if (n == 0)
        return 0;
    switch (data[0] % 3) {
    case 0: address(text); break;
    case 1: host(text); break;
    default: origin(text);
    }
    return 0;
}
