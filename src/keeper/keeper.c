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


/* --- speaking ----------------------------------------------------------------------------------------------------- */

void
keeper_say(struct keeper_live *k, struct buf *frame, size_t at)
{
    if (frame_end(frame, at) == 0 && k->warden.fd >= 0)
        (void)packet_queue_send(&k->to_warden, k->warden.fd, frame, -1);
}

void
keeper_say_short(struct keeper_live *k, uint8_t type)
{
    uint8_t room[16];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));

    keeper_say(k, &frame, frame_begin(&frame, type, 0, 0));
}

static void
say_u8(struct keeper_live *k, uint8_t type, uint8_t v)
{
    uint8_t room[16];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, type, 0, 0);

    buf_put_u8(&frame, v);
    keeper_say(k, &frame, at);
}

/* One answer to each question: the warden counts. */
void
keeper_say_health(struct keeper_live *k, bool healthy)
{
    for (; k->checks > 0; k->checks--)
        say_u8(k, EDGE_HEALTHY, healthy);
}

static void
say_err(struct keeper_live *k, uint8_t type, const struct err *err)
{
    cleanup_buf struct buf frame = BUF_INIT(8192);
    size_t at = frame_begin(&frame, type, 0, 0);

    packet_put_err(&frame, err);
    keeper_say(k, &frame, at);
}

