/* launcher/launcher.c: the launcher's loop (see serve.h)
 *
 * What it is told has a handful of forms and no length worth mentioning; what it does is have processes started
 * (maker.h), pass sockets between them, and notice their end.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/engine.h"
#include "program/peer.h"
#include "program/state.h"
#include "wall/cgroup.h"

#define AT_ONCE     64
#define PATIENCE_MS 20000   /* for all sandboxes to end */
#define KILL_MS     2000    /* for sandboxes to end in order after the kill switch */
#define MORE_MS     20
#define SPARE_FILES 128
#define WARDEN_MS   5000    /* for the warden to write what it knows */

/* --- what the warden says ----------------------------------------------------------------------------------------- */

static int
on_spawn(struct launcher *l, const struct edge_only_id *m)
{
    struct launch_not_spawned no = { .why = ERR_INIT };
    int edge;

    if (l->ending || start_keeper(l, m->id, &edge, &no.why) < 0) {
        if (no.why.kind == ERR_NONE)
            err_set(&no.why, ERR_DENIED, "serve.closing", "cloche serve is ending");
        memcpy(no.id, m->id, sizeof(no.id));
        (void)launcher_send(l, EDGE_NOT_SPAWNED, EDGE_NOT_SPAWNED_SHAPE(), &no, -1);
        return 0;
    }
    (void)launcher_say(l, EDGE_SPAWNED, m->id, edge);
    return 0;
}

static int
on_shoot(struct launcher *l, const struct edge_only_id *m)
{
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        if (strcmp(k->id, m->id) == 0)
            kill(k->pid, SIGKILL);      /* its guest dies with it, its janitor does the rest */
    return 0;
}

void
launcher_notify(const struct launcher *l, const char *text)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    cleanup_close int fd = l->notify[0] != '\0' ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    size_t n = strlen(l->notify);

    if (fd < 0)
        return;
    memcpy(to.sun_path, l->notify, n);
    if (l->notify[0] == '@')
        to.sun_path[0] = '\0';
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

/* Nobody but us has anything to say there. */
static void
take_notify_socket(struct launcher *l)
{
    const char *path = getenv("NOTIFY_SOCKET");

    if (path != NULL && strlen(path) < sizeof(l->notify) && (path[0] == '/' || path[0] == '@'))
        snprintf(l->notify, sizeof(l->notify), "%s", path);
    unsetenv("NOTIFY_SOCKET");
}

/* The warden counts since its own start; this is older. */
void
say_restarts(struct launcher *l)
{
    const struct launch_restarts m = { .wardens = l->wardens, .fronts = l->fronts_again };

    (void)launcher_send(l, EDGE_RESTARTS, EDGE_RESTARTS_SHAPE(), &m, -1);
}

static int
on_ready(struct launcher *l, const struct nothing *m)
{
    (void)m;
    l->ready = true;
    sweep_begin(l);     /* the state is locked by a warden of ours, and nothing was made by us yet */
    if (l->ending)
        return launcher_say(l, EDGE_CLOSE, NULL, -1);
    if ((!l->open && doors_open(l, l->err) < 0) || start_fronts(l, l->err) < 0)
        l->failed = true;
    say_restarts(l);
    vacant_after(l, 0);
    return 0;
}

static int
on_refused(struct launcher *l, const struct edge_why *m)
{
    *l->err = m->why;
    l->failed = true;
    return 0;
}

static int
on_quiet(struct launcher *l, const struct nothing *m)
{
    (void)m;
    l->quiet = true;
    return 0;
}

static int
on_killed(struct launcher *l, const struct nothing *m)
{
    (void)m;
    l->kill_untold = false;
    return 0;
}

static int
on_pong(struct launcher *l, const struct nothing *m)
{
    (void)m;
    pulse_heard(&l->pulse);
    return 0;
}

static int
on_limited(struct launcher *l, const struct nothing *m)
{
    (void)m;
    return settings_answer(l, &l->limits, NULL);
}

static int
on_unsettled(struct launcher *l, const struct edge_why *m)
{
    return settings_answer(l, &l->limits, &m->why);
}

