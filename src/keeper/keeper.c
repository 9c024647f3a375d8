/* keeper/keeper.c: what the warden, the launcher and the guest tell a keeper (see keeper.h) */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "program/say.h"
#include "proto/edge_launcher.h"

/* --- speaking ----------------------------------------------------------------------------------------------------- */

void
keeper_say(struct keeper_live *k, uint8_t type, const struct shape *shape, const void *m)
{
    if (k->warden.fd >= 0)
        (void)proto_queue(&k->to_warden, k->warden.fd, type, shape, m, -1);
}

/* One answer to each question: the warden counts. */
void
keeper_say_health(struct keeper_live *k, bool healthy)
{
    for (; k->checks > 0; k->checks--)
        PROTO_SAY(keeper_say, k, EDGE_HEALTHY, .yes = healthy);
}

static void
say_gone(struct keeper_live *k, bool died, const char *why)
{
    char text[EDGE_DETAIL_MAX];

    k->ending = true;
    loop_break(&k->loop);
    if (k->told_gone)
        return;
    k->told_gone = true;
    snprintf(text, sizeof(text), "%s", why);
    PROTO_SAY(keeper_say, k, EDGE_GONE, .died = died, .why = text);
}

void
keeper_gone(struct keeper_live *k, const char *why)
{
    say_gone(k, false, why);
}

