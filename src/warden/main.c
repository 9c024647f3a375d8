/* warden/main.c: cloche-warden: start, give everything up, then one loop (see warden.h)
 *
 * Started by cloche serve with the launcher's edge at descriptor 3. It ends with the launcher, and leaves its record
 * as it is: the next warden finds what there was.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "warden/approvals.h"
#include "warden/record.h"
#include "warden/spans.h"
#include "warden/sign.h"

#define FD_LAUNCHER 3
#define AT_ONCE     64      /* events of one round; messages of one peer in one */
#define PRUNE_EVERY 1000    /* events */
#define REST_MS     100     /* without an event: nobody is kept waiting, as far as that can be known */

/* Without the values that no record of its sandbox may have, nor a part of one that was @cut off at the end. */
static void
clean(struct box *b, char detail[EDGE_DETAIL_MAX], bool cut)
{
    cleanup_buf struct buf out = BUF_INIT(16 * EDGE_DETAIL_MAX);
    size_t n = strlen(detail), tail = b != NULL && cut ? masks_tail(&b->masks) : 0;

    if (b == NULL || (b->masks.n == 0 && !b->masks.all))
        return;
    detail[n > tail ? n - tail : 0] = '\0';
    if (masks_redact(&b->masks, str_of(detail), &out))
        snprintf(detail, EDGE_DETAIL_MAX, "%.*s", buf_ok(&out) ? (int)out.n : 0, (const char *)out.p);
}

static void __attribute__((format(printf, 4, 0)))
note(struct warden *w, const char *id, const char *type, const char *fmt, va_list ap)
{
    char detail[EDGE_DETAIL_MAX];
    struct edge_event event = { .at_ms = clock_wall_ms(), .id = id, .type = type, .detail = detail };
    int n;

    n = vsnprintf(detail, sizeof(detail), fmt, ap);
    clean(box_of_id(w, id), detail, n >= (int)sizeof(detail));
    if (state_note(w->state, &event, NULL) == 0) {
        event.number = state_last_event(w->state);
        watch_event(w, &event);
    }
    record_note(w, id, type, detail);
    if (++w->noted >= PRUNE_EVERY) {
        w->noted = 0;
        (void)state_prune(w->state, time_steady(w), NULL);
        epoch_next(&w->epochs->defaults);
        epoch_next(&w->epochs->credentials);
    }
}

void
warden_note(struct warden *w, const struct box *box, const char *type, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note(w, box != NULL ? box->r.id : "", type, fmt, ap);
    va_end(ap);
}

void
warden_note_id(struct warden *w, const char *id, const char *type, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note(w, id, type, fmt, ap);
    va_end(ap);
}

