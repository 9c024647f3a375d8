/* A PKCS#11 module that is somebody's who means harm: as it is loaded it tries what its process gave up, and writes
 * into HOME/said what became of it: one line each, "NAME ERRNO", 0 where it was done. HOME/victim has the pid of a
 * process of the same user. */
#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *said;

static void
say(const char *name, long r)
{
    fprintf(said, "%s %d\n", name, r < 0 ? errno : 0);
    fflush(said);
}

static void
child(const char *name, long r)
{
    if (r == 0)
        _exit(0);
    say(name, r);
}

static void *
nothing(void *p)
{
    return p;
}

/* F_SETOWN, F_SETSIG and a byte. */
static void
owner(pid_t victim)
{
    struct f_owner_ex who = { F_OWNER_PID, victim };
    int pid = victim, pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return;
    say("f_setown", fcntl(pair[0], F_SETOWN, victim));
    say("f_setown_ex", fcntl(pair[0], F_SETOWN_EX, &who));
    say("f_setsig", fcntl(pair[0], F_SETSIG, SIGKILL));
    say("fiosetown", ioctl(pair[0], FIOSETOWN, &pid));
    say("siocspgrp", ioctl(pair[0], SIOCSPGRP, &pid));
}

static void
processes(void)
{
    unsigned long args[11] = { 0 };

    args[4] = SIGCHLD;      /* exit_signal of struct clone_args */
    child("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    child("clone_newuser", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    child("clone3", syscall(SYS_clone3, args, sizeof(args)));
#if defined(SYS_fork)
    child("old_fork", syscall(SYS_fork));
#endif
}

__attribute__((constructor)) static void
harm(void)
{
    char path[4096], number[32];
    siginfo_t info = { .si_code = SI_QUEUE };
    struct rlimit limit = { 0, 0 };
    pthread_t thread;
    int victim = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/victim", getenv("HOME"));
    f = fopen(path, "r");
    if (f == NULL || fgets(number, sizeof(number), f) == NULL)
        return;
    victim = (int)strtol(number, NULL, 10);
    snprintf(path, sizeof(path), "%s/said", getenv("HOME"));
    said = fopen(path, "w");
    if (said == NULL)
        return;
    say("kill", kill(victim, 0));
    say("tkill", syscall(SYS_tkill, victim, 0));
    say("tgkill", syscall(SYS_tgkill, victim, victim, 0));
    say("sigqueue", syscall(SYS_rt_sigqueueinfo, victim, SIGUSR1, &info));
    say("tgsigqueue", syscall(SYS_rt_tgsigqueueinfo, victim, victim, SIGUSR1, &info));
    owner(victim);
    processes();
    say("pdeathsig", prctl(PR_SET_PDEATHSIG, 0));
    say("dumpable", prctl(PR_SET_DUMPABLE, 1));
    say("limits", syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, &limit, NULL));
    say("setreuid", syscall(SYS_setreuid, -1, -1));
    say("setresgid", syscall(SYS_setresgid, -1, -1, -1));
    say("setfsuid", syscall(SYS_setfsuid, -1));
    snprintf(path, sizeof(path), "/proc/%d/mem", victim);
    say("memory", open(path, O_RDWR));
    errno = pthread_create(&thread, NULL, nothing, NULL);       /* which modules need */
    say("thread", errno == 0 ? 0 : -1);
    say("own_limit", getrlimit(RLIMIT_NOFILE, &limit));
    fclose(said);
}
