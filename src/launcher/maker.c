/* launcher/maker.c: see maker.h */
#include "launcher/maker.h"

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
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "program/say.h"
#include "proto/edge.h"
#include "wire/table.h"

#ifndef CLONE_PARENT
#define CLONE_PARENT 0x00008000     /* sched.h */
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

#define FD_LAUNCHER 3
#define FD_HIGH     64
#define MADE_FIRST  64
#define WAKE_MS     2500    /* for an answer; then it is told to go on, ... */
#define KEEPER_MS   2500    /* ... and has so much more: for a keeper, */
#define SERVICE_MS  27500   /* for what the daemon cannot be without */

/* The words between the two, in that order: as many GIVEs as there are descriptors, a MAKE, an answer. */
#define MAKER_MESSAGES(M) \
    M(MAKER_GIVE,     1, nothing)       /* with a descriptor */ \
    M(MAKER_MAKE,     2, maker_wanted) \
    M(MAKER_MADE,     3, edge_number)   /* its pid */ \
    M(MAKER_NOT_MADE, 4, edge_number)   /* errno */
PROTO_EDGE(maker_message, MAKER_MESSAGES);

/* --- becoming ----------------------------------------------------------------------------------------------------- */

/* Become @program with fds[0..n) from 3 on, stderr as ours, and nothing else; with the limit @files unless NULL. */
static _Noreturn void
become(const char *program, char *const argv[], char *const env[], const int *fds, size_t n,
       const struct rlimit *files)
{
    struct rlimit own = { 0, 0 }, most;
    int null, high[MAKER_FDS];
    sigset_t none;

    /* cloche-maker's own may have been lowered below what is open in it */
    if (getrlimit(RLIMIT_NOFILE, &own) == 0) {
        most = (struct rlimit){ own.rlim_max, own.rlim_max };
        (void)setrlimit(RLIMIT_NOFILE, &most);
    }
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || n > MAKER_FDS || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(1);
    for (size_t i = 0; i < n; i++)
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
    for (size_t i = 0; i < n; i++)
        if (high[i] < 0 || dup2(high[i], 3 + (int)i) < 0)
            _exit(1);
    (void)io_close_from(3 + (int)n);
    if (setrlimit(RLIMIT_NOFILE, files != NULL ? files : &own) < 0)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();           /* a terminal's signals are the launcher's to judge */
    prctl(PR_SET_PDEATHSIG, SIGCONT);   /* one that is stopped hears of its launcher's end too */
    execve(program, argv, env);
    _exit(1);
}

/* --- the launcher's side ------------------------------------------------------------------------------------------ */

int
maker_open(const char *const paths[MAKE_PROGRAMS], struct maker_link *m, struct err *err)
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
    m->pid = fork();
    if (m->pid == 0)
        become("/proc/self/exe", argv, environ, &theirs, 1, NULL);
    if (m->pid < 0)
        return err_sys(err, errno, "serve.start", "fork");
    m->fd = take_fd(&ours);
    return 0;
}

static int
say_order(int maker, const struct maker_order *order)
{
    struct maker_wanted w = { .program = order->program, .has_files = order->files != NULL, .log = order->log };

    if (order->files != NULL) {
        w.soft = order->files->rlim_cur;
        w.hard = order->files->rlim_max;
    }
    for (; w.n_words < MAKER_WORDS && order->words[w.n_words] != NULL; w.n_words++)
        w.words[w.n_words] = order->words[w.n_words];
    if (order->words[w.n_words] != NULL) {
        errno = E2BIG;
        return -1;
    }
    for (size_t i = 0; i < order->n_fds; i++)
        if (proto_send(maker, MAKER_GIVE, MAKER_GIVE_SHAPE(), NULL, order->fds[i]) < 0)
            return -1;
    return proto_send(maker, MAKER_MAKE, MAKER_MAKE_SHAPE(), &w, -1);
}

/* 1; 0: nothing came, -1 with errno. */
static int
answer_comes(const struct maker_link *m, int ms)
{
    struct pollfd p = { .fd = m->fd, .events = POLLIN };
    int r;

    do
        r = poll(&p, 1, ms);
    while (r < 0 && errno == EINTR);
    return r;
}

