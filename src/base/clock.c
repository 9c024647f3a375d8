/* base/clock.c: what time it is (see clock.h) */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static struct timespec
now(clockid_t which)
{
    struct timespec t = { 0 };

    (void)clock_gettime(which, &t);
    return t;
}

uint64_t
clock_us(void)
{
    struct timespec t = now(CLOCK_MONOTONIC);

    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t
clock_ms(void)
{
    return clock_us() / 1000;
}

uint64_t
clock_boot_ms(void)
{
    struct timespec t = now(CLOCK_BOOTTIME);

    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t
clock_wall_us(void)
{
    struct timespec t = now(CLOCK_REALTIME);

    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t
clock_wall_ms(void)
{
    return clock_wall_us() / 1000;
}

void
clock_text(int64_t ms, char out[CLOCK_TEXT + 1])
{
    const int64_t rest = (ms % 1000 + 1000) % 1000;
    const time_t second = (time_t)((ms - rest) / 1000);
    struct tm utc;
    char date[32];

    if (gmtime_r(&second, &utc) == NULL || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        date[0] = '\0';
    snprintf(out, CLOCK_TEXT + 1, "%s.%03dZ", date, (int)rest);
}
