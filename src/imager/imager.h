/* imager/imager.h: what the verbs of `cloche image` share */
#ifndef CLOCHE_IMAGER_IMAGER_H
#define CLOCHE_IMAGER_IMAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "imager/store.h"
#include "imager/work.h"
#include "program/verb.h"

struct image_options {
    struct image_platform platform;
    uint64_t max_size, max_files;
    const char *ca;             /* file of certificates; NULL: the host's */
    bool json;
};

/* Unpack @source in @stage and take it into @s, under @name or, without one, the name that it has in itself; say so.
 * @select: which of several there; @from: where it is from, for the record. 0 or -1 with @err. */
int image_take(struct image_options *o, struct store *s, struct stage *stage, int source, bool folder,
               const char *select, const char *name, const char *from, struct err *err);
/* pull.c: `cloche image pull` */
int image_pull(void *options, const struct verb_words *w, struct err *err);

#endif