/* It forks, and has nothing else to do: one that does not answer was stopped, or the machine is very busy. */
static int
wait_for(const struct maker_link *m, const struct maker_order *order)
{
    int r = answer_comes(m, WAKE_MS);

    if (r != 0)
        return r;
    kill(m->pid, SIGCONT);
    return answer_comes(m, order->program == MAKE_KEEPER ? KEEPER_MS : SERVICE_MS);
}

/* An answer that is there. The process; 0 with @number, an errno: none was; -1 with @err: the maker has failed. */
static pid_t
take_answer(const struct maker_link *m, int *number, struct err *err)
{
    uint8_t room[FRAME_HEADER + 5];
    struct wire_in in;
    struct edge_number said;
    struct frame f;

    if (packet_receive(m->fd, room, sizeof(room), &f, NULL, 0) <= 0)
        return err_set(err, ERR_SYSTEM, MAKER_FAILED, "cloche-maker has ended");
    in = wire_in_of(f.payload, f.length);
    if (!edge_number_get(&in, &said) || said.number == 0 || said.number > INT32_MAX ||
        (f.type != MAKER_MADE && f.type != MAKER_NOT_MADE))
        return err_set(err, ERR_PROTOCOL, MAKER_FAILED, "cloche-maker said what it must not");
    *number = (int)said.number;
    return f.type == MAKER_MADE ? (pid_t)said.number : 0;
}

