/* cloche-guest: commands, from EXEC to EXIT, in the real program without namespaces */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/str.h"
#include "guest_run.h"

static struct run r;

static void
pause_ms(long ms)
{
    const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 };

    (void)nanosleep(&ts, NULL);
}

/* The decimal number that @text starts with, after blanks. */
static long
first_number(const char *text, const char **end)
{
    const char *p = text + strspn(text, " \t\n");
    size_t n = strspn(p, "0123456789");
    uint64_t v = 0;

    assert_true(str_parse_u64((struct str){ p, n }, INT32_MAX, &v));
    if (end != NULL)
        *end = p + n;
    return (long)v;
}

/* Wait (ten seconds at most) until no process with @pid is alive. */
static bool
gone(pid_t pid)
{
    for (int i = 0; i < 1000; i++) {
        if (kill(pid, 0) < 0 && errno == ESRCH)
            return true;
        pause_ms(10);
    }
    return false;
}

static void
test_stream(void **state)
{
    (void)state;
    run_sh(&r, "echo out; echo err >&2; exit 7");
    assert_true(r.hello);
    assert_true(r.started);
    assert_string_equal(run_text(&r.out), "out\n");
    assert_string_equal(run_text(&r.errout), "err\n");
    assert_int_equal(r.exit.flags, 0);
    assert_int_equal(r.exit.status, 7);
    assert_true(r.exit.run_us > 0);
    assert_true(r.exit.maxrss_bytes > 0);
}

