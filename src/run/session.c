/* run/session.c: see session.h
 *
 * One loop over the guest's transport, a signalfd, the command's streams where they are relayed, the network and the
 * vault. It polls, since a stream may be a file, which epoll does not take. The guest's word is shown, never trusted:
 * time, output and memory limits are kept here, and the end is process 1 killed and waited for by us, whatever it said
 * before.
 */
#include "run/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "program/say.h"
#include "program/tty.h"
#include "run/fallback.h"
#include "run/session_priv.h"

#define MEMORY_SAMPLE_US 100000
#define WAITING_MAX      (4UL * 1024 * 1024)    /* far above what one read of the transport can bring */

/* --- signals --------------------------------------------------------------------------------------------------- */

void
session_passed_signals(sigset_t *set)
{
    static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT };

    sigemptyset(set);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        sigaddset(set, passed[i]);
}

int
session_signals(struct signals *s, sigset_t *old, struct err *err)
{
    sigset_t set;

    session_passed_signals(&set);
    sigaddset(&set, SIGWINCH);
    if (sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL) < 0 ||
        signals_open(s, &set, old) < 0)
        return err_sys(err, errno, "cli.signals", "block signals");
    return 0;
}

static int
on_signal(struct live *l, struct err *err)
{
    struct signalfd_siginfo info;
    uint16_t rows, cols;

    while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int sig = (int)info.ssi_signo;
        if (sig == SIGWINCH) {
            if (l->s->io == SESSION_PTY && tty_size(STDIN_FILENO, &rows, &cols) == 0 &&
                guest_client_resize(l->client, l->channel, rows, cols, err) < 0)
                return -1;
            continue;
        }
        if (guest_client_signal(l->client, l->channel, sig, SIGNAL_GROUP, err) < 0)
            return -1;
        /* whoever ends cloche wants the sandbox ended: the command has the grace period to comply */
        if ((sig == SIGTERM || sig == SIGHUP) && l->kill_us == 0) {
            l->cancelled = true;
            l->kill_us = clock_us() + l->s->policy->limits.grace_ms.v * 1000;
        }
    }
    return 0;
}

/* --- time and memory --------------------------------------------------------------------------------------------- */

static int
on_time(struct live *l, struct err *err)
{
    uint64_t now = clock_us();

    if (l->deadline_us > 0 && now >= l->deadline_us) {
        l->deadline_us = 0;
        l->r->timed_out = true;
        l->kill_us = now + l->s->policy->limits.grace_ms.v * 1000;
        if (guest_client_kill_all(l->client, SIGTERM, err) < 0)
            return -1;
    }
    if (l->kill_us > 0 && now >= l->kill_us) {
        l->kill_us = 0;
        sandbox_kill(l->sb);
        l->closed = true;
    }
    if (run_audit_due(l->audit) > 0 && now >= run_audit_due(l->audit) && run_audit_write(l->audit, err) < 0)
        return -1;
    if (!l->closed && now >= l->sample_us) {
        l->sample_us = now + MEMORY_SAMPLE_US;
        vault_look(l);
        l->memory = l->memory || sandbox_over_memory(l->sb);
    }
    if (l->memory && !l->closed) {
        sandbox_kill(l->sb);
        l->closed = true;
    }
    return 0;
}

