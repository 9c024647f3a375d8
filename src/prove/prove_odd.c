/* prove/prove_odd.c: things that a check does not want, one by one (see prove.h) */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "prove/prove.h"

static bool
is_meant(const struct sandbox_differs *d, const char *check, const char *thing)
{
    size_t n = strlen(d->thing);

    if (strcmp(d->check, check) != 0)
        return false;
    return n > 0 && d->thing[n - 1] == '*' ? strncmp(d->thing, thing, n - 1) == 0 : strcmp(d->thing, thing) == 0;
}

void
odd_note(struct odd *o, const char *fmt, ...)
{
    char thing[sizeof(o->surprise)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(thing, sizeof(thing), fmt, ap);
    va_end(ap);
    for (const struct sandbox_differs *d = o->p->differs; d != NULL && d->check != NULL; d++)
        if (is_meant(d, o->check, thing)) {
            if (o->differs == NULL)
                snprintf(o->excused, sizeof(o->excused), "%s", thing);
            o->differs = o->differs != NULL ? o->differs : d;
            return;
        }
    if (o->surprise[0] == '\0')
        snprintf(o->surprise, sizeof(o->surprise), "%s", thing);
}

void
proof_add_odd(struct proof *p, const struct odd *o, const char *wall, const char *requirement, const char *title,
              const char *when, bool promised, const char *held)
{
    if (o->surprise[0] != '\0')
        proof_add(p, o->check, wall, requirement, title, when, check_state_of(false, promised), "%s", o->surprise);
    else if (o->differs != NULL)
        proof_add(p, o->check, wall, requirement, title, when, CHECK_NOT_PROMISED, "%s: %s", o->excused,
                  o->differs->why);
    else
        proof_add(p, o->check, wall, requirement, title, when, CHECK_HELD, "%s", held);
}
