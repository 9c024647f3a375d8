/* run/session_egress.c: cloche-egress for one run
 *
 * It is a program of its own, started with nothing but its control socket, the listeners and the file of names. What it
 * decided comes back as one JSON object a message (egress/log.c); denials go into the report like every other denial.
 * When it dies it is started again with the same rules, less and less eagerly, and after NET_DEATHS_MAX deaths in a
 * minute no more: what makes it die may be what it was sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "program/helper.h"
#include "program/say.h"
#include "run/net.h"
#include "run/net_state.h"
#include "run/session_priv.h"

#define ENTRY_MAX    (2 * RULE_WIRE_MAX)    /* of its messages; a rule is part of one, escaped */
#define FIRST_US     10000UL    /* until it is started again, doubled with each death */
#define SAY_S        5          /* for it to take a message */
#define START_MS     30000      /* for it to be there */
#define LAST_MS      3000       /* for it to say its last decisions */

static int
say(struct net *n, uint8_t type, const struct shape *shape, const void *m, struct err *err)
{
    return proto_send(n->control.fd, type, shape, m, -1) == 0
               ? 0 : err_sys(err, errno, "egress.rules", "tell cloche-egress its rules");
}

#define SAY(n, err, number, ...) say(n, number, number##_SHAPE(), &(const number##_IS){ __VA_ARGS__ }, err)

static int
say_list(struct net *n, enum decide_which which, const struct policy_list *list, struct err *err)
{
    char text[RULE_WIRE_MAX];

    for (size_t i = 0; i < list->n; i++) {
        int size = rule_write(&list->v[i], which, text, err);
        if (size < 0 || SAY(n, err, EGRESS_RULE, .text = (const uint8_t *)text, .n_text = (size_t)size) < 0)
            return -1;
    }
    return 0;
}

/* It gets the vault, and what it trusts beside the host's certificates in connections that it opens. */
static int
say_vault(struct net *n, struct err *err)
{
    const struct policy_list *files = &n->live->s->policy->extra_ca;

    for (size_t i = 0; i < files->n; i++)
        if (SAY(n, err, EGRESS_TRUST, .file = files->v[i].value) < 0)
            return -1;
    return SAY(n, err, EGRESS_VAULT) < 0 ? -1 : 0;
}

/* In pieces: a list may be longer than a message; a URL is not (PROXY_URL_MAX). */
static int
say_parent(struct net *n, enum parent_part part, const struct policy_string *text, struct err *err)
{
    size_t all = text->p != NULL ? strlen(text->p) : 0;

    for (size_t at = 0, take; at < all; at += take) {
        take = all - at < EGRESS_PARENT_PIECE ? all - at : EGRESS_PARENT_PIECE;
        if (SAY(n, err, EGRESS_PARENT, .part = part, .text = { text->p + at, take }) < 0)
            return -1;
    }
    return 0;
}

static int
say_parents(struct net *n, const struct policy *p, struct err *err)
{
    return say_parent(n, PARENT_HTTP, &p->parent_proxy.http, err) < 0 ||
           say_parent(n, PARENT_HTTPS, &p->parent_proxy.https, err) < 0 ||
           say_parent(n, PARENT_NO_PROXY, &p->parent_proxy.no_proxy, err) < 0 ? -1 : 0;
}

static int
say_name_servers(struct net *n, const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->name_servers.n; i++)
        if (SAY(n, err, EGRESS_NAME_SERVER, .address = p->name_servers.v[i].value) < 0)
            return -1;
    return 0;
}

static int
say_look(struct net *n, const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->strip_headers.n; i++)
        if (SAY(n, err, EGRESS_STRIP, .name = p->strip_headers.v[i].value) < 0)
            return -1;
    return SAY(n, err, EGRESS_LOOK, .open_tls = p->open_tls.v, .refuse_opaque = p->refuse_opaque.v,
               .refuse_moving = p->refuse_moving.v);
}

