/* imager/layer.h: an archive of files, from its bytes into a tree */
#ifndef CLOCHE_IMAGER_LAYER_H
#define CLOCHE_IMAGER_LAYER_H

#include <archive.h>

#include "image/image.h"
#include "imager/tree.h"

/* From 1 GiB on an archive may not become more than so many times as large: such a one is no system's, but a bomb. */
#define LAYER_RATIO_MAX  200
#define LAYER_RATIO_FROM (1ULL << 30)

/* Unpack the archive @fd (tar; gzip, zstd, xz, bzip2 or nothing around it) over what is in @t. Its own digest must be
 * @blob, and that of the tar inside @plain; NULL: nobody knows. @digest gets the latter. 0 or -1 with @err. */
int layer_unpack(struct tree *t, int fd, const char *blob, const char *plain, char digest[IMAGE_DIGEST_TEXT + 1],
                 struct err *err);

/* A reader of a tar from @fd, at the entry before the first one. NULL with @err. The caller's (archive_read_free). */
struct archive *layer_open(int fd, struct err *err);
/* -1 with @err: what @a said. */
int layer_failed(struct archive *a, struct err *err);
/* The name of an entry, as it is written; NULL with @err. */
const char *layer_name(struct archive_entry *e, struct err *err);
/* The data of the entry that @a is at to @fd, no more than @size bytes. 0 or -1 with @err. */
int layer_write(struct archive *a, int fd, uint64_t size, const char *name, struct err *err);

#endif
