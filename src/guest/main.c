/* guest/main.c: cloche-guest starts, and its loop (see guest.h) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/changes.h"
#include "guest/filter.h"
#include "guest/guard_link.h"
#include "guest/guest.h"
#include "guest/handed.h"
#include "guest/signals.h"

#define HUNG_RETRY_MS 50
#define SETTLE_MS     10        /* between two looks at files that are judged when they are complete */

static struct guest guest;      /* the whole state; .bss, so that start-up touches only what it uses */

/* Everything above the transport is closed, whoever left it open. */
static void
close_not_given(void)
{
    struct rlimit limit;

    if (syscall(SYS_close_range, GUEST_TRANSPORT_FD + 1, ~0U, 0) == 0)
        return;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > 65536)
        limit.rlim_max = 65536;
    for (int fd = GUEST_TRANSPORT_FD + 1; fd < (int)limit.rlim_max; fd++)
        (void)close(fd);
}

/* No file, nor a handler of the host's for what crashes inside (wall/rlimit.c), which a limit of 0 would not spare. */
static int
no_core(void)
{
    struct rlimit core;

    if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max <= 1)
        return 0;
    core = (struct rlimit){ .rlim_cur = 1, .rlim_max = 1 };
    return setrlimit(RLIMIT_CORE, &core);
}

/* Nobody beside us may look into us; nothing dumps core; 0, 1, 2 are taken, so that no descriptor of ours can
 * ever land there. */
