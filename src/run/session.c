/* run/session.c: see session.h
 *
 * One loop over the network, signals, the guest's transport, the vault, and the command's streams where they are
 * relayed, in this order. It polls, since a stream may be a file, which epoll does not take. The guest's word is shown,
 * never trusted: time, output and memory limits are kept here, and the end is process 1 killed and waited for by us,
 * whatever it said before.
 */
#include "run/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "program/say.h"
#include "program/tty.h"
#include "run/fallback.h"
#include "run/git_keep.h"
#include "run/session_priv.h"

#define SAMPLE_MS   100
#define WAITING_MAX (4UL * 1024 * 1024)    /* far above what one read of the transport can bring */

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
        return err_sys(err, errno, "cli.signals", "block signals (signalfd)");
    return 0;
}

/* The command has the grace period to comply. */
static void
kill_later(struct live *l)
{
    loop_at(l->loop, &l->killing, clock_ms() + l->s->policy->limits.grace_ms.v);
}

static void
on_signal(struct signals *s, int number)
{
    struct live *l = s->watch.owner;
    uint16_t rows, cols;

    if (number == SIGWINCH) {
        if (l->s->io == SESSION_PTY && tty_size(STDIN_FILENO, &rows, &cols) == 0)
            loop_done(l->loop, guest_client_resize(l->client, l->channel, rows, cols, l->err));
        return;
    }
    if (guest_client_signal(l->client, l->channel, number, SIGNAL_GROUP, l->err) < 0)
        return loop_done(l->loop, -1);
    /* whoever ends cloche wants the sandbox ended */
    if (number == SIGTERM || number == SIGHUP) {
        l->cancelled = l->cancelled || !l->r->timed_out;
        if (l->killing.at_ms == 0)
            kill_later(l);
    } else if (number == SIGINT && l->killing.at_ms == 0 && sandbox_guest(l->sb) < 0) {
        kill_later(l);      /* nobody is there whom it could be told; a runtime may hang */
    }
}

/* --- time and memory --------------------------------------------------------------------------------------------- */

static void
kill_now(struct live *l)
{
    sandbox_kill(l->sb);
    l->closed = true;
}

static void
on_deadline(struct timer *t)
{
    struct live *l = t->owner;

    l->r->timed_out = true;
    kill_later(l);
    loop_done(l->loop, guest_client_kill_all(l->client, SIGTERM, l->err));
}

static void
on_killing(struct timer *t)
{
    struct live *l = t->owner;

    if (!l->cancelled && !l->r->timed_out && sandbox_guest(l->sb) >= 0)
        return;             /* the guest came meanwhile, and has told the command */
    l->cancelled = !l->r->timed_out;
    kill_now(l);
}

static void
on_record(struct timer *t)
{
    struct live *l = t->owner;

    loop_done(l->loop, run_audit_write(l->audit, l->err));
}

static void
sample_later(struct live *l)
{
    if (sandbox_facts(l->sb)->look_at_memory || vault_fd(l) >= 0)
        loop_at(l->loop, &l->sample, clock_ms() + SAMPLE_MS);
}

