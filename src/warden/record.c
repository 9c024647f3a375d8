/* warden/record.c: entries on their way into the audit record, and what waits for them (see record.h) */
#include "warden/record_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

int
record_open(struct warden *w, const char *mode)
{
    static const char *const names[] = { "off", "try", "required" };
    struct record *r = calloc(1, sizeof(*r));
    size_t i;

    for (i = 0; i < 3 && strcmp(names[i], mode) != 0; i++)
        ;
    if (r == NULL || i == 3 || (r->feed = audit_feed_new()) == NULL) {
        free(r);
        return -1;
    }
    r->mode = (enum record_mode)i;
    r->scribe = (struct watch)WATCH_INIT;
    r->out = (struct packet_queue)PACKET_QUEUE_INIT(EDGE_QUEUE_MAX);
    w->record = r;
    return 0;
}

bool
record_required(const struct warden *w, const struct box *b)
{
    return w->record->mode == RECORD_IS_REQUIRED ||
           (w->record->mode == RECORD_IS_TRIED && b != NULL && str_eq_c(edge_line(b->r.facts, "audit"), "required"));
}

uint64_t
record_operation(const struct warden *w)
{
    return w->record->operation;
}

/* --- to the scribe ------------------------------------------------------------------------------------------------ */

static int
say(struct warden *w, uint8_t type, const struct shape *shape, const void *m, int fd)
{
    struct record *r = w->record;

    if (proto_queue(&r->out, r->scribe.fd, type, shape, m, fd) < 0)
        return -1;      /* its end is noticed where it is read */
    (void)warden_watch(w, &r->scribe, &r->out);
    return 0;
}

int
record_read(struct warden *w, const char *id, uint64_t offset, int fd)
{
    struct scribe_read m = { .offset = offset };

    if (!w->record->ready) {
        close_fd(&fd);
        return -1;
    }
    memcpy(m.id, id, sizeof(m.id));
    return say(w, SCRIBE_READ, SCRIBE_READ_SHAPE(), &m, fd);
}

/* As much as it gets at a time. */
static void
pump(struct warden *w)
{
    struct record *r = w->record;

    for (struct item *i = r->first; i != NULL && r->ready && !r->down; i = i->next) {
        const struct scribe_write m = { .durable = i->durable, .number = i->number, .n_body = i->n,
                                        .body = (const uint8_t *)i->body };
        if (i->sent)
            continue;
        if (r->in_flight > 0 && r->in_flight + i->n > RECORD_WINDOW)
            return;
        if (say(w, SCRIBE_WRITE, SCRIBE_WRITE_SHAPE(), &m, -1) < 0)
            return;
        if (r->in_flight == 0)
            record_expect(w);
        i->sent = true;
        r->in_flight += i->n;
    }
}

static void
not_sent(struct record *r)
{
    for (struct item *i = r->first; i != NULL; i = i->next)
        i->sent = false;
    r->in_flight = 0;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* The next moment that no other entry has. */
static void
stamp(struct record *r, struct audit_entry *e)
{
    const uint64_t us = clock_wall_us();

    r->last_us = us > r->last_us ? us : r->last_us + 1;
    e->when = (struct timespec){ .tv_sec = (time_t)(r->last_us / 1000000),
                                 .tv_nsec = (long)(r->last_us % 1000000) * 1000 };
}

static void
first_member(struct audit_entry *e, const char *key, const char *value)
{
    if (e->n_meta == AUDIT_META_MAX) {
        e->full = true;
        return;
    }
    memmove(e->meta + 1, e->meta, e->n_meta * sizeof(e->meta[0]));
    e->meta[0] = (struct audit_meta){ .key = key, .kind = AUDIT_STRING, .text = str_of(value) };
    e->n_meta++;
}

/* Its number; 0: there is no record, or no room. */
static uint64_t
queue(struct warden *w, struct box *b, struct audit_entry *e, const char *from, bool durable)
{
    struct record *r = w->record;
    cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX);
    struct item *item = NULL;
    struct masks none = { .v = NULL };

    if (e->when.tv_sec == 0)
        stamp(r, e);
    if (r->mode == RECORD_IS_OFF)
        return 0;
    first_member(e, "from", from);
    if (b != NULL)
        e->sandbox = str_of(b->r.id);
    if (w->work.trace[0] != '\0')
        e->trace_id = str_of(w->work.trace);
    if (audit_body(e, masks_redact, b != NULL ? &b->masks : &none, &body, NULL) == 0 &&
        body.n <= RECORD_QUEUE_MAX - r->bytes)
        item = malloc(sizeof(*item) + body.n);
    if (item == NULL) {
        r->lost++;
        w->counts.audit_failed++;
        return 0;
    }
    *item = (struct item){ .number = ++r->number, .durable = durable, .n = body.n };
    memcpy(item->body, body.p, body.n);
    if (b != NULL && strcmp(from, "keeper") == 0)
        memcpy(item->by, b->r.id, sizeof(item->by));
    if (r->last != NULL)
        r->last->next = item;
    else
        r->first = item;
    r->last = item;
    r->bytes += item->n;
    pump(w);
    return item->number;
}

