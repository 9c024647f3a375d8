/* bench/work.c: the system call loop, timed from inside
 *
 * `work N` makes N getppid(2) calls (cheap, not answered by the vDSO, so that what stands between the call and the
 * kernel dominates) and prints the nanoseconds they took.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int
main(int argc, char **argv)
{
    uint64_t n = 0, began;

    for (const char *p = argc > 1 ? argv[1] : "1000000"; *p >= '0' && *p <= '9'; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    began = now();
    for (uint64_t i = 0; i < n; i++)
        syscall(SYS_getppid);
    printf("%llu\n", (unsigned long long)(now() - began));
    return 0;
}
