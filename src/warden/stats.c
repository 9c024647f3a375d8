/* warden/stats.c: see stats.h */
#include "warden/stats.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = { "gauge", "counter", "histogram" };

static const struct stats_row families[STATS] = {
    [STAT_BUILD] = { "cloche_build_info", STATS_GAUGE, false, { "version" }, "Always 1." },
    [STAT_SANDBOXES] = { "cloche_sandboxes", STATS_GAUGE, false, { "state" }, "Sandboxes that live, by state." },
    [STAT_SANDBOXES_MAX] = { "cloche_sandboxes_limit", STATS_GAUGE, false, { NULL }, "How many may live at once." },
    [STAT_CREATED] = { "cloche_sandboxes_created", STATS_COUNTER, false, { NULL }, "Sandboxes that became ready." },
    [STAT_CREATE_FAILED] = { "cloche_sandbox_create_failures", STATS_COUNTER, false, { "code" },
                             "Sandboxes that were asked for and not made, by code of the error." },
    [STAT_CREATE_SECONDS] = { "cloche_sandbox_create_duration_seconds", STATS_HISTOGRAM, true, { NULL },
                              "From the question to a sandbox that is ready." },
    [STAT_POOL] = { "cloche_pool_sandboxes", STATS_GAUGE, false, { "state" },
                    "Sandboxes that are made ahead and are nobody's, by state." },
    [STAT_POOL_ASKED] = { "cloche_pool_requests", STATS_COUNTER, false, { "result" },
                          "Requests for code whose sandbox may be made ahead, by whether one was there." },
    [STAT_POOL_LOST] = { "cloche_pool_lost", STATS_COUNTER, false, { NULL },
                         "Sandboxes made ahead that ended before somebody took them." },
    [STAT_POOL_SECONDS] = { "cloche_pool_fill_duration_seconds", STATS_HISTOGRAM, true, { NULL },
                            "How long it took to make one ahead." },
    [STAT_OPERATIONS] = { "cloche_operations", STATS_COUNTER, false, { "kind", "result" },
                          "Commands and file requests that ended or were refused." },
    [STAT_RUNNING] = { "cloche_operations_running", STATS_GAUGE, false, { NULL }, "Operations under way." },
    [STAT_EXEC_SECONDS] = { "cloche_exec_duration_seconds", STATS_HISTOGRAM, true, { NULL },
                            "How long commands took." },
    [STAT_OPERATION_BYTES] = { "cloche_operation_bytes", STATS_COUNTER, false, { "direction" },
                               "Bytes into sandboxes and out of them." },
    [STAT_KEEPER_DEATHS] = { "cloche_keeper_deaths", STATS_COUNTER, false, { NULL },
                             "Keepers that ended without being told to, each with its sandbox." },
    [STAT_RECOVERIES] = { "cloche_recoveries", STATS_COUNTER, false, { NULL },
                          "Sandboxes that were made anew by themselves, each time." },
    [STAT_RESTARTS] = { "cloche_process_restarts", STATS_COUNTER, false, { "process" },
                        "Processes of the daemon that ended and were started again." },
    [STAT_REFUSED] = { "cloche_credentials_refused", STATS_COUNTER, false, { NULL },
                       "Credentials that were not taken." },
    [STAT_AUDIT_FAILED] = { "cloche_audit_failures", STATS_COUNTER, false, { NULL },
                            "Batches of entries that could not be written, and entries without room." },
    [STAT_PROCESS_RSS] = { "cloche_process_resident_memory_bytes", STATS_GAUGE, false, { "process" },
                           "Resident memory of the daemon's processes." },
    [STAT_PROCESS_CPU] = { "cloche_process_cpu_seconds", STATS_COUNTER, true, { "process" },
                           "Processor time of the daemon's processes." },
    [STAT_LOG_DROPPED] = { "cloche_log_lines_dropped", STATS_COUNTER, false, { "process" },
                           "Log lines that stderr did not take." },
    [STAT_HTTP_REQUESTS] = { "cloche_http_requests", STATS_COUNTER, false, { "method", "route", "status" },
                             "Requests, by template of their route." },
    [STAT_HTTP_SECONDS] = { "cloche_http_request_duration_seconds", STATS_HISTOGRAM, true, { "method", "route" },
                            "From a request's first line to its answer's last byte." },
    [STAT_HTTP_BYTES] = { "cloche_http_body_bytes", STATS_COUNTER, false, { "direction" },
                          "Bytes of requests' and answers' bodies." },
    [STAT_CONNECTIONS] = { "cloche_http_connections", STATS_GAUGE, false, { NULL }, "Open connections." },
    [STAT_CONNECTED] = { "cloche_http_connections_accepted", STATS_COUNTER, false, { NULL }, "Connections so far." },
};

const struct stats_row *
stats_row(enum stats_family which)
{
    return &families[which];
}

/* --- durations ---------------------------------------------------------------------------------------------------- */

static const uint64_t bounds[HISTOGRAM_BOUNDS] = {
    250, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000,
    60000000, 300000000, 1800000000,
};

uint64_t
histogram_bound_us(size_t i)
{
    return bounds[i];
}

void
histogram_add(struct histogram *h, uint64_t us)
{
    size_t i = 0;

    while (i < HISTOGRAM_BOUNDS && us > bounds[i])
        i++;
    h->bucket[i]++;
    h->sum_us += us;
}

/* --- as bytes ----------------------------------------------------------------------------------------------------- */

