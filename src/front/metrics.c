/* front/metrics.c: what the front counts, and the log's line for each request
 *
 * Requests are counted by the template of their route: the paths that strangers ask for are without number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/front.h"
#include "warden/stats.h"

#define ROUTES_MAX 256
#define STATUSES   24       /* of one route; others are 0 */

struct route_counts {
    const struct route *route;      /* NULL: none was found */
    struct { unsigned status; uint64_t n; } by[STATUSES];
    struct histogram seconds;
};

struct metrics {
    struct route_counts routes[ROUTES_MAX];
    size_t n_routes;
    uint64_t in, out, connected;
    struct process_stats self;
};

int
metrics_open(struct front *f)
{
    f->metrics = calloc(1, sizeof(*f->metrics));
    if (f->metrics == NULL)
        return -1;
    process_stats_open(&f->metrics->self, 0);
    return 0;
}

void
metrics_connection(struct front *f)
{
    f->metrics->connected++;
}

/* "/v1/sandboxes/{}/files/~" as people write it. */
static void
template_of(const struct route *route, char out[STATS_LABEL_MAX])
{
    size_t n = 0;

    for (const char *p = route != NULL ? route->path : "unmatched"; *p != '\0' && n + 8 < STATS_LABEL_MAX; p++) {
        if (*p == '{' || *p == '~') {
            memcpy(out + n, *p == '{' ? "{id}" : "{path}", *p == '{' ? 4 : 6);
            n += *p == '{' ? 4 : 6;
            while (*p == '{' || (*p != '~' && *p != '}'))
                p++;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

static void
count(struct metrics *m, const struct request *r, uint64_t us)
{
    struct route_counts *c;
    size_t i, s;

    m->in += r->bytes_in;
    m->out += r->bytes_out;
    for (i = 0; i < m->n_routes && m->routes[i].route != r->route; i++)
        ;
    if (i == ROUTES_MAX)
        return;         /* there are not so many */
    m->n_routes += i == m->n_routes;
    c = &m->routes[i];
    c->route = r->route;
    histogram_add(&c->seconds, us);
    for (s = 0; s < STATUSES - 1 && c->by[s].n > 0 && c->by[s].status != r->status; s++)
        ;
    c->by[s].status = s < STATUSES - 1 ? r->status : 0;
    c->by[s].n++;
}

static const char *
role_of(const struct request *r)
{
    return r->who == 0 && !r->f->strangers ? "owner" : edge_role_name(r->role);
}

static void
log_request(const struct request *r, uint64_t us, bool whole)
{
    char route[STATS_LABEL_MAX];
    uint8_t room[1024];
    struct buf b = BUF_INIT_IN(room, LOG_LINE_MAX);

    template_of(r->route, route);
    log_begin(&b, LEVEL_INFO, "request");
    log_text(&b, "request_id", r->number);
    log_text(&b, "trace_id", r->trace.id);
    log_text(&b, "method", r->route != NULL ? r->route->method : "other");
    log_text(&b, "route", route);
    log_text(&b, "role", role_of(r));
    log_number(&b, "status", r->status);
    log_number(&b, "duration_us", us);
    log_number(&b, "bytes_in", r->bytes_in);
    log_number(&b, "bytes_out", r->bytes_out);
    if (!whole)
        log_text(&b, "ended", "early");
    log_end(&b);
    buf_free(&b);
}

/* Where the collector is told: @us until now, by the wall clock. */
static void
tell_request(const struct request *r, uint64_t us, bool whole)
{
    const char *method = r->route != NULL ? r->route->method : "other";
    char route[STATS_LABEL_MAX], name[STATS_LABEL_MAX + 16];
    struct export_span s = { .kind = EXPORT_REQUEST, .failed = r->status >= 500 || !whole, .name = name,
                             .end_us = clock_wall_us() };

    template_of(r->route, route);
    snprintf(name, sizeof(name), "%s %s", method, route);
    memcpy(s.trace, r->trace_bytes, sizeof(s.trace));
    trace_bytes(r->trace.span, sizeof(s.span), s.span);
    memcpy(s.parent, r->parent, sizeof(s.parent));
    s.begin_us = s.end_us - us;
    export_text(&s, "http.request.method", method);
    export_text(&s, "http.route", route);
    export_number(&s, "http.response.status_code", r->status);
    export_number(&s, "http.request.body.size", (int64_t)r->bytes_in);
    export_number(&s, "http.response.body.size", (int64_t)r->bytes_out);
    export_text(&s, "cloche.request_id", r->number);
    export_text(&s, "cloche.role", role_of(r));
    if (!whole)
        export_text(&s, "error.type", "ended early");
    teller_span(&r->f->tell, &s);
}

void
metrics_request(const struct request *r, bool whole)
{
    uint64_t us = clock_us() - r->begun_us;

    if (!r->seen)
        return;         /* its head never came whole */
    count(r->f->metrics, r, us);
    if (teller_is(&r->f->tell) && r->trace.sampled)
        tell_request(r, us, whole);
    if (log_wants(LEVEL_INFO))
        log_request(r, us, whole);
}

/* In the order of enum stats_family. */
int
metrics_put(const struct front *f, struct buf *b)
{
    const struct metrics *m = f->metrics;
    char status[12], route[STATS_LABEL_MAX];

    stats_put_value(b, STAT_BUILD, CLOCHE_VERSION, "", 1);
    process_stats_put(b, "front", &m->self, STAT_PROCESS_RSS);
    process_stats_put(b, "front", &m->self, STAT_PROCESS_CPU);
    stats_put_value(b, STAT_LOG_DROPPED, "front", "", log_dropped());
    for (size_t i = 0; i < m->n_routes; i++) {
        const struct route_counts *c = &m->routes[i];
        template_of(c->route, route);
        for (size_t s = 0; s < STATUSES && c->by[s].n > 0; s++) {
            const struct stat_sample sample = {
                .which = STAT_HTTP_REQUESTS, .value = c->by[s].n,
                .label = { c->route != NULL ? c->route->method : "other", route, status } };
            snprintf(status, sizeof(status), "%u", c->by[s].status);
            stats_put(b, &sample);
        }
    }
    for (size_t i = 0; i < m->n_routes; i++) {
        const struct route_counts *c = &m->routes[i];
        template_of(c->route, route);
        stats_put_histogram(b, STAT_HTTP_SECONDS, c->route != NULL ? c->route->method : "other", route, &c->seconds);
    }
    stats_put_value(b, STAT_HTTP_BYTES, "in", "", m->in);
    stats_put_value(b, STAT_HTTP_BYTES, "out", "", m->out);
    stats_put_value(b, STAT_CONNECTIONS, "", "", f->n_links);
    return stats_put_value(b, STAT_CONNECTED, "", "", m->connected);
}
