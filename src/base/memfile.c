/* base/memfile.c: see memfile.h */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"

#define SEAL_TRIES 20

int
memfile_seal(int fd)
{
    int r, tries = 0, seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_EXEC;

    do {
        r = fcntl(fd, F_ADD_SEALS, seals);
        if (r < 0 && errno == EINVAL && (seals & F_SEAL_EXEC) != 0) {       /* before Linux 6.3 */
            seals &= ~F_SEAL_EXEC;
            errno = EINTR;
        }
    } while (r < 0 && (errno == EINTR || errno == EBUSY) && ++tries < SEAL_TRIES);
    return r < 0 ? -1 : 0;
}

int
memfile_sealed(const char *name, bool exec, const void *p, size_t n)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    cleanup_close int fd = memfd_create(name, flags | (exec ? MFD_EXEC : 0));

    if (fd < 0 && errno == EINVAL && exec)      /* before Linux 6.3 every memory file is executable */
        fd = memfd_create(name, flags);
    if (fd < 0 || io_write_full(fd, p, n) < 0 || lseek(fd, 0, SEEK_SET) < 0 || memfile_seal(fd) < 0)
        return -1;
    return take_fd(&fd);
}
