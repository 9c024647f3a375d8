/* guest/guard_link.c: see guard_link.h */
#include "guest/guard_link.h"

int
guard_link_setup(struct guest *g, const void *plan, size_t n)
{
    (void)g;
    (void)plan;
    /* A plan that nobody enforces must not be accepted. */
    return n == 0 ? 0 : -1;
}

int
guard_link_begin(struct guest *g, struct child_plan *plan, int *sock)
{
    (void)g;
    (void)plan;
    *sock = -1;
    return 0;
}

void
guard_link_abandon(struct child_plan *plan, int sock)
{
    (void)plan;
    (void)sock;
}

int
guard_link_finish(struct guest *g, struct child_plan *plan, int sock)
{
    (void)g;
    (void)plan;
    (void)sock;
    return 0;
}

int
guard_link_serve(struct guest *g, size_t i)
{
    (void)g;
    (void)i;
    return -1;
}

int
guard_link_check(struct guest *g, int dir, const char *name, const char *op)
{
    (void)g;
    (void)dir;
    (void)name;
    (void)op;
    return 0;
}
