/* guest/guard_ident.h: the name guard's word for an object */
#ifndef CLOCHE_GUEST_GUARD_IDENT_H
#define CLOCHE_GUEST_GUARD_IDENT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Which object, whatever it is called. */
struct ident {
    dev_t dev;
    ino_t ino;
};

static inline bool
ident_eq(struct ident a, struct ident b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

static inline struct ident
ident_of(const struct stat *st)
{
    return (struct ident){ st->st_dev, st->st_ino };
}

#endif
