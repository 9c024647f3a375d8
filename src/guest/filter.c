/* guest/filter.c: see filter.h */
#include "guest/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILTER_MAX 4096     /* BPF_MAXINSNS */

static int
nowhere(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (fd != null && dup2(null, fd) < 0)
            return -1;
    if (null > 2)
        close_fd(&null);
    return 0;
}

/* The whole file into @filter. How many instructions; -1: it is not of them alone, or too long. */
static int
load(const char *path, struct sock_filter filter[FILTER_MAX])
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    char more;

    while (fd >= 0 && n < FILTER_MAX * sizeof(*filter)) {
        ssize_t got = read(fd, (char *)filter + n, FILTER_MAX * sizeof(*filter) - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (n == 0 || n % sizeof(*filter) != 0 || read(fd, &more, 1) != 0)
        return -1;
    return (int)(n / sizeof(*filter));
}

int
filter_install(const char *path)
{
    static struct sock_filter filter[FILTER_MAX];
    int n = load(path, filter);
    const struct sock_fprog program = { (unsigned short)n, filter };

    if (n < 0 || nowhere() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) < 0 ? -1 : 0;
}