static void
test_passed_descriptors(void **state)
{
    static const char *const argv[] = { "sh", "-c", "read line; echo \"got $line\"; echo e >&2", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    int in[2], out[2];
    char text[64] = "";
    uint16_t channel;

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    x.argv = argv;
    x.env = env;
    x.stdio = EXEC_STDIO_FDS;
    x.fds[0] = in[0];
    x.fds[1] = x.fds[2] = out[1];
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    close(in[0]);
    close(out[1]);
    assert_int_equal(io_write_full(in[1], "hello\n", 6), 0);
    run_until(&r, &r.exited);
    assert_int_equal(io_read_full(out[0], text, 12), 0);
    assert_string_equal(text, "got hello\ne\n");
    assert_int_equal(read(out[0], text, 1), 0);     /* and nobody in the guest holds it open */
    assert_int_equal(r.out.n, 0);
    close(in[1]);
    close(out[0]);
}

static void
test_quiet(void **state)
{
    static const char *const argv[] = { "true", NULL };
    static const char *const env[] = { NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;

    (void)state;
    x.argv = argv;
    x.env = env;                /* without a PATH the usual places are searched */
    x.flags = MSG_EXEC_QUIET | MSG_EXEC_NO_STDIN;
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_true(r.hello);
    assert_false(r.started);
    assert_int_equal(r.exit.status, 0);
}

static void
test_signal_deaths(void **state)
{
    static const int signals[] = { SIGKILL, SIGTERM, SIGSEGV, SIGPIPE };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char script[64];

        snprintf(script, sizeof(script), "kill -%d $$", signals[i]);
        run_sh(&r, script);
        assert_int_equal(r.exit.flags, MSG_EXIT_SIGNALED);
        assert_int_equal(r.exit.status, signals[i]);
    }
}

static void
test_signal_reaches_the_whole_group(void **state)
{
    static const char *const argv[] = { "sh", "-c", "sleep 100 & echo $!; wait", NULL };
    uint16_t channel = run_exec(&r, EXEC_STDIO_STREAM, argv);
    long child;

    (void)state;
    while (r.out.n == 0)
        assert_true(run_pump(&r, RUN_PATIENCE));
    child = first_number(run_text(&r.out), NULL);
    /* not SIGINT first: the shell would end, the channel with it, and its background process ignores SIGINT */
    assert_int_equal(guest_client_signal(r.c, channel, SIGTERM, SIGNAL_GROUP, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.flags, MSG_EXIT_SIGNALED);
    assert_true(gone((pid_t)child));
    /* After its end the channel is gone, and that is no error. */
    assert_int_equal(guest_client_signal(r.c, channel, SIGTERM, SIGNAL_GROUP, &r.err), 0);
}

static void
test_leader_only(void **state)
{
    static const char *const argv[] = { "sh", "-c", "trap 'exit 5' USR1; echo up; while :; do sleep 0.05; done", NULL };
    uint16_t channel = run_exec(&r, EXEC_STDIO_STREAM, argv);

    (void)state;
    while (r.out.n == 0)
        assert_true(run_pump(&r, RUN_PATIENCE));
    assert_int_equal(guest_client_signal(r.c, channel, SIGUSR1, SIGNAL_LEADER, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 5);
}

static void
test_guest_forwards_what_it_is_sent(void **state)
{
    static const char *const argv[] = { "sh", "-c", "trap 'exit 6' TERM; echo up; while :; do sleep 0.05; done", NULL };

    (void)state;
    run_exec(&r, EXEC_STDIO_STREAM, argv);
    while (r.out.n == 0)
        assert_true(run_pump(&r, RUN_PATIENCE));
    assert_int_equal(kill(r.pid, SIGTERM), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 6);
}

static const struct { const char *prepare, *command; int sys_errno, code; bool lacks; } failures[] = {
    { "true",                                    "no-such-command-here", ENOENT, 127 },
    { "true",                                    "./nothing",            ENOENT, 127 },
    { "touch f",                                 "./f/x",                ENOTDIR, 127 },
    { "true",                                    "",                     ENOENT, 127 },
    { "touch plain; chmod 644 plain",            "./plain",              EACCES, 126 },
    { "mkdir d",                                 "./d",                  EACCES, 126 },
    { "printf '\\177ELF garbage' > e; chmod +x e", "./e",                0,      126 },
    { "printf '#!/no/such/shell\\n' > s; chmod +x s", "./s",             ENOENT, 127, .lacks = true },
    { "mkdir -p b; printf '#!/no/such/shell\\n' > b/s2; chmod +x b/s2; ln -s b/s2 s2", "./s2", ENOENT, 127, .lacks = true },
};

static void
test_failures_as_a_shell_tells_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        const char *argv[] = { failures[i].command, NULL };
        struct err err = ERR_INIT;

        run_prepare(&r, failures[i].prepare);
        run_exec(&r, EXEC_STDIO_STREAM, argv);
        while (!r.failed && !r.exited)
            assert_true(run_pump(&r, RUN_PATIENCE));
        if (failures[i].sys_errno == 0) {
            /* The kernel does not know it, so the shell tries to read it, as it would from a shell. */
            assert_true(r.exited);
            assert_int_not_equal(r.exit.status, 0);
            continue;
        }
        if (!r.failed)
            fail_msg("\"%s\" ran", failures[i].command);
        assert_int_equal(r.exec_failed.stage, failures[i].lacks ? EXEC_STAGE_INTERPRETER : EXEC_STAGE_EXEC);
        assert_int_equal(r.exec_failed.sys_errno, failures[i].sys_errno);
        assert_int_equal(guest_exec_failed_code(&r.exec_failed), failures[i].code);
        assert_int_equal(guest_exec_failed_err(&r.exec_failed, failures[i].command, "/", &err), -1);
        assert_string_equal(err.code, failures[i].lacks         ? "exec.no-interpreter"
                                      : failures[i].code == 127 ? "exec.not-found" : "exec.not-runnable");
    }
}

/* A directory of PATH that may not be entered, or a file that may not be run, wins over "not found". */
static void
test_path_keeps_the_better_errno(void **state)
{
    const char *argv[] = { "thing", NULL };
    char path[128];
    const char *env[] = { path, NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;

    (void)state;
    run_prepare(&r, "mkdir a b; touch a/thing; chmod 644 a/thing");
    snprintf(path, sizeof(path), "PATH=/nowhere:%s/a:%s/b", r.root, r.root);
    x.argv = argv;
    x.env = env;
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.failed);
    assert_int_equal(r.exec_failed.sys_errno, EACCES);
    run_prepare(&r, "printf '#!/bin/sh\\nexit 9\\n' > b/thing; chmod 755 b/thing");
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 9);
}