static void
on_sample(struct timer *t)
{
    struct live *l = t->owner;

    if (l->closed)
        return;
    vault_look(l);
    l->memory = l->memory || sandbox_over_memory(l->sb);
    sample_later(l);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

static void
on_guest(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;

    (void)events;
    loop_done(l->loop, guest_client_pump(l->client, l->err) < 0 || session_take_events(l, l->err) < 0 ||
                       (l->relay && session_feed_stdin(l, l->err) < 0) ? -1 : 0);
}

static void
on_vault(struct watch *w, uint32_t events)
{
    (void)events;
    vault_look(w->owner);
}

static void
on_stdin(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;
    ssize_t n;

    (void)events;
    if (l->in == NULL && (l->in = malloc(STDIN_CHUNK)) == NULL)
        return loop_done(l->loop, err_set(l->err, ERR_SYSTEM, "memory", "out of memory"));
    n = read(w->fd, l->in, STDIN_CHUNK);
    if (n > 0) {
        l->in_n = (size_t)n;
        l->in_at = 0;
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        l->in_eof = true;
    }
    loop_done(l->loop, session_feed_stdin(l, l->err));
}

static void
on_copy(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;

    (void)events;
    loop_done(l->loop, pass_copy(&l->copies[w - l->copying], l->err));
}

static void
on_feed(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;

    (void)events;
    if (pass_feed(l) < 0)
        loop_done(l->loop, err_set(l->err, ERR_SYSTEM, "memory", "out of memory"));
}

static void
on_output(struct watch *w, uint32_t events)
{
    struct live *l = w->owner;

    (void)events;
    loop_done(l->loop, session_flush(l, (size_t)(w - l->outputs), l->err));
}

static void
look_at_outputs(struct live *l)
{
    for (size_t i = 0; i < 2; i++)
        (void)loop_watch(l->loop, &l->outputs[i], l->waiting[i].n > 0 ? EPOLLOUT : 0);
}

/* What is waited for now. While a reader does not take what is there, the guest is not asked for more; everything else
 * goes on. */
static void
look(struct live *l)
{
    bool more = l->relay && !l->in_eof && l->in_at == l->in_n &&
                guest_client_stdin_room(l->client, l->channel) > 0;
    uint64_t due = run_audit_due(l->audit);

    (void)loop_watch(l->loop, &l->signals.watch, EPOLLIN);
    (void)loop_look(l->loop, &l->guest, l->transport,
                    session_output_waits(l) ? 0 : (uint32_t)guest_client_poll_events(l->client));
    (void)loop_look(l->loop, &l->vault_end, vault_fd(l), EPOLLIN);
    (void)loop_watch(l->loop, &l->input, more ? EPOLLIN : 0);
    for (size_t i = 0; i < 2; i++)
        (void)loop_look(l->loop, &l->copying[i], l->copies[i].from, EPOLLIN);
    (void)loop_look(l->loop, &l->feeding, l->feed, EPOLLOUT);
    look_at_outputs(l);
    loop_at(l->loop, &l->record, (due + 999) / 1000);
    net_arm(l->net);
    publish_look(l);
}

static int
step(struct live *l)
{
    look(l);
    if (loop_round(l->loop, -1, l->err) < 0)
        return -1;
    if (l->memory && !l->closed)
        kill_now(l);
    return 0;
}

/* Who ends us at the end waits for nobody's reading. */
static void
on_last_signal(struct signals *s, int number)
{
    struct live *l = s->watch.owner;

    if (number == SIGWINCH || number == SIGCONT)
        return;
    buf_reset(&l->waiting[0]);
    buf_reset(&l->waiting[1]);
}

/* The sandbox is gone; what it wrote goes to whoever reads it, until cloche itself is told to end. Nothing else is
 * waited for any more. */
static int
flush_rest(struct live *l)
{
    struct loop rest, *whole = l->loop;
    int fd = loop_forget(whole, &l->signals.watch), r = 0;

    for (size_t i = 0; i < 2; i++)
        (void)loop_watch(whole, &l->outputs[i], 0);
    loop_init_polled(&rest);
    l->loop = &rest;
    l->signals.came = on_last_signal;
    (void)loop_look(&rest, &l->signals.watch, fd, EPOLLIN);
    while (session_output_waits(l) && r >= 0) {
        look_at_outputs(l);
        r = loop_round(&rest, -1, l->err);
    }
    (void)loop_watch(&rest, &l->signals.watch, 0);
    l->loop = whole;
    return r < 0 ? -1 : 0;
}

static void
conclude(struct live *l)
{
    struct session_result *r = l->r;

    sandbox_end(l->sb);
    guest_client_free(l->client);       /* while it dies */
    l->client = NULL;
    sandbox_kill(l->sb);
    /* a limit on the size of files is an error there, not our end with the lock held */
    (void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    git_keep(l->sb, r, !l->s->quiet);
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
    if (session_take_events(l, err) < 0)
        return -1;
    while (!l->ended && !l->closed)
        if (step(l) < 0)
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

    if (publish_open(l, err) < 0 || vault_start(l, err) < 0 || session_open(l, err) < 0)
        return -1;
    publish_say(l);
    l->r->setup_us = clock_us() - begin;
    sample_later(l);
    if (l->s->io == SESSION_PTY && tty_raw(&tty, STDIN_FILENO, err) < 0)
        return -1;
    r = loop(l, err);
    tty_restore(&tty);
    publish_stop(l);
    if (r == 0) {
        conclude(l);
        r = pass_drain(l, err) < 0 ? -1 : flush_rest(l);
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
    struct loop loop;
    struct live l = { .s = s, .asked = s, .r = r, .audit = audit, .loop = &loop, .err = err,
                      .signals = { .watch = { .fd = -1, .owner = &l }, .came = on_signal },
                      .guest = { .fd = -1, .ready = on_guest, .owner = &l },
                      .vault_end = { .fd = -1, .ready = on_vault, .owner = &l },
                      .input = { .fd = STDIN_FILENO, .ready = on_stdin, .owner = &l },
                      .copying = { { .fd = -1, .ready = on_copy, .owner = &l },
                                   { .fd = -1, .ready = on_copy, .owner = &l } },
                      .feeding = { .fd = -1, .ready = on_feed, .owner = &l },
                      .outputs = { { .fd = STDOUT_FILENO, .ready = on_output, .owner = &l },
                                   { .fd = STDERR_FILENO, .ready = on_output, .owner = &l } },
                      .deadline = { .due = on_deadline, .owner = &l }, .killing = { .due = on_killing, .owner = &l },
                      .sample = { .due = on_sample, .owner = &l }, .record = { .due = on_record, .owner = &l },
                      .copies = { { -1, -1 }, { -1, -1 } }, .feed = -1, .vault_for_egress = -1,
                      .waiting = { BUF_INIT(WAITING_MAX), BUF_INIT(WAITING_MAX) } };
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    sigset_t old;
    int result;

    *nothing = true;
    if (session_signals(&l.signals, &old, err) < 0)
        return -1;
    loop_init_polled(&loop);
    result = supervise(&l, err);
    net_stop(l.net);
    publish_stop(&l);
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
    close(l.signals.watch.fd);
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
