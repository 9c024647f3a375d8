/* launcher/launcher_pulse.c: whether the daemon's processes still answer
 *
 * A process that hangs (stopped, in an endless loop, on a disk that answers nothing) closes no socket, so nobody would
 * notice. The warden and the fronts are asked at each beat; who owes an answer for some beats is told to go on, which
 * one that was stopped does (SIGCONT, signal(7)), and is killed when that was no help. Its end is then noticed as any
 * other. Beats are counted and not time: while this process was stopped itself, nobody was late.
 *
 * Who is not asked from here:
 *     scribe      the warden says when entries were not written for too long (EDGE_SCRIBE_LATE)
 *     keepers     the warden asks them (warden/health.c), and says whom to kill
 *     maker       is only looked at while it owes an answer (launcher_start.c)
 *     webhook, otlp   nothing waits for them
 *     signer      requests to sign wait for it, and nothing else
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "launcher/launcher.h"

#define BEAT_MS       2000
#define BEATS_WAKE    1         /* an answer owed for so many: told to go on, */
#define BEATS_KILL    5         /* and killed; */
#define BEATS_START   30        /* one that is starting, which may have a record to mend */
#define KILLED_MS     5000      /* for the kernel to end what was killed */
#define SCRIBE_TURN_MS 10000    /* the warden says each four seconds that it waits for the scribe */
#define BEATS_END     2         /* the warden at the daemon's end: it is not waited for any more */

/* One beat of the process @pid. */
static void
beat(struct launcher *l, struct pulse *p, pid_t pid, const char *name, unsigned kill_after, struct watch *edge,
     struct packet_queue *out)
{
    if (pid <= 0)       /* kill(2) would take that for many */
        return;
    if (!p->owed) {
        /* one that is gone is noticed where it is read */
        p->owed = launcher_queue(l, edge, out, EDGE_PING, EDGE_PING_SHAPE(), NULL, -1) == 0;
        p->beats = 0;
        return;
    }
    p->beats++;
    if (p->beats == BEATS_WAKE) {
        log_say(LEVEL_WARN, "%s does not answer", name);
        kill(pid, SIGCONT);
    } else if (p->beats == kill_after) {
        log_say(LEVEL_ERROR, "%s does not answer for %d seconds: it is killed", name,
                (int)kill_after * BEAT_MS / 1000);
        kill(pid, SIGKILL);
    }
}

/* Of all: after all that was said has been heard. */
static void
on_beat(struct timer *t)
{
    struct launcher *l = t->owner;

    loop_at(&l->loop, t, clock_ms() + BEAT_MS);
    if (l->watchdog)
        launcher_notify(l, "WATCHDOG=1");
    if (l->warden.fd >= 0)
        beat(l, &l->pulse, l->warden_pid, "cloche-warden", l->ready ? BEATS_KILL : BEATS_START, &l->warden,
             &l->to_warden);
    for (enum which_front which = 0; which < FRONTS; which++) {
        struct front_end *front = &l->fronts[which];
        if (front->door.fd >= 0)
            beat(l, &front->pulse, front->pid, "cloche-front", BEATS_KILL, &front->door, &front->out);
        if (front->adapter.door.fd >= 0)
            beat(l, &front->adapter.pulse, front->adapter.pid, "cloche-adapter", BEATS_KILL, &front->adapter.door,
                 &front->adapter.out);
    }
    if (l->ending && l->pulse.beats >= BEATS_END)
        l->quiet = true;
    maker_time(l);
    reap_orphans(l);
}

void
pulse_begin(struct launcher *l)
{
    l->beat = (struct timer){ .due = on_beat, .owner = l };
    loop_at(&l->loop, &l->beat, clock_ms());
}

void
pulse_heard(struct pulse *p)
{
    *p = (struct pulse){ .owed = false };
}

/* For systemd, where a unit has WatchdogSec= (sd_watchdog_enabled(3)). */
void
pulse_open(struct launcher *l)
{
    l->watchdog = getenv("WATCHDOG_USEC") != NULL;
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* One that was stopped would not hear that it is to end. */
void
pulse_wake_all(struct launcher *l)
{
    const pid_t others[] = { l->warden_pid, l->maker.pid, l->fronts[FRONT_OWNER].pid, l->fronts[FRONT_STRANGERS].pid,
                             l->fronts[FRONT_OWNER].adapter.pid, l->fronts[FRONT_STRANGERS].adapter.pid };

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (others[i] > 0)
            kill(others[i], SIGCONT);
    for (enum which_lesser which = 0; which < LESSERS; which++)
        if (l->lessers[which].pid > 0)
            kill(l->lessers[which].pid, SIGCONT);
    for (size_t i = 0; i < SCRIBES_MAX; i++)
        if (l->scribes[i] > 0)
            kill(l->scribes[i], SIGCONT);
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        kill(k->pid, SIGCONT);
}

/* The warden says it again and again, for as long as it is so. */
int
pulse_scribe_late(struct launcher *l, const struct nothing *m)
{
    const uint64_t before = l->scribe_late_ms;

    (void)m;
    if (l->scribes[0] <= 0)
        return 0;
    l->scribe_late_ms = clock_ms();
    if (clock_since(l->scribe_late_ms, before) >= SCRIBE_TURN_MS)
        l->scribe_late = 0;     /* it has answered meanwhile */
    if (++l->scribe_late < BEATS_KILL) {
        log_say(LEVEL_WARN, "cloche-scribe does not answer");
        kill(l->scribes[0], SIGCONT);
        return 0;
    }
    log_say(LEVEL_ERROR, "cloche-scribe does not answer: it is killed");
    kill(l->scribes[0], SIGKILL);
    return 0;
}

/* When that is no help the warden has it killed. */
int
pulse_keeper_late(struct launcher *l, const struct edge_only_id *late)
{
    for (const struct keeper *k = l->keepers; k != NULL; k = k->next)
        if (strcmp(k->id, late->id) == 0)
            kill(k->pid, SIGCONT);
    return 0;
}

/* --- bounded ends ------------------------------------------------------------------------------------------------- */

/* Whether it has ended within so much time. */
static bool
has_ended(pid_t pid, uint64_t ms)
{
    const struct timespec pause = { 0, 2000000 };
    uint64_t begun = clock_ms();

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_since(clock_ms(), begun) >= ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

void
end_process(pid_t *pid, uint64_t ms)
{
    if (*pid > 0 && (ms == 0 || !has_ended(*pid, ms))) {
        kill(*pid, SIGKILL);
        (void)has_ended(*pid, KILLED_MS);
    }
    *pid = 0;
}
