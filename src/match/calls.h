/* match/calls.h: system calls by name: what the filter of each mode answers, and which a policy may allow
 *
 * The table is made of the lists in src/wall/syscalls by tools/gen_seccomp, so that there is one of them. Pure.
 */
#ifndef CLOCHE_MATCH_CALLS_H
#define CLOCHE_MATCH_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define CALLS_RULES (-2)        /* an answer: its arguments decide */

/* As enum seccomp_list (wall/seccomp.h). */
enum call_list { CALLS_STANDARD, CALLS_LIGHT, CALLS_MAX, CALLS_LISTS };

/* No pointers: nothing is to be relocated when the program starts. */
struct call {
    char name[32];
    int16_t nr;                     /* -1: this architecture has no such call */
    int16_t answer[CALLS_LISTS];    /* 0: allowed; an errno; CALLS_RULES */
    bool opens[CALLS_LISTS];        /* refused, and a policy may allow it */
    char why[96];                   /* the list's own reason */
};

extern const struct call calls[];   /* by name */
extern const size_t calls_n;

const struct call *call_find(struct str name);      /* NULL: there is no call of that name */

/* Whether some list lets a policy open it. */
bool call_opens(const struct call *c);

/* Whether a program could not be started, or could not end, without it: nothing may close it. */
bool call_is_vital(const struct call *c);

#endif