static void
test_script_without_interpreter(void **state)
{
    static const char *const argv[] = { "./s", "a b", NULL };

    (void)state;
    run_prepare(&r, "printf 'echo \"$0 <$1>\"\\n' > s; chmod 755 s");
    run_exec(&r, EXEC_STDIO_STREAM, argv);
    run_until(&r, &r.exited);
    assert_string_equal(run_text(&r.out), "./s <a b>\n");
}

static void
test_other_stages(void **state)
{
    static const char *const argv[] = { "true", NULL };
    static const char *const env[] = { NULL };
    const struct msg_rlimit limit = { .resource = RLIMIT_NOFILE, .soft = 64, .hard = UINT64_C(1) << 40 };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;

    (void)state;
    x.argv = argv;
    x.env = env;
    x.cwd = "/no/such/place";
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.failed);
    assert_int_equal(r.exec_failed.stage, EXEC_STAGE_CWD);
    assert_int_equal(r.exec_failed.sys_errno, ENOENT);
    assert_int_equal(guest_exec_failed_code(&r.exec_failed), 125);
    x.cwd = NULL;
    x.rlimits = &limit;         /* above the kernel's own ceiling */
    x.n_rlimits = 1;
    r.failed = false;
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.failed);
    assert_int_equal(r.exec_failed.stage, EXEC_STAGE_RLIMIT);
    assert_int_equal(r.exec_failed.sys_errno, EPERM);
}