/* What holds for the whole run. Rules that replaced others while it went on are about hosts: a policy of theirs may say
 * nothing of this, so it is the run's own that is asked, also by a cloche-egress that is started again. */
static int
say_run(struct net *n, struct err *err)
{
    const struct policy *p = n->live->s->policy;

    return say_look(n, p, err) < 0 || say_parents(n, p, err) < 0 || say_name_servers(n, p, err) < 0 ||
           (n->live->vault != NULL && say_vault(n, err) < 0) ? -1 : 0;
}

int
net_say_answer(struct net *n, json_int_t number, enum ask_says says, const char *by, struct err *err)
{
    return n->control.fd < 0 ? err_set(err, ERR_NOT_FOUND, "net.question", "nobody waits for that any more")
                             : SAY(n, err, EGRESS_ANSWER, .number = (uint32_t)number, .says = says, .by = by);
}

int
net_say_rules(struct net *n, uint64_t number, struct err *err)
{
    const struct policy *p = n->policy;

    if ((number > 0 && SAY(n, err, EGRESS_CHANGE, .number = number) < 0) ||
        (p->srt && SAY(n, err, EGRESS_SRT) < 0) ||
        say_list(n, DECIDE_ALLOWS, &p->allow_domains, err) < 0 ||
        say_list(n, DECIDE_DENIES, &p->deny_domains, err) < 0 ||
        say_list(n, DECIDE_HOST_PORT, &p->host_ports, err) < 0 ||
        say_list(n, DECIDE_KEPT, &p->keep_tls, err) < 0 ||
        say_list(n, DECIDE_ALLOWS, &n->added.allow_domains, err) < 0 ||
        say_list(n, DECIDE_DENIES, &n->added.deny_domains, err) < 0 ||
        (p->ask.v && SAY(n, err, EGRESS_ASK, .ms = (uint32_t)p->ask_ms.v) < 0))
        return -1;
    if (number == 0 && say_run(n, err) < 0)
        return -1;
    return SAY(n, err, EGRESS_GO);
}

/* What kept it from starting, in its own words. */
static int
refusal(const json_t *event, struct err *err)
{
    const char *code = json_string_value(json_object_get(event, "code"));
    const char *why = json_string_value(json_object_get(event, "error"));
    const char *hint = json_string_value(json_object_get(event, "hint"));

    err_set(err, ERR_SYSTEM, code != NULL ? code : "egress.start", "cloche-egress: %s",
            why != NULL ? why : "it cannot start");
    return hint != NULL && hint[0] != '\0' ? err_hint(err, "%s", hint) : -1;
}

/* Where TLS is opened, certificates have to be found and read first, and a run in which that fails is refused: its
 * first word says so. Other runs do not wait for it. */
static int
hear_first(struct net *n, struct err *err)
{
    struct pollfd p = { .fd = n->control.fd, .events = POLLIN };
    char message[ENTRY_MAX];
    ssize_t size;
    const char *event;
    json_t *entry;
    int r;

    do
        r = poll(&p, 1, START_MS);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return err_set(err, ERR_SYSTEM, "egress.start", "cloche-egress did not start within %d s", START_MS / 1000);
    size = io_recv(n->control.fd, message, sizeof(message), MSG_DONTWAIT);
    if (size <= 0)
        return err_set(err, ERR_SYSTEM, "egress.start", "cloche-egress ended before it had started");
    entry = json_loadb(message, (size_t)size, JSON_REJECT_DUPLICATES, NULL);
    event = json_string_value(json_object_get(entry, "event"));
    r = event != NULL && strcmp(event, "failed") == 0 ? refusal(entry, err) : 0;
    n->up = r == 0;
    json_decref(entry);
    return r;
}

