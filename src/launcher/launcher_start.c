/* launcher/launcher_start.c: the daemon's other processes, each with the descriptors it needs and no other */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "launcher/launcher.h"
#include "program/helper.h"

#define MAKER_LATE_MS 60000

int
launcher_pair(int pair[2], struct err *err)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0
               ? err_sys(err, errno, "serve.start", "socketpair") : 0;
}

int
launcher_send(struct launcher *l, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    if (l->warden.fd >= 0)
        return launcher_queue(l, &l->warden, &l->to_warden, type, shape, m, fd);
    close_fd(&fd);
    return -1;
}

int
launcher_say(struct launcher *l, uint8_t type, const char *id, int fd)
{
    struct edge_only_id m;

    if (id == NULL)
        return launcher_send(l, type, &nothing_shape, NULL, fd);
    memcpy(m.id, id, sizeof(m.id));
    return launcher_send(l, type, &edge_only_id_shape, &m, fd);
}

/* Programs of their own, in the order in which they are looked for. */
static const struct { enum maker_program program; const char *folder, *name; } parts[] = {
    { MAKE_FRONT, "front", "cloche-front" },       { MAKE_ADAPTER, "adapters", "cloche-adapter" },
    { MAKE_WARDEN, "warden", "cloche-warden" },    { MAKE_SCRIBE, "scribe", "cloche-scribe" },
    { MAKE_WEBHOOK, "webhook", "cloche-webhook" }, { MAKE_OTLP, "otlp", "cloche-otlp" },
    { MAKE_SIGNER, "signer", "cloche-signer" },
};

static bool
is_wanted(const struct serve_plan *plan, enum maker_program program)
{
    switch (program) {
    case MAKE_WEBHOOK: return plan->webhook_url[0] != '\0';
    case MAKE_OTLP: return otlp_wanted(plan);
    case MAKE_SIGNER: return plan->signing_key[0] != '\0';
    default: return true;
    }
}

int
start_maker(struct launcher *l, struct err *err)
{
    char path[MAKE_PROGRAMS][PATH_MAX] = { "" };
    const char *paths[MAKE_PROGRAMS];

    for (size_t i = 0; i < MAKE_PROGRAMS; i++)
        paths[i] = path[i];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (is_wanted(l->plan, parts[i].program) &&
            helper_find(parts[i].folder, parts[i].name, path[parts[i].program], err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (is_wanted(l->plan, parts[i].program) && helper_complete(parts[i].folder, parts[i].name, err) < 0)
            return -1;
    return maker_open(paths, &l->maker, err);
}

pid_t
launcher_make(struct launcher *l, const struct maker_order *order, struct err *err)
{
    struct err why = ERR_INIT;
    pid_t pid = maker_start(&l->maker, order, &why);

    if (pid < 0 && strcmp(why.code, MAKER_FAILED) == 0 && l->maker.pid > 0)
        kill(l->maker.pid, SIGKILL);
    if (pid < 0 && err != NULL)
        *err = why;
    return pid;
}

void
maker_time(struct launcher *l)
{
    struct maker_link *m = &l->maker;

    if (m->late == 0 || m->pid <= 0)
        return;
    kill(m->pid, SIGCONT);
    if (maker_collect(m) < 0 || (m->late > 0 && clock_since(clock_ms(), m->late_ms) >= MAKER_LATE_MS))
        kill(m->pid, SIGKILL);      /* its end is ours: nothing could be started any more */
}

/* A new edge between a keeper that lives on and the new warden. */
static void
hand_over(struct launcher *l, struct keeper *k)
{
    cleanup_close int theirs = -1;
    int pair[2];

    if (launcher_pair(pair, NULL) < 0)
        return;
    theirs = pair[1];
    if (proto_send(k->control, EDGE_ADOPT, &nothing_shape, NULL, theirs) < 0) {
        close(pair[0]);
        return;         /* it is ending */
    }
    (void)launcher_say(l, EDGE_ADOPT, k->id, pair[0]);
}

int
say_rules(struct launcher *l)
{
    struct launch_rules m = { .name = l->plan->gate, .text = l->plan->rules.p, .n_text = l->plan->rules.n };

    memcpy(m.defaults, l->plan->defaults, sizeof(m.defaults));
    return say_languages(l, &l->warden, &l->to_warden) < 0 ? -1
           : launcher_send(l, EDGE_RULES, EDGE_RULES_SHAPE(), &m, -1);
}

int
say_pool(struct launcher *l)
{
    const struct serve_plan *plan = l->plan;
    const struct launch_pool m = { .max = (uint32_t)plan->pool, .memory = (uint32_t)plan->pool_memory,
                                   .idle_s = (uint32_t)plan->pool_s };

    return launcher_send(l, EDGE_POOL, EDGE_POOL_SHAPE(), &m, -1);
}

int
start_warden(struct launcher *l, struct err *err)
{
    char name[] = "cloche-warden", max[24], each[24], idle[24], life[24];
    char after[24], tries[24], window[24], audit[SERVE_WORD_MAX];
    char *argv[] = { name, l->state, max, each, idle, life, after, tries, window, audit, NULL };
    cleanup_close int theirs = -1;
    int pair[2];

    if (launcher_pair(pair, err) < 0)
        return -1;
    theirs = pair[1];
    snprintf(max, sizeof(max), "%llu", (unsigned long long)l->plan->max_sandboxes);
    snprintf(each, sizeof(each), "%llu", (unsigned long long)l->plan->max_per_agent);
    snprintf(idle, sizeof(idle), "%llu", (unsigned long long)l->plan->idle_s);
    snprintf(life, sizeof(life), "%llu", (unsigned long long)l->plan->life_s);
    snprintf(after, sizeof(after), "%llu", (unsigned long long)l->plan->recover_s);
    snprintf(tries, sizeof(tries), "%llu", (unsigned long long)l->plan->recover_tries);
    snprintf(window, sizeof(window), "%llu", (unsigned long long)l->plan->recover_window_s);
    snprintf(audit, sizeof(audit), "%s", serve_audit_words[l->plan->audit]);
    l->warden_pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_WARDEN, .words = argv, .log = l->log, .fds = { theirs }, .n_fds = 1 }, err);
    if (l->warden_pid < 0) {
        l->warden_pid = 0;
        close(pair[0]);
        return -1;
    }
    l->warden.fd = pair[0];
    l->ready = false;
    pulse_heard(&l->pulse);
    l->limits = (struct settings_said){ .waits = 0 };   /* it has them as its arguments */
    l->gate.state = 1;
    l->gate.seen[0] = l->gate.seen[1] = l->gate.seen[2] = l->gate.seen[3] = 0;
    if (io_set_nonblock(l->warden.fd, true) < 0 || loop_watch(&l->loop, &l->warden, EPOLLIN) < 0)
        return err_sys(err, errno, "serve.start", "watch the warden");
    if (start_scribe(l, err) < 0 || start_webhook(l, err) < 0 || start_signer(l, err) < 0 || start_otlp(l, err) < 0)
        return -1;
    if (say_rules(l) < 0 || say_pool(l) < 0)
        return err_sys(err, errno, "serve.start", "tell the warden its rules");
    /* before it looks for those that nobody keeps: they ended while this daemon ran, and may be made anew */
    if (l->open)
        say_restarts(l);
    for (struct keeper *k = l->keepers; k != NULL; k = k->next)
        if (k->edge < 0)
            hand_over(l, k);
    return launcher_say(l, EDGE_ADOPTED_ALL, NULL, -1) < 0 ||
                   (l->kill_untold && launcher_say(l, EDGE_KILL, NULL, -1) < 0)
               ? err_sys(err, errno, "serve.start", "tell the warden") : 0;
}