static void
test_attributes(void **state)
{
    static const char *const argv[] = { "sh", "-c", "umask; ulimit -n; ulimit -c; pwd; id -u; id -g; id -G", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    const struct msg_rlimit limit = { .resource = RLIMIT_NOFILE, .soft = 57, .hard = 57 };
    struct guest_exec x = GUEST_EXEC_INIT;
    bool root = geteuid() == 0;
    char expected[256];
    uint16_t channel;

    (void)state;
    x.argv = argv;
    x.env = env;
    x.cwd = "/usr";
    x.umask = 027;
    x.rlimits = &limit;
    x.n_rlimits = 1;
    if (root) {
        x.uid = 1234;
        x.gid = 4321;
    }
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    run_until(&r, &r.exited);
    snprintf(expected, sizeof(expected), "0027\n57\n0\n/usr\n%u\n%u\n", root ? 1234 : geteuid(), root ? 4321 : getegid());
    assert_memory_equal(run_text(&r.out), expected, strlen(expected));
    if (root)
        assert_string_equal(run_text(&r.out) + strlen(expected), "4321\n");     /* no group of the guest's is left */
}

static void
test_only_stdio_is_open(void **state)
{
    (void)state;
    /* ls holds one more: the directory itself. The guest was started with a stray descriptor 9. */
    run_sh(&r, "ls /proc/self/fd | tr '\\n' ' '");
    assert_string_equal(run_text(&r.out), "0 1 2 3 ");
}

static void
test_signals_start_as_they_should(void **state)
{
    (void)state;
    run_sh(&r, "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)'");
    assert_string_equal(run_text(&r.out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                                          "SigCgt:\t0000000000000000\n");
}

static void
test_guest_cannot_be_looked_into(void **state)
{
    char script[256];

    (void)state;
    if (geteuid() == 0)
        skip();                 /* root may trace anyone; the sandbox never runs as the host's root */
    snprintf(script, sizeof(script), "cat /proc/%d/environ; ls /proc/%d/fd; readlink /proc/%d/exe", r.pid, r.pid, r.pid);
    run_sh(&r, script);
    assert_string_equal(run_text(&r.out), "");
    assert_int_not_equal(r.exit.status, 0);
}

/* In light mode the command and the guest are the same user's processes in one namespace. */
static void
test_command_cannot_kill_its_guest(void **state)
{
    const struct { uint64_t fs, net, scoped; } rules = { 0, 0, 1ULL << 1 };
    long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

    (void)state;
    if (fd < 0)
        skip();                 /* a kernel without LANDLOCK_SCOPE_SIGNAL (before 6.12) */
    close((int)fd);
    run_sh(&r, "kill -9 $PPID; kill -STOP $PPID; kill -TERM $PPID; echo alive");
    assert_string_equal(run_text(&r.out), "alive\n");
    run_sh(&r, "exit 3");
    assert_int_equal(r.exit.status, 3);
}

/* Feed @n bytes through cat, reading back as we go; deadlocks show as silence. */
static void
test_large_stdin(void **state)
{
    static const char *const argv[] = { "cat", NULL };
    const size_t n = 5 * 1024 * 1024 + 17;
    uint8_t *data = malloc(n);
    uint16_t channel;
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * 2654435761U >> 13);
    channel = run_exec(&r, EXEC_STDIO_STREAM, argv);
    while (at < n) {
        size_t taken;

        assert_int_equal(guest_client_stdin(r.c, channel, data + at, n - at, &taken, &r.err), 0);
        at += taken;
        if (taken == 0)
            assert_true(run_pump(&r, RUN_PATIENCE));
    }
    assert_int_equal(guest_client_close_stdin(r.c, channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 0);
    assert_int_equal(r.out.n, n);
    assert_memory_equal(r.out.p, data, n);
    free(data);
}

static void
test_stdin_that_nobody_reads(void **state)
{
    static const char *const argv[] = { "sh", "-c", "sleep 0.3; exec 0<&-; echo closed; sleep 0.3; exit 4", NULL };
    uint16_t channel = run_exec(&r, EXEC_STDIO_STREAM, argv);
    char junk[65536];
    size_t taken, sent = 0;

    (void)state;
    memset(junk, 'x', sizeof(junk));
    /* The window fills and the client says so; a signal would still get through. */
    while (guest_client_stdin_room(r.c, channel) > 0 && sent < 1024 * 1024) {
        assert_int_equal(guest_client_stdin(r.c, channel, junk, sizeof(junk), &taken, &r.err), 0);
        sent += taken;
        (void)run_pump(&r, 50);
    }
    assert_true(sent <= 65536 + MSG_STDIN_WINDOW_START);    /* a pipe and the window */
    while (!r.stdin_gone && !r.exited) {
        assert_int_equal(guest_client_stdin(r.c, channel, junk, sizeof(junk), &taken, &r.err), 0);
        assert_true(run_pump(&r, RUN_PATIENCE));
    }
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 4);
}

/* Nobody reads for a while: the command must stand still, and nothing may be lost. */
static void
test_slow_reader(void **state)
{
    (void)state;
    run_exec(&r, EXEC_STDIO_STREAM, (const char *const[]){ "sh", "-c", "head -c 20000000 /dev/zero; echo end >&2", NULL });
    pause_ms(300);
    {
        char path[64], line[256];
        long rss = -1;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", r.pid);
        f = fopen(path, "re");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f) != NULL)
            if (strncmp(line, "VmRSS:", 6) == 0)
                rss = first_number(line + 6, NULL);
        fclose(f);
        assert_in_range(rss, 1, 8 * 1024);      /* KiB: not the twenty megabytes that wait in the command */
    }
    run_until(&r, &r.exited);
    assert_int_equal(r.out.n, 20000000);
    assert_string_equal(run_text(&r.errout), "end\n");
}

