/* cli/maker.c: see maker.h */
#include "cli/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "warden/edge.h"
#include "wire/table.h"

#ifndef CLONE_PARENT
#define CLONE_PARENT 0x00008000     /* sched.h */
#endif

#define FD_LAUNCHER 3
#define FD_HIGH     64
#define PATIENCE_MS 5000

/* The words between the two, in that order: as many GIVEs as there are descriptors, a MAKE, an answer. */
enum maker_message {
    MAKER_GIVE = 1,     /* with a descriptor */
    MAKER_MAKE,         /* what maker_put() writes */
    MAKER_MADE,         /* pid be32 */
    MAKER_NOT_MADE,     /* errno be32 */
};

/* --- becoming ----------------------------------------------------------------------------------------------------- */

/* Become @program with fds[0..n) from 3 on, stderr as ours, and nothing else; with the limit @files unless NULL. */
static _Noreturn void
become(const char *program, char *const argv[], char *const env[], const int *fds, size_t n,
       const struct rlimit *files)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[MAKER_FDS];
    sigset_t none;

    if (null < 0 || n > MAKER_FDS || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(1);
    for (size_t i = 0; i < n; i++)
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
    for (size_t i = 0; i < n; i++)
        if (high[i] < 0 || dup2(high[i], 3 + (int)i) < 0)
            _exit(1);
    (void)io_close_from(3 + (int)n);
    if (files != NULL && setrlimit(RLIMIT_NOFILE, files) < 0)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();           /* a terminal's signals are the launcher's to judge */
    execve(program, argv, env);
    _exit(1);
}

/* --- the launcher's side ------------------------------------------------------------------------------------------ */

int
maker_open(const char *const paths[MAKE_PROGRAMS], pid_t *pid, struct err *err)
{
    char name[] = "cloche-maker", *argv[MAKE_PROGRAMS + 2] = { name };
    cleanup_close int ours = -1, theirs = -1;
    int pair[2];

    for (size_t i = 0; i < MAKE_PROGRAMS; i++)
        argv[1 + i] = (char *)(uintptr_t)paths[i];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "serve.start", "socketpair");
    ours = pair[0];
    theirs = pair[1];
    *pid = fork();
    if (*pid == 0)
        become("/proc/self/exe", argv, environ, &theirs, 1, NULL);
    return *pid < 0 ? err_sys(err, errno, "serve.start", "fork") : take_fd(&ours);
}

static int
say_order(int maker, const struct maker_order *order)
{
    cleanup_buf struct buf frame = BUF_INIT(EDGE_MESSAGE_MAX);
    size_t at;

    for (size_t i = 0; i < order->n_fds; i++) {
        buf_reset(&frame);
        at = frame_begin(&frame, MAKER_GIVE, 0, 0);
        if (frame_end(&frame, at) < 0 || packet_send(maker, &frame, order->fds[i]) < 0)
            return -1;
    }
    buf_reset(&frame);
    at = frame_begin(&frame, MAKER_MAKE, 0, 0);
    (void)maker_put(&frame, order);
    if (frame_end(&frame, at) == 0)
        return packet_send(maker, &frame, -1);
    errno = E2BIG;
    return -1;
}

/* It forks, and has nothing else to do: one that does not answer was stopped. 0, or -1 with errno. */
static int
answer_comes(int maker)
{
    struct pollfd p = { .fd = maker, .events = POLLIN };
    int r;

    do
        r = poll(&p, 1, PATIENCE_MS);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        errno = ETIMEDOUT;
    return r > 0 ? 0 : -1;
}

pid_t
maker_start(int maker, const struct maker_order *order, struct err *err)
{
    uint8_t room[FRAME_HEADER + 5];
    struct wire_in in;
    struct frame f;
    uint32_t number;
    int r;

    if (say_order(maker, order) < 0 || answer_comes(maker) < 0) {
        r = errno;      /* what was given already, and what is answered late, would be another one's */
        (void)shutdown(maker, SHUT_RDWR);
        return err_sys(err, r, MAKER_FAILED, "cloche-maker takes no order");
    }
    if (packet_receive(maker, room, sizeof(room), &f, NULL, 0) <= 0)
        return err_set(err, ERR_SYSTEM, MAKER_FAILED, "cloche-maker has ended");
    in = wire_in_of(f.payload, f.length);
    number = wire_be32(&in);
    if (!wire_done(&in) || number == 0 || number > INT32_MAX || (f.type != MAKER_MADE && f.type != MAKER_NOT_MADE))
        return err_set(err, ERR_PROTOCOL, MAKER_FAILED, "cloche-maker said what it must not");
    return f.type == MAKER_MADE ? (pid_t)number : err_sys(err, (int)number, "serve.start", "fork");
}

