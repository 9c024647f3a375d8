/* program/agents.h: the profiles of agents, from the folders agents.d (docs/agents.md)
 *
 * Those that came with cloche, then /etc/cloche/agents.d, then $XDG_CONFIG_HOME/cloche/agents.d: a later one replaces
 * an earlier one of the same name.
 */
#ifndef CLOCHE_PROGRAM_AGENTS_H
#define CLOCHE_PROGRAM_AGENTS_H

#include <limits.h>

#include "base/err.h"
#include "policy/agent.h"

#define AGENTS_MAX 64

struct agents {
    struct arena *arena;            /* owns the texts */
    struct agent *rows;             /* in the order of their names */
    size_t n;
};

/* All of them; a file that cannot be used is refused, and so are all. 0, or -1 with @err and nothing loaded. */
int agents_load(struct agents *a, const char *home, struct err *err);
void agents_free(struct agents *a);         /* harmless on one that is all zero */
/* The one of that name, or NULL with @err, which names all. */
const struct agent *agents_find(const struct agents *a, const char *name, struct err *err);

#endif