static void
test_output_window(void **state)
{
    static const char *const argv[] = { "sh", "-c", "head -c 100000 /dev/zero", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;
    size_t given = 0;

    (void)state;
    x.argv = argv;
    x.env = env;
    x.flags = MSG_EXEC_NO_STDIN;
    x.window = 1000;
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    while (r.out.n < 1000)
        assert_true(run_pump(&r, RUN_PATIENCE));
    while (run_pump(&r, 300))
        continue;
    assert_int_equal(r.out.n, 1000);
    assert_false(r.exited);
    while (!r.exited) {
        size_t fresh = r.out.n - given;

        given += fresh;
        assert_int_equal(guest_client_window(r.c, channel, MSG_STREAM_OUT, (uint32_t)fresh, &r.err), 0);
        assert_true(run_pump(&r, RUN_PATIENCE));
    }
    assert_int_equal(r.out.n, 100000);
}

static void
test_many_at_once(void **state)
{
    static const char *const argv[] = { "sh", "-c", "read x; exit $x", NULL };
    uint16_t channels[20];
    struct guest_event ev;
    unsigned sum = 0, ended = 0;
    size_t taken;

    (void)state;
    for (int i = 0; i < 20; i++) {
        char text[8];

        channels[i] = run_exec(&r, EXEC_STDIO_STREAM, argv);
        snprintf(text, sizeof(text), "%d\n", i + 1);
        assert_int_equal(guest_client_stdin(r.c, channels[i], text, strlen(text), &taken, &r.err), 0);
        assert_int_equal(taken, strlen(text));
    }
    while (ended < 20) {
        assert_int_equal(guest_client_pump(r.c, &r.err), 0);
        while (guest_client_next(r.c, &ev, &r.err) > 0) {
            if (ev.type != GUEST_EXIT)
                continue;
            assert_int_equal(ev.exit.status, ev.channel - channels[0] + 1);
            sum += ev.exit.status;
            ended++;
        }
        pause_ms(1);
    }
    assert_int_equal(sum, 210);
}

static void
test_too_many(void **state)
{
    static const char *const argv[] = { "cat", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel;

    (void)state;
    x.argv = argv;
    x.env = env;
    for (int i = 0; i < MSG_EXECS_MAX; i++)
        assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), 0);
    assert_int_equal(guest_client_exec(r.c, &x, &channel, &r.err), -1);
    assert_int_equal(r.err.kind, ERR_LIMIT);
    assert_string_equal(r.err.code, "guest.too-many-execs");
    assert_int_equal(guest_client_kill_all(r.c, SIGKILL, &r.err), 0);
    run_until(&r, &r.exited);
}

/* A background process outlives its command, keeps its output, and is the guest's to reap. */
static void
test_daemon(void **state)
{
    long pid;

    (void)state;
    run_sh(&r, "setsid sh -c 'echo $$ > pid; sleep 0.3; echo late; echo later; echo $? > alive' & "
               "while ! [ -s pid ]; do sleep 0.02; done; cat pid");
    pid = first_number(run_text(&r.out), NULL);
    assert_true(pid > 1);
    assert_int_equal(r.exit.status, 0);
    assert_true(gone((pid_t)pid));              /* a zombie would still be there */
    run_sh(&r, "cat alive");
    assert_string_equal(run_text(&r.out), "0\n");   /* writing to the ended command's pipe did not kill it */
}

static void
test_kill_all_reaches_daemons(void **state)
{
    long pid;

    (void)state;
    run_sh(&r, "setsid setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' >/dev/null 2>&1 & "
               "while ! [ -s pid ]; do sleep 0.02; done; cat pid");
    pid = first_number(run_text(&r.out), NULL);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    assert_int_equal(guest_client_kill_all(r.c, SIGKILL, &r.err), 0);
    (void)run_pump(&r, 100);
    assert_true(gone((pid_t)pid));
}

static void
test_end_of_transport_kills_everything(void **state)
{
    pid_t pids[3];
    const char *at;

    (void)state;
    run_start(&r, NULL);
    run_sh(&r, "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & wait' >/dev/null 2>&1 & echo $!; done");
    at = run_text(&r.out);
    for (int i = 0; i < 3; i++) {
        pids[i] = (pid_t)first_number(at, &at);
        assert_int_equal(kill(pids[i], 0), 0);
    }
    assert_int_equal(run_stop(&r), 0);
    for (int i = 0; i < 3; i++)
        assert_true(gone(pids[i]));
}

static void
test_terminal(void **state)
{
    static const char *const script =
        "stty size; tty; test \"$(ps -o tty= -p $$)\" = '?' && echo none; exec 3</dev/tty && echo controlling";
    static const char *const argv[] = { "sh", "-c", script, NULL };

    (void)state;
    run_exec(&r, EXEC_STDIO_PTY, argv);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 0);
    assert_memory_equal(run_text(&r.out), "24 80\r\n/dev/pts/", 16);
    assert_non_null(strstr(run_text(&r.out), "controlling\r\n"));
    assert_null(strstr(run_text(&r.out), "none"));
    assert_int_equal(r.errout.n, 0);
}

