/* base/steady.c: see steady.h */
#include "base/steady.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

void
steady_machine(char out[STEADY_BOOT + 1])
{
    cleanup_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, STEADY_BOOT) : 0;

    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* The boot clock of another namespace of time is another one (time_namespaces(7)). */
void
steady_boot(char out[STEADY_BOOT + 1])
{
    struct stat st = { .st_ino = 0 };
    size_t n;

    steady_machine(out);
    n = strlen(out);
    (void)stat("/proc/self/ns/time", &st);
    if (n > 0)
        snprintf(out + n, STEADY_BOOT + 1 - n, "/%llu", (unsigned long long)st.st_ino);
}

static uint64_t
plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool
same_boot(const struct steady_kept *k, const char *boot, uint64_t boot_ms)
{
    return boot[0] != '\0' && strcmp(k->boot, boot) == 0 && boot_ms >= k->boot_ms;
}

struct steady
steady_begin(uint64_t wall_ms, uint64_t boot_ms)
{
    return (struct steady){ .at_ms = wall_ms, .boot_ms = boot_ms };
}

struct steady
steady_after(const struct steady_kept *k, const char *boot, uint64_t wall_ms, uint64_t boot_ms)
{
    uint64_t gone = same_boot(k, boot, boot_ms) ? boot_ms - k->boot_ms : clock_since(wall_ms, k->wall_ms);

    return steady_begin(plus(k->at_ms, gone), boot_ms);
}

uint64_t
steady_at(const struct steady *s, uint64_t boot_ms)
{
    return plus(s->at_ms, clock_since(boot_ms, s->boot_ms));
}

uint64_t
steady_age_s(const struct steady *s, uint64_t boot_ms, uint64_t wall_ms, int64_t changed_s)
{
    const uint64_t steady = steady_at(s, boot_ms) / 1000, wall = wall_ms / 1000;
    const uint64_t then = changed_s > 0 ? (uint64_t)changed_s : 0;
    const bool by_wall = wall < steady || (steady < STEADY_WRITTEN_S && then >= STEADY_WRITTEN_S);

    return clock_since(by_wall ? wall : steady, then);
}