static int
start(struct net *n, struct err *err)
{
    /* one that stands still must not make us stand still */
    const struct timeval patience = { .tv_sec = SAY_S };
    int fds[CAPTURE_LISTENERS + 2];
    char *const env[] = { NULL };
    const struct helper h = { .folder = "egress", .name = "cloche-egress", .env = env, .fds = fds,
                              .n_fds = ARRAY_LEN(fds), .cgroup = n->cgroup };

    if (n->live->vault_for_egress < 0 && vault_new_edge(n->live, err) < 0)
        return -1;
    memcpy(fds, n->listeners, CAPTURE_LISTENERS * sizeof(*fds));
    fds[CAPTURE_LISTENERS] = n->names;
    fds[CAPTURE_LISTENERS + 1] = n->live->vault_for_egress;
    n->up = false;
    n->pid = n->starter.fd >= 0 ? starter_start(&n->starter, &h, &n->control.fd, err)
                                : helper_start(&h, &n->control.fd, err);
    if (n->pid < 0)
        return -1;
    close_fd(&n->live->vault_for_egress);       /* each one that is started gets its own */
    if (loop_watch(n->loop, &n->control, EPOLLIN) < 0)
        return err_sys(err, errno, "egress.start", "watch cloche-egress");
    (void)setsockopt(n->control.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (net_say_rules(n, 0, err) == 0)
        return 0;
    (void)helper_complete("egress", "cloche-egress", err);      /* where that is why, it is the better reason */
    return -1;
}

static watch_fn on_control, on_control_in;
static timer_fn on_timer;

int
net_start(struct live *l, struct err *err)
{
    struct net *n = l->net = calloc(1, sizeof(*n));
    const struct session *s = l->s;
    const struct sandbox_facts *facts = sandbox_facts(l->sb);
    struct session_result *r = l->r;
    struct err said = ERR_INIT;
    struct stat st;

    if (n == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *n = (struct net){ .live = l, .loop = l->loop, .policy = s->policy, .r = r, .dir = -1,
                       .control_in = { .fd = s->control_fd > 0 ? s->control_fd : -1, .ready = on_control_in,
                                       .owner = n },
                       .control_text = BUF_INIT(NET_LINE_MAX), .told = s->quiet,
                       .cgroup = facts->net_cgroup, .listeners = facts->listeners,
                       .control = { .fd = -1, .ready = on_control, .owner = n }, .starter = STARTER_INIT,
                       .timer = { .due = on_timer, .owner = n },
                       .names = memfd_create("cloche-names", MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    r->network = true;
    n->dir = net_state_open(&said);
    n->door = n->dir >= 0 ? door_open(n, facts->id, &said) : NULL;
    n->log = net_log_new(n->door != NULL ? n->dir : -1, facts->id, r);
    if (n->door == NULL)
        session_warn(r, true, "the log of the network is not kept: %s", said.msg);
    /* cut short under a process that has it mapped, it would kill that process */
    if (n->names < 0 || fcntl(n->names, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
        return err_sys(err, errno, "egress.start", "descriptors");
    if (start(n, err) < 0 || (l->vault != NULL && hear_first(n, err) < 0))
        return -1;
    /* a file need not be waited for */
    if (n->control_in.fd >= 0 && fstat(n->control_in.fd, &st) == 0 && S_ISREG(st.st_mode))
        while (net_control_read(n))
            ;
    else if (loop_watch(n->loop, &n->control_in, EPOLLIN) < 0)
        return err_sys(err, errno, "egress.start", "watch the control descriptor");
    return 0;
}

int
net_confine(struct net *n, struct err *err)
{
    if (n == NULL)
        return 0;
    if (n->dir >= 0)
        net_state_prune(n->dir);        /* it asks sockets whether anybody is there */
    return starter_open(&n->starter, err);
}

void
net_arm(struct net *n)
{
    uint64_t due;

    if (n == NULL)
        return;
    due = net_log_due(n->log);
    if (n->start_us > 0 && (due == 0 || n->start_us < due))
        due = n->start_us;
    loop_at(n->loop, &n->timer, (due + 999) / 1000);
}

static void
note_decision(struct net *n, const json_t *entry)
{
    const char *verdict = json_string_value(json_object_get(entry, "verdict"));
    const char *host = json_string_value(json_object_get(entry, "host"));
    const char *rule = json_string_value(json_object_get(entry, "rule"));
    const char *reason = json_string_value(json_object_get(entry, "reason"));
    const char *secret = json_string_value(json_object_get(entry, "secret"));
    const char *tool = json_string_value(json_object_get(entry, "tool"));
    const json_t *port = json_object_get(entry, "port");
    struct msg_denied d = { .count = 1, .op = "connect", .rule = rule != NULL ? rule : reason != NULL ? reason : "" };
    char target[512];

    if (verdict == NULL || strcmp(verdict, "deny") != 0 || host == NULL)
        return;
    if (json_integer_value(port) > 0)
        snprintf(target, sizeof(target), "%s:%d%s%s", host, (int)json_integer_value(port), tool != NULL ? " tool " : "",
                 tool != NULL ? tool : "");
    else
        snprintf(target, sizeof(target), "%s", host);
    d.target = target;
    session_note_denied(n->r, &d);
    if (json_object_get(entry, "level") == NULL || secret == NULL || n->warned)
        return;
    session_warn(n->r, true, "the secret %s was on its way to %s, which is not one of its places: refused (said once)",
                 secret, target);
    n->warned = true;
}

/* One message of cloche-egress's, of @size bytes. */
static void
net_heard(struct net *n, const char *message, size_t size)
{
    json_t *entry = json_loadb(message, size, JSON_REJECT_DUPLICATES, NULL);
    const char *event = json_string_value(json_object_get(entry, "event"));
    struct err err = ERR_INIT;

    if (event == NULL) {
        note_decision(n, entry);
        net_log_add(n->log, entry);
    } else if (strcmp(event, "unsaid") == 0) {
        n->r->denied_more += (uint64_t)json_integer_value(json_object_get(entry, "count"));
        net_log_lost(n->log, (uint64_t)json_integer_value(json_object_get(entry, "count")));
    } else if (strcmp(event, "ask") == 0) {
        net_ask_heard(n, entry);
    } else if (strcmp(event, "asked") == 0) {
        net_ask_over(n, entry);
    } else if (strcmp(event, "rules") == 0) {
        net_rules_heard(n, entry);
    } else if (strcmp(event, "up") == 0) {
        n->up = true;
    } else if (strcmp(event, "failed") == 0 && !n->up) {        /* afterwards its words may be somebody else's */
        (void)refusal(entry, &err);
        session_warn(n->r, true, "%s [%s]", err.msg, err.code);
    }
    json_decref(entry);
}

/* At most @most messages, without waiting. False at the end. */
static bool
hear(struct net *n, int most)
{
    char message[ENTRY_MAX];

    for (int i = 0; i < most; i++) {
        ssize_t size = io_recv(n->control.fd, message, sizeof(message), MSG_DONTWAIT);
        if (size < 0)
            return errno == EAGAIN;
        if (size == 0)
            return false;
        net_heard(n, message, (size_t)size);
    }
    return true;
}

/* Its end of the control socket is closed, so it has ended, or will now. @status as wait(2) says. */
static void
reap(struct net *n, int *status)
{
    *status = 0;
    loop_drop(n->loop, &n->control);
    if (n->pid <= 0)
        return;
    kill(n->pid, SIGKILL);
    while (waitpid(n->pid, status, 0) < 0 && errno == EINTR)
        ;
    n->pid = 0;
}

static void
close_network(struct net *n, const char *how, bool never)
{
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&n->listeners[i]);
    if (never)
        session_warn(n->r, true, "cloche-egress cannot start: %s, which is not on this system (" HELPER_PACKAGES "): "
                     "the network stays closed", how);
    else
        session_warn(n->r, true, "cloche-egress ended (%s), %d times within a minute: the network stays closed", how,
                     NET_DEATHS_MAX);
}

static void
died(struct net *n)
{
    uint64_t now = clock_us(), recent = 0;
    char how[320], lacks[256];
    bool never;
    int status;

    reap(n, &status);
    net_ask_lost(n);
    net_rules_lost(n);
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "status %d", WEXITSTATUS(status));
    /* the dynamic linker's own: another start would end alike */
    never = WIFEXITED(status) && WEXITSTATUS(status) == 127 &&
            helper_lacks("egress", "cloche-egress", lacks, sizeof(lacks));
    if (never)
        snprintf(how, sizeof(how), "it lacks %s", lacks);
    n->deaths[n->n_deaths++ % NET_DEATHS_MAX] = now;
    for (size_t i = 0; i < NET_DEATHS_MAX; i++)
        if (n->deaths[i] > 0 && clock_since(now, n->deaths[i]) < NET_DEATHS_US)
            recent++;
    n->r->egress_deaths = n->n_deaths;
    run_audit_death(n->live->audit, how, n->n_deaths, recent >= NET_DEATHS_MAX || never);
    if (recent >= NET_DEATHS_MAX || never) {
        close_network(n, how, never);
        return;
    }
    session_warn(n->r, true, "cloche-egress ended (%s): open connections are lost, it is started again", how);
    n->start_us = now + (FIRST_US << (recent - 1));
}

static void
on_control(struct watch *w, uint32_t events)
{
    struct net *n = w->owner;

    (void)events;
    if (!hear(n, 64))
        died(n);
}

static void
on_control_in(struct watch *w, uint32_t events)
{
    struct net *n = w->owner;

    (void)events;
    if (!net_control_read(n))
        (void)loop_watch(n->loop, w, 0);
}

static void
on_timer(struct timer *t)
{
    struct net *n = t->owner;
    struct err err = ERR_INIT;
    uint64_t now = clock_us();

    if (n->start_us > 0 && now >= n->start_us) {
        n->start_us = 0;
        if (start(n, &err) < 0) {
            cli_warn("%s [%s]", err.msg, err.code);
            died(n);
        }
    }
    if (net_log_due(n->log) > 0 && now >= net_log_due(n->log)) {
        net_log_write(n->log, false);
        run_audit_decisions(n->live->audit, n->log, false);
    }
}

/* What was decided until now and in the sandbox's last moment, as far as it is said in time. */
static void
hear_the_rest(struct net *n)
{
    uint64_t now = clock_us(), end = now + LAST_MS * 1000;

    shutdown(n->control.fd, SHUT_WR);
    for (; now < end; now = clock_us()) {
        struct pollfd p = { .fd = n->control.fd, .events = POLLIN };
        if (poll(&p, 1, (int)((end - now) / 1000) + 1) > 0 && !hear(n, 64))
            return;
    }
    session_warn(n->r, true, "cloche-egress did not end in time: its last decisions may be missing");
}

void
net_stop(struct net *n)
{
    int status;

    if (n == NULL)
        return;
    if (n->control.fd >= 0)
        hear_the_rest(n);
    reap(n, &status);
    door_close(n->door);
    net_log_write(n->log, true);
    run_audit_decisions(n->live->audit, n->log, true);
    net_log_free(n->log);
    if (n->dir >= 0 && n->starter.fd < 0)
        net_state_prune(n->dir);
    starter_close(&n->starter);
    net_ask_lost(n);
    if (n->added.arena != NULL)
        policy_free(&n->added);
    if (n->replaced != NULL)
        policy_free(n->replaced);
    free(n->replaced);
    buf_free(&n->control_text);
    close_fd(&n->dir);
    close_fd(&n->names);
    (void)loop_forget(n->loop, &n->control_in);
    loop_at(n->loop, &n->timer, 0);
    free(n);
}
