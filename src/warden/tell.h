/* warden/tell.h: a process of the daemon tells cloche-otlp what it did: the warden and the fronts
 *
 * There is nobody to tell unless the configuration names a collector. One system call for each span; nobody waits: what
 * the socket does not take at once is dropped, and counted in the next message that it takes.
 */
#ifndef CLOCHE_WARDEN_TELL_H
#define CLOCHE_WARDEN_TELL_H

#include "base/loop.h"
#include "proto/edge_export.h"
#include "proto/edge_launcher.h"

struct teller {
    int fd;                     /* -1: nobody is told */
    uint32_t lost;
    uint32_t every_s;           /* numbers; 0 never */
    bool commands;              /* what is run is told too */
    uint64_t since_us;          /* this process began, since 1970 */
    struct timer timer;
    struct loop *loop;
    /* All samples of this process, in the order of enum stats_family. 0 or -1. */
    int (*put)(const void *owner, struct buf *b);
    const void *owner;
};

static inline bool
teller_is(const struct teller *t)
{
    return t->fd >= 0;
}

/* Once, before anything is told. */
void teller_init(struct teller *t, struct loop *loop, int (*put)(const void *owner, struct buf *b), const void *owner);
/* There is somebody new: @fd, which is taken. */
void teller_open(struct teller *t, const struct launch_export *m, int fd);
void teller_span(struct teller *t, struct export_span *s);
/* A new id of @n bytes, not all zero. */
void teller_id(uint8_t *out, size_t n);

#endif
