/* egress/main.c: cloche-egress starts: rules from the supervisor, rights away, then the loop
 *
 * Started by the supervisor with the control socket at descriptor 3 (control.h), the listeners from 4 on, in the order
 * of wall/capture.h (/dev/null where there is none), after them the file in which names have their addresses (fake.h),
 * and the vault's socket or /dev/null. The supervisor's end is ours: connections close, nothing opens. When only its
 * writing side ends, the sandbox has ended: what still waits in the listeners' queues is decided, so that it is in the
 * log, and not carried.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "egress/confine.h"
#include "egress/control.h"
#include "egress/egress.h"
#include "egress/vault_end.h"
#include "wall/addresses.h"

#define FD_CONTROL   3
#define FD_LISTENERS 4
#define FD_NAMES     (FD_LISTENERS + CAPTURE_LISTENERS)
#define FD_VAULT     (FD_NAMES + 1)
#define EXTRA_MAX    64
#define TICK_MS      500
#define TICKS_AFTER  10         /* the last event: connections to servers are kept for less (POOL_IDLE_MS) */
_Static_assert(TICKS_AFTER * TICK_MS > POOL_IDLE_MS + TICK_MS, "they end in a sandbox that has gone quiet");
#define TAIL_MS      500        /* for what tunnels hold when it ends, */
#define TAIL_ROUND_MS 20
#define LAST_MS      2000       /* for what waits when the sandbox ends; */
#define TELL_MS      500        /* and for the supervisor to hear of it */

static struct egress egress;
static struct decide_rules rules = DECIDE_RULES_INIT;       /* being said */
static json_t *texts;                                       /* what they borrow */
static uint64_t ask_ms;     /* ... with them */
static struct decide_rules live = DECIDE_RULES_INIT;        /* in force */
static json_t *live_texts;
static uint64_t change;                                     /* its number; 0: the first ones */
static struct err refused = ERR_INIT;                       /* why the set that is being said is none */
static struct ip own[ADDRESSES_MAX];
static size_t n_own;
static const char *extra[EXTRA_MAX];        /* files of certificates */
static size_t n_extra;
static bool with_vault;
static struct decide_look look;
enum { BEGINS = 1, SAID = 2 };
static struct msg_gate gate;                /* of what the supervisor says */
static struct err fault = ERR_INIT;         /* in that */
static struct buf name_servers = BUF_INIT(POLICY_NAME_SERVERS_MAX * IP_TEXT_MAX);   /* with commas between */

static void
begin_rules(uint64_t number)
{
    change = number;
    decide_rules_free(&rules);
    json_decref(texts);
    texts = json_array();
    rules = (struct decide_rules){ .closed = false };
    refused = (struct err)ERR_INIT;
}

/* All of them or, when one was refused, none: then those of before stay in force. */
static int
commit_rules(struct egress *e)
{
    if (refused.kind != ERR_NONE)
        return -1;
    decide_rules_free(&live);
    json_decref(live_texts);
    live = rules;
    e->ask_ms = ask_ms;
    live.own = own;
    live.n_own = n_own;
    live.look = look;
    live_texts = texts;
    e->rules = &live;
    rules = (struct decide_rules)DECIDE_RULES_INIT;
    texts = NULL;
    return 0;
}

static void
commit_and_say(struct egress *e)
{
    int r = commit_rules(e);

    log_say(e, r < 0 ? json_pack("{s:s, s:I, s:b, s:s, s:s}", "event", "rules", "id", (json_int_t)change, "ok", 0,
                                 "error", refused.msg, "code", refused.code)
                     : json_pack("{s:s, s:I, s:b, s:I}", "event", "rules", "id", (json_int_t)change, "ok", 1, "closed",
                                 (json_int_t)conn_judge_again(e)));
}

/* --- what the supervisor says ------------------------------------------------------------------------------------- */

static int
on_change(struct egress *e, const struct egress_change *m)
{
    (void)e;
    begin_rules(m->number);
    return 0;
}

static int
on_srt(struct egress *e, const struct nothing *m)
{
    (void)e;
    (void)m;
    rules.srt = true;
    return 0;
}

static int
on_rule(struct egress *e, const struct egress_rule *m)
{
    (void)e;
    if (refused.kind == ERR_NONE)
        (void)rule_read((const char *)m->text, m->n_text, texts, &rules, &refused);
    return 0;
}

static int
on_ask(struct egress *e, const struct egress_ask *m)
{
    (void)e;
    rules.ask = m->ms > 0;
    ask_ms = m->ms;
    return 0;
}

static int
on_parent(struct egress *e, const struct egress_parent *m)
{
    return parents_add(&e->parents, m->part, m->text, &fault);
}

static int
on_trust(struct egress *e, const struct egress_trust *m)
{
    (void)e;
    if (n_extra == EXTRA_MAX)
        return err_set(&fault, ERR_LIMIT, "egress.trust", "more than %d files of certificates to trust", EXTRA_MAX);
    extra[n_extra] = strdup(m->file);
    return extra[n_extra++] != NULL ? 0 : err_set(&fault, ERR_SYSTEM, "memory", "out of memory");
}