static void
wait_for_text(const char *text)
{
    while (strstr(run_text(&r.out), text) == NULL)
        if (!run_pump(&r, RUN_PATIENCE))
            fail_msg("no \"%s\" in \"%s\"", text, run_text(&r.out));
}

static void
type(uint16_t channel, const char *text)
{
    size_t taken;

    assert_int_equal(guest_client_stdin(r.c, channel, text, strlen(text), &taken, &r.err), 0);
    assert_int_equal(taken, strlen(text));
}

/* Job control as a person would use it: ^C ends the job in front and not the shell, ^Z stops it, fg goes on. */
static void
test_job_control(void **state)
{
    static const char *const argv[] = { "bash", "--norc", "--noprofile", "-i", NULL };
    uint16_t channel = run_exec(&r, EXEC_STDIO_PTY, argv);

    (void)state;
    type(channel, "PS1=; set -o | grep monitor; echo shell-$((40+2))\n");
    wait_for_text("shell-42");
    assert_non_null(strstr(run_text(&r.out), "monitor        \ton"));
    type(channel, "sh -c 'echo ready-$((1+1)); exec sleep 1000'\n");
    wait_for_text("ready-2");
    type(channel, "\003");      /* what is typed before the terminal answers is flushed with it */
    wait_for_text("^C");
    type(channel, "echo interrupted-$?\n");
    wait_for_text("interrupted-130");
    type(channel, "sh -c 'echo ready-$((1+2)); exec cat'\n");
    wait_for_text("ready-3");
    type(channel, "ping\n");
    wait_for_text("ping\r\nping\r\n");
    type(channel, "\032");
    wait_for_text("Stopped");
    type(channel, "jobs; echo jobs-$((1+1))\n");
    wait_for_text("jobs-2");
    assert_int_equal(guest_client_resize(r.c, channel, 50, 132, &r.err), 0);
    type(channel, "stty size\n");
    wait_for_text("50 132");
    type(channel, "kill %1; exit 3\n");
    type(channel, "exit 3\n");
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.status, 3);
}

static void
test_terminal_end_of_input(void **state)
{
    static const char *const argv[] = { "cat", NULL };
    uint16_t channel = run_exec(&r, EXEC_STDIO_PTY, argv);

    (void)state;
    type(channel, "line\n");
    assert_int_equal(guest_client_close_stdin(r.c, channel, &r.err), 0);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.flags, 0);
    assert_int_equal(r.exit.status, 0);
    assert_string_equal(run_text(&r.out), "line\r\nline\r\n");      /* echoed, and repeated by cat */
}

/* A program that lets go of its terminal is not hung up, and may come back to it. */
static void
test_terminal_let_go(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", "exec 0<&- 1>&- 2>&-; sleep 0.3; (echo back; sleep 0.3; echo again) >/dev/tty; exit 8", NULL
    };

    (void)state;
    run_exec(&r, EXEC_STDIO_PTY, argv);
    run_until(&r, &r.exited);
    assert_int_equal(r.exit.flags, 0);
    assert_int_equal(r.exit.status, 8);
    assert_string_equal(run_text(&r.out), "back\r\nagain\r\n");
}

/* Output written right before the end, with somebody else holding the terminal open. */
static void
test_terminal_output_is_complete(void **state)
{
    static const char *const argv[] = { "sh", "-c", "sleep 2 & head -c 30000 /dev/zero | tr '\\0' x", NULL };

    (void)state;
    for (int i = 0; i < 5; i++) {
        run_exec(&r, EXEC_STDIO_PTY, argv);
        run_until(&r, &r.exited);
        assert_int_equal(r.out.n, 30000);
    }
}

