/* otlp/queue.c: what comes, where it waits, and when it goes (otlp.h) */
#include <errno.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "otlp/otlp.h"
#include "wire/table.h"

#define AT_ONCE 64

static const char *const parts[EXPORT_SOURCES] = { "warden", "front", "front-tcp" };

/* --- what comes --------------------------------------------------------------------------------------------------- */

static int
on_span(struct otlp_source *s, const struct export_span *m)
{
    struct otlp *o = s->o;
    const size_t before = o->spans.n;

    lane_lose(&o->traces, LOST_NO_ROOM, m->lost);
    if (o->traces.url.path.p == NULL)
        return 0;
    if (o->n_spans == OTLP_SPANS || otlp_span(&o->spans, m) < 0) {
        o->spans.n = before;
        o->spans.broken = false;
        lane_lose(&o->traces, LOST_NO_ROOM, 1);
        return 0;
    }
    if (o->n_spans++ == 0)
        o->first_ms = o->loop.now_ms;
    return 0;
}

/* The newest report of a source is all that is sent of it: numbers count from the beginning. */
static int
on_numbers(struct otlp_source *s, const struct export_numbers *m)
{
    struct otlp *o = s->o;
    const size_t which = (size_t)(s - o->sources);
    cleanup_buf struct buf metrics = BUF_INIT(OTLP_BODY_MAX);
    const uint64_t now = clock_wall_us();

    lane_lose(&o->traces, LOST_NO_ROOM, m->lost);
    if (o->metrics.url.path.p == NULL)
        return 0;
    buf_append(&s->samples, m->samples, m->n_samples);
    if (!m->last)
        return 0;
    buf_reset(&o->numbers[which]);
    if (!buf_ok(&s->samples) ||
        otlp_metrics(&metrics, wire_in_of(s->samples.p, s->samples.n), m->since_us, now) < 0) {
        buf_reset(&s->samples);
        return -1;
    }
    buf_reset(&s->samples);
    buf_append(&o->numbers[which], metrics.p, metrics.n);
    return 0;
}

#define HEARS(R) R(EDGE_SPAN_OVER, on_span, false, 1) R(EDGE_NUMBERS, on_numbers, false, 1)
PROTO_RULES(rules, HEARS)

int
otlp_hear(struct otlp_source *s)
{
    struct msg_gate gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 };

    for (int i = 0; i < AT_ONCE; i++) {
        struct frame f;
        int r = packet_receive(s->watch.fd, s->o->in, sizeof(s->o->in), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return 0;
        if (r <= 0 || msg_dispatch(&gate, &f, s) != MSG_OK)
            return -1;
    }
    return 0;
}

/* --- what goes ---------------------------------------------------------------------------------------------------- */

static void
put_dropped(struct buf *metrics, const struct otlp *o)
{
    static const char *const reasons[LOST_REASONS] = { "no_room", "not_sent", "refused" };
    const uint64_t now = clock_wall_us();

    otlp_dropped(metrics, "cloche_otlp_spans_dropped", "Spans that no collector has, by why.", reasons,
                 o->traces.lost, LOST_REASONS, o->since_us, now);
    otlp_dropped(metrics, "cloche_otlp_points_dropped", "Reports of numbers that no collector has, by why.", reasons,
                 o->metrics.lost, LOST_REASONS, o->since_us, now);
}

static bool
is_free(const struct lane *l)
{
    return l->post.state == POST_IDLE && l->body.n == 0;
}

static void
send_spans(struct otlp *o)
{
    const uint64_t n = o->n_spans;

    (void)otlp_traces(&o->traces.body, &o->resource, &o->spans);
    buf_free(&o->spans);
    o->spans = (struct buf)BUF_INIT(OTLP_SPANS_BYTES);
    o->n_spans = 0;
    lane_send(&o->traces, n);
}

static void
send_numbers(struct otlp *o)
{
    for (size_t i = 0; i < EXPORT_SOURCES; i++) {
        if (o->numbers[i].n == 0)
            continue;
        if (i == EXPORT_WARDEN)
            put_dropped(&o->numbers[i], o);
        (void)otlp_numbers(&o->metrics.body, &o->resource, parts[i], &o->numbers[i]);
        buf_reset(&o->numbers[i]);
        return lane_send(&o->metrics, 1);
    }
}

/* When the spans that wait are to go; 0: there are none, or others are under way. */
static uint64_t
spans_due(const struct otlp *o)
{
    if (o->n_spans == 0 || !is_free(&o->traces))
        return 0;
    return o->n_spans >= OTLP_BATCH || o->ending ? o->loop.now_ms : o->first_ms + o->s.delay_ms;
}

static void
on_time(struct timer *t)
{
    struct otlp *o = t->owner;
    uint64_t due = spans_due(o);

    lane_time(&o->traces);
    lane_time(&o->metrics);
    if (due != 0 && o->loop.now_ms >= due && is_free(&o->traces))
        send_spans(o);
    if (is_free(&o->metrics))
        send_numbers(o);
}

static void
sooner(uint64_t *at, uint64_t due)
{
    if (due != 0 && (*at == 0 || due < *at))
        *at = due;
}

/* The daemon has ended: what waits goes, unless the collector is not there anyway. */
static bool
is_over(const struct otlp *o)
{
    bool spans = o->n_spans > 0 || !is_free(&o->traces), numbers = !is_free(&o->metrics);

    return o->loop.now_ms >= o->end_ms || ((!spans || o->traces.failing) && (!numbers || o->metrics.failing));
}

void
otlp_turn(struct otlp *o)
{
    uint64_t at = spans_due(o);
    bool numbers = false;

    for (size_t i = 0; i < EXPORT_SOURCES; i++)
        numbers |= o->numbers[i].n > 0;
    sooner(&at, lane_due(&o->traces));
    sooner(&at, lane_due(&o->metrics));
    if (numbers && is_free(&o->metrics))
        sooner(&at, o->loop.now_ms);
    if (o->ending) {
        o->over = is_over(o);
        sooner(&at, o->end_ms);
    }
    o->time.due = on_time;
    o->time.owner = o;
    loop_at(&o->loop, &o->time, at);
}
