/* warden/epoch.c: see epoch.h */
#include "warden/epoch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

struct epochs *
epochs_new(int *fd, struct err *err)
{
    cleanup_close int memory = memfd_create("cloche-epochs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *page;

    if (memory < 0 || ftruncate(memory, sizeof(struct epochs)) < 0) {
        err_sys(err, errno, "serve.memory", "memfd_create");
        return NULL;
    }
    page = mmap(NULL, sizeof(struct epochs), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (page == MAP_FAILED) {
        err_sys(err, errno, "serve.memory", "mmap");
        return NULL;
    }
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        err_sys(err, errno, "serve.memory", "F_SEAL_FUTURE_WRITE (Linux 5.1)");
        munmap(page, sizeof(struct epochs));
        return NULL;
    }
    *fd = take_fd(&memory);
    return page;
}

const struct epochs *
epochs_map(int fd)
{
    const void *page = mmap(NULL, sizeof(struct epochs), PROT_READ, MAP_SHARED, fd, 0);

    return page != MAP_FAILED ? page : NULL;
}
