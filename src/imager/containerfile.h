/* imager/containerfile.h: which images a Containerfile (Dockerfile) takes
 *
 * Docker reads the file itself, in the sandbox; this is only to bring what it will ask for. Pure: the text is a
 * stranger's.
 */
#ifndef CLOCHE_IMAGER_CONTAINERFILE_H
#define CLOCHE_IMAGER_CONTAINERFILE_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "match/image_ref.h"

#define CONTAINERFILE_MAX (1024UL * 1024)   /* bytes of the file */
#define CONTAINERFILE_LINE 65536            /* ... of an instruction that is read here */
#define BASES_MAX 32

/* Names as the store has them ("python:3.12"), each once, without those of stages and without "scratch". */
struct base_list {
    char v[BASES_MAX][IMAGE_REF_MAX + 1];
    size_t n;
};

/* The images of FROM and of COPY --from. @args: "NAME=VALUE" of --build-arg, ended by NULL, which come before the
 * file's own defaults (ARG before the first FROM). 0; -1 with @err (containerfile.*), which has the line's number. */
int containerfile_bases(struct str text, const char *const *args, struct base_list *out, struct err *err);

#endif
