/* wall/own_id.h: host uids that own nothing and that nobody else has */
#ifndef CLOCHE_WALL_OWN_ID_H
#define CLOCHE_WALL_OWN_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Who one is for: each has a range of its own, where no user is added and systemd takes none (from 0x70000000 on). */
enum own_range { OWN_OF_SANDBOX, OWN_OF_SERVICE };

/* One in that range, where our user namespace has it, else near the top of what it has; 0 where that is too little.
 * @seed: ids of different seeds below 2^24 are different ones, near the top of those below 1000. 0, or -1 with @err. */
int own_id(enum own_range range, uint32_t seed, uint32_t *out, struct err *err);

/* Whether uid 0 here is, as far as can be seen, uid 0 of the host, and not an ordinary user of it (rootless
 * containers). */
bool own_id_is_hosts_root(void);

#endif