#define HEARS(R) \
    R(EDGE_SPAWN, on_spawn, false, 1) \
    R(EDGE_SHOOT, on_shoot, false, 1) \
    R(EDGE_READY, on_ready, true, 1) \
    R(EDGE_REFUSED, on_refused, true, 1) \
    R(EDGE_QUIET, on_quiet, false, 1) \
    R(EDGE_LIMITED, on_limited, false, 1) \
    R(EDGE_UNSETTLED, on_unsettled, false, 1) \
    R(EDGE_KILLED, on_killed, false, 1) \
    R(EDGE_PONG, on_pong, false, 1) \
    R(EDGE_SCRIBE_LATE, pulse_scribe_late, false, 1) \
    R(EDGE_KEEPER_LATE, pulse_keeper_late, false, 1)
PROTO_RULES(warden_rules, HEARS)

/* 1; 0 at the end, -1 when it broke the dialogue. */
static int
hear_warden(struct launcher *l)
{
    for (int i = 0; i < AT_ONCE && l->warden.fd >= 0; i++) {
        struct frame f;
        int r = packet_receive(l->warden.fd, l->in, sizeof(l->in), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return 1;
        if (r <= 0)
            return r;
        if (msg_dispatch(&l->gate, &f, l) != MSG_OK)
            return -1;
    }
    return 1;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

/* One of them died: again, but not for ever. */
int
launcher_count_death(struct launcher *l, const char *who, struct err *err)
{
    uint64_t now = clock_ms();
    size_t recent = 0;

    l->deaths[l->n_deaths++ % DEATHS_MAX] = now;
    for (size_t i = 0; i < DEATHS_MAX; i++)
        recent += l->deaths[i] > 0 && clock_since(now, l->deaths[i]) < DEATHS_MS;
    log_say(LEVEL_WARN, "%s ended; it is started again", who);
    if (recent < DEATHS_MAX)
        return 0;
    return err_set(err, ERR_SYSTEM, "serve.crash-loop", "%s and others ended %d times within a minute", who,
                   DEATHS_MAX);
}

static void
lose_front(struct launcher *l, enum which_front which)
{
    struct front_end *front = &l->fronts[which];

    lose_adapter(l, which);
    loop_drop(&l->loop, &front->door);
    packet_queue_clear(&front->out);
    doors_wake(l, which);
    front->said = (struct settings_said){ .waits = 0 };
    end_process(&front->pid, 0);
}

static void
lose_fronts(struct launcher *l)
{
    for (enum which_front which = 0; which < FRONTS; which++)
        lose_front(l, which);
}

/* The fronts go with it: nobody would answer them. Sandboxes live on. */
static int
warden_ended(struct launcher *l, struct err *err)
{
    bool expected = l->ending && l->quiet;

    loop_drop(&l->loop, &l->warden);
    packet_queue_clear(&l->to_warden);
    end_process(&l->warden_pid, 0);
    lose_fronts(l);
    l->ready = false;
    if (expected || l->failed)
        return 0;
    l->wardens++;
    if (l->former != NULL)
        settings_back(l);
    return launcher_count_death(l, "cloche-warden", err) < 0 ? -1 : start_warden(l, err);
}

static int
front_ended(struct launcher *l, enum which_front which, struct err *err)
{
    /* a front without a warden ends: then that is what happened */
    if (l->warden.fd >= 0 && hear_warden(l) <= 0)
        return warden_ended(l, err);
    lose_front(l, which);
    if (l->ending || !l->ready)
        return 0;
    l->fronts_again++;
    if (launcher_count_death(l, "cloche-front", err) < 0 || start_front(l, which, err) < 0)
        return -1;
    say_restarts(l);
    return 0;
}

/* What a front says: that it took its settings, or why not. */
static int
hear_front(struct launcher *l, enum which_front which, struct err *err)
{
    struct front_end *front = &l->fronts[which];
    struct frame f;
    int r = packet_receive(front->door.fd, l->in, sizeof(l->in), &f, NULL, MSG_DONTWAIT);
    struct wire_in in = wire_in_of(r > 0 ? f.payload : NULL, r > 0 ? f.length : 0);
    struct edge_why no;

    if (r < 0 && errno == EAGAIN)
        return 0;
    if (r > 0 && f.type == EDGE_PONG && f.length == 0) {
        pulse_heard(&front->pulse);
        return 0;
    }
    if (r > 0 && f.type == EDGE_SETTLED && f.length == 0 && settings_answer(l, &front->said, NULL) == 0)
        return 0;
    if (r > 0 && f.type == EDGE_UNSETTLED && edge_why_get(&in, &no) && settings_answer(l, &front->said, &no.why) == 0)
        return 0;
    return front_ended(l, which, err);
}

static void
begin_end(struct launcher *l)
{
    if (l->ending) {
        l->quiet = true;        /* told twice: now */
        return;
    }
    l->ending = true;
    loop_at(&l->loop, &l->end, clock_ms() + PATIENCE_MS);
    launcher_notify(l, "STOPPING=1");
    pulse_wake_all(l);
    if (l->ready && launcher_say(l, EDGE_CLOSE, NULL, -1) < 0)
        l->quiet = true;
}

/* The warden ends them in order, and has it on record; what is still there after a moment is killed, whatever the
 * warden does. */
static void
kill_switch(struct launcher *l)
{
    log_say(LEVEL_NOTICE, "kill switch: all sandboxes end");
    /* one that hangs hears nothing: then it is the next one that is told */
    l->kill_untold = true;
    if (l->warden.fd >= 0)
        (void)launcher_say(l, EDGE_KILL, NULL, -1);
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        k->doomed = k->edge < 0;
    loop_at(&l->loop, &l->shoot, clock_ms() + KILL_MS);
}

static void
shoot_doomed(struct timer *t)
{
    const struct launcher *l = t->owner;

    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        if (k->doomed)
            kill(k->pid, SIGKILL);
}

/* Without it nothing is started any more, and nothing that ends comes again. Another one cannot be had either. */
static int
maker_reap(struct launcher *l, struct err *err)
{
    if (l->maker.pid <= 0 || waitpid(l->maker.pid, NULL, WNOHANG) != l->maker.pid)
        return 0;
    l->maker.pid = 0;
    return l->ending ? 0 : err_set(err, ERR_SYSTEM, MAKER_FAILED, "cloche-maker has ended: all sandboxes end");
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static void
on_end(struct timer *t)
{
    struct launcher *l = t->owner;

    l->quiet = true;
}

static void
on_signal(struct signals *s, int number)
{
    struct launcher *l = s->watch.owner;

    if (number == SIGCHLD) {
        lessers_reap(l);
        loop_done(&l->loop, scribe_reap(l, l->err) < 0 ? -1 : maker_reap(l, l->err));
        reap_soon(l, s->from);
    } else if (number == SIGHUP) {
        settings_reload(l);
    } else if (number == SIGUSR1) {
        kill_switch(l);
    } else {
        begin_end(l);
    }
}

int
launcher_queue(struct launcher *l, struct watch *edge, struct packet_queue *out, uint8_t type,
               const struct shape *shape, const void *m, int fd)
{
    int r = proto_queue(out, edge->fd, type, shape, m, fd);

    if (r == 0 && packet_queue_waits(out) && l->more.at_ms == 0)
        (void)loop_watch(&l->loop, edge, EPOLLIN | EPOLLOUT);
    return r;
}

/* What waits to be said to @edge. An end is noticed where it is read. */
static void
say_more(struct launcher *l, struct watch *edge, struct packet_queue *out)
{
    int r = edge->fd >= 0 ? packet_queue_flush(out, edge->fd) : 0;

    if (r < 0)
        loop_at(&l->loop, &l->more, clock_ms() + MORE_MS);
    (void)loop_watch(&l->loop, edge, r == 0 && packet_queue_waits(out) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void
on_more(struct timer *t)
{
    struct launcher *l = t->owner;

    say_more(l, &l->warden, &l->to_warden);
    for (enum which_front which = 0; which < FRONTS; which++) {
        struct front_end *front = &l->fronts[which];
        say_more(l, &front->door, &front->out);
        say_more(l, &front->adapter.door, &front->adapter.out);
        doors_wake(l, which);
    }
}

/* Whether there is something to be heard, too. */
static bool
heard(struct launcher *l, struct watch *edge, struct packet_queue *out, uint32_t events)
{
    if ((events & EPOLLOUT) != 0)
        say_more(l, edge, out);
    return (events & ~(uint32_t)EPOLLOUT) != 0;
}

static void
on_warden(struct watch *w, uint32_t events)
{
    struct launcher *l = w->owner;

    if (heard(l, w, &l->to_warden, events) && hear_warden(l) <= 0)
        loop_done(&l->loop, warden_ended(l, l->err));
}

static void
on_front(struct watch *w, uint32_t events)
{
    struct launcher *l = w->owner;
    enum which_front which = w == &l->fronts[FRONT_OWNER].door ? FRONT_OWNER : FRONT_STRANGERS;
    bool is = heard(l, w, &l->fronts[which].out, events);

    doors_wake(l, which);
    if (is)
        loop_done(&l->loop, hear_front(l, which, l->err));
}

static void
on_adapter(struct watch *w, uint32_t events)
{
    struct launcher *l = w->owner;
    enum which_front which = w == &l->fronts[FRONT_OWNER].adapter.door ? FRONT_OWNER : FRONT_STRANGERS;

    if (heard(l, w, &l->fronts[which].adapter.out, events))
        hear_adapter(l, which);
}

static int
loop(struct launcher *l)
{
    pulse_begin(l);
    while (!l->failed && !(l->ending && l->quiet))
        if (loop_round(&l->loop, -1, l->err) < 0)
            l->failed = true;
    return l->failed ? -1 : 0;
}

/* Nothing of ours is left behind it: a keeper ends its sandbox when its control socket ends. */
static void
end_all(struct launcher *l)
{
    uint64_t end = clock_ms() + PATIENCE_MS;

    doors_close(l);
    vacant_drop(l);
    pulse_wake_all(l);
    lose_fronts(l);
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        close_fd(&k->control);
    while (l->keepers != NULL && clock_ms() < end) {
        const struct timespec pause = { 0, 2000000 };
        reap_keepers(l);
        if (l->keepers != NULL)
            nanosleep(&pause, NULL);
    }
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        kill(k->pid, SIGKILL);
    while (l->keepers != NULL) {
        struct keeper *next = l->keepers->next;
        end_process(&l->keepers->pid, 0);
        free(l->keepers);
        l->keepers = next;
    }
    loop_drop(&l->loop, &l->warden);    /* which ends it, when it has written what it knows */
    end_process(&l->warden_pid, WARDEN_MS);
    scribe_end(l);
    lessers_end(l);
    sweep_end(l);
    close_fd(&l->maker.fd);
    end_process(&l->maker.pid, 0);
    packet_queue_clear(&l->to_warden);
    loop_drop(&l->loop, &l->signals.watch);
    loop_close(&l->loop);
    serve_plan_free(l->former);
    serve_plan_free(l->plan);
}

/* Each keeper costs a descriptor, and another one until the warden has its edge. */
int
launcher_room(const struct serve_plan *plan, uint64_t limit, struct err *err)
{
    uint64_t need = 2 * plan->max_sandboxes + SPARE_FILES;

    if (need <= limit)
        return 0;
    err_set(err, ERR_USAGE, "serve.max-sandboxes", "%llu sandboxes need %llu open files; the hard limit is %llu",
            (unsigned long long)plan->max_sandboxes, (unsigned long long)need, (unsigned long long)limit);
    return err_hint(err, "lower --max-sandboxes, or raise the limit (ulimit -Hn; LimitNOFILE= of a unit)");
}

static int
raise_files(struct launcher *l, struct err *err)
{
    if (getrlimit(RLIMIT_NOFILE, &l->files) < 0)
        return err_sys(err, errno, "serve.start", "getrlimit");
    if (launcher_room(l->plan, l->files.rlim_max, err) < 0)
        return -1;
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){ l->files.rlim_max, l->files.rlim_max }) < 0
               ? err_sys(err, errno, "serve.start", "setrlimit") : 0;
}

static int
prepare(struct launcher *l, struct err *err)
{
    cleanup_close int state = state_make_path(l->plan->state);
    struct stat st;
    sigset_t set;

    if (state < 0 || fstat(state, &st) < 0 || realpath(l->plan->state, l->state) == NULL)
        return err_sys(err, errno, "serve.state", "%s", l->plan->state);
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        err_set(err, ERR_DENIED, "serve.state.mode", "%s is not this user's own (0700)", l->plan->state);
        return err_hint(err, "name another folder with --state-dir; it is made where it is missing");
    }
    take_notify_socket(l);
    pulse_open(l);
    if (getenv("INVOCATION_ID") != NULL)    /* systemd.exec(5): a unit, and its cgroup is for nothing else */
        cgroup_divide();
    if (raise_files(l, err) < 0)
        return -1;
    if (scribe_folders(l, err) < 0 || sweep_prepare(l, err) < 0)
        return -1;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || chdir("/") < 0)
        return err_sys(err, errno, "serve.start", "signals");
    /* what loses its parent below comes to us, and not to the first process of a container, which may reap nobody */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "serve.start", "subreaper");
    if (start_maker(l, err) < 0)
        return -1;
    l->image = engine_image();
    if (signals_open(&l->signals, &set, NULL) < 0 || loop_init(&l->loop, err) < 0 ||
        loop_watch(&l->loop, &l->signals.watch, EPOLLIN) < 0)
        return err_sys(err, errno, "serve.start", "signals");
    if (peer_remember() < 0)
        return err_set(err, ERR_SYSTEM, "serve.start", "/proc/self/status cannot be read");
    prctl(PR_SET_NAME, "cloche-launcher");
    /* its user's other processes, keepers among them, do not look into it: it has read certificates' keys */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "serve.start", "not dumpable");
    return launcher_confine(err);
}

