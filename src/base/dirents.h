/* base/dirents.h: one directory's names, a batch at a time, from a descriptor that stays the caller's */
#ifndef CLOCHE_BASE_DIRENTS_H
#define CLOCHE_BASE_DIRENTS_H

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's record (struct linux_dirent64). */
struct dirents_record {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

/* Zero-initialise but for @fd. */
struct dirents {
    int fd;
    int failed;                 /* errno of the read that failed, 0: none */
    uint8_t type;               /* DT_ of the last name (readdir(3)) */
    size_t at, n;
    _Alignas(8) char batch[4096];
};

/* Whether the next name costs a system call: a long walk stops there and lets others go first. */
static inline int
dirents_drained(const struct dirents *d)
{
    return d->at >= d->n;
}

/* Whether the last name is a directory, or the file system does not say. */
static inline int
dirents_maybe_directory(const struct dirents *d)
{
    return d->type == DT_DIR || d->type == DT_UNKNOWN;
}

/* The next name but "." and "..", valid until the following call; NULL at the end, or with @failed set. */
static inline const char *
dirents_next(struct dirents *d)
{
    for (;;) {
        const struct dirents_record *r;

        if (dirents_drained(d)) {
            long got = syscall(SYS_getdents64, d->fd, d->batch, sizeof(d->batch));

            if (got <= 0) {
                d->failed = got < 0 ? errno : 0;
                return NULL;
            }
            d->at = 0;
            d->n = (size_t)got;
        }
        r = (const struct dirents_record *)(const void *)(d->batch + d->at);
        d->at += r->reclen;
        d->type = r->type;
        if (strcmp(r->name, ".") != 0 && strcmp(r->name, "..") != 0)
            return r->name;
    }
}

#endif