/* The same where nobody wanted it, and no limit did it: such a one may be made anew. */
void
keeper_died(struct keeper_live *k, const char *why)
{
    say_gone(k, true, why);
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

static void
keep_spare(struct keeper_live *k)
{
    if (k->spare < 0)
        k->spare = io_keep_place();
}

/* packet_receive(), with a place for a descriptor that comes. If it took the last one there is no spare one behind. */
static int
receive(struct keeper_live *k, int socket, uint8_t *room, size_t size, struct frame *f)
{
    int r, why;

    close_fd(&k->spare);
    r = packet_receive(socket, room, size, f, &k->passed, MSG_DONTWAIT);
    why = errno;
    keep_spare(k);
    errno = why;
    return r;
}

/* Its end is said as that of any other one: by its number the warden knows whose it was. */
static void
turned_away(struct keeper_live *k, const struct keep_op *m, uint8_t kind, const struct err *why)
{
    if (m != NULL && kind != OP_CONNECT)        /* the warden counts them */
        PROTO_SAY(keeper_say, k, EDGE_OP_SAID, .number = m->number, .kind = kind, .error = why->code);
    KEEPER_SAY_SHORT(k, EDGE_OP_ENDED);
}

void
keeper_turn_away(struct keeper_live *k, int fd, const struct keep_op *m, uint8_t kind, const struct err *why)
{
    const struct edge_why no = { .why = *why };

    (void)proto_send(fd, EDGE_FAILED, EDGE_FAILED_SHAPE(), &no, -1);
    close(fd);
    keep_spare(k);
    turned_away(k, m, kind, why);
}

bool
keeper_is_full(struct keeper_live *k, const struct keep_op *m, uint8_t kind)
{
    struct err err = ERR_INIT;

    err_sys(&err, EMFILE, "serve.op", "the keeper");
    if (k->passed == PACKET_FULL) {     /* the limit was lowered: its socket is closed, which says so */
        turned_away(k, m, kind, &err);
        return true;
    }
    if (k->passed < 0 || k->spare >= 0)
        return false;
    keeper_turn_away(k, take_fd(&k->passed), m, kind, &err);
    return true;
}

/* --- the warden's messages ---------------------------------------------------------------------------------------- */

/* It could not be made. */
static int
not_made(struct keeper_live *k, uint8_t bounds, struct err *err)
{
    keeper_hide_files(k, bounds, err);
    PROTO_SAY(keeper_say, k, EDGE_NOT_MADE, .why = *err);
    k->ending = k->told_gone = true;
    return 0;
}

/* The policy is read for this alone: what is made is made of what is read then. */
static int
on_tell_print(struct keeper_live *k, const struct keep_tell_print *m)
{
    cleanup_buf struct buf print = BUF_INIT(EDGE_PRINT_MAX);
    struct err err = ERR_INIT;
    int r;

    memcpy(k->owner, m->owner, sizeof(k->owner));
    r = keeper_policy_of(k, m->bounds, m->policy, &err);
    if (r == 0)
        r = keeper_print(k, &k->policy, &print, &err);
    keeper_policy_forget(k);
    if (r < 0)
        return k->hosts.asker.pid > 0 ? keeper_hosts_wait(k) : not_made(k, m->bounds, &err);
    memcpy(k->print, print.p, print.n);
    PROTO_SAY(keeper_say, k, EDGE_PRINT, .print = k->print);
    return 0;
}

/* What it is, in lines; "" nothing. */
static const char *
facts_of(struct keeper_live *k, struct buf *room)
{
    return keeper_facts(k, room) == 0 && buf_nul(room) == 0 ? (const char *)room->p : "";
}

static int
on_make(struct keeper_live *k, const struct keep_make *m)
{
    cleanup_buf struct buf facts = BUF_INIT(EDGE_FACTS_MAX);
    struct err err = ERR_INIT;
    int r = keeper_make(k, m, &err);

    if (r < 0 && k->hosts.asker.pid > 0) {
        keeper_policy_forget(k);
        return keeper_hosts_wait(k);
    }
    if (r < 0 || keeper_confine(&err) < 0)
        return not_made(k, m->bounds, &err);
    sandbox_confined(k->l.sb);
    k->made = true;
    k->gate.state = k->park.language != NULL ? ST_PARKED : ST_MADE;
    if (k->park.language != NULL)
        return park_begin(k, &err) < 0 ? not_made(k, m->bounds, &err) : 0;
    PROTO_SAY(keeper_say, k, EDGE_MADE, .facts = facts_of(k, &facts));
    return 0;
}

static int
on_take(struct keeper_live *k, const struct keep_take *m)
{
    cleanup_buf struct buf facts = BUF_INIT(EDGE_FACTS_MAX);
    struct err err = ERR_INIT;

    if (park_take(k, &err) < 0 || keeper_own(k, m->owner, &err) < 0)
        return not_made(k, k->bounds, &err);
    k->gate.state = ST_MADE;
    PROTO_SAY(keeper_say, k, EDGE_MADE, .facts = facts_of(k, &facts));
    return 0;
}

static int
on_sweep(struct keeper_live *k, const struct edge_only_id *volume)
{
    struct err err = ERR_INIT;

    if (keeper_volume_remove(k, volume->id, &err) < 0)
        PROTO_SAY(keeper_say, k, EDGE_NOT_MADE, .why = err);
    else
        KEEPER_SAY_SHORT(k, EDGE_SWEPT);
    k->ending = k->told_gone = true;
    return 0;
}

static int
on_op(struct keeper_live *k, const struct keep_op *m)
{
    static struct edge_op op;
    struct wire_in in = wire_in_of(m->op, m->n_op);

    if (k->passed == -1 || !edge_op_get(&in, &op))
        return -1;
    if (keeper_is_full(k, m, (uint8_t)op.kind) || snapshot_aside(k))
        return 0;
    keeper_look_soon(k, clock_us());
    op_begin(k, &op, m, take_fd(&k->passed));
    return 0;
}

/* Where the cgroup can be frozen it is, the guest with it; elsewhere every process but the guest gets SIGSTOP, which
 * none can refuse, and there is nobody left inside who would send SIGCONT. Not in a machine: its root can have its
 * kernel start what the guest's signals do not reach, so one that cannot be stopped as a whole is not paused. */
static int
hold(struct keeper_live *k, bool paused, struct err *err)
{
    if (!paused && k->by_signal)
        return guest_client_kill_all(k->l.client, SIGCONT, err);
    if (!paused)
        return sandbox_resume(k->l.sb, err);
    if (sandbox_facts(k->l.sb)->boundary == BOUNDARY_VM)
        return sandbox_pause(k->l.sb, err);
    k->by_signal = sandbox_pause(k->l.sb, NULL) < 0;
    return k->by_signal ? guest_client_kill_all(k->l.client, SIGSTOP, err) : 0;
}

int
keeper_hold(struct keeper_live *k, bool paused, struct err *err)
{
    uint64_t now = clock_us();

    if (k->paused != paused && hold(k, paused, err) < 0)
        return -1;
    if (k->paused && !paused)
        for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
            if (k->ops[i] != NULL)
                op_shift(k->ops[i], clock_since(now, k->paused_us));
    keeper_say_health(k, clock_since(now, k->check_us) < KEEPER_GUEST_US);
    k->paused_us = k->paused == paused ? k->paused_us : now;
    k->paused = paused;
    k->check_us = 0;
    return 0;
}

/* While its files are copied it stays paused, and is as it was told to be when that is over. */
static int
set_paused(struct keeper_live *k, bool paused)
{
    struct err err = ERR_INIT;

    if (k->snapshot.pid > 0)
        k->snapshot.resumes = !paused;
    else if (keeper_hold(k, paused, &err) < 0)
        PROTO_SAY(keeper_say, k, EDGE_NOT_PAUSED, .why = err);
    if (err.kind == ERR_NONE)
        PROTO_SAY(keeper_say, k, EDGE_PAUSED, .yes = paused);
    return 0;
}

static int
on_pause(struct keeper_live *k, const struct nothing *m)
{
    (void)m;
    return set_paused(k, true);
}

static int
on_resume(struct keeper_live *k, const struct nothing *m)
{
    (void)m;
    return set_paused(k, false);
}

/* It answers a question about its workspace, or that it has none. */
static int
on_check(struct keeper_live *k, const struct nothing *m)
{
    const struct msg_file here = { .path = "." };
    struct err err = ERR_INIT;

    (void)m;
    k->checks++;
    if (k->paused) {
        keeper_say_health(k, true);
    } else if (k->check_us == 0) {
        k->check_us = clock_us();
        if (guest_client_file(k->l.client, MSG_FILE_STAT, &here, &k->check_request, &err) < 0) {
            k->check_us = 0;
            keeper_say_health(k, err.kind == ERR_LIMIT);       /* busy, not ill */
        }
    } else if (clock_since(clock_us(), k->check_us) >= KEEPER_GUEST_US) {
        keeper_say_health(k, false);
    }
    return 0;
}

static int
on_show(struct keeper_live *k, const struct edge_number *m)
{
    keeper_policy_show(k, m->number);
    return 0;
}

static int
on_change(struct keeper_live *k, const struct keep_change *m)
{
    keeper_policy_change(k, m->number, m->policy);
    return 0;
}

static int
on_port_closed(struct keeper_live *k, const struct edge_only_id *port)
{
    port_closed(k, port->id);
    return 0;
}

static int
on_call(struct keeper_live *k, const struct keep_call *m)
{
    transcript_call(&k->transcript, m);
    return 0;
}

static int
on_use(struct keeper_live *k, const struct nothing *m)
{
    (void)m;
    keeper_say_usage(k);
    return 0;
}

static int
on_stop(struct keeper_live *k, const struct nothing *m)
{
    (void)m;
    keeper_gone(k, "stopped");
    return 0;
}

#define HEARS(R) \
    R(EDGE_TELL_PRINT, on_tell_print, false, ST_FRESH) \
    R(EDGE_MAKE, on_make, false, ST_FRESH) \
    R(EDGE_TAKE, on_take, true, ST_PARKED) \
    R(EDGE_SWEEP, on_sweep, true, ST_FRESH) \
    R(EDGE_OP, on_op, false, ST_MADE) \
    R(EDGE_RUN_ASK, asker_on_ask, false, ST_MADE) \
    R(EDGE_CALL, on_call, false, ST_MADE) \
    R(EDGE_CALLER_ENDED, op_on_caller_ended, false, ST_MADE) \
    R(EDGE_PAUSE, on_pause, false, ST_MADE) \
    R(EDGE_RESUME, on_resume, false, ST_MADE) \
    R(EDGE_CHECK, on_check, false, ST_MADE) \
    R(EDGE_SHOW, on_show, false, ST_MADE) \
    R(EDGE_CHANGE, on_change, false, ST_MADE) \
    R(EDGE_NET_ANSWER, keeper_on_net_answer, false, ST_MADE) \
    R(EDGE_USE, on_use, false, ST_MADE) \
    R(EDGE_PORT_CLOSED, on_port_closed, false, ST_MADE) \
    R(EDGE_SNAPSHOT, snapshot_on_ask, false, ST_MADE) \
    R(EDGE_STOP, on_stop, false, ST_FRESH | ST_MADE | ST_ASKING | ST_PARKED)
PROTO_RULES(warden_rules, HEARS)

bool
keeper_hear(struct keeper_live *k, const struct frame *f)
{
    k->gate.rules = warden_rules;
    k->gate.n_rules = ARRAY_LEN(warden_rules);
    k->heard = f;
    return msg_dispatch(&k->gate, f, k) == MSG_OK;
}

static void
hear_warden(struct keeper_live *k)
{
    for (int i = 0; i < 16 && !k->ending; i++) {
        struct frame f;
        int r = receive(k, k->warden.fd, k->in, sizeof(k->in), &f);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0 && keeper_hear(k, &f)) {
            close_fd(&k->passed);
            continue;
        }
        close_fd(&k->passed);
        if (r != 0)
            return keeper_died(k, "its warden said what it must not");
        /* its end: the launcher sends another one */
        loop_drop(&k->loop, &k->warden);
        packet_queue_clear(&k->to_warden);
        k->alone_us = clock_us();
        if (k->park.waits)
            keeper_gone(k, "the warden that it was made for is gone");
        return;
    }
}

