/* machine/docker.h: a Docker Engine in the machine
 *
 * Who may ask it is root of what it runs on, and that is the machine: its kernel, its memory, and the tree, in which
 * the host's mounts keep what is closed or read-only whatever is done here. So it has everything that a machine has:
 * /proc and /sys as they are, the hierarchy of cgroups, and bridges. What it stores is in the machine's memory.
 */
#ifndef CLOCHE_MACHINE_DOCKER_H
#define CLOCHE_MACHINE_DOCKER_H

#include "base/err.h"

/* Before the tree is entered (MACHINE_ROOT): what it finds there. */
int machine_docker_mounts(struct err *err);
/* In the tree, as root: start the containerd and dockerd that are there as children, and wait until each answers. 0, or
 * -1 with @err, which has its last words. */
int machine_docker_start(struct err *err);

#endif