static void
say_gone(struct keeper_live *k, bool died, const char *why)
{
    cleanup_buf struct buf frame = BUF_INIT(EDGE_DETAIL_MAX + 64);
    size_t at = frame_begin(&frame, EDGE_GONE, 0, 0);
    char text[EDGE_DETAIL_MAX];

    k->ending = true;
    loop_break(&k->loop);
    if (k->told_gone)
        return;
    k->told_gone = true;
    snprintf(text, sizeof(text), "%s", why);
    buf_put_u8(&frame, died);
    wire_put_cstr(&frame, text, EDGE_DETAIL_MAX);
    keeper_say(k, &frame, at);
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

/* --- the warden's messages ---------------------------------------------------------------------------------------- */

/* It could not be made. */
static int
not_made(struct keeper_live *k, uint8_t bounds, struct err *err)
{
    keeper_hide_files(k, bounds, err);
    say_err(k, EDGE_NOT_MADE, err);
    k->ending = k->told_gone = true;
    return 0;
}

/* The policy is read for this alone: what is made is made of what is read then. */
static int
on_tell_print(void *ctx, const struct frame *f)
{
    struct keeper_live *k = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t bounds = wire_u8(&in);
    const char *policy = wire_cstr(&in, EDGE_POLICY_MAX, NULL);
    cleanup_buf struct buf frame = BUF_INIT(EDGE_PRINT_MAX + 64), print = BUF_INIT(EDGE_PRINT_MAX);
    struct err err = ERR_INIT;
    size_t at;
    int r;

    if (!wire_done(&in) || (bounds & ~(EDGE_BOUNDED | EDGE_JUDGED)) != 0)
        return -1;
    r = keeper_policy_of(k, bounds, policy, &err);
    if (r == 0)
        r = keeper_print(k, &k->policy, &print, &err);
    keeper_policy_forget(k);
    if (r < 0)
        return k->hosts.asker.pid > 0 ? keeper_hosts_wait(k, f) : not_made(k, bounds, &err);
    memcpy(k->print, print.p, print.n);
    at = frame_begin(&frame, EDGE_PRINT, 0, 0);
    wire_put_cstr(&frame, k->print, EDGE_PRINT_MAX);
    keeper_say(k, &frame, at);
    return 0;
}

static int
on_make(void *ctx, const struct frame *f)
{
    struct keeper_live *k = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *id = wire_cstr(&in, EDGE_ID, NULL);
    uint8_t bounds = wire_u8(&in);
    const char *policy = wire_cstr(&in, EDGE_POLICY_MAX, NULL);
    char volume[EDGE_ID + 1];
    cleanup_buf struct buf frame = BUF_INIT(EDGE_FACTS_MAX + 64), facts = BUF_INIT(EDGE_FACTS_MAX);
    struct err err = ERR_INIT;
    size_t at;
    int r;

    if (!edge_get_id(&in, volume, true) || !wire_done(&in) || !edge_is_id(id) ||
        (bounds & ~(EDGE_BOUNDED | EDGE_JUDGED)) != 0)
        return -1;
    r = keeper_make(k, id, bounds, policy, volume, &err);
    if (r < 0 && k->hosts.asker.pid > 0) {
        keeper_policy_forget(k);
        return keeper_hosts_wait(k, f);
    }
    if (r < 0 || keeper_confine(&err) < 0)
        return not_made(k, bounds, &err);
    k->made = true;
    k->gate.state = ST_MADE;
    at = frame_begin(&frame, EDGE_MADE, 0, 0);
    wire_put_cstr(&frame, keeper_facts(k, &facts) == 0 && buf_nul(&facts) == 0 ? (const char *)facts.p : "",
                  EDGE_FACTS_MAX);
    keeper_say(k, &frame, at);
    return 0;
}

int
keeper_again(struct keeper_live *k, const struct frame *f)
{
    return f->type == EDGE_MAKE ? on_make(k, f) : on_tell_print(k, f);
}

static int
on_sweep(void *ctx, const struct frame *f)
{
    struct keeper_live *k = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint8_t room[64];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    struct err err = ERR_INIT;
    char id[EDGE_ID + 1];

    if (!edge_get_id(&in, id, false) || !wire_done(&in))
        return -1;
    if (keeper_volume_remove(k, id, &err) < 0)
        say_err(k, EDGE_NOT_MADE, &err);
    else
        keeper_say(k, &frame, frame_begin(&frame, EDGE_SWEPT, 0, 0));
    k->ending = k->told_gone = true;
    return 0;
}

static int
on_op(void *ctx, const struct frame *f)
{
    static struct edge_op op;
    struct keeper_live *k = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint64_t number = wire_be64(&in);
    const char *by = wire_cstr(&in, EDGE_WHO_MAX, NULL);
    char caller[EDGE_ID + 1];

    if (k->passed < 0 || !edge_get_id(&in, caller, true) || !edge_op_get(&in, &op))
        return -1;
    k->l.sample_us = 0;         /* as often as while something runs, from now on */
    op_begin(k, &op, &(struct op_by){ .number = number, .text = by, .caller = caller }, take_fd(&k->passed));
    return 0;
}

/* Where the cgroup can be frozen it is, the guest with it; elsewhere every process but the guest gets SIGSTOP, which
 * none can refuse, and there is nobody left inside who would send SIGCONT. */
static int
hold(struct keeper_live *k, bool paused, struct err *err)
{
    if (!paused && k->by_signal)
        return guest_client_kill_all(k->l.client, SIGCONT, err);
    if (!paused)
        return sandbox_resume(k->l.sb, err);
    k->by_signal = sandbox_pause(k->l.sb, NULL) < 0;
    return k->by_signal ? guest_client_kill_all(k->l.client, SIGSTOP, err) : 0;
}

static int
set_paused(struct keeper_live *k, bool paused)
{
    struct err err = ERR_INIT;
    uint64_t now = clock_us();

    if (k->paused != paused && hold(k, paused, &err) < 0) {
        say_err(k, EDGE_NOT_PAUSED, &err);
        return 0;
    }
    if (k->paused && !paused)
        for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
            if (k->ops[i] != NULL)
                op_shift(k->ops[i], clock_since(now, k->paused_us));
    keeper_say_health(k, clock_since(now, k->check_us) < KEEPER_GUEST_US);
    k->paused = paused;
    k->paused_us = now;
    k->check_us = 0;
    say_u8(k, EDGE_PAUSED, paused);
    return 0;
}

static int
on_pause(void *ctx, const struct frame *f)
{
    (void)f;
    return set_paused(ctx, true);
}

static int
on_resume(void *ctx, const struct frame *f)
{
    (void)f;
    return set_paused(ctx, false);
}

/* It answers a question about its workspace, or that it has none. */
static int
on_check(void *ctx, const struct frame *f)
{
    const struct msg_file m = { .path = "." };
    struct keeper_live *k = ctx;
    struct err err = ERR_INIT;

    (void)f;
    k->checks++;
    if (k->paused) {
        keeper_say_health(k, true);
    } else if (k->check_us == 0) {
        k->check_us = clock_us();
        if (guest_client_file(k->l.client, MSG_FILE_STAT, &m, &k->check_request, &err) < 0) {
            k->check_us = 0;
            keeper_say_health(k, err.kind == ERR_LIMIT);       /* busy, not ill */
        }
    } else if (clock_since(clock_us(), k->check_us) >= KEEPER_GUEST_US) {
        keeper_say_health(k, false);
    }
    return 0;
}

static int
on_show(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);

    keeper_policy_show(ctx, wire_be32(&in));
    return 0;
}

