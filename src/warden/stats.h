/* warden/stats.h: the daemon's numbers, as they are counted, sent and shown
 *
 * Each family of numbers is a row of one table: its name, its kind, what its labels are. A sample is one of them with
 * its labels' values. The warden sends its samples to the front in EDGE_STATS; the front adds its own and writes both
 * as Prometheus's text format 0.0.4, or OpenMetrics 1.0. Labels have values of a bounded number only: states, kinds,
 * codes and templates of routes, never what a client chose.
 */
#ifndef CLOCHE_WARDEN_STATS_H
#define CLOCHE_WARDEN_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/frame.h"

#define STATS_LABELS     3
#define STATS_LABEL_MAX  128
#define HISTOGRAM_BOUNDS 18
#define STATS_TEXT_MAX   (4UL * 1024 * 1024)

enum stats_family {
    STAT_BUILD,
    STAT_SANDBOXES, STAT_SANDBOXES_MAX, STAT_CREATED, STAT_CREATE_FAILED, STAT_CREATE_SECONDS,
    STAT_POOL, STAT_POOL_ASKED, STAT_POOL_LOST, STAT_POOL_SECONDS,
    STAT_OPERATIONS, STAT_RUNNING, STAT_EXEC_SECONDS, STAT_OPERATION_BYTES,
    STAT_KEEPER_DEATHS, STAT_RECOVERIES, STAT_RESTARTS, STAT_REFUSED, STAT_AUDIT_FAILED,
    STAT_PROCESS_RSS, STAT_PROCESS_CPU, STAT_LOG_DROPPED,
    STAT_HTTP_REQUESTS, STAT_HTTP_SECONDS, STAT_HTTP_BYTES, STAT_CONNECTIONS, STAT_CONNECTED,
    STATS
};

enum stats_kind { STATS_GAUGE, STATS_COUNTER, STATS_HISTOGRAM };

struct stats_row {
    const char *name;       /* a counter's without "_total" */
    enum stats_kind kind;
    bool seconds;           /* the value counts microseconds */
    const char *label[STATS_LABELS];
    const char *help;
};
const struct stats_row *stats_row(enum stats_family which);

/* Durations. bucket[i] is how many were at most histogram_bound_us(i) and above the one before; the last: others. */
struct histogram {
    uint64_t bucket[HISTOGRAM_BOUNDS + 1];
    uint64_t sum_us;
};

uint64_t histogram_bound_us(size_t i);
void histogram_add(struct histogram *h, uint64_t us);

struct stat_sample {
    enum stats_family which;
    const char *label[STATS_LABELS];    /* as many as the family has; never NULL of these */
    uint64_t value;                     /* seconds are counted in microseconds */
    struct histogram histogram;         /* of a histogram */
};

int stats_put(struct buf *b, const struct stat_sample *s);
int stats_put_value(struct buf *b, enum stats_family which, const char *label, const char *label2, uint64_t value);
int stats_put_histogram(struct buf *b, enum stats_family which, const char *label, const char *label2,
                        const struct histogram *h);
/* The next one. Labels are borrowed. False when it is malformed. */
bool stats_get(struct wire_in *in, struct stat_sample *s);

struct stats_text {
    struct buf *out;
    bool open_metrics;
    bool begun;
    enum stats_family last;     /* whose header is there */
};

/* One sample's lines; samples of one family follow each other. */
void stats_text(struct stats_text *t, const struct stat_sample *s);
void stats_text_end(struct stats_text *t);
/* Two lists of samples, each in the order of enum stats_family, as one text. False when either is malformed. */
bool stats_text_of(struct stats_text *t, struct wire_in a, struct wire_in b);

/* The word @n (from 0) of a line of /proc as a number. */
bool stat_word(const char *text, size_t n, uint64_t *out);

/* This process, or another whose numbers may be read: opened before files can no longer be, read ever after. */
struct process_stats {
    int statm, stat;    /* -1: not known */
};
#define PROCESS_STATS_INIT { -1, -1 }

void process_stats_open(struct process_stats *p, int pid);      /* 0: this one */
/* Bytes of resident memory and microseconds of processor time; false when they cannot be known. */
bool process_stats_read(const struct process_stats *p, uint64_t *rss, uint64_t *cpu_us);
int process_stats_put(struct buf *b, const char *process, const struct process_stats *p, enum stats_family which);

#endif