int
start_front(struct launcher *l, enum which_front which, struct err *err)
{
    char name[] = "cloche-front", strangers[] = "strangers", tls[] = "tls";
    char *argv[] = { name, which == FRONT_STRANGERS ? strangers : NULL, l->plan->cert.n > 0 ? tls : NULL,
                     NULL };
    const struct launch_front m = { .flags = which == FRONT_STRANGERS ? EDGE_STRANGERS : 0 };
    struct front_end *front = &l->fronts[which];
    cleanup_close int theirs = -1, connections = -1;
    int pair[2], door[2];

    if (launcher_pair(pair, err) < 0)
        return -1;
    theirs = pair[1];
    if (launcher_pair(door, err) < 0) {
        close(pair[0]);
        return -1;
    }
    connections = door[1];
    /* a warden that has ended is noticed next, and the one after it asks for a front */
    if (launcher_send(l, EDGE_FRONT, EDGE_FRONT_SHAPE(), &m, pair[0]) < 0) {
        close(door[0]);
        return 0;
    }
    front->pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_FRONT, .words = argv, .log = l->log, .fds = { theirs, connections }, .n_fds = 2 }, err);
    if (front->pid < 0) {       /* nothing is asked, and signalled, that is not there */
        front->pid = 0;
        close(door[0]);
        return -1;
    }
    front->door.fd = door[0];
    pulse_heard(&front->pulse);
    if (io_set_nonblock(front->door.fd, true) < 0 || loop_watch(&l->loop, &front->door, EPOLLIN) < 0)
        return err_sys(err, errno, "serve.start", "watch the front");
    (void)settings_say(l, which);       /* one that has gone already is noticed where it is read */
    otlp_source(l, which == FRONT_OWNER ? EXPORT_OWNER : EXPORT_STRANGERS);
    return start_adapter(l, which, err);
}

int
start_fronts(struct launcher *l, struct err *err)
{
    bool wanted[FRONTS] = { false };

    for (size_t i = 0; i < l->n_listeners; i++)
        wanted[l->listeners[i].at.tcp ? FRONT_STRANGERS : FRONT_OWNER] = true;
    for (enum which_front which = 0; which < FRONTS; which++)
        if (wanted[which] && start_front(l, which, err) < 0)
            return -1;
    return 0;
}
