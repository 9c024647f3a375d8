/* hosts/asker: what is taken of an answer and kept of it, one that does not come in time, and clients that end with who
 * asks them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hosts/asker.h"
#include "hosts/registry.h"
#include "workspace/tree.h"

#define HOST   "192.0.2.1:8080"
#define ANSWER "{\"registry\": \"http://me:word@" HOST "/npm/\", \"userconfig\": \"'$PLACE'/npmrc\"}"

static char place[] = "/tmp/cloche-test-asker-XXXXXX", name[] = "npm";
static struct policy_entry entry = { .value = name, .written = name };
static struct policy policy = { .network = { .v = NETWORK_ALLOWLIST }, .mode = { .v = MODE_STANDARD },
                                .registries = { .v = &entry, .n = 1 } };

static void
client(const char *script)
{
    cleanup_close int fd = open("bin/npm.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

    assert_true(fd >= 0 && io_write_full(fd, script, strlen(script)) == 0);
    close_fd(&fd);
    assert_int_equal(rename("bin/npm.new", "bin/npm"), 0);
}

static int
asked(const char *script, uint64_t ms, json_t *answers, struct err *err)
{
    struct asker a = ASKER_INIT;
    int r;

    client(script);
    assert_int_equal(registry_recall(&policy, answers, err), 0);
    assert_int_equal(asker_start(&a, &policy, answers, ms, err), 0);
    while ((r = asker_hear(&a, answers, err)) == 0)
        poll(&(struct pollfd){ .fd = a.fd, .events = POLLIN }, 1, 10);
    assert_true(a.pid == 0 && a.fd == -1);
    return r;
}

/* What clients leave behind comes to us, who are asked to reap it: they have ended. */
static void
nobody_lives(void)
{
    int status;

    while (wait(&status) > 0)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(errno, ECHILD);
}

/* Its one host, and the registry for the client inside, without name and password. */
static void
is_answer(const json_t *answers)
{
    const json_t *answer = json_object_get(answers, name), *hosts = json_object_get(answer, "hosts");

    assert_int_equal(json_array_size(hosts), 1);
    assert_string_equal(json_string_value(json_array_get(hosts, 0)), HOST);
    assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "env"), "npm_config_registry")),
                        "http://" HOST "/npm/");
}

static void
it_answers(void **state)
{
    json_t *answers = json_object(), *again = json_object();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(asked("#!/bin/sh\n[ $1 = config ] && echo '" ANSWER "'\nsleep 100 > /dev/null 2>&1 &\n", 60000,
                           answers, &err), 1);
    is_answer(answers);
    assert_null(json_object_get(json_object_get(answers, name), "at"));
    assert_int_equal(registry_recall(&policy, again, &err), 0);     /* where files lie was not said: asked anew */
    json_decref(again);
    json_decref(answers);
    nobody_lives();
}

static void
it_is_late(void **state)
{
    json_t *answers = json_object();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(asked("#!/bin/sh\nsleep 100 &\nsleep 100\n", 100, answers, &err), -1);
    assert_string_equal(err.code, "policy.registry.late");
    assert_non_null(strstr(err.hint, "--allow-domain"));
    assert_int_equal(json_object_size(answers), 0);
    json_decref(answers);
    nobody_lives();
}

/* More than is read of a client is no answer, and nothing waits for the rest. */
static void
it_says_too_much(void **state)
{
    json_t *answers = json_object();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(asked("#!/bin/sh\nexec yes\n", 60000, answers, &err), -1);
    assert_string_equal(err.code, "cli.client");
    assert_non_null(strstr(err.msg, "too much"));
    assert_int_equal(json_object_size(answers), 0);
    json_decref(answers);
    nobody_lives();
}

/* Who is killed cannot end it; it ends by itself, and so does what it asks. */
static void
we_are_killed(void **state)
{
    struct stat st;
    pid_t pid;

    (void)state;
    client("#!/bin/sh\nsleep 100 &\necho x > $PLACE/begun\nsleep 100\n");
    pid = fork();
    if (pid == 0) {
        struct asker a = ASKER_INIT;
        if (asker_start(&a, &policy, json_object(), 60000, NULL) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    while (stat("begun", &st) < 0)
        usleep(1000);
    kill(pid, SIGKILL);
    nobody_lives();
}

static void
write_file(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && io_write_full(fd, text, strlen(text)) == 0);
}

/* What was kept is taken as it was said, unless it names what no client may, or what it depends on has changed. */
static void
it_is_kept(void)
{
    json_t *third = json_object(), *file = json_load_file("state/cloche/registries/npm.json", 0, NULL), *hosts;

    assert_int_equal(registry_recall(&policy, third, NULL), 1);
    is_answer(third);
    assert_true(json_integer_value(json_object_get(json_object_get(third, name), "at")) > 0);
    json_object_clear(third);
    hosts = json_object_get(json_object_get(file, "answer"), "hosts");
    json_array_append_new(hosts, json_string("*"));
    assert_int_equal(json_dump_file(file, "state/cloche/registries/npm.json", 0), 0);
    assert_int_equal(registry_recall(&policy, third, NULL), 0);
    json_array_remove(hosts, 1);
    assert_int_equal(json_dump_file(file, "state/cloche/registries/npm.json", 0), 0);
    assert_int_equal(registry_recall(&policy, third, NULL), 1);
    json_object_clear(third);
    write_file("npmrc", "");
    assert_int_equal(registry_recall(&policy, third, NULL), 0);
    json_decref(third);
    json_decref(file);
}

/* Somebody asks already, and keeps what it hears: nobody else asks. */
static void
one_asks_for_all(void **state)
{
    json_t *first = json_object(), *second = json_object();
    struct asker a = ASKER_INIT, b = ASKER_INIT;
    struct err err = ERR_INIT;
    struct stat st;

    (void)state;
    client("#!/bin/sh\necho x >> $PLACE/asked\nuntil [ -e $PLACE/go ]; do sleep 0.01; done\n"
           "[ $1 = config ] && echo '" ANSWER "' || echo http://192.0.2.1:8080/f\n");
    assert_int_equal(asker_start(&a, &policy, first, 60000, &err), 0);
    assert_int_equal(asker_start(&b, &policy, second, 60000, &err), 0);
    while (stat("asked", &st) < 0)
        usleep(1000);
    write_file("go", "");
    while (asker_hear(&a, first, &err) == 0)
        usleep(1000);
    while (asker_hear(&b, second, &err) == 0)
        usleep(1000);
    assert_int_equal(err.kind, ERR_NONE);
    assert_int_equal(stat("asked", &st), 0);
    assert_int_equal(st.st_size, 4);        /* config and view, once */
    is_answer(first);
    is_answer(second);
    it_is_kept();
    json_decref(first);
    json_decref(second);
    nobody_lives();
}

static int
set_up(void **state)
{
    char path[256];

    (void)state;
    if (mkdtemp(place) == NULL || chdir(place) < 0 || mkdir("bin", 0700) < 0 || mkdir("state", 0700) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", place);
    setenv("PATH", path, 1);
    snprintf(path, sizeof(path), "%s/state", place);
    setenv("XDG_STATE_HOME", path, 1);
    setenv("HOME", "/nowhere", 1);
    setenv("PLACE", place, 1);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static int
tear_down(void **state)
{
    cleanup_close int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    return tree_remove(parent, place + strlen("/tmp/"), NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_answers),
        cmocka_unit_test(it_is_late),
        cmocka_unit_test(it_says_too_much),
        cmocka_unit_test(we_are_killed),
        cmocka_unit_test(one_asks_for_all),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
