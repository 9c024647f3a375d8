/* machine/machine_image.h: cloche-machine, inside the cloche binary (as guest/guest_image.h is) */
#ifndef CLOCHE_MACHINE_IMAGE_H
#define CLOCHE_MACHINE_IMAGE_H

#include <stddef.h>

extern const unsigned char machine_image[];     /* a static ELF executable */
extern const size_t machine_image_size;

#endif
