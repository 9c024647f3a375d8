/* program/core.c: see core.h */
#include "program/core.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit was;
static bool changed;

/* One byte is too little for a file, and what the kernel does not start a handler for. */
void
core_none(void)
{
    struct rlimit none;

    if (getrlimit(RLIMIT_CORE, &was) < 0 || was.rlim_max == 0)
        return;
    none = (struct rlimit){ 1, was.rlim_max };
    changed = setrlimit(RLIMIT_CORE, &none) == 0;
}

void
core_as_it_was(void)
{
    if (changed)
        (void)setrlimit(RLIMIT_CORE, &was);
}
