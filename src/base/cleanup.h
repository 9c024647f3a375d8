/* base/cleanup.h: release on scope exit
 *
 * `cleanup_close int fd = -1;` closes on every return path, so functions return early and need no goto
 * ladder. To hand a descriptor or pointer out, take it: `return take_fd(&fd);`.
 */
#ifndef CLOCHE_BASE_CLEANUP_H
#define CLOCHE_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void
cleanup_closep(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}

static inline void
cleanup_freep(void *p)
{
    void **slot = p;
    free(*slot);
}

static inline void
cleanup_filep(FILE **f)
{
    if (*f != NULL)
        fclose(*f);
}

static inline void
cleanup_dirp(DIR **d)
{
    if (*d != NULL)
        closedir(*d);
}

#define cleanup_close __attribute__((cleanup(cleanup_closep)))
#define cleanup_free  __attribute__((cleanup(cleanup_freep)))
#define cleanup_file  __attribute__((cleanup(cleanup_filep)))
#define cleanup_dir   __attribute__((cleanup(cleanup_dirp)))

/* Hand the descriptor to the caller; the slot no longer owns it. */
static inline int
take_fd(int *fd)
{
    int out = *fd;
    *fd = -1;
    return out;
}

/* Hand the pointer to the caller; the slot no longer owns it. */
#define take_ptr(slot)                          \
    __extension__({                             \
        __typeof__(*(slot)) taken_ = *(slot);   \
        *(slot) = NULL;                         \
        taken_;                                 \
    })

static inline void
close_fd(int *fd)
{
    cleanup_closep(fd);
    *fd = -1;
}

#endif