static int
on_name_server(struct egress *e, const struct egress_name_server *m)
{
    (void)e;
    if (name_servers.n > 0)
        buf_puts(&name_servers, ",");
    return buf_puts(&name_servers, m->address) == 0 && buf_nul(&name_servers) == 0 ? 0
           : err_set(&fault, ERR_LIMIT, "egress.resolver", "too many name servers");
}

static int
on_vault(struct egress *e, const struct nothing *m)
{
    (void)e;
    (void)m;
    with_vault = true;
    return 0;
}

static int
on_look(struct egress *e, const struct egress_look *m)
{
    (void)e;
    look = (struct decide_look){ m->open_tls, m->refuse_opaque, m->refuse_moving };
    return 0;
}

static int
on_strip(struct egress *e, const struct egress_strip *m)
{
    return strip_add(&e->strip, str_of(m->name)) == 0 ? 0
           : err_set(&fault, ERR_LIMIT, "egress.strip", "a field to strip that is none, or too many");
}

static int
on_go(struct egress *e, const struct nothing *m)
{
    (void)m;
    if (change > 0) {
        commit_and_say(e);
    } else if (commit_rules(e) < 0) {
        fault = refused;
        return -1;
    }
    gate.state = SAID;
    return 0;
}

static int
on_answer(struct egress *e, const struct egress_answer *m)
{
    ask_answer(e, m->number, m->says, m->by);
    return 0;
}

#define HEARS(R) \
    R(EGRESS_RULE, on_rule, false, BEGINS | SAID) \
    R(EGRESS_SRT, on_srt, false, BEGINS | SAID) \
    R(EGRESS_ASK, on_ask, false, BEGINS | SAID) \
    R(EGRESS_PARENT, on_parent, false, BEGINS) \
    R(EGRESS_TRUST, on_trust, false, BEGINS) \
    R(EGRESS_NAME_SERVER, on_name_server, false, BEGINS) \
    R(EGRESS_VAULT, on_vault, true, BEGINS) \
    R(EGRESS_LOOK, on_look, true, BEGINS) \
    R(EGRESS_STRIP, on_strip, false, BEGINS) \
    R(EGRESS_GO, on_go, false, BEGINS | SAID) \
    R(EGRESS_CHANGE, on_change, false, SAID) \
    R(EGRESS_ANSWER, on_answer, false, SAID)
PROTO_RULES(control_rules, HEARS)

/* One message. 1; 0: there is none now; or -1 with @fault: its end, or something that is not its language. */
static int
hear(struct egress *e, int flags)
{
    static uint8_t room[FRAME_HEADER + RULE_WIRE_MAX + 1];
    struct frame f;
    int r = packet_receive(FD_CONTROL, room, sizeof(room), &f, NULL, flags);
    enum msg_verdict verdict;

    if (r < 0 && errno == EAGAIN)
        return 0;
    if (r <= 0)
        return err_set(&fault, ERR_PROTOCOL, "egress.rules", "the supervisor ended before its rules did");
    verdict = msg_dispatch(&gate, &f, e);
    if (verdict != MSG_OK && fault.kind == ERR_NONE)
        err_set(&fault, ERR_PROTOCOL, "egress.rules", "%s", msg_verdict_text(verdict));
    return verdict == MSG_OK ? 1 : -1;
}

static int
read_rules(struct egress *e, struct err *err)
{
    begin_rules(0);
    gate = (struct msg_gate){ .rules = control_rules, .n_rules = ARRAY_LEN(control_rules), .state = BEGINS };
    while (gate.state == BEGINS)
        if (hear(e, 0) < 0) {
            *err = fault;
            return -1;
        }
    return 0;
}

/* When it ends nobody is there to decide any more. */
static void
on_control(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    int r = 1;

    if (events & EPOLLOUT)
        log_flush(e);
    for (int i = 0; (events & (EPOLLIN | EPOLLHUP)) && i < 64 && r > 0; i++)
        r = hear(e, MSG_DONTWAIT);
    e->over = e->over || r < 0;
}

