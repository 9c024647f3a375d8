/* engine/native/ahead.h: what is made before anybody asks for a sandbox
 *
 * Every sandbox needs them and neither is of any: the guest's image, and a network namespace in which nobody was. Each
 * is handed out once, to one sandbox, and never comes back. What is not there is made when it is needed. The image may
 * be one that other processes have too, for their sandboxes: it is sealed, so that they share the memory and no more.
 */
#ifndef CLOCHE_ENGINE_NATIVE_AHEAD_H
#define CLOCHE_ENGINE_NATIVE_AHEAD_H

#include "base/err.h"

/* The caller is single-threaded, and no sandbox of it lives. -1: this process is of no use any more. */
int ahead_make(void);

/* The guest's image, which others may have too: nobody can change it. It is taken. */
void ahead_have_image(int fd);
/* A descriptor of the guest's image (launch_guest_image); -1 with @err. */
int ahead_image(struct err *err);
/* A descriptor of a network namespace of the host's user namespace, with `lo` up; -1 there is none. */
int ahead_network(void);

#endif
