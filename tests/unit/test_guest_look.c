/* cloche-guest: what an editor's server is started with, in the real program without namespaces (R25) */
#include <string.h>
#include <unistd.h>

#include "base/memfile.h"
#include "guest_run.h"

static struct run r;

/* A file in the place of its stderr, which it can open anew; nothing of stderr is relayed. */
static void
test_note(void **state)
{
    static const char *const argv[] = { "sh", "-c", "cat /proc/self/fd/2; cat; echo lost >&2; exit 3", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;
    size_t taken;

    (void)state;
    x.argv = argv;
    x.env = env;
    x.note = memfile_sealed("note", false, "noted\n", 6);
    assert_true(x.note >= 0);
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    close(x.note);
    assert_int_equal(guest_client_stdin(r.c, channel, (const uint8_t *)"said\n", 5, &taken, &r.err), 0);
    assert_int_equal(guest_client_close_stdin(r.c, channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_string_equal(run_text(&r.out), "noted\nsaid\n");
    assert_int_equal(r.errout.n, 0);
    assert_int_equal(r.exit.status, 3);
    x.stdio = EXEC_STDIO_PTY;
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { RUN_TEST(test_note, &r) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