int
maker_collect(struct maker_link *m)
{
    while (m->late > 0 && answer_comes(m, 0) != 0) {
        int number;
        pid_t pid = take_answer(m, &number, NULL);
        if (pid < 0)
            return -1;
        m->late--;
        if (pid == 0)
            continue;
        kill(pid, SIGKILL);     /* it does nothing yet, for its sockets are closed here */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return 0;
}

static int
late(struct err *err)
{
    err_set(err, ERR_SYSTEM, MAKER_LATE, "cloche-maker, which starts processes, does not answer");
    return err_hint(err, "try again; sandboxes that are there go on");
}

pid_t
maker_start(struct maker_link *m, const struct maker_order *order, struct err *err)
{
    int number, r;
    pid_t pid;

    if (maker_collect(m) < 0)
        return err_set(err, ERR_SYSTEM, MAKER_FAILED, "cloche-maker has ended, or said what it must not");
    if (m->late > 0)
        return late(err);
    if (say_order(m->fd, order) < 0 || (r = wait_for(m, order)) < 0) {
        r = errno;      /* what was given already would be another one's */
        (void)shutdown(m->fd, SHUT_RDWR);
        return err_sys(err, r, MAKER_FAILED, "cloche-maker takes no order");
    }
    if (r == 0) {
        m->late++;
        m->late_ms = clock_ms();
        return late(err);
    }
    pid = take_answer(m, &number, err);
    return pid == 0 ? err_sys(err, number, "serve.start", "fork") : pid;
}

/* --- the maker's -------------------------------------------------------------------------------------------------- */

struct maker {
    char **paths;               /* the programs', in the order of enum maker_program */
    int given[MAKER_FDS];
    size_t n_given;
    bool no_place;              /* for one that was to be given */
    int passed;                 /* the descriptor that came with the message at hand; -1 */
    int *made;                  /* of each process that was started, and may live, a descriptor (pidfd_open(2)) */
    size_t n_made, room;
    struct msg_gate gate;
    uint8_t in[EDGE_ROOM];
};

/* The entry of our environment for @name, or NULL. */
static char *
entry_of(const char *name)
{
    size_t n = strlen(name);

    for (char **e = environ; *e != NULL; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e;
    return NULL;
}

/* @log, and where the vault's store is (vault/store.h). */
static void
signers_environment(char *log, char *env[4])
{
    char *const where[] = { entry_of("HOME"), entry_of("XDG_DATA_HOME") };
    size_t n = 0;

    env[n++] = log;
    for (size_t i = 0; i < ARRAY_LEN(where); i++)
        if (where[i] != NULL)
            env[n++] = where[i];
    env[n] = NULL;
}

static _Noreturn void
maker_begin(const struct maker *m, const struct maker_wanted *w)
{
    const struct rlimit limit = { w->soft, w->hard }, *files = w->has_files ? &limit : NULL;
    char *const *words = (char *const *)(uintptr_t)w->words;     /* execve(2) writes nothing */
    char *log = (char *)(uintptr_t)w->log, *env[4] = { w->program == MAKE_SCRIBE ? NULL : log, NULL };

    if (w->program == MAKE_SIGNER)
        signers_environment(log, env);
    if (w->program != MAKE_KEEPER)
        become(m->paths[w->program], words, env, m->given, m->n_given, files);
    (void)putenv(log);          /* how it speaks; without it as text */
    become("/proc/self/exe", words, environ, m->given, m->n_given, files);
}

static void
forget_given(struct maker *m)
{
    for (; m->n_given > 0; m->n_given--)
        close_fd(&m->given[m->n_given - 1]);
}

static int
on_give(struct maker *m, const struct nothing *given)
{
    (void)given;
    if (m->passed == PACKET_FULL) {
        m->no_place = true;
        return 0;
    }
    if (m->passed < 0 || m->n_given == MAKER_FDS)
        return -1;
    m->given[m->n_given++] = take_fd(&m->passed);
    return 0;
}

static bool
has_ended(int process)
{
    struct pollfd p = { .fd = process, .events = POLLIN };

    return poll(&p, 1, 0) != 0;
}

static void
forget_ended(struct maker *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_made; i++) {
        if (has_ended(m->made[i]))
            close_fd(&m->made[i]);
        else
            m->made[n++] = m->made[i];
    }
    m->n_made = n;
}

/* A place for another one. Those that have ended are looked for where there is none: so they are not more than those
 * that live, or a few. */
static bool
has_place(struct maker *m)
{
    size_t more = m->room > 0 ? 2 * m->room : MADE_FIRST;
    int *made;

    if (m->n_made < m->room)
        return true;
    forget_ended(m);
    if (m->room > 0 && m->n_made <= m->room / 2)
        return true;
    made = reallocarray(m->made, more, sizeof(*made));
    if (made == NULL)
        return m->n_made < m->room;
    m->made = made;
    m->room = more;
    return true;
}

/* As fork(2), but a child of our parent's, with a descriptor in @process. */
static pid_t
clone_sibling(int *process)
{
    return (pid_t)syscall(SYS_clone, (unsigned long)(CLONE_PARENT | CLONE_PIDFD | SIGCHLD), NULL, process, NULL, 0UL);
}

static pid_t
sibling(struct maker *m)
{
    int process = -1;
    pid_t pid;

    if (!has_place(m)) {
        errno = ENOMEM;
        return -1;
    }
    pid = clone_sibling(&process);
    if (pid < 0 && errno == EMFILE) {       /* of those that have ended */
        forget_ended(m);
        pid = clone_sibling(&process);
    }
    if (pid > 0)
        m->made[m->n_made++] = process;
    return pid;
}

/* Its launcher is gone. */
static void
see_them_end(struct maker *m)
{
    const struct timespec pause = { 0, 20000000 };
    uint64_t begun = clock_ms();

    for (forget_ended(m); m->n_made > 0 && clock_since(clock_ms(), begun) < MAKER_LEFT_MS; forget_ended(m))
        nanosleep(&pause, NULL);
    for (size_t i = 0; i < m->n_made; i++)
        (void)syscall(SYS_pidfd_send_signal, m->made[i], SIGKILL, NULL, 0);
}

static int
on_make(struct maker *m, const struct maker_wanted *w)
{
    struct edge_number said;
    pid_t pid;

    if (m->passed >= 0 || (w->program != MAKE_KEEPER && m->paths[w->program][0] == '\0'))
        return -1;
    errno = EMFILE;
    pid = m->no_place ? -1 : sibling(m);
    if (pid == 0)
        maker_begin(m, w);
    m->no_place = false;
    said.number = pid > 0 ? (uint32_t)pid : (uint32_t)errno;
    forget_given(m);
    return pid > 0 ? proto_send(FD_LAUNCHER, MAKER_MADE, MAKER_MADE_SHAPE(), &said, -1)
                   : proto_send(FD_LAUNCHER, MAKER_NOT_MADE, MAKER_NOT_MADE_SHAPE(), &said, -1);
}

#define HEARS(R) R(MAKER_GIVE, on_give, false, 1) R(MAKER_MAKE, on_make, false, 1)
PROTO_RULES(rules, HEARS)

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
    static struct maker m = { .given = { -1, -1, -1, -1 }, .passed = -1,
                              .gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 } };
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
    if (r == 0)
        see_them_end(&m);
    return r < 0 ? EXIT_REFUSED : 0;
}