#define FRONT_INIT(l) { .door = { .fd = -1, .ready = on_front, .owner = (l) }, .out = PACKET_QUEUE_INIT(1024 * 1024), \
                        .adapter = { .door = { .fd = -1, .ready = on_adapter, .owner = (l) }, \
                                     .out = PACKET_QUEUE_INIT(1024 * 1024) } }

int
launcher_run(struct serve_plan *plan, int argc, char **argv, bool json, struct err *err)
{
    static struct launcher l = { .loop = { .epoll = -1 }, .maker = { .fd = -1 }, .image = -1, .otlp_edge = -1,
                                 .spare = -1, .refused = WATCH_INIT,
                                 .signals = { .watch = { .fd = -1, .owner = &l }, .came = on_signal },
                                 .more = { .due = on_more, .owner = &l }, .end = { .due = on_end, .owner = &l },
                                 .shoot = { .due = shoot_doomed, .owner = &l },
                                 .warden = { .fd = -1, .ready = on_warden, .owner = &l },
                                 .fronts = { FRONT_INIT(&l), FRONT_INIT(&l) },
                                 .to_warden = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX),
                                 .gate = { .rules = warden_rules,
                                           .n_rules = ARRAY_LEN(warden_rules), .state = 1 } };
    int r;

    l.plan = plan;
    l.argc = argc;
    l.argv = argv;
    l.json = json;
    snprintf(l.log, sizeof(l.log), LOG_VARIABLE "=%s:%s", plan->log_json != 0 ? "json" : "text",
             log_level_name((enum log_level)plan->log_level));
    if (setenv(LOG_VARIABLE, l.log + sizeof(LOG_VARIABLE), 1) == 0)
        log_open("cloche");
    l.err = err;
    r = doors_take(&l, err) < 0 || prepare(&l, err) < 0 || start_warden(&l, err) < 0 ? -1 : loop(&l);
    end_all(&l);
    return r;
}
