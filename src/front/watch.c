/* front/watch.c: for those who look on: /metrics, /health, /ready, what sandboxes use, events as they happen */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "front/front.h"
#include "warden/stats.h"

#define SAMPLES_MAX    (1024 * 1024)
#define FOLLOW_BEHIND  (1024 * 1024)    /* bytes of events that a follower did not take: then it is left */

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void
on_stats(struct request *r, const uint8_t *p, size_t n)
{
    const char *accept = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    cleanup_buf struct buf mine = BUF_INIT(SAMPLES_MAX), text = BUF_INIT(STATS_TEXT_MAX);
    struct stats_text t = { .out = &text };

    t.open_metrics = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    if (metrics_put(r->f, &mine) < 0 || !stats_text_of(&t, wire_in_of(p, n), wire_in_of(mine.p, mine.n)))
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "serve.metrics", "", "the numbers cannot be written");
    else
        reply_text(r, MHD_HTTP_OK, t.open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                  : "text/plain; version=0.0.4; charset=utf-8", text.p, text.n);
}

static const struct answers stats_answers = { .stats = on_stats };

static void
metrics(struct request *r)
{
    ASK(r, EDGE_ASK_STATS, &stats_answers, .none = 0);
}

/* --- health ------------------------------------------------------------------------------------------------------- */

static void
health(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s}", "status", "ok"));
}

/* The warden has its records, and is there to be asked. */
static void
ready(struct request *r)
{
    if (r->f->epochs != NULL)
        late_ready(r);
    else
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "serve.not-ready", "try again", "the daemon is starting");
}

static void
version(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s, s:s, s:[s]}", "name", "cloche", "version", CLOCHE_VERSION, "api",
                                         "v1"));
}

/* --- usage -------------------------------------------------------------------------------------------------------- */

static void
on_usage(struct request *r, const char *id, const struct edge_usage *u)
{
    json_t *running = json_array();

    for (size_t i = 0; i < u->n_running; i++)
        json_array_append_new(running, json_of_text((const uint8_t *)u->running[i], strlen(u->running[i])));
    json_array_append_new(r->list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "id", id, "memory_bytes",
                                             (json_int_t)u->memory, "cpu_us", (json_int_t)u->cpu_us, "processes",
                                             (json_int_t)u->pids, "operations", (json_int_t)u->ops, "running",
                                             running));
}

static void
on_usage_end(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "usage", r->list));
}

static const struct answers usage_answers = { .usage = on_usage, .end = on_usage_end };

static void
usage(struct request *r)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_USAGE, &usage_answers, .id = r->id);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void
on_event(struct request *r, const struct edge_event *event)
{
    char id[24];

    snprintf(id, sizeof(id), "%" PRIu64, event->number);
    if (r->out.n <= FOLLOW_BEHIND)
        stream_event(r, id, event->type, json_of_event(event));
    else
        stream_break(r);
}

/* What there was is there. What comes follows. */
static void
on_caught_up(struct request *r)
{
    static const char hello[] = ": following\n\n";

    reply_stream(r, "text/event-stream");
    stream_add(r, hello, sizeof(hello) - 1);
}

static const struct answers follow_answers = { .event = on_event, .following = on_caught_up, .no = stream_refuse };

static bool
number(const char *text, uint64_t max, uint64_t *out)
{
    return text == NULL || str_parse_u64(str_of(text), max, out);
}

static void
follow(struct request *r)
{
    const char *last = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Last-Event-ID");
    char room[EDGE_NAME_MAX + 1], room_limit[8], room_after[24];
    bool bad = false;
    const char *id = query_get(r, "sandbox", room, sizeof(room), &bad);
    const char *limit = query_get(r, "limit", room_limit, sizeof(room_limit), &bad);
    const char *after = query_get(r, "after", room_after, sizeof(room_after), &bad);
    uint64_t most = after != NULL || last != NULL ? 1000 : 0, from = 0;

    if (bad || (id != NULL && !edge_is_id(id) && !edge_name_well(id)) || !number(limit, 1000, &most) ||
        !number(after != NULL ? after : last, INT64_MAX, &from)) {
        reply_unfit(r, "events.request", "sandbox=ID or name, limit=0..1000, after=NUMBER");
        return;
    }
    ASK(r, EDGE_ASK_FOLLOW, &follow_answers, .limit = (uint16_t)most, .after = from, .id = id);
}

const struct route watch_routes[] = {
    { "GET",    "/metrics",                 metrics,   false, false },
    { "GET",    "/health",                  health,    false, false, .open = true },
    { "GET",    "/ready",                   ready,     false, false, .open = true },
    { "GET",    "/v1/version",              version,   false, false },
    { "GET",    "/v1/usage",                usage,     false, false },
    { "GET",    "/v1/sandboxes/{}/usage",   usage,     false, false },
    { "GET",    "/v1/events/stream",        follow,    false, false, .endless = true },
};
const size_t watch_n_routes = ARRAY_LEN(watch_routes);
