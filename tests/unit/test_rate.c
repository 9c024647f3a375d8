/* How many requests a credential gets through, and a stranger who presents a new one each time (R23) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "front/front.h"

#define PER_S 4     /* and twice as many at once */

static struct ip
address(uint8_t family, unsigned network, unsigned host)
{
    struct ip a = { .family = family };

    a.b[0] = 10;
    a.b[family == 4 ? 2 : 7] = (uint8_t)network;
    a.b[family == 4 ? 3 : 15] = (uint8_t)host;
    return a;
}

/* Of 100 who come at once, each from another place: how many get through. */
static unsigned
through(struct rate *rate, uint8_t family, bool networks, bool credentials)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 100; i++) {
        struct ip from = address(family, networks ? i : 1, networks ? 1 : i);
        char credential[32];
        snprintf(credential, sizeof(credential), "cloche_agent_%u", credentials ? i : 0);
        n += rate_take(rate, &from, credential, PER_S) == 0;
    }
    return n;
}

static void
who_is_counted_together(void **state)
{
    static const struct { uint8_t family; bool networks, credentials, together; } rows[] = {
        { 4, false, false, false }, { 4, true, true, false },       /* each address of IPv4 is somebody's own */
        { 6, false, false, true }, { 6, false, true, true },        /* whoever has one of IPv6 has its network */
        { 6, true, true, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct rate rate;
        unsigned n;
        memset(&rate, 0, sizeof(rate));
        n = through(&rate, rows[i].family, rows[i].networks, rows[i].credentials);
        /* a slow machine lets some more of them come */
        if (rows[i].together ? n < 2 * PER_S || n > 50 : n != 100)
            fail_msg("row %zu: %u", i, n);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(who_is_counted_together) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
