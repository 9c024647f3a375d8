/* tests/unit/test_guard_race.c: the races of tests/escape/attacks succeed bare, and fail under the guard */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/array.h"
#include "loops.h"
#include "test_guard_run.h"

int race_main(int argc, char **argv);
#define main race_main
#include "../escape/attacks/guard_race.c"
#undef main

static const char *const usual[] = { ".git/hooks", ".git/config", ".bashrc" };

#define GUARDED_MS 400      /* for each attack; bare they take a few of them */

/* Bare, an attack ends with its success; the limit is for a busy machine. */
static bool patient;

static int
attack(void *arg)
{
    char name[32], program[] = "guard_race", ms[16];
    char *argv[] = { program, name, ms, NULL };

    strcpy(name, arg);
    snprintf(ms, sizeof(ms), "%u", patient ? 30000 : loops(GUARDED_MS));
    return race_main(3, argv);
}

/* The attack's exit status. */
static int
outcome(const struct attack *a, bool guarded)
{
    struct guard_plan plan = GUARD_PLAN_INIT;
    struct err err = ERR_INIT;
    char room[64], name[32], *dir = run_tmpdir(room);
    struct run r = { .fn = attack, .arg = name };

    strcpy(name, a->name);
    patient = !guarded;
    plan.flags = GUARD_NAMES | GUARD_GIT;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        assert_int_equal(guard_plan_protect(&plan, dir, usual[i], &err), 0);
    r.chdir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(run_under(&r, guarded ? &plan : NULL), 0);
    close(r.chdir_fd);
    guard_plan_free(&plan);
    run_remove(dir);
    assert_true(WIFEXITED(r.status));
    return WEXITSTATUS(r.status);
}

static void
races(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
        if (outcome(&attacks[i], false) != 0)
            fail_msg("%s: no attack at all, it fails without a guard", attacks[i].name);
        if (outcome(&attacks[i], true) != 1)
            fail_msg("%s: made a protected name", attacks[i].name);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