int
stats_put(struct buf *b, const struct stat_sample *s)
{
    const struct stats_row *f = &families[s->which];

    buf_put_u8(b, (uint8_t)s->which);
    for (size_t i = 0; i < STATS_LABELS && f->label[i] != NULL; i++)
        wire_put_cstr(b, s->label[i], STATS_LABEL_MAX);
    if (f->kind != STATS_HISTOGRAM)
        return buf_put_be64(b, s->value);
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        buf_put_be64(b, s->histogram.bucket[i]);
    return buf_put_be64(b, s->histogram.sum_us);
}

int
stats_put_value(struct buf *b, enum stats_family which, const char *label, const char *label2, uint64_t value)
{
    const struct stat_sample s = { .which = which, .label = { label, label2, "" }, .value = value };

    return stats_put(b, &s);
}

int
stats_put_histogram(struct buf *b, enum stats_family which, const char *label, const char *label2,
                    const struct histogram *h)
{
    const struct stat_sample s = { .which = which, .label = { label, label2, "" }, .histogram = *h };

    return stats_put(b, &s);
}

bool
stats_get(struct wire_in *in, struct stat_sample *s)
{
    uint8_t which = wire_u8(in);

    if (in->bad || which >= STATS)
        return false;
    *s = (struct stat_sample){ .which = (enum stats_family)which, .label = { "", "", "" } };
    for (size_t i = 0; i < STATS_LABELS && families[which].label[i] != NULL; i++)
        s->label[i] = wire_cstr(in, STATS_LABEL_MAX, NULL);
    if (families[which].kind != STATS_HISTOGRAM) {
        s->value = wire_be64(in);
        return !in->bad;
    }
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        s->histogram.bucket[i] = wire_be64(in);
    s->histogram.sum_us = wire_be64(in);
    return !in->bad;
}

/* --- as text ------------------------------------------------------------------------------------------------------ */

static void
seconds(struct buf *b, uint64_t us)
{
    buf_printf(b, "%llu.%06llu", (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

/* Our own words, but nobody's byte breaks out of a label's quotes. */
static void
label_value(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n')
            buf_puts(b, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else
            buf_put_u8(b, c < 0x20 || c >= 0x7f ? '?' : c);
    }
}

static void
labels(struct buf *b, const struct stats_row *f, const struct stat_sample *s, const char *le)
{
    const char *before = "{";

    for (size_t i = 0; i < STATS_LABELS && f->label[i] != NULL; i++) {
        buf_printf(b, "%s%s=\"", before, f->label[i]);
        label_value(b, s->label[i]);
        buf_put_u8(b, '"');
        before = ",";
    }
    if (le != NULL)
        buf_printf(b, "%sle=\"%s\"", before, le);
    if (le != NULL || f->label[0] != NULL)
        buf_put_u8(b, '}');
}

static void
histogram_text(struct buf *b, const struct stats_row *f, const struct stat_sample *s)
{
    uint64_t all = 0;
    char le[32];

    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        all += s->histogram.bucket[i];
        if (i < HISTOGRAM_BOUNDS)
            snprintf(le, sizeof(le), "%.10g", (double)bounds[i] / 1e6);
        else
            memcpy(le, "+Inf", 5);
        buf_printf(b, "%s_bucket", f->name);
        labels(b, f, s, le);
        buf_printf(b, " %llu\n", (unsigned long long)all);
    }
    buf_printf(b, "%s_sum", f->name);
    labels(b, f, s, NULL);
    buf_put_u8(b, ' ');
    seconds(b, s->histogram.sum_us);
    buf_printf(b, "\n%s_count", f->name);
    labels(b, f, s, NULL);
    buf_printf(b, " %llu\n", (unsigned long long)all);
}

void
stats_text(struct stats_text *t, const struct stat_sample *s)
{
    const struct stats_row *f = &families[s->which];
    const char *total = f->kind == STATS_COUNTER ? "_total" : "";

    if (!t->begun || t->last != s->which) {
        const char *shown = t->open_metrics ? "" : total;
        buf_printf(t->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, shown, f->help, f->name, shown,
                   kinds[f->kind]);
    }
    t->begun = true;
    t->last = s->which;
    if (f->kind == STATS_HISTOGRAM) {
        histogram_text(t->out, f, s);
        return;
    }
    buf_printf(t->out, "%s%s", f->name, total);
    labels(t->out, f, s, NULL);
    buf_put_u8(t->out, ' ');
    if (f->seconds)
        seconds(t->out, s->value);
    else
        buf_printf(t->out, "%llu", (unsigned long long)s->value);
    buf_put_u8(t->out, '\n');
}

void
stats_text_end(struct stats_text *t)
{
    if (t->open_metrics)
        buf_puts(t->out, "# EOF\n");
}

bool
stats_text_of(struct stats_text *t, struct wire_in a, struct wire_in b)
{
    struct wire_in *const in[2] = { &a, &b };
    struct stat_sample next[2];
    bool there[2] = { false, false };
    enum stats_family last = 0;

    for (;;) {
        size_t first;
        for (size_t i = 0; i < 2; i++) {
            if (there[i] || in[i]->n == 0)
                continue;
            if (!stats_get(in[i], &next[i]))
                return false;
            there[i] = true;
        }
        if (!there[0] && !there[1])
            break;
        first = !there[0] || (there[1] && next[1].which < next[0].which) ? 1 : 0;
        if (next[first].which < last)
            return false;       /* out of order: a family would be in two places */
        last = next[first].which;
        there[first] = false;
        stats_text(t, &next[first]);
    }
    stats_text_end(t);
    return buf_ok(t->out);
}
