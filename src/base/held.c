/* base/held.c: see held.h */
#include "base/held.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"

#define TURNS    40
#define PAUSE_NS 5000000

int
open_and_hold(const char *path, int flags, mode_t mode)
{
    for (int i = 0; i < TURNS; i++) {
        cleanup_close int fd = open(path, flags, mode);
        struct stat st;
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
            if (fstat(fd, &st) < 0)
                return -1;
            if (st.st_nlink > 0)
                return take_fd(&fd);
        } else if (errno != EWOULDBLOCK) {
            return -1;
        } else {
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        }
    }
    errno = EWOULDBLOCK;
    return -1;
}
