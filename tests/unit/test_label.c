/* wall/label: the attribute of the next execve, as far as a kernel without AppArmor and SELinux has it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "wall/label.h"

/* Each in a process of its own: where there is such a module, the label would stay for our next execve. */
static int
answer(const char *const labels[LABELS], struct err *err)
{
    int status = 0, p[2];
    pid_t pid;

    assert_int_equal(pipe(p), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int r = label_next_exec(labels, err);
        _exit(write(p[1], err, sizeof(*err)) == (ssize_t)sizeof(*err) && r < 0 ? 1 : 0);
    }
    close(p[1]);
    assert_int_equal(read(p[0], err, sizeof(*err)), sizeof(*err));
    close(p[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void
no_label_changes_nothing(void **state)
{
    const char *const none[LABELS] = { NULL };
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(answer(none, &err), 0);
}

/* The kernel is asked: with the module it knows no such name, without it there is nobody to take the attribute. */
static void
an_unknown_label_is_refused_by_the_kernel(void **state)
{
    (void)state;
    for (enum label which = 0; which < LABELS; which++) {
        const char *labels[LABELS] = { NULL };
        struct err err = ERR_INIT;

        labels[which] = "cloche-no-such-label";
        assert_int_equal(answer(labels, &err), -1);
        assert_non_null(strstr(err.code, "wall.label"));
        assert_non_null(strstr(err.msg, label_name(which)));
        assert_non_null(strstr(err.msg, "cloche-no-such-label"));
    }
}

static void
what_does_not_fit_is_refused(void **state)
{
    static char name[4096];
    const char *labels[LABELS] = { name };
    struct err err = ERR_INIT;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(answer(labels, &err), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_label_changes_nothing),
        cmocka_unit_test(an_unknown_label_is_refused_by_the_kernel),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