static void
test_memory_watchdog(void **state)
{
    const struct msg_setup setup = { .flags = MSG_SETUP_LIGHT, .memory_limit = 64 << 20, .sample_ms = 20 };

    (void)state;
    run_start(&r, &setup);
    run_sh(&r, "head -c 20000000 /dev/zero | tail -c 20000000 | wc -c");
    assert_string_equal(run_text(&r.out), "20000000\n");            /* below the limit: left alone */
    run_sh(&r, "head -c 300000000 /dev/zero | tail -c 300000000 | sleep 5");
    assert_int_equal(r.exit.flags, MSG_EXIT_SIGNALED);
    assert_int_equal(r.exit.status, SIGKILL);
    assert_int_equal(r.notice.kind, NOTICE_MEMORY);
    assert_int_equal(r.notice.limit, 64 << 20);
    assert_true(r.notice.value > r.notice.limit);
    assert_int_equal(run_stop(&r), 0);
}

/* A fork bomb of processes, and one of threads, in one session each; and below the limit nothing happens. */
static void
test_process_watchdog(void **state)
{
    const struct msg_setup setup = { .flags = MSG_SETUP_LIGHT, .pids_limit = 30, .sample_ms = 20 };

    (void)state;
    run_start(&r, &setup);
    run_sh(&r, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2 & done; wait; echo fine");
    assert_string_equal(run_text(&r.out), "fine\n");
    assert_int_equal(r.notice.kind, 0);
    run_sh(&r, "i=0; while [ $i -lt 300 ]; do setsid sleep 100 & i=$((i+1)); done; wait");
    assert_int_equal(r.exit.flags, MSG_EXIT_SIGNALED);
    assert_int_equal(r.exit.status, SIGKILL);
    assert_int_equal(r.notice.kind, NOTICE_PIDS);
    assert_int_equal(r.notice.limit, 30);
    assert_true(r.notice.value > 30);
    assert_int_equal(run_stop(&r), 0);
    run_start(&r, &setup);
    run_sh(&r, "exec perl -Mthreads -e 'threads->create(sub { sleep 100 }) for 1 .. 60; sleep 100'");
    assert_int_equal(r.exit.status, SIGKILL);
    assert_int_equal(r.notice.kind, NOTICE_PIDS);
    assert_int_equal(run_stop(&r), 0);
}

int
main(void)
{
#define IN_GUEST(t) RUN_TEST(t, &r)
    const struct CMUnitTest tests[] = {
        IN_GUEST(test_stream),
        IN_GUEST(test_passed_descriptors),
        IN_GUEST(test_quiet),
        IN_GUEST(test_signal_deaths),
        IN_GUEST(test_signal_reaches_the_whole_group),
        IN_GUEST(test_leader_only),
        IN_GUEST(test_guest_forwards_what_it_is_sent),
        IN_GUEST(test_failures_as_a_shell_tells_them),
        IN_GUEST(test_path_keeps_the_better_errno),
        IN_GUEST(test_script_without_interpreter),
        IN_GUEST(test_other_stages),
        IN_GUEST(test_attributes),
        IN_GUEST(test_only_stdio_is_open),
        IN_GUEST(test_signals_start_as_they_should),
        IN_GUEST(test_guest_cannot_be_looked_into),
        IN_GUEST(test_command_cannot_kill_its_guest),
        IN_GUEST(test_large_stdin),
        IN_GUEST(test_stdin_that_nobody_reads),
        IN_GUEST(test_slow_reader),
        IN_GUEST(test_output_window),
        IN_GUEST(test_many_at_once),
        IN_GUEST(test_too_many),
        IN_GUEST(test_daemon),
        IN_GUEST(test_kill_all_reaches_daemons),
        cmocka_unit_test(test_end_of_transport_kills_everything),
        IN_GUEST(test_terminal),
        IN_GUEST(test_job_control),
        IN_GUEST(test_terminal_end_of_input),
        IN_GUEST(test_terminal_let_go),
        IN_GUEST(test_terminal_output_is_complete),
        cmocka_unit_test(test_memory_watchdog),
        cmocka_unit_test(test_process_watchdog),
    };

    int failed = cmocka_run_group_tests_name("this kernel", tests, NULL, NULL);

    run_old_kernel = true;
    return failed + cmocka_run_group_tests_name("without openat2 and close_range", tests, NULL, NULL);
}