void
keeper_on_warden(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;

    if ((events & EPOLLOUT) != 0)
        (void)packet_queue_flush(&k->to_warden, w->fd);
    if ((events & ~(uint32_t)EPOLLOUT) != 0)
        hear_warden(k);
}

/* The launcher brings an edge to a new warden; its end is ours. */
void
keeper_on_launcher(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;
    cleanup_buf struct buf facts = BUF_INIT(EDGE_FACTS_MAX);
    cleanup_close int fd = -1;
    uint8_t room[FRAME_HEADER + 1];
    struct frame f;
    int r = packet_receive(w->fd, room, sizeof(room), &f, &fd, MSG_DONTWAIT);

    (void)events;
    if (r < 0 && errno == EAGAIN)
        return;
    if (r <= 0 || f.type != EDGE_ADOPT || f.length != 0 || fd < 0 || io_set_nonblock(fd, true) < 0) {
        keeper_gone(k, EDGE_WHY_KILLED);
        return;
    }
    loop_drop(&k->loop, &k->warden);
    packet_queue_clear(&k->to_warden);
    keeper_hosts_drop(k);       /* what the former one wanted; the next one says it again */
    k->warden.fd = take_fd(&fd);
    k->checks = k->next_number = 0;     /* the former one's questions */
    k->snapshot.asked = false;
    if (k->made)
        keeper_say_masks(k);
    PROTO_SAY(keeper_say, k, EDGE_STILL, .made = k->made, .paused = k->paused && !k->snapshot.resumes,
              .ops = (uint32_t)op_untold(k),
              .asks = (uint32_t)asker_count(k), .facts = k->made ? facts_of(k, &facts) : "");
    keeper_ask_again(k);
}