void
record_say(struct warden *w, struct box *b, struct audit_entry *e)
{
    (void)queue(w, b, e, "warden", record_required(w, b));
}

void
record_said(struct warden *w, struct box *b, const struct audit_entry *said)
{
    struct audit_entry e = *said;

    /* who said it is not the keeper's to say, nor which sandbox it is */
    e.sandbox = e.trace_id = (struct str){ NULL, 0 };
    for (size_t i = 0; i < e.n_meta; i++)
        if (strcmp(e.meta[i].key, "from") == 0)
            e.meta[i].key = "said_from";
    (void)queue(w, b, &e, "keeper", false);
}

static void
drop_items(struct record *r, uint64_t upto)
{
    for (struct item *i; (i = r->first) != NULL && i->number <= upto;) {
        r->first = i->next;
        r->bytes -= i->n;
        r->in_flight -= i->sent ? i->n : 0;
        free(i);
    }
    if (r->first == NULL)
        r->last = NULL;
}

/* The entry @number, which is not written, shall not be. */
static void
take_back(struct record *r, uint64_t number)
{
    struct item *before = NULL;

    for (struct item **at = &r->first, *i; (i = *at) != NULL; before = i, at = &i->next) {
        if (i->number != number)
            continue;
        *at = i->next;
        if (r->last == i)
            r->last = before;
        r->bytes -= i->n;
        r->in_flight -= i->sent ? i->n : 0;
        free(i);
        return;
    }
}

/* --- what waits --------------------------------------------------------------------------------------------------- */

static void
unavailable(const struct record *r, struct err *err)
{
    err_set(err, ERR_SYSTEM, "audit.unavailable", "the audit record is required, and cannot be written: %s",
            r->why[0] != '\0' ? r->why : "no room for more entries");
    err_hint(err, "make room there; it goes on by itself");
}

static void
refuse_made(struct warden *w, const char *id, const struct err *err)
{
    struct box *b = box_of_id(w, id);

    if (b == NULL)
        return;
    keep_refused(b, err);
    box_stop(b, err->msg);
}

/* Nothing was done, and the record does not say that it was asked. */
static void
record_refuse(struct warden *w, const struct held *h)
{
    struct err err = ERR_INIT;

    unavailable(w->record, &err);
    w->record->refused++;
    if (h->made)
        refuse_made(w, h->id, &err);
    else
        answer_no(w, h->to, &err);
}

static void
go_on(struct warden *w, const struct held *h)
{
    const struct frame f = { .type = h->type, .length = (uint32_t)h->n, .payload = h->payload };
    struct box *b;

    w->record->again = true;
    w->record->operation = h->operation;
    if (h->made) {
        b = box_of_id(w, h->id);
        if (b != NULL)
            keep_made(b);
    } else {
        w->work = h->work;
        (void)front_asks(w, &w->fronts[h->to.front], &f, &h->proof);   /* and judged anew */
        w->work = (struct work){ .trace = "" };
    }
    w->record->again = false;
}

/* Those up to the entry @upto: go on, or be refused. */
static void
release(struct warden *w, uint64_t upto, bool written)
{
    struct record *r = w->record;

    while (r->held != NULL && r->held->number <= upto) {
        struct held *h = r->held;
        r->held = h->next;
        r->held_bytes -= h->n;
        if (written || h->way == RECORD_INSIST) {
            go_on(w, h);
        } else {
            take_back(r, h->number);
            record_refuse(w, h);
        }
        free(h);
    }
}

static int
hold(struct record *r, const struct held *like, const void *payload, size_t n)
{
    struct held *h = n <= RECORD_HELD_MAX - r->held_bytes ? malloc(sizeof(*h) + n) : NULL, **at = &r->held;

    if (h == NULL)
        return -1;
    *h = *like;
    h->next = NULL;
    h->n = n;
    if (n > 0)
        memcpy(h->payload, payload, n);
    while (*at != NULL)
        at = &(*at)->next;
    *at = h;
    r->held_bytes += n;
    return 0;
}

