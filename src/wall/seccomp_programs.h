/* wall/seccomp_programs.h: what tools/gen_seccomp generates; only wall/seccomp.c uses it
 *
 * One entry per variant, index = (((list * 3 + unix) * 2 + ptrace) * 2 + nested_userns) * 2 + network_closed.
 */
#ifndef CLOCHE_WALL_SECCOMP_PROGRAMS_H
#define CLOCHE_WALL_SECCOMP_PROGRAMS_H

#include <linux/filter.h>

#define SECCOMP_N_PROGRAMS 72

extern const struct sock_fprog seccomp_programs[SECCOMP_N_PROGRAMS];

#endif