/* --- the sandbox -------------------------------------------------------------------------------------------------- */

static void
on_event(struct keeper_live *k, const struct guest_event *ev)
{
    if (ev->type == GUEST_CLOSED) {
        struct err err = ERR_INIT;
        struct sandbox_usage usage;
        sandbox_usage(k->l.sb, &usage);
        k->l.memory = k->l.memory || usage.oom_kills > 0;
        (void)sandbox_gone(k->l.sb, &err);
        if (k->l.memory)
            keeper_gone(k, "its memory limit was reached");
        else
            keeper_died(k, err.msg);
    } else if (ev->type == GUEST_NOTICE) {
        if (ev->notice.kind == NOTICE_MEMORY)
            k->oom_us = clock_us();     /* the guest has ended what ran; it goes on, and so does the sandbox */
        else if (ev->notice.kind == NOTICE_PIDS)
            keeper_gone(k, "its limit of processes was reached");
        else
            keeper_died(k, ev->notice.kind == NOTICE_BLIND ? "the memory limit could not be watched"
                                                    : "the name guard failed");
    } else if (ev->type == GUEST_DENIED) {
        session_note_denied(&k->r, &ev->denied);
    } else if ((ev->type == GUEST_FILE_INFO || ev->type == GUEST_FILE_FAILED) && k->check_us > 0 &&
               ev->channel == k->check_request) {
        k->check_us = 0;
        keeper_say_health(k, true);
    } else if (!park_event(k, ev) && !browser_event(k, ev)) {
        (void)op_event(k, ev);
    }
}

void
keeper_on_guest(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;
    struct guest_event ev;
    struct err err = ERR_INIT;
    int got = guest_client_pump(k->l.client, &err);

    (void)events;
    while (got >= 0 && !k->ending && (got = guest_client_next(k->l.client, &ev, &err)) == 1)
        on_event(k, &ev);
    if (got < 0)
        keeper_died(k, err.msg);       /* it broke the protocol */
}
