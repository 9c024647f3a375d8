/* tests/unit/guest_run.c: see guest_run.h */
#include "guest_run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "guest/guest_image.h"
#include "memory_dir.h"

extern char **environ;

bool run_old_kernel;
bool run_in_memory;

static void
take_calls_away(void)
{
    const struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437 /* openat2 */, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
    };
    const struct sock_fprog program = { .len = ARRAY_LEN(insns),
                                        .filter = (struct sock_filter *)(uintptr_t)insns };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(96);
}

/* The embedded program, as the launcher executes it. */
static int
guest_memfd(void)
{
    int fd = memfd_create("cloche-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, guest_image, guest_image_size), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    return fd;
}

void
run_start_raw(struct run *r)
{
    int pair[2], image = guest_memfd();

    memset(r, 0, sizeof(*r));
    r->out = (struct buf)BUF_INIT(64 * 1024 * 1024);
    r->errout = (struct buf)BUF_INIT(64 * 1024 * 1024);
    r->names = (struct buf)BUF_INIT(1024 * 1024);
    r->changes = (struct buf)BUF_INIT(16 * 1024 * 1024);
    r->denied = (struct buf)BUF_INIT(1024 * 1024);
    if (run_in_memory) {
        assert_non_null(memory_dir(r->root, sizeof(r->root), "cloche-unit"));
    } else {
        snprintf(r->root, sizeof(r->root), "/tmp/cloche-unit-XXXXXX");
        assert_non_null(mkdtemp(r->root));
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    r->fd = pair[0];
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        static const char *const argv[] = { "cloche-guest", NULL };

        /* A descriptor that the guest was not given: it must be gone from whatever it runs. */
        (void)dup2(image, 9);
        image = fcntl(image, F_DUPFD_CLOEXEC, 10);
        if (dup2(pair[1], 3) != 3)
            _exit(99);
        if (run_old_kernel)
            take_calls_away();
        fexecve(image, (char *const *)(uintptr_t)argv, environ);
        _exit(98);
    }
    close(pair[1]);
    close(image);
}

void
run_start(struct run *r, const struct msg_setup *setup)
{
    struct msg_setup m = setup == NULL ? (struct msg_setup){ .flags = MSG_SETUP_LIGHT } : *setup;

    run_start_raw(r);
    if (m.root == NULL)
        m.root = r->root;
    assert_int_equal(guest_client_new(r->fd, &r->c, &r->err), 0);
    assert_int_equal(guest_client_setup(r->c, &m, &r->err), 0);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
run_stop(struct run *r)
{
    char command[128];
    int status = -1;

    guest_client_free(r->c);
    if (r->fd >= 0)
        close(r->fd);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    buf_free(&r->out);
    buf_free(&r->errout);
    buf_free(&r->names);
    buf_free(&r->changes);
    buf_free(&r->denied);
    /* A shell takes longer than most tests: it is for what is left, behind directories that are closed. */
    if (nftw(r->root, remove_one, 32, FTW_DEPTH | FTW_PHYS) != 0) {
        snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", r->root, r->root);
        run_prepare(r, command);
    }
    return status;
}

int
run_setup(void **state)
{
    run_start(*state, NULL);
    return 0;
}

int
run_setup_in_memory(void **state)
{
    run_in_memory = true;
    run_start(*state, NULL);
    run_in_memory = false;
    return 0;
}

int
run_teardown(void **state)
{
    assert_int_equal(run_stop(*state), 0);
    return 0;
}

void
run_prepare(const struct run *r, const char *script)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(r->root) == 0)
            execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(97);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
take_entries(struct run *r, struct wire_in in)
{
    struct msg_file_info info;

    while (msg_next_entry(&in, &info)) {
        char kind = S_ISDIR(info.mode) ? 'd' : S_ISREG(info.mode) ? 'f' : S_ISLNK(info.mode) ? 'l' : '?';

        assert_int_equal(buf_printf(&r->names, "%c %s\n", kind, info.name), 0);
    }
    assert_false(in.bad);
}

static void
take_change(struct run *r, const struct msg_change *m, uint16_t request)
{
    static const char *const kinds[] = { "", "watching", "created", "modified", "deleted", "renamed", "unwatched",
                                         "overflow" };

    assert_int_equal(buf_printf(&r->changes, "%s %s%s%s%s\n", kinds[m->kind], m->path, m->directory ? "/" : "",
                                m->from[0] != '\0' ? " < " : "", m->from), 0);
    r->changed++;
    if (r->change_hold)
        r->change_owed += guest_change_bytes(m);
    else
        assert_int_equal(guest_client_file_more(r->c, request, guest_change_bytes(m), &r->err), 0);
}

static void
take(struct run *r, const struct guest_event *ev)
{
    switch (ev->type) {
    case GUEST_HELLO: r->hello = true; break;
    case GUEST_STARTED: r->started = true; break;
    case GUEST_EXEC_FAILED: r->failed = true; r->exec_failed = ev->exec_failed; break;
    case GUEST_STDOUT: assert_int_equal(buf_append(&r->out, ev->data.p, ev->data.n), 0); break;
    case GUEST_STDERR: assert_int_equal(buf_append(&r->errout, ev->data.p, ev->data.n), 0); break;
    case GUEST_STDIN_READY: r->stdin_gone |= ev->stdin_gone; break;
    case GUEST_EXIT: r->exited = true; r->exit = ev->exit; r->n_exits++; break;
    case GUEST_DENIED:
        assert_int_equal(buf_printf(&r->denied, "%s %s %s %u\n", ev->denied.op, ev->denied.target, ev->denied.rule,
                                    ev->denied.count), 0);
        break;
    case GUEST_NOTICE: r->notice = ev->notice; break;
    case GUEST_FILE_DATA: assert_int_equal(buf_append(&r->out, ev->data.p, ev->data.n), 0); break;
    case GUEST_FILE_ENTRIES: take_entries(r, ev->entries); break;
    case GUEST_FILE_CHANGE: take_change(r, &ev->change, ev->channel); break;
    case GUEST_FILE_INFO: r->file_done = r->file_info = true; r->info = ev->info; break;
    case GUEST_FILE_DONE: r->file_done = true; r->file_count = ev->count; break;
    case GUEST_FILE_FAILED: r->file_done = r->file_failed = true; r->file_error = ev->file_error; break;
    case GUEST_CLOSED: r->closed = true; break;
    }
}

bool
run_pump(struct run *r, int ms)
{
    struct pollfd p = { .fd = r->fd, .events = guest_client_poll_events(r->c) };
    struct guest_event ev;
    int rc;

    if (poll(&p, 1, ms) <= 0)
        return false;
    if (guest_client_pump(r->c, &r->err) < 0)
        fail_msg("%s", r->err.msg);
    while ((rc = guest_client_next(r->c, &ev, &r->err)) > 0)
        take(r, &ev);
    if (rc < 0)
        fail_msg("%s", r->err.msg);
    return true;
}

void
run_until(struct run *r, const bool *flag)
{
    while (!*flag) {
        if (!run_pump(r, RUN_PATIENCE))
            fail_msg("the guest says nothing");
        if (r->closed && !*flag)
            fail_msg("the guest is gone");
    }
}

uint16_t
run_exec(struct run *r, enum exec_stdio stdio, const char *const *argv)
{
    static const char *const env[] = { "PATH=/usr/bin:/bin", "TERM=dumb", NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t channel = 0;

    x.argv = argv;
    x.env = env;
    x.cwd = r->root;
    x.stdio = stdio;
    x.rows = 24;
    x.cols = 80;
    r->started = r->failed = r->exited = r->stdin_gone = false;
    buf_reset(&r->out);
    buf_reset(&r->errout);
    if (guest_client_exec(r->c, &x, &channel, &r->err) < 0)
        fail_msg("%s", r->err.msg);
    return channel;
}

void
run_sh(struct run *r, const char *script)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    uint16_t channel = run_exec(r, EXEC_STDIO_STREAM, argv);

    assert_int_equal(guest_client_close_stdin(r->c, channel, &r->err), 0);
    run_until(r, &r->exited);
}

const char *
run_text(struct buf *b)
{
    assert_int_equal(buf_nul(b), 0);
    return (const char *)b->p;
}

int
run_file(struct run *r, uint8_t type, const struct msg_file *m)
{
    uint16_t request;

    r->file_done = r->file_failed = r->file_info = false;
    buf_reset(&r->out);
    buf_reset(&r->names);
    r->err = (struct err)ERR_INIT;
    if (guest_client_file(r->c, type, m, &request, &r->err) < 0)
        return -1;
    run_until(r, &r->file_done);
    return r->file_failed ? guest_file_err(&r->file_error, m->path, &r->err) : 0;
}

int
run_write(struct run *r, const char *path, uint8_t flags, const void *p, size_t n)
{
    const struct msg_file m = { .flags = flags, .path = path };
    const uint8_t *at = p;
    uint16_t request;
    size_t taken;

    r->file_done = r->file_failed = false;
    r->err = (struct err)ERR_INIT;
    if (guest_client_file(r->c, MSG_FILE_WRITE, &m, &request, &r->err) < 0)
        return -1;
    while (n > 0) {
        assert_int_equal(guest_client_file_chunk(r->c, request, at, n, &taken, &r->err), 0);
        at += taken;
        n -= taken;
        if (taken == 0)
            (void)run_pump(r, RUN_PATIENCE);
    }
    assert_int_equal(guest_client_file_end(r->c, request, &r->err), 0);
    run_until(r, &r->file_done);
    return r->file_failed ? guest_file_err(&r->file_error, path, &r->err) : 0;
}