static int
secure(void)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -1;
    close_not_given();
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC) != fd)
            return -1;
    if (fcntl(GUEST_TRANSPORT_FD, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    return no_core();
}

/* What one pollfd stands for. */
struct waiter {
    enum { WAIT_LINK, WAIT_STDIN, WAIT_OUTPUT, WAIT_ORPHAN, WAIT_GUARD, WAIT_CHANGES } what;
    uint16_t index;
    uint8_t stream;
};

#define WAITERS_MAX (1 + MSG_EXECS_MAX * 3 + GUEST_ORPHANS_MAX + GUARD_LISTENERS_MAX + MSG_WATCHES_MAX)

static struct pollfd polls[WAITERS_MAX];
static struct waiter waiters[WAITERS_MAX];

static nfds_t
add_waiter(nfds_t n, int fd, short events, struct waiter w)
{
    polls[n] = (struct pollfd){ .fd = fd, .events = events };
    waiters[n] = w;
    return n + 1;
}

static nfds_t
collect(const struct guest *g)
{
    short link_events = (short)(POLLIN | (link_pending(&g->link) ? POLLOUT : 0));
    nfds_t n = add_waiter(0, g->link.fd, link_events, (struct waiter){ WAIT_LINK, 0, 0 });

    for (uint16_t i = 0, left = (uint16_t)g->n_execs; left > 0 && i < MSG_EXECS_MAX; i++) {
        const struct guest_exec *e = &g->execs[i];

        if (e->channel == 0)
            continue;
        left--;
        if (e->in_fd >= 0 && (e->connecting || e->in.n > 0))
            n = add_waiter(n, e->in_fd, POLLOUT, (struct waiter){ WAIT_STDIN, i, 0 });
        for (uint8_t k = 0; k < 2; k++)
            if (!e->exited && relay_wants_output(g, e, k))
                n = add_waiter(n, e->out[k].fd, POLLIN, (struct waiter){ WAIT_OUTPUT, i, k });
    }
    for (size_t i = 0; i < g->n_orphans; i++)
        n = add_waiter(n, g->orphans[i], POLLIN, (struct waiter){ WAIT_ORPHAN, (uint16_t)i, 0 });
    for (size_t i = 0; i < g->n_listeners; i++)
        n = add_waiter(n, g->listeners[i], POLLIN, (struct waiter){ WAIT_GUARD, (uint16_t)i, 0 });
    for (size_t i = 0; g->n_changes > 0 && i < MSG_WATCHES_MAX; i++)
        if (g->changes[i] != NULL && changes_wants(g, g->changes[i]))
            n = add_waiter(n, g->changes[i]->fd, POLLIN, (struct waiter){ WAIT_CHANGES, (uint16_t)i, 0 });
    return n;
}

static int
serve_exec(struct guest *g, const struct waiter *w)
{
    struct guest_exec *e = &g->execs[w->index];

    if (w->what == WAIT_STDIN)
        return e->connecting ? connect_ready(g, e) : relay_stdin(g, e);
    /* An earlier waiter of this round may have filled the transport. */
    return relay_wants_output(g, e, w->stream) ? relay_output(g, e, w->stream) : 0;
}

/* Backwards: serving an orphan or a listener may move the last one into its place. */
static int
serve(struct guest *g, nfds_t n)
{
    for (nfds_t i = n; i-- > 0;) {
        const struct waiter *w = &waiters[i];
        int rc = 0;

        if (polls[i].revents == 0)
            continue;
        switch (w->what) {
        case WAIT_LINK: rc = link_read(&g->link) < 0 ? -1 : 0; break;
        case WAIT_STDIN:
        case WAIT_OUTPUT: rc = serve_exec(g, w); break;
        case WAIT_ORPHAN: relay_orphan(g, w->index); break;
        case WAIT_GUARD: rc = guard_link_serve(g, w->index, polls[i].revents); break;
        case WAIT_CHANGES: rc = changes_read(g, g->changes[w->index]); break;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

static void
serve_signals(struct guest *g)
{
    uint64_t came = signals_take();

    if (came == 0)
        return;
    for (int signo = 1; signo < 32; signo++)
        if ((came >> signo & 1) != 0 && signo != SIGCHLD && signo != SIGPIPE && signo != SIGXFSZ && signo != SIGIO)
            reap_forward(g, signo);
    if ((came >> SIGIO & 1) != 0)
        guard_link_lease_broken(g);
    if ((came >> SIGCHLD & 1) != 0)
        reap_children(g);
}

static int
finish_ended(struct guest *g)
{
    for (size_t i = 0; g->n_ended > 0 && i < MSG_EXECS_MAX; i++)
        if (g->execs[i].channel != 0 && g->execs[i].exited && relay_finish(g, &g->execs[i]) < 0)
            return -1;
    return 0;
}

/* Milliseconds to sleep at most; -1: until something happens. */
static int
patience(struct guest *g)
{
    int ms = watch_step(g), pair = changes_patience(g);

    if ((files_busy(g) && !link_full(&g->link)) || pair == 0)
        return 0;
    if (pair > 0 && (ms < 0 || ms > pair))
        ms = pair;
    if (guard_link_settle(g) && (ms < 0 || ms > SETTLE_MS))
        ms = SETTLE_MS;
    return g->any_hung && (ms < 0 || ms > HUNG_RETRY_MS) ? HUNG_RETRY_MS : ms;
}

static int
wait_for(struct guest *g, nfds_t n, int ms)
{
    struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

    int ready = ppoll(polls, n, ms < 0 ? NULL : &ts, signals_open_mask());

    if (g->any_hung)
        relay_retry_hung(g);
    if (ready < 0) {
        /* Interrupted: nobody's answer is known this round. */
        for (nfds_t i = 0; i < n; i++)
            polls[i].revents = 0;
        return errno == EINTR ? 0 : -1;
    }
    return 0;
}

/* One round: what was read is acted on, what is due is done, what waits is sent; then sleep. */
static int
run(struct guest *g)
{
    int code = GUEST_EXIT_SYSTEM;

    if (link_read(&g->link) < 0)
        return code;
    for (;;) {
        nfds_t n;
        bool full;
        int ms;

        if (guest_dispatch(g, &code) < 0)
            return code;
        if (g->link.eof)
            return GUEST_EXIT_DONE;
        serve_signals(g);
        if (finish_ended(g) < 0 || (files_busy(g) && !link_full(&g->link) && files_step(g) < 0) ||
            changes_step(g) < 0)
            return GUEST_EXIT_SYSTEM;
        ms = patience(g);
        full = link_full(&g->link);
        /* a host that went away while something was on its way to it is an end like any other */
        if (link_pending(&g->link) && link_flush(&g->link) < 0)
            return errno == EPIPE || errno == ECONNRESET ? GUEST_EXIT_DONE : GUEST_EXIT_SYSTEM;
        if (g->leaving && !link_pending(&g->link))
            return GUEST_EXIT_DONE;
        /* What stopped because of that can go on, and nothing else would wake us for it. */
        if (full && !link_full(&g->link))
            continue;
        n = collect(g);
        if (wait_for(g, n, ms) < 0 || serve(g, n) < 0)
            return GUEST_EXIT_SYSTEM;
    }
}

/* Who was started by a runtime or a daemon: the working directory, its filter, and what it was not given. */
static int
begin(int argc, char **argv)
{
    bool handed = argc > 3;     /* the transport comes when the rest of the sandbox is there, the directory with it */

    if (no_core() < 0)          /* under the filter nothing changes it any more */
        return GUEST_EXIT_SETUP;
    if (handed && handed_connect(argv[3]) < 0)
        return GUEST_EXIT_SETUP;
    if (argc == 3 && chdir(argv[2]) < 0)
        return GUEST_EXIT_WORKDIR;
    if (argc > 1 && argv[1][0] != '\0' && filter_install(argv[1]) < 0)
        return GUEST_EXIT_SETUP;
    return handed ? handed_take() : 0;
}

int
main(int argc, char **argv)
{
    struct guest *g = &guest;
    struct msg_hello hello = { .version = GUEST_PROTOCOL_VERSION };
    int code;

    code = begin(argc, argv);
    if (code != 0)
        return code;
    if (secure() < 0 || signals_init() < 0)
        return GUEST_EXIT_SETUP;
    g->root = -1;
    g->childless = true;
    hello.pid = (uint32_t)getpid();
    g->pid1 = hello.pid == 1;
    hello.flags = g->pid1 ? MSG_HELLO_PID1 : 0;
    link_init(&g->link, GUEST_TRANSPORT_FD);
    guest_gate_init(&g->gate);
    if (msg_put_hello(&g->link.out, &hello) < 0)
        return GUEST_EXIT_SYSTEM;
    code = run(g);
    reap_end_all(g);
    _exit(code);
}
