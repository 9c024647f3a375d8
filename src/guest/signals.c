/* guest/signals.c: see signals.h */
#include "guest/signals.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

/* SIGPIPE and SIGXFSZ (a file request met a size limit) are caught rather than ignored: execve resets a caught
 * signal, an ignored one stays ignored. SIGIO is about a lease (guard_git_lock.c). */
static const int caught[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ,
    SIGIO };
#define N_CAUGHT ARRAY_LEN(caught)

static _Atomic uint64_t came;
static sigset_t open_mask;

static bool pid1;

/* Process 1 answers to the host (whose processes have no number here) and to the kernel, not to what it watches. */
static void
on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    if (pid1 && signo != SIGCHLD && info->si_code <= 0 && info->si_pid != 0)
        return;
    atomic_fetch_or_explicit(&came, UINT64_C(1) << signo, memory_order_relaxed);
}

/* Real-time signals, and the three that the C library keeps to itself and refuses to name: whoever started us may have
 * left them ignored, and execve would hand that on to every command. */
static void
default_realtime(void)
{
    /* struct sigaction as the kernel has it, all zero: SIG_DFL, no flags, empty mask */
    const unsigned long zero[8] = { 0 };

    for (int signo = 32; signo <= 64; signo++)
        (void)syscall(SYS_rt_sigaction, signo, zero, NULL, sizeof(uint64_t));
}

int
signals_init(void)
{
    struct sigaction sa = { .sa_handler = SIG_DFL };
    sigset_t block;

    pid1 = getpid() == 1;
    sigemptyset(&block);
    sigemptyset(&open_mask);
    for (size_t i = 0; i < N_CAUGHT; i++)
        sigaddset(&block, caught[i]);
    for (int signo = 1; signo < 32; signo++) {
        sa = (struct sigaction){ .sa_handler = SIG_DFL };
        if (sigismember(&block, signo)) {
            sa.sa_sigaction = on_signal;
            sa.sa_flags = SA_SIGINFO;
        }
        if (signo != SIGKILL && signo != SIGSTOP && sigaction(signo, &sa, NULL) < 0)
            return -1;
    }
    default_realtime();
    return sigprocmask(SIG_SETMASK, &block, NULL);
}

const sigset_t *
signals_open_mask(void)
{
    return &open_mask;
}

uint64_t
signals_take(void)
{
    return atomic_exchange_explicit(&came, 0, memory_order_relaxed);
}

void
signals_default(void)
{
    struct sigaction sa = { .sa_handler = SIG_DFL };

    for (size_t i = 0; i < N_CAUGHT; i++)
        (void)sigaction(caught[i], &sa, NULL);
}

void
signals_unblock(void)
{
    (void)sigprocmask(SIG_SETMASK, &open_mask, NULL);
}