static int
on_change(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t number = wire_be32(&in);
    const char *policy = wire_cstr(&in, EDGE_POLICY_MAX, NULL);

    if (!wire_done(&in))
        return -1;
    keeper_policy_change(ctx, number, policy);
    return 0;
}

static int
on_port_closed(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *id = wire_cstr(&in, EDGE_ID, NULL);

    if (!wire_done(&in) || !edge_is_id(id))
        return -1;
    port_closed(ctx, id);
    return 0;
}

static int
on_use(void *ctx, const struct frame *f)
{
    (void)f;
    keeper_say_usage(ctx);
    return 0;
}

static int
on_stop(void *ctx, const struct frame *f)
{
    (void)f;
    keeper_gone(ctx, "stopped");
    return 0;
}

const struct msg_rule keeper_warden_rules[] = {
    /* type        once   flags states              min  max length                        handler */
    { EDGE_TELL_PRINT, false, 0, ST_FRESH,          6,   6 + EDGE_POLICY_MAX,              on_tell_print },
    { EDGE_MAKE,   false, 0,    ST_FRESH,           48,  48 + EDGE_POLICY_MAX + EDGE_ID,   on_make },
    { EDGE_SWEEP,  true,  0,    ST_FRESH,           37,  37,                               on_sweep },
    { EDGE_OP,     false, 0,    ST_MADE,            65,  EDGE_OP_BYTES + 18 + EDGE_WHO_MAX + EDGE_ID, on_op },
    { EDGE_RUN_ASK, false, 0,   ST_MADE,            36,  edge_run_ask_MOST + 5 + EDGE_ID,   asker_on_ask },
    { EDGE_CALLER_ENDED, false, 0, ST_MADE,         37,  37,                               op_on_caller_ended },
    { EDGE_PAUSE,  false, 0,    ST_MADE,            0,   0,                                on_pause },
    { EDGE_RESUME, false, 0,    ST_MADE,            0,   0,                                on_resume },
    { EDGE_CHECK,  false, 0,    ST_MADE,            0,   0,                                on_check },
    { EDGE_SHOW,   false, 0,    ST_MADE,            4,   4,                                on_show },
    { EDGE_CHANGE, false, 0,    ST_MADE,            9,   9 + EDGE_POLICY_MAX,              on_change },
    { EDGE_NET_ANSWER, false, 0, ST_MADE,           6,   6,                                keeper_on_net_answer },
    { EDGE_USE,    false, 0,    ST_MADE,            0,   0,                                on_use },
    { EDGE_PORT_CLOSED, false, 0, ST_MADE,         37,  37,                               on_port_closed },
    { EDGE_STOP,   false, 0,    ST_FRESH | ST_MADE | ST_ASKING, 0, 0,                      on_stop },
};
const size_t keeper_n_warden_rules = ARRAY_LEN(keeper_warden_rules);

static void
hear_warden(struct keeper_live *k)
{
    for (int i = 0; i < 16 && !k->ending; i++) {
        struct frame f;
        int r = packet_receive(k->warden.fd, k->in, sizeof(k->in), &f, &k->passed, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0 && msg_dispatch(&k->gate, &f, k) == MSG_OK) {
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
    cleanup_buf struct buf frame = BUF_INIT(EDGE_FACTS_MAX + 64), facts = BUF_INIT(EDGE_FACTS_MAX);
    cleanup_close int fd = -1;
    uint8_t room[FRAME_HEADER + 1];
    struct frame f;
    size_t at;
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
    if (k->made)
        keeper_say_masks(k);
    at = frame_begin(&frame, EDGE_STILL, 0, 0);
    buf_put_u8(&frame, k->made);
    buf_put_u8(&frame, k->paused);
    buf_put_be32(&frame, (uint32_t)op_untold(k));
    buf_put_be32(&frame, (uint32_t)asker_count(k));
    if (k->made)
        (void)keeper_facts(k, &facts);
    wire_put_cstr(&frame, buf_nul(&facts) == 0 ? (const char *)facts.p : "", EDGE_FACTS_MAX);
    keeper_say(k, &frame, at);
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
    } else {
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
