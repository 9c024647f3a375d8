/* match/calls.c: see calls.h */
#include "match/calls.h"

#include <string.h>

#include "base/array.h"

const struct call *
call_find(struct str name)
{
    size_t lo = 0, hi = calls_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, n = strlen(calls[mid].name);
        int order = memcmp(name.p, calls[mid].name, name.n < n ? name.n : n);

        if (order == 0 && name.n == n)
            return &calls[mid];
        if (order < 0 || (order == 0 && name.n < n))
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

bool
call_opens(const struct call *c)
{
    return c->opens[CALLS_STANDARD] || c->opens[CALLS_LIGHT] || c->opens[CALLS_MAX];
}

bool
call_is_vital(const struct call *c)
{
    static const char *const vital[] = { "execve", "exit", "exit_group", "rt_sigreturn", "restart_syscall" };

    for (size_t i = 0; i < ARRAY_LEN(vital); i++)
        if (strcmp(c->name, vital[i]) == 0)
            return true;
    return false;
}
