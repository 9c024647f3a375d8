/* otlp/otlp.h: cloche-otlp: sends spans and numbers to an OpenTelemetry collector (docs/observability.md)
 *
 * OTLP 1.x over HTTP, in protobuf. The warden and the fronts say what they did (warden/tell.h) and never wait for this
 * process; nobody hears of an answer but this process. What comes waits in memory, with a ceiling; what finds no room
 * there, or does not get through, is dropped and counted. One thread; one POST at a time for spans, and one for
 * numbers (post/post.h).
 *
 * Of protobuf only writing is needed, of nine small messages with five kinds of fields: that is encode.c's first sixty
 * lines, and less than what a library and its generated code would add to this process.
 */
#ifndef CLOCHE_OTLP_OTLP_H
#define CLOCHE_OTLP_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "post/post.h"
#include "proto/edge_export.h"
#include "warden/stats.h"

#define OTLP_SPANS       2048                   /* that wait; newer ones are dropped */
#define OTLP_SPANS_BYTES (2UL * 1024 * 1024)    /* and so many bytes */
#define OTLP_BATCH       512                    /* so many are sent at once, others after settings.delay_ms */
#define OTLP_BODY_MAX    (4UL * 1024 * 1024)
#define OTLP_TRIES       5                      /* after 1, 2, 4, 8 seconds, or as the collector says */
#define OTLP_AFTER_MAX_S 300                    /* which is heeded up to that */
#define OTLP_END_MS      1000                   /* at the daemon's end, for what waits */
#define OTLP_HEADERS_MAX (16UL * 1024)
#define OTLP_PAIRS_MAX   8192                   /* bytes of $OTEL_RESOURCE_ATTRIBUTES, and so on */

/* --- pairs.c, pure: what configurations say ----------------------------------------------------------------------- */

/* "NAME=VALUE,NAME=VALUE" with %XX in both (W3C Baggage, as OpenTelemetry has it). @each gets them decoded, and may
 * refuse one. False: it is malformed, from there on. */
typedef bool otlp_pair_fn(void *ctx, struct str name, struct str value);
bool otlp_pairs(struct str text, otlp_pair_fn *each, void *ctx);
/* Lines "NAME: VALUE" as fields of a request, each with CRLF. Empty lines and those that begin with # do not count.
 * False, and @line: that one is none. */
bool otlp_header_lines(struct str text, struct buf *out, unsigned *line);
bool otlp_header_pairs(struct str text, struct buf *out);

/* --- encode.c, pure: protobuf (opentelemetry-proto 1.x) ----------------------------------------------------------- */

/* A resource, as both requests have it: service.name, service.version, an id of this process, and @attributes
 * (otlp_pairs()), of which the first two may say the name too. */
int otlp_resource(struct buf *out, const char *name, struct str attributes, const char *instance);
/* One span, as an item of a batch. */
int otlp_span(struct buf *out, const struct export_span *s);
/* An ExportTraceServiceRequest of a batch. */
int otlp_traces(struct buf *out, const struct buf *resource, const struct buf *spans);
/* Metrics of the samples in @samples. -1: they are malformed, or there is no memory. @now_us: since 1970. */
int otlp_metrics(struct buf *out, struct wire_in samples, uint64_t since_us, uint64_t now_us);
/* One number of ours, a counter by @reason. */
int otlp_dropped(struct buf *out, const char *name, const char *help, const char *const *reasons,
                 const uint64_t *values, size_t n, uint64_t since_us, uint64_t now_us);
/* An ExportMetricsServiceRequest of such metrics, of that @part of the daemon. */
int otlp_numbers(struct buf *out, const struct buf *resource, const char *part, const struct buf *metrics);
/* How many spans or numbers an answer's body (Export...ServiceResponse) says it did not take. */
uint64_t otlp_rejected(struct str body);

/* --- lane.c: requests of one kind, one after the other ------------------------------------------------------------ */

struct otlp;

enum otlp_lost { LOST_NO_ROOM, LOST_NOT_SENT, LOST_REFUSED, LOST_REASONS };

struct lane {
    struct post post;
    const char *what;           /* "spans" */
    struct hook_url url;
    struct buf body;            /* of the request that is under way, or waits to be tried again; empty: none */
    uint64_t items;             /* in it */
    unsigned tries;
    uint64_t due_ms;
    bool failing;               /* the last try did not get through */
    uint64_t lost[LOST_REASONS];
    uint64_t said_ms;           /* when the log said so last */
    struct otlp *o;
};

/* lane->body is a request of @items. */
void lane_send(struct lane *l, uint64_t items);
void lane_lose(struct lane *l, enum otlp_lost why, uint64_t n);
/* When it has something to do, on the loop's clock; 0: it has nothing. lane_time() does it. */
uint64_t lane_due(const struct lane *l);
void lane_time(struct lane *l);
void lane_answered(struct post *p, const struct post_answer *a, const char *why);

/* --- main.c ------------------------------------------------------------------------------------------------------- */

struct otlp_settings {
    const char *traces, *metrics;   /* URLs; "" not sent */
    const char *ca, *name;
    struct str attributes;
    struct buf headers;
    uint64_t timeout_ms, delay_ms;
};

struct otlp_source {
    struct otlp *o;
    struct watch watch;
    struct buf samples;             /* of a report that is not whole yet */
};

struct otlp {
    struct otlp_settings s;
    struct loop loop;
    struct watch launcher;
    struct otlp_source sources[EXPORT_SOURCES];
    struct lane traces, metrics;
    struct buf resource;
    struct buf spans;               /* encoded, that wait */
    uint64_t n_spans, first_ms;     /* how many, and since when the first one does */
    struct buf numbers[EXPORT_SOURCES];     /* metrics that wait: the newest of each source */
    uint64_t since_us;
    struct timer time;
    bool ending;                    /* the launcher is gone */
    uint64_t end_ms;
    bool over;
    uint8_t in[EDGE_ROOM];
};

/* queue.c: what comes and when it goes */
int otlp_hear(struct otlp_source *s);       /* a few messages. 0; -1: it is gone, or speaks nonsense */
void otlp_turn(struct otlp *o);

#endif