static bool
wait_for(struct warden *w, struct box *b, struct audit_entry *e, struct held *h, const struct frame *f)
{
    struct record *r = w->record;
    bool required = record_required(w, b);

    if (r->down && required && h->way == RECORD_WAIT) {
        record_refuse(w, h);
        return true;
    }
    stamp(r, e);
    audit_put_number(e, "operation", (int64_t)r->last_us);
    h->operation = r->operation = r->last_us;
    record_remember_trace(w);
    h->number = queue(w, b, e, "warden", required);
    if (!required || h->way == RECORD_ONLY || (h->way == RECORD_INSIST && (r->down || h->number == 0)))
        return false;
    if (h->number > 0 && hold(r, h, f != NULL ? f->payload : NULL, f != NULL ? f->length : 0) == 0)
        return true;
    take_back(r, h->number);
    record_refuse(w, h);
    return true;
}

bool
record_first_as(struct warden *w, struct box *b, struct audit_entry *e, enum record_way way)
{
    const struct frame *f = w->question;
    struct held h = { .way = way, .type = f->type, .to = w->asker, .proof = w->proof };
    char by[160];

    h.work = w->work;
    who_text(w, &w->who, by);
    audit_put_cstr(e, "by", by);
    return !w->record->again && wait_for(w, b, e, &h, f);
}

bool
record_again(const struct warden *w)
{
    return w->record->again;
}

bool
record_made(struct warden *w, struct box *b)
{
    struct audit_entry e;
    struct held h = { .made = true };

    audit_lifecycle(&e, NULL, "made", "a sandbox was made");
    audit_put_cstr(&e, "name", b->r.name);
    memcpy(h.id, b->r.id, sizeof(h.id));
    return wait_for(w, b, &e, &h, NULL);
}

void
record_front_gone(struct warden *w, uint32_t front)
{
    struct record *r = w->record;

    for (struct held **at = &r->held, *h; (h = *at) != NULL;) {
        if (h->made || h->to.front != front) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        r->held_bytes -= h->n;
        free(h);
    }
    for (size_t i = 0; i < RECORD_FOLLOWERS; i++)
        if (r->followers[i].to.front == front)
            r->followers[i].to.ticket = 0;
}

/* --- the scribe's words ------------------------------------------------------------------------------------------- */

static bool
is_body_of(struct str line, const struct item *i)
{
    return memmem(line.p, line.n, i->body, i->n) != NULL;
}

/* So far all is written. What an entry has said need not be said again. */
static void
gap_written(struct warden *w, uint64_t upto)
{
    struct record *r = w->record;

    if (r->said.by == 0 || r->said.by > upto)
        return;
    r->said.by = r->said.refused = r->said.lost = 0;
    record_keep_gap(w, 0, 0);
}

/* A line that is there already. One of ours that we do not know to be written was written by a scribe that died. */
static int
on_past(struct warden *w, const struct scribe_line *m)
{
    struct record *r = w->record;
    struct str line = { (const char *)m->line, m->n_line };

    if (r->first != NULL && is_body_of(line, r->first)) {
        uint64_t number = r->first->number;
        drop_items(r, number);
        record_line(w, line);
        gap_written(w, number);
        release(w, number, true);
    } else if (!r->had_past) {
        (void)audit_feed_push(r->feed, line);
    }
    return 0;
}

static int
on_ready(struct warden *w, const struct nothing *m)
{
    (void)m;
    w->record->ready = w->record->had_past = true;
    w->record->down = false;
    pump(w);
    return 0;
}

static int
on_line(struct warden *w, const struct scribe_line *m)
{
    record_line(w, (struct str){ (const char *)m->line, m->n_line });
    return 0;
}

/* What happened while it could not be said. */
static void
say_gap(struct warden *w)
{
    struct record *r = w->record;
    const uint64_t refused = r->refused, lost = r->lost;
    struct audit_entry e;
    uint64_t number;

    if (refused + lost == 0)
        return;
    audit_capability(&e, NULL, "audit_gap", "the record could not be written for a while");
    e.severity = AUDIT_ERROR;
    audit_put_number(&e, "refused", (int64_t)refused);
    audit_put_number(&e, "entries_missing", (int64_t)lost);
    number = queue(w, NULL, &e, "warden", record_required(w, NULL));
    if (number == 0) {      /* no room: later, and it is none of those */
        r->lost = lost;
        return;
    }
    r->refused -= refused;
    r->lost -= lost;
    r->said.refused += refused;
    r->said.lost += lost;
    r->said.by = number;
}