int
warden_watch(struct warden *w, struct watch *edge, const struct packet_queue *out)
{
    return loop_watch(&w->loop, edge, packet_queue_waits(out) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void
warden_flush(struct warden *w)
{
    struct err err = ERR_INIT;
    uint64_t lost;

    if (!state_waits(w->state) && w->behind.kind == ERR_NONE)
        return;
    record_keep_head(w);
    if (state_flush(w->state, &err) == 0) {
        if (w->behind.kind != ERR_NONE)
            log_say(LEVEL_WARN, "what happened since is on record now");
        w->behind = (struct err)ERR_INIT;
    } else if (w->behind.kind == ERR_NONE) {
        log_say(LEVEL_ERROR, "%s: what happens waits in memory for its record [%s]", err.msg, err.code);
        w->behind = err;
    }
    if ((lost = state_lost(w->state)) > 0)
        log_say(LEVEL_ERROR, "%llu changes are in no record: too many waited for it", (unsigned long long)lost);
}

/* One who is heard: a keeper (@box), a front, or the launcher. */
struct peer {
    struct watch *edge;
    struct packet_queue *out;
    struct msg_gate *gate;              /* NULL for a front: its questions are judged by who asks them */
    struct box *box;
    struct front_edge *front;
};

/* What one peer said, a few messages of it. 1; 0 at its end, -1 when it broke the dialogue. */
static int
hear(struct warden *w, const struct peer *p)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame f;
        enum msg_verdict verdict;
        int r;
        if (i > 0 && p->front != NULL && answers_wait(p->front))
            return 1;
        r = packet_receive(p->edge->fd, w->in, sizeof(w->in), &f, &w->passed, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return 1;
        if (r <= 0)
            return r;
        w->heard = p->box;
        verdict = p->front != NULL ? front_heard(w, p->front, &f) : msg_dispatch(p->gate, &f, w);
        close_fd(&w->passed);
        if (p->box != NULL && w->heard == NULL)
            return 1;       /* it is no more */
        if (w->refused_start)
            return 0;
        if (verdict != MSG_OK) {
            log_say(LEVEL_ERROR, "message %u: %s", f.type, msg_verdict_text(verdict));
            return -1;
        }
    }
    return 1;
}

static int
peer(struct warden *w, const struct peer *p, uint32_t events)
{
    if ((events & EPOLLOUT) != 0) {
        if (packet_queue_flush(p->out, p->edge->fd) < 0)
            return -1;
        if (p->front != NULL)
            answers_watch(w, p->front);
        else
            (void)warden_watch(w, p->edge, p->out);
    }
    /* what was asked before may have made it one that is not heard */
    if (p->front != NULL && answers_wait(p->front) && (events & (EPOLLHUP | EPOLLERR)) == 0)
        return 1;
    return (events & ~(uint32_t)EPOLLOUT) != 0 ? hear(w, p) : 1;
}

void
warden_on_front(struct watch *edge, uint32_t events)
{
    struct front_edge *e = edge->owner;
    const struct peer p = { .edge = edge, .out = &e->out, .front = e };

    if (peer(e->w, &p, events) > 0)
        return;
    loop_drop(&e->w->loop, edge);
    packet_queue_clear(&e->out);
    approvals_front_gone(e->w, (uint32_t)(e - e->w->fronts));
    sign_front_gone(e->w, (uint32_t)(e - e->w->fronts));
}

static void
on_launcher(struct watch *edge, uint32_t events)
{
    struct warden *w = edge->owner;
    const struct peer p = { .edge = edge, .out = &w->to_launcher, .gate = &w->launcher_gate };

    if (peer(w, &p, events) > 0)
        return;
    w->over = true;
    loop_break(&w->loop);       /* that the others end then is nothing of theirs */
}

/* It may be no more afterwards. */
void
warden_on_box(struct watch *edge, uint32_t events)
{
    struct box *b = edge->owner;
    struct warden *w = b->w;
    const struct peer p = { .edge = edge, .out = &b->out, .gate = &b->gate, .box = b };

    w->heard = b;
    if (peer(w, &p, events) <= 0 && w->heard == b)
        box_lost(b);
    w->heard = NULL;
}

static void
on_rest(struct timer *t)
{
    struct warden *w = t->owner;

    state_settle(w->state);
}

/* When there is something to do for the record though nothing happens. */
static uint64_t
rest_at(const struct warden *w)
{
    return state_log_is_long(w->state) ? clock_ms() + REST_MS : state_again_ms(w->state);
}

static void
serve(struct warden *w)
{
    w->rest.due = on_rest;
    w->rest.owner = w;
    ends_next(w);
    while (!w->over) {
        /* whatever happened may have made something due to those */
        boxes_turn(w);
        pool_turn(w);
        volumes_turn(w);
        usage_turn(w);
        time_seen(w, false);
        warden_flush(w);
        loop_at(&w->loop, &w->rest, rest_at(w));
        (void)loop_round(&w->loop, -1, NULL);
    }
}

static bool
number(const char *text, uint64_t max, uint64_t *out)
{
    return str_parse_u64(str_of(text), max, out);
}

void
warden_refuse(struct warden *w, const struct err *err)
{
    const struct edge_why m = { .why = *err };

    w->refused_start = true;
    (void)proto_send(w->launcher.fd, EDGE_REFUSED, EDGE_REFUSED_SHAPE(), &m, -1);
}

int
main(int argc, char **argv)
{
    static struct warden w = { .launcher = { .fd = FD_LAUNCHER, .ready = on_launcher, .owner = &w }, .passed = -1,
                               .epochs_fd = -1, .hook = WATCH_INIT, .to_hook = PACKET_QUEUE_INIT(256UL * 1024),
                               .to_launcher = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX) };
    struct err err = ERR_INIT;
    uint64_t max, each, idle, life, after, tries, window;

    if (argc != 10 || fcntl(FD_LAUNCHER, F_GETFD) < 0 || !number(argv[2], 100000, &max) ||
        !number(argv[3], 100000, &each) || !number(argv[4], UINT32_MAX, &idle) ||
        !number(argv[5], UINT32_MAX, &life) || !number(argv[6], EDGE_RECOVER_AFTER, &after) ||
        !number(argv[7], EDGE_RECOVER_TRIES, &tries) || !number(argv[8], EDGE_RECOVER_WINDOW, &window)) {
        fprintf(stderr, "cloche-warden is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-warden");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    w.max_boxes = (size_t)max;
    w.max_per_agent = (size_t)each;
    w.default_idle_s = (uint32_t)idle;
    w.default_life_s = (uint32_t)life;
    w.default_recovery = (struct edge_recovery){ .after_s = (uint32_t)after, .tries = (uint32_t)tries,
                                                 .window_s = (uint32_t)window };
    w.launcher_gate = launch_gate;
    span_open(&w);
    for (size_t i = 0; i < WARDEN_FRONTS; i++) {
        w.fronts[i].w = &w;
        w.fronts[i].edge = (struct watch)WATCH_INIT;
        w.fronts[i].out = (struct packet_queue)PACKET_QUEUE_INIT(EDGE_QUEUE_MAX);
    }
    (void)umask(077);
    process_stats_open(&w.self, 0);
    process_stats_open(&w.above, getppid());
    if (record_open(&w, argv[9]) < 0)
        return 1;
    if (loop_init(&w.loop, &err) < 0 || (w.state = state_open(argv[1], &err)) == NULL ||
        record_load(&w, &err) < 0 || time_load(&w, &err) < 0 ||
        (w.epochs = epochs_new(&w.epochs_fd, &err)) == NULL || tokens_load(&w, &err) < 0 ||
        volumes_load(&w, &err) < 0 || ports_load(&w, &err) < 0 || attach_begin(&w, &err) < 0 ||
        gate_open(&w, &err) < 0 || sign_open(&w, &err) < 0 ||
        io_set_nonblock(w.launcher.fd, true) < 0 || warden_confine(&err) < 0) {
        warden_refuse(&w, &err);
        return 1;
    }
    if (warden_watch(&w, &w.launcher, &w.to_launcher) < 0)
        return 1;
    serve(&w);
    time_seen(&w, true);
    record_end(&w);
    record_keep_head(&w);
    state_at_once(w.state);
    warden_flush(&w);
    return 0;
}
