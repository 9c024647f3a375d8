/* guest/filter.h: the part of the wall that the guest sets itself
 *
 * The native engine starts the guest behind the whole wall. An OCI runtime (the engine oci) cannot be told our system
 * call filter as it is. So it starts the guest with the name of a file that has it, and the guest sets it before it has
 * read or started anything.
 */
#ifndef CLOCHE_GUEST_FILTER_H
#define CLOCHE_GUEST_FILTER_H

/* Set the filter that the file @path is (struct sock_filter after struct sock_filter), and lead the descriptors 0 to 2,
 * which were a runtime's, nowhere. 0, or -1: the guest is not to go on. */
int filter_install(const char *path);

#endif