static int
set_up(struct egress *e, struct err *err)
{
    uint8_t key[FAKE_KEY_SIZE];
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* the host's own addresses are never dialled: its services would take the sandbox for a neighbour */
    if (interface_addresses(own, &n_own, err) < 0 || read_rules(e, err) < 0 || loop_init(&e->loop, err) < 0)
        return -1;
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return err_sys(err, errno, "egress.random", "getrandom");
    e->waiting = (struct buf)BUF_INIT(LOG_WAITING_MAX);
    e->conns_max = confine_limits();
    conn_buffers_init(e);
    e->fakes = fake_adopt(FD_NAMES, key, e->loop.now_ms, err);
    close(FD_NAMES);
    if (e->fakes != NULL)
        e->resolver = resolver_new(&e->loop, name_servers.n > 0 ? (const char *)name_servers.p : NULL, err);
    if (e->resolver == NULL)
        return -1;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++) {
        struct stat st;
        e->listeners[i] = (struct watch)WATCH_INIT;
        if (i >= CAPTURE_PORT && (fstat(FD_LISTENERS + (int)i, &st) < 0 || !S_ISSOCK(st.st_mode))) {
            close(FD_LISTENERS + (int)i);       /* fewer ports than there is room for */
            continue;
        }
        e->listeners[i] = (struct watch){ .fd = FD_LISTENERS + (int)i, .owner = e,
                                          .ready = i == CAPTURE_DNS_UDP ? dns_on_udp : conn_on_listener };
        /* what is accepted inherits it: nothing is shared on the way to the sandbox, and to be paced only costs */
        (void)setsockopt(FD_LISTENERS + (int)i, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof("reno") - 1);
        if (loop_watch(&e->loop, &e->listeners[i], EPOLLIN) < 0)
            return err_sys(err, errno, "egress.listeners", "descriptor %d", FD_LISTENERS + (int)i);
    }
    e->control = (struct watch){ .fd = FD_CONTROL, .owner = e, .ready = on_control };
    if (loop_watch(&e->loop, &e->control, EPOLLIN) < 0 || loop_first(&e->loop, &e->control) < 0)
        return err_sys(err, errno, "egress.control", "descriptor %d", FD_CONTROL);
    if (!with_vault)
        close(FD_VAULT);
    else if (vault_end_open(e, FD_VAULT, extra, n_extra, err) < 0)
        return -1;
    if (confine(err) < 0)
        return -1;
    /* from here on there is nothing to say that the supervisor does not hear over the control socket */
    if (null < 0 || dup3(null, STDERR_FILENO, O_CLOEXEC) < 0)
        return err_sys(err, errno, "egress.stderr", "/dev/null");
    log_say(e, json_pack("{s:s}", "event", "up"));
    return 0;
}

/* The supervisor tells it to a person; when it cannot hear it, we do. */
static void
say_failed(const struct err *err)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "event", "failed", "error", err->msg, "code", err->code, "hint",
                          err->hint);
    char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;

    if (text == NULL || send(FD_CONTROL, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        fprintf(stderr, "cloche-egress: %s [%s]\n", err->msg, err->code);
    free(text);
    json_decref(o);
}

/* What programs said right before they ended goes out through the tunnels that are there. Nobody reads what comes back,
 * so their connections end by themselves; one whose server takes nothing is not waited for. */
static void
let_out(struct egress *e)
{
    struct err err = ERR_INIT;
    int n = 1;

    for (uint64_t end = e->loop.now_ms + TAIL_MS; e->loop.now_ms < end && (n > 0 || (n == 0 && conn_has_tail(e)));) {
        n = loop_round(&e->loop, conn_has_tail(e) ? TAIL_ROUND_MS : 0, &err);
        conn_free_ended(e);
    }
}

/* Whose deadlines are over, and what else is only looked at now and then; not when nothing is left that has any. */
static void
on_tick(struct timer *t)
{
    struct egress *e = t->owner;

    conn_tick(e);
    ask_tick(e);
    log_tick(e);
    if (e->n_conns > 0 || ask_open(e) || ++e->quiet < TICKS_AFTER)
        loop_at(&e->loop, t, e->loop.now_ms + TICK_MS);
}

static int
serve(struct egress *e, struct err *err)
{
    struct timer tick = { .due = on_tick, .owner = e };

    while (!e->over) {
        int n = loop_round(&e->loop, -1, err);
        if (n < 0)
            return -1;
        if (n > 0)
            e->quiet = 0;
        if (n > 0 && tick.at_ms == 0)
            loop_at(&e->loop, &tick, e->loop.now_ms + TICK_MS);
        conn_free_ended(e);
        conn_make_room(e);
    }
    loop_at(&e->loop, &tick, 0);
    loop_watch(&e->loop, &e->control, 0);
    let_out(e);
    conn_close_known(e);
    /* what was asked for in the sandbox's last moment */
    for (uint64_t end = e->loop.now_ms + LAST_MS; e->loop.now_ms < end; conn_free_ended(e))
        if (loop_round(&e->loop, 0, err) <= 0)
            break;
    conn_close_all(e);
    log_tick(e);
    log_finish(e, TELL_MS);
    return 0;
}

int
main(void)
{
    struct err err = ERR_INIT;
    int r;

    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    r = set_up(&egress, &err) < 0 ? -1 : serve(&egress, &err);
    if (r < 0)
        say_failed(&err);
    vault_end_close(&egress);
    resolver_free(egress.resolver);
    buf_free(&egress.parents.no_proxy);
    fake_free(egress.fakes);
    decide_rules_free(&rules);
    json_decref(texts);
    decide_rules_free(&live);
    json_decref(live_texts);
    buf_free(&egress.waiting);
    loop_close(&egress.loop);
    return r < 0 ? 1 : 0;
}
