/* probe/probe_image.h: cloche-probe, inside the cloche binary (as guest/guest_image.h is) */
#ifndef CLOCHE_PROBE_IMAGE_H
#define CLOCHE_PROBE_IMAGE_H

#include <stddef.h>

extern const unsigned char probe_image[];   /* a static ELF executable */
extern const size_t probe_image_size;

#endif
