/* tests/unit/loops.h: how often a loop goes that only repeats a race, or draws at random */
#ifndef CLOCHE_TESTS_UNIT_LOOPS_H
#define CLOCHE_TESTS_UNIT_LOOPS_H

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

/* @usual times CLOCHE_TEST_LOOPS, as in the other suites: 0.1 for a quick look, 10 for a night. */
static inline unsigned
loops(unsigned usual)
{
    const char *text = getenv("CLOCHE_TEST_LOOPS");
    uint64_t milli = 1000, n;

    if (text != NULL && !str_parse_milli(str_of(text), 1000 * 1000, &milli)) {
        fprintf(stderr, "CLOCHE_TEST_LOOPS=%s is no decimal number\n", text);
        abort();
    }
    n = usual * milli / 1000;
    return n > 3 ? (unsigned)n : 3;
}

#endif
