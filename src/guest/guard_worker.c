/* guest/guard_worker.c: what may block (a FIFO without a reader, connect()) is done by a child
 *
 * The child keeps the few descriptors that it needs and nothing else (a pipe's end left open here would keep a
 * command from seeing its end of file), answers the notification itself, and ends. A second child watches the caller
 * and interrupts whatever the first waits in: when the caller died it gives up, when the caller has a signal to handle
 * it answers EINTR, as the kernel would (a received notification is not interrupted by the kernel itself:
 * WAIT_KILLABLE_RECV). Without such a reason nothing interrupts it: who opens a FIFO and is interrupted is gone for a
 * moment, and the other end, which was let in, reads an end of file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guest/guard_priv.h"

#define LOOK_EVERY_US 50000
#define KEEP_MAX      8

static void
on_alarm(int signo)
{
    (void)signo;
}

static void
close_between(int from, int to)
{
    if (from > to)
        return;
    if (syscall(SYS_close_range, (unsigned)from, (unsigned)to, 0U) == 0)
        return;
    for (int fd = from; fd <= to && fd < 4096; fd++)
        (void)close(fd);
}

/* Close all but @keep (sorted here). */
static void
keep_only(int *keep, size_t n)
{
    int next = 0;

    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && keep[k - 1] > keep[k]; k--) {
            int t = keep[k];

            keep[k] = keep[k - 1];
            keep[k - 1] = t;
        }
    for (size_t i = 0; i < n; i++) {
        close_between(next, keep[i] - 1);
        next = keep[i] + 1;
    }
    close_between(next, INT_MAX);
}

static uint64_t
hex_field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    uint64_t v = 0;

    if (p == NULL)
        return 0;
    for (p += strlen(name); *p == '\t' || *p == ' '; p++)
        ;
    for (; str_hex_digit(*p) >= 0; p++)
        v = v << 4 | (unsigned)str_hex_digit(*p);
    return v;
}

/* Does a signal wait that the caller would handle now? */
static bool
caller_interrupted(struct call *c)
{
    cleanup_close int fd = caller_proc_open(c, "status", O_RDONLY);
    char text[4096];
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return ((hex_field(text, "\nSigPnd:") | hex_field(text, "\nShdPnd:")) &
            ~hex_field(text, "\nSigBlk:") & ~hex_field(text, "\nSigIgn:")) != 0;
}

void
worker_settle(void)
{
    sigset_t all;

    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
}

/* Interrupt @worker as long as there is a reason to. Ends with it. */
static void __attribute__((noreturn))
watch_caller(struct call *c, pid_t worker)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (getppid() == worker) {
        (void)usleep(LOOK_EVERY_US);
        if (!caller_waits(c) || caller_interrupted(c))
            (void)kill(worker, SIGALRM);
    }
    _exit(0);
}

static void __attribute__((noreturn))
work(struct call *c, int *keep, size_t n_keep, worker_fn *fn, const void *job)
{
    struct sigaction act = { .sa_handler = SIG_DFL };
    sigset_t none;
    pid_t self = getpid(), watcher;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != c->g->pid)
        _exit(0);
    for (int s = 1; s < 32; s++)
        (void)sigaction(s, &act, NULL);
    act.sa_handler = on_alarm;
    (void)sigaction(SIGALRM, &act, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    keep_only(keep, n_keep);
    seen_drop(c->g);            /* closed just now */
    watcher = fork();
    if (watcher == 0)
        watch_caller(c, self);
    if (watcher < 0) {
        worker_settle();
        answer(c, -EAGAIN);
        _exit(0);
    }
    for (;;) {
        int result = fn(c, job);

        if (result == ANSWERED)
            _exit(0);
        if (!caller_waits(c))
            _exit(0);
        if (result != -EINTR || caller_interrupted(c)) {
            worker_settle();
            answer(c, result);
            _exit(0);
        }
    }
}

int
worker_start(struct call *c, const int *fds, size_t n_fds, worker_fn *fn, const void *job)
{
    struct guard *g = c->g;
    int keep[KEEP_MAX];
    pid_t pid;

    if (g->n_workers == WORKERS_MAX || n_fds + 2 > KEEP_MAX)
        return -EAGAIN;
    memcpy(keep, fds, n_fds * sizeof(*fds));
    keep[n_fds] = c->listener;
    keep[n_fds + 1] = g->proc;
    pid = fork();
    if (pid < 0)
        return -EAGAIN;
    if (pid == 0)
        work(c, keep, n_fds + 2, fn, job);
    g->workers[g->n_workers++] = pid;
    return ANSWERED;
}

bool
guard_worker_ended(struct guard *g, pid_t pid)
{
    for (size_t i = 0; i < g->n_workers; i++) {
        if (g->workers[i] == pid) {
            g->workers[i] = g->workers[--g->n_workers];
            return true;
        }
    }
    return false;
}