/* --- the maker's -------------------------------------------------------------------------------------------------- */

struct maker {
    char **paths;               /* the programs', in the order of enum maker_program */
    int given[MAKER_FDS];
    size_t n_given;
    int passed;                 /* the descriptor that came with the message at hand; -1 */
    struct msg_gate gate;
    uint8_t in[EDGE_ROOM];
};

static _Noreturn void
begin(const struct maker *m, const struct maker_wanted *w)
{
    const struct rlimit *files = w->has_files ? &w->files : NULL;
    char *env[] = { w->program == MAKE_SCRIBE ? NULL : w->log, NULL };

    if (w->program != MAKE_KEEPER)
        become(m->paths[w->program], w->words, env, m->given, m->n_given, files);
    (void)putenv(w->log);       /* how it speaks; without it as text */
    become("/proc/self/exe", w->words, environ, m->given, m->n_given, files);
}

static void
forget_given(struct maker *m)
{
    for (; m->n_given > 0; m->n_given--)
        close_fd(&m->given[m->n_given - 1]);
}

static int
on_give(void *ctx, const struct frame *f)
{
    struct maker *m = ctx;

    (void)f;
    if (m->passed < 0 || m->n_given == MAKER_FDS)
        return -1;
    m->given[m->n_given++] = take_fd(&m->passed);
    return 0;
}

static int
on_make(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t room[FRAME_HEADER + 4];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    struct maker *m = ctx;
    struct maker_wanted w;
    long pid;
    size_t at;

    if (m->passed >= 0 || !maker_get(&in, &w) || (w.program != MAKE_KEEPER && m->paths[w.program][0] == '\0'))
        return -1;
    /* as fork(2), but a child of our parent's */
    pid = syscall(SYS_clone, (unsigned long)(CLONE_PARENT | SIGCHLD), NULL, NULL, NULL, 0UL);
    if (pid == 0)
        begin(m, &w);
    at = frame_begin(&frame, pid > 0 ? MAKER_MADE : MAKER_NOT_MADE, 0, 0);
    buf_put_be32(&frame, pid > 0 ? (uint32_t)pid : (uint32_t)errno);
    forget_given(m);
    return frame_end(&frame, at) < 0 ? -1 : packet_send(FD_LAUNCHER, &frame, -1);
}

static const struct msg_rule rules[] = {
    /* type        once   flags states min  max length            handler */
    { MAKER_GIVE,  false, 0,    1,     0,   0,                    on_give },
    { MAKER_MAKE,  false, 0,    1,     30,  EDGE_MESSAGE_MAX,     on_make },
};

/* 1; 0 at the launcher's end, -1 when it says what it must not. */
static int
step(struct maker *m)
{
    struct frame f;
    int r = packet_receive(FD_LAUNCHER, m->in, sizeof(m->in), &f, &m->passed, 0);

    if (r < 0 && errno == EINTR)
        return 1;
    if (r > 0 && msg_dispatch(&m->gate, &f, m) != MSG_OK)
        r = -1;
    close_fd(&m->passed);
    return r;
}

int
maker_main(int argc, char **argv)
{
    static struct maker m = { .given = { -1, -1, -1 }, .passed = -1,
                              .gate = { .rules = rules, .n_rules = sizeof(rules) / sizeof(rules[0]), .state = 1 } };
    sigset_t all;
    int r;

    /* it ends when the launcher does, which may still need it while it ends in order */
    sigfillset(&all);
    if (argc != MAKE_PROGRAMS + 1 || fcntl(FD_LAUNCHER, F_GETFD) < 0 || io_set_cloexec(FD_LAUNCHER, true) < 0 ||
        sigprocmask(SIG_BLOCK, &all, NULL) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {       /* nor is it written into by /proc, but by root */
        fprintf(stderr, "cloche-maker is started by cloche serve\n");
        return EXIT_REFUSED;
    }
    prctl(PR_SET_NAME, "cloche-maker");
    m.paths = argv + 1;
    do
        r = step(&m);
    while (r > 0);
    return r < 0 ? EXIT_REFUSED : 0;
}