static int
on_written(struct warden *w, const struct scribe_written *m)
{
    struct record *r = w->record;

    if (record_got_head(w, &m->head) < 0)
        return -1;
    drop_items(r, m->number);
    gap_written(w, m->number);
    r->why[0] = '\0';
    release(w, m->number, true);
    say_gap(w);
    pump(w);
    return 0;
}

static void
on_retry(struct timer *t)
{
    struct warden *w = t->owner;
    struct record *r = w->record;

    if (!r->down)
        return;
    loop_at(&w->loop, t, clock_ms() + RECORD_RETRY_MS);
    if (r->ready && r->first == NULL)
        say_gap(w);
    if (!r->ready || say(w, SCRIBE_AGAIN, SCRIBE_AGAIN_SHAPE(), NULL, -1) < 0)
        return;
    r->down = false;            /* until it is said again */
    pump(w);
}

static int
on_failed(struct warden *w, const struct edge_why *m)
{
    struct record *r = w->record;
    bool first = r->why[0] == '\0';

    snprintf(r->why, sizeof(r->why), "%s [%s]", m->why.msg, m->why.code);
    if (first)
        log_say(LEVEL_ERROR, "the audit record cannot be written: %s", r->why);
    w->counts.audit_failed++;
    r->down = true;
    r->retry.due = on_retry;
    r->retry.owner = w;
    loop_at(&w->loop, &r->retry, clock_ms() + RECORD_RETRY_MS);
    not_sent(r);
    release(w, UINT64_MAX, false);
    return 0;
}

static int
on_room(struct warden *w, const struct scribe_room *m)
{
    warden_note(w, NULL, "transcript", "%u of sandboxes that ended, the oldest, were removed: %llu bytes", m->files,
                (unsigned long long)m->bytes);
    return 0;
}

#define HEARS(R) \
    R(SCRIBE_PAST, on_past, false, 1) \
    R(SCRIBE_READY, on_ready, true, 1) \
    R(SCRIBE_LINE, on_line, false, 1) \
    R(SCRIBE_WRITTEN, on_written, false, 1) \
    R(SCRIBE_FAILED, on_failed, false, 1) \
    R(SCRIBE_MISSED, record_on_missed, false, 1) \
    R(SCRIBE_ROOM, on_room, false, 1)
PROTO_RULES(scribe_rules, HEARS)

static void
lose(struct warden *w)
{
    struct record *r = w->record;

    loop_drop(&w->loop, &r->scribe);
    packet_queue_clear(&r->out);
    r->ready = false;
    not_sent(r);
}

static void
on_scribe(struct watch *scribe, uint32_t events)
{
    (void)record_hear(scribe->owner, events);
}

void
record_scribe(struct warden *w, int fd)
{
    struct record *r = w->record;
    const struct scribe_head last = { .head = r->head, .rebooted = r->rebooted };
    const struct scribe_clock clock = { .at_ms = time_steady(w) };

    if (r->scribe.fd >= 0)
        lose(w);
    r->scribe = (struct watch){ .fd = fd, .ready = on_scribe, .owner = w };
    record_expect(w);
    r->gate = (struct msg_gate){ .rules = scribe_rules, .state = 1,
                                 .n_rules = ARRAY_LEN(scribe_rules) };
    if (io_set_nonblock(fd, true) < 0 || warden_watch(w, &r->scribe, &r->out) < 0)
        loop_drop(&w->loop, &r->scribe);
    else if (say(w, SCRIBE_CLOCK, SCRIBE_CLOCK_SHAPE(), &clock, -1) == 0 && r->head.seq > 0)
        (void)say(w, SCRIBE_HEAD, SCRIBE_HEAD_SHAPE(), &last, -1);
}

int
record_hear(struct warden *w, uint32_t events)
{
    static uint8_t room[AUDIT_LINE_MAX + FRAME_HEADER + 1];
    struct record *r = w->record;

    r->heard_ms = clock_ms();
    if ((events & EPOLLOUT) != 0 && packet_queue_flush(&r->out, r->scribe.fd) == 0)
        (void)warden_watch(w, &r->scribe, &r->out);
    for (int i = 0; i < 64 && (events & ~(uint32_t)EPOLLOUT) != 0; i++) {
        struct frame f;
        int got = packet_receive(r->scribe.fd, room, sizeof(room), &f, NULL, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got <= 0 || msg_dispatch(&r->gate, &f, w) != MSG_OK) {
            lose(w);    /* the launcher sends another one */
            return -1;
        }
    }
    return 0;
}
