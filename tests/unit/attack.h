/* tests/unit/attack.h: what a confined process may not do, tried by one each that ends of it */
#ifndef CLOCHE_TESTS_UNIT_ATTACK_H
#define CLOCHE_TESTS_UNIT_ATTACK_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static void attack_nothing(void) { }

/* Each of @attempts, and none: behind @confine it ends its process by SIGSYS, but for none; without, it does not. */
static void
attack(int (*confine)(struct err *), void (*const *attempts)(void), size_t n)
{
    for (size_t i = 0; i <= n; i++) {
        void (*attempt)(void) = i == 0 ? attack_nothing : attempts[i - 1];
        int status;
        /* without the wall each of them is possible, or fails without ending the process */
        for (int walled = 0; walled < 2; walled++) {
            pid_t pid = fork();
            if (pid == 0) {
                if (walled && confine(NULL) < 0)
                    _exit(2);
                attempt();
                _exit(0);
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            if (walled && i > 0 ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS : WIFSIGNALED(status))
                fail_msg("attempt %zu, walled %d: status %d", i, walled, status);
        }
    }
}

#endif