static int
poll_timeout(const struct live *l)
{
    uint64_t now = clock_us(), next = UINT64_MAX;

    if (l->deadline_us > 0)
        next = l->deadline_us;
    if (l->kill_us > 0 && l->kill_us < next)
        next = l->kill_us;
    if ((sandbox_facts(l->sb)->look_at_memory || vault_fd(l) >= 0) && l->sample_us < next)
        next = l->sample_us;
    if (run_audit_due(l->audit) > 0 && run_audit_due(l->audit) < next)
        next = run_audit_due(l->audit);
    if (next == UINT64_MAX)
        return -1;
    return next <= now ? 0 : (int)((next - now + 999) / 1000 > 60000 ? 60000 : (next - now + 999) / 1000);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

/* What is polled; of two streams the first. */
enum { AT_GUEST, AT_SIGNALS, AT_STDIN, AT_COPIES, AT_FEED = AT_COPIES + 2, AT_WAITING, AT_NET = AT_WAITING + 2,
       AT_VAULT, AT_MAX };

static int
step(struct live *l, struct err *err)
{
    /* while a reader does not take what is there, the guest is not asked for more; everything else goes on */
    struct pollfd fds[AT_MAX] = {
        [AT_GUEST] = { .fd = session_output_waits(l) ? -1 : l->transport,
                       .events = guest_client_poll_events(l->client) },
        [AT_SIGNALS] = { .fd = l->signals, .events = POLLIN },
        [AT_STDIN] = { .fd = -1, .events = POLLIN },
        [AT_COPIES] = { .fd = l->copies[0].from, .events = POLLIN },
        [AT_COPIES + 1] = { .fd = l->copies[1].from, .events = POLLIN },
        [AT_FEED] = { .fd = l->feed, .events = POLLOUT },
        [AT_WAITING] = { .fd = l->waiting[0].n > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
        [AT_WAITING + 1] = { .fd = l->waiting[1].n > 0 ? STDERR_FILENO : -1, .events = POLLOUT },
        [AT_NET] = { .fd = net_fd(l->net), .events = POLLIN },
        [AT_VAULT] = { .fd = vault_fd(l), .events = POLLIN },
    };

    if (l->relay && !l->in_eof && l->in_at == l->in_n && guest_client_stdin_room(l->client, l->channel) > 0)
        fds[AT_STDIN].fd = STDIN_FILENO;
    if (poll(fds, AT_MAX, poll_timeout(l)) < 0 && errno != EINTR)
        return err_sys(err, errno, "cli.poll", "poll");
    if ((fds[AT_SIGNALS].revents & POLLIN) && on_signal(l, err) < 0)
        return -1;
    if (fds[AT_GUEST].revents != 0 && guest_client_pump(l->client, err) < 0)
        return -1;
    if (session_take_events(l, err) < 0)
        return -1;
    if (fds[AT_NET].revents != 0)
        net_turn(l->net);
    if (fds[AT_VAULT].revents != 0)
        vault_look(l);
    if (fds[AT_STDIN].revents != 0) {
        ssize_t n;
        if (l->in == NULL && (l->in = malloc(STDIN_CHUNK)) == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        n = read(STDIN_FILENO, l->in, STDIN_CHUNK);
        if (n > 0) {
            l->in_n = (size_t)n;
            l->in_at = 0;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            l->in_eof = true;
        }
    }
    if (l->relay && session_feed_stdin(l, err) < 0)
        return -1;
    for (size_t i = 0; i < 2; i++)
        if (fds[AT_COPIES + i].revents != 0 && pass_copy(&l->copies[i], err) < 0)
            return -1;
    if (fds[AT_FEED].revents != 0 && pass_feed(l) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = 0; i < 2; i++)
        if (fds[AT_WAITING + i].revents != 0 && session_flush(l, i, err) < 0)
            return -1;
    return on_time(l, err);
}

/* The sandbox is gone; what it wrote goes to whoever reads it, until cloche itself is told to end. */
static int
flush_rest(struct live *l, struct err *err)
{
    while (session_output_waits(l)) {
        struct pollfd fds[3] = {
            { .fd = l->signals, .events = POLLIN },
            { .fd = l->waiting[0].n > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
            { .fd = l->waiting[1].n > 0 ? STDERR_FILENO : -1, .events = POLLOUT },
        };
        struct signalfd_siginfo info;
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return err_sys(err, errno, "cli.poll", "poll");
        if (session_flush(l, 0, err) < 0 || session_flush(l, 1, err) < 0)
            return -1;
        if (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_signo != SIGWINCH &&
            info.ssi_signo != SIGCONT)
            return 0;
    }
    return 0;
}

static void
conclude(struct live *l)
{
    struct session_result *r = l->r;

    sandbox_end(l->sb);
    guest_client_free(l->client);       /* while it dies */
    l->client = NULL;
    sandbox_kill(l->sb);
    sandbox_usage(l->sb, &r->usage);
    r->oom_killed = l->memory || (r->usage.oom_kills > 0 && (!l->ended || r->signal == SIGKILL));
    if (r->timed_out)
        r->reason = REASON_TIMEOUT;
    else if (r->oom_killed)
        r->reason = REASON_MEMORY;
    else if (l->cancelled)
        r->reason = REASON_CANCELLED;
    else
        r->reason = r->signal != 0 ? REASON_SIGNALED : REASON_EXITED;
    if (!l->ended) {
        r->signal = SIGKILL;
        r->exit_code = -1;
    }
}

static int
loop(struct live *l, struct err *err)
{
    while (!l->ended && !l->closed)
        if (step(l, err) < 0)
            return -1;
    if (!l->ended && !l->r->timed_out && !l->memory && !l->cancelled) {
        /* the guest went away: the wall was never finished, or everything inside was killed for memory */
        struct sandbox_usage usage;
        if (sandbox_setup_failed(l->sb, err) < 0) {
            l->sent = false;    /* it waits with the guest, which never was: nothing of the command ran */
            return -1;
        }
        sandbox_usage(l->sb, &usage);
        if (usage.oom_kills == 0)
            return sandbox_gone(l->sb, err);
    }
    return 0;
}

static int
supervise(struct live *l, struct err *err)
{
    struct tty_state tty = { .raw = false };
    uint64_t begin = clock_us();
    int r;

    if (vault_start(l, err) < 0 || session_open(l, err) < 0)
        return -1;
    l->r->setup_us = clock_us() - begin;
    l->sample_us = clock_us() + MEMORY_SAMPLE_US;
    if (l->s->io == SESSION_PTY && tty_raw(&tty, STDIN_FILENO, err) < 0)
        return -1;
    r = loop(l, err);
    tty_restore(&tty);
    if (r == 0) {
        conclude(l);
        r = pass_drain(l, err) < 0 ? -1 : flush_rest(l, err);
        l->r->duration_us = clock_us() - begin;
    }
    return r;
}

static int
run_directly(const struct session *s, const char *why, struct session_result *r, struct run_audit *audit,
             struct err *err)
{
    return run_audit_off(audit, s, why, err) < 0 ? -1 : direct_run(s, why, r, err);
}

/* In the modes that have a wall. @nothing: nothing of the command has happened, and its input is as it was. */
static int
run_walled(const struct session *s, struct session_result *r, struct run_audit *audit, bool *nothing, struct err *err)
{
    struct live l = { .s = s, .asked = s, .r = r, .audit = audit,
                      .signals = -1, .copies = { { -1, -1 }, { -1, -1 } }, .feed = -1,
                      .vault_for_egress = -1,
                      .waiting = { BUF_INIT(WAITING_MAX), BUF_INIT(WAITING_MAX) } };
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    struct signals signals = { .watch = WATCH_INIT };
    sigset_t old;
    int result;

    *nothing = true;
    if (session_signals(&signals, &old, err) < 0)
        return -1;
    l.signals = signals.watch.fd;
    result = supervise(&l, err);
    net_stop(l.net);
    close_fd(&l.copies[0].from);
    close_fd(&l.copies[1].from);
    guest_client_free(l.client);
    free(l.in);
    close_fd(&l.feed);
    buf_free(&l.waiting[0]);
    buf_free(&l.waiting[1]);
    r->ran = l.sent;
    *nothing = !l.sent && (l.in_n == 0 || (at >= 0 && lseek(STDIN_FILENO, at, SEEK_SET) == at));
    if (l.sb != NULL && result < 0 && !l.sent)
        sandbox_abandon(l.sb);
    if (l.sb != NULL)
        sandbox_destroy(l.sb);
    vault_stop(&l);
    close(l.signals);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}

/* The walls in their order, each only where the host lacks the one before. */
static int
run(const struct session *s, struct session_result *r, struct run_audit *audit, struct err *err)
{
    enum fallback_kind fallback = s->policy->fallback.v;
    struct session light = *s;
    char why[256] = "";
    bool nothing;
    int result, weaker;

    if (s->policy->mode.v == MODE_OFF)
        return run_directly(s, "mode off", r, audit, err);
    result = run_walled(s, r, audit, &nothing, err);
    if (result == 0 || fallback == FALLBACK_REFUSE || !nothing || !fallback_lacks(s->policy, err, why))
        return result;
    weaker = fallback_light(s, r, why, err);
    if (weaker < 0)
        return -1;
    light.policy = &r->weaker;
    if (weaker > 0) {
        result = run_walled(&light, r, audit, &nothing, err);
        if (result == 0 || !nothing || !fallback_lacks(light.policy, err, why))
            return result;
    }
    return fallback == FALLBACK_BARE ? run_directly(s, why, r, audit, err) : -1;
}

int
session_run(const struct session *s, struct session_result *r, struct err *err)
{
    struct run_audit *audit = NULL;
    int result;

    r->engine = engine_name(s->policy);
    r->exit_code = -1;
    r->out.max = r->err.max = SESSION_CAPTURE_MAX;
    clock_gettime(CLOCK_REALTIME, &r->started);
    if (run_audit_open(s, r, &audit, err) < 0)
        return -1;
    result = run(s, r, audit, err);
    return run_audit_end(audit, s, r, result, err, err) < 0 ? -1 : result;
}

void
session_result_free(struct session_result *r)
{
    buf_free(&r->out);
    buf_free(&r->err);
    policy_free(&r->weaker);
}

int
session_exit_code(const struct session_result *r)
{
    if (r->reason == REASON_TIMEOUT)
        return EXIT_TIMED_OUT;
    return r->signal != 0 ? 128 + r->signal : r->exit_code;
}
