/* tests/lib/false_clock.c: preloaded: the host's clock, as whoever sets it would have set it
 *
 * The file "false-clock" beside this object says by how many milliseconds; it is mapped, so it holds at once, also for
 * processes that may open nothing any more. Nothing else but the wall clock is false.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *ahead_ms;

static void __attribute__((constructor))
begin(void)
{
    char path[4096];
    Dl_info info;
    void *at;
    int fd;

    if (dladdr((void *)&ahead_ms, &info) == 0 || strlen(info.dli_fname) + sizeof("false-clock") > sizeof(path))
        return;
    snprintf(path, sizeof(path), "%s", info.dli_fname);
    strcpy(strrchr(path, '/') + 1, "false-clock");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    at = fd >= 0 ? mmap(NULL, sizeof(*ahead_ms), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        (void)close(fd);
    if (at != MAP_FAILED)
        ahead_ms = at;
}

int
clock_gettime(clockid_t which, struct timespec *out)
{
    int r = (int)syscall(SYS_clock_gettime, which, out);

    if (r == 0 && which == CLOCK_REALTIME && ahead_ms != NULL) {
        int64_t ms = (int64_t)out->tv_sec * 1000 + out->tv_nsec / 1000000 + *ahead_ms;

        out->tv_sec = (time_t)(ms / 1000);
        out->tv_nsec = (long)(ms % 1000) * 1000000 + out->tv_nsec % 1000000;
    }
    return r;
}

time_t
time(time_t *out)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

int
gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now = { 0 };
    int r = clock_gettime(CLOCK_REALTIME, &now);

    (void)zone;
    *out = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return r;
}
