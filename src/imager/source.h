/* imager/source.h: the files of an archive or folder that holds an image's documents and layers */
#ifndef CLOCHE_IMAGER_SOURCE_H
#define CLOCHE_IMAGER_SOURCE_H

#include "base/buf.h"
#include "image/image.h"

#define SOURCE_FILES_MAX 4096

enum source_kind { SOURCE_LAYOUT, SOURCE_ARCHIVE, SOURCE_TREE };

struct source {
    enum source_kind kind;      /* an OCI layout; `docker save`; the files of a system themselves */
    int dir;                    /* where they are; the source's own, but for a folder's */
    bool numbered;              /* under numbers, by */
    json_t *names;              /* {"name in the archive": number, or "link": another name} */
};
#define SOURCE_INIT { .dir = -1, .names = NULL }

/* Look at the archive or folder @fd. What an archive holds beside a tree goes to files in the folder @spool, no more
 * than @max bytes. 0 or -1 with @err. */
int source_open(struct source *s, int fd, bool folder, int spool, uint64_t max, struct err *err);
/* An ordinary file of it: a descriptor for reading, the caller's; -1 with @err. */
int source_file(const struct source *s, const char *name, struct err *err);
/* The same whole, a document. */
int source_doc(const struct source *s, const char *name, struct buf *out, struct err *err);
void source_close(struct source *s);

#endif
