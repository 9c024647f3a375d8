/* guest/guest_image.h: the guest's program, inside ours
 *
 * The launcher writes it to a sealed memfd and executes that: no path to find, nothing on disk to swap, and the
 * code in the sandbox cannot write to what the next sandbox will run.
 */
#ifndef CLOCHE_GUEST_IMAGE_H
#define CLOCHE_GUEST_IMAGE_H

#include <stddef.h>

extern const unsigned char guest_image[];   /* a static ELF executable */
extern const size_t guest_image_size;

#endif
