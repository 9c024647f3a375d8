/* imager/save.h: images of the store as an archive of `docker save`, which `docker load` and `podman load` read
 *
 * Each image has one layer, for the store keeps no others, and a configuration that is made anew, so its id there is
 * another one. All files are root's there: whose they were the store does not keep.
 */
#ifndef CLOCHE_IMAGER_SAVE_H
#define CLOCHE_IMAGER_SAVE_H

#include "imager/store.h"

#define SAVE_MAX 32             /* images at once */

/* The images @names to @out, by way of files of @stage. 0 or -1 with @err (image.unknown, image.save). */
int save_images(const struct store *s, const struct stage *stage, char *const *names, size_t n, int out,
                struct err *err);

#endif
