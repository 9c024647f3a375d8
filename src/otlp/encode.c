/* otlp/encode.c: spans and numbers as protobuf (otlp.h). Numbers of fields are opentelemetry-proto's. */
#include <string.h>

#include "otlp/otlp.h"

/* --- protobuf: https://protobuf.dev/programming-guides/encoding/ -------------------------------------------------- */

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void
varint(struct buf *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        buf_put_u8(b, (uint8_t)(v | 0x80));
    buf_put_u8(b, (uint8_t)v);
}

static void
key(struct buf *b, unsigned field, enum wire_type type)
{
    varint(b, field << 3 | type);
}

static void
put_varint(struct buf *b, unsigned field, uint64_t v)
{
    key(b, field, VARINT);
    varint(b, v);
}

static void
little(struct buf *b, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        buf_put_u8(b, (uint8_t)(v >> 8 * i));
}

static void
put_fixed64(struct buf *b, unsigned field, uint64_t v)
{
    key(b, field, FIXED64);
    little(b, v);
}

static uint64_t
bits(double v)
{
    uint64_t out;

    memcpy(&out, &v, sizeof(out));
    return out;
}

static void
put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
    key(b, field, LENGTH);
    varint(b, n);
    buf_append(b, p, n);
}

/* A message in a message: its length goes before it when it is known. */
static size_t
begin(struct buf *b, unsigned field)
{
    key(b, field, LENGTH);
    return b->n;
}

static void
end(struct buf *b, size_t at)
{
    uint8_t room[10];
    struct buf length = BUF_INIT_IN(room, sizeof(room));
    size_t n = b->n - at;

    varint(&length, n);
    if (buf_reserve(b, length.n) < 0)
        return;
    memmove(b->p + at + length.n, b->p + at, n);
    memcpy(b->p + at, length.p, length.n);
    b->n += length.n;
}

/* A string has to be UTF-8; a byte that is none of it is shown as another one. */
static void
put_str(struct buf *b, unsigned field, struct str s)
{
    size_t at = begin(b, field);
    uint32_t c;

    for (size_t i = 0, n; i < s.n; i += n) {
        n = utf8_char((const uint8_t *)s.p + i, s.n - i, &c);
        if (n > 0)
            buf_append(b, s.p + i, n);
        else
            buf_put_u8(b, '?');
        n += n == 0;
    }
    end(b, at);
}

static void
put_text(struct buf *b, unsigned field, const char *text)
{
    put_str(b, field, str_of(text));
}

/* KeyValue */
static void
attribute(struct buf *b, unsigned field, struct str name, struct str text)
{
    size_t at = begin(b, field), value;

    put_str(b, 1, name);
    value = begin(b, 2);
    put_str(b, 1, text);        /* AnyValue.string_value */
    end(b, value);
    end(b, at);
}

static void
attribute_number(struct buf *b, unsigned field, const char *name, uint64_t number)
{
    size_t at = begin(b, field), value;

    put_text(b, 1, name);
    value = begin(b, 2);
    put_varint(b, 3, number);   /* AnyValue.int_value */
    end(b, value);
    end(b, at);
}

/* --- a resource --------------------------------------------------------------------------------------------------- */

struct named {
    struct buf *out;
    const char *name;       /* of the service; NULL: it is said */
};

static bool
resource_pair(void *ctx, struct str name, struct str value)
{
    struct named *n = ctx;

    if (str_eq_c(name, "service.name")) {
        if (n->name != NULL)
            return true;    /* another variable says it, and has the last word */
        n->name = "";
    }
    attribute(n->out, 1, name, value);
    return true;
}

int
otlp_resource(struct buf *out, const char *name, struct str attributes, const char *instance)
{
    struct named n = { .out = out, .name = name[0] != '\0' ? name : NULL };
    bool well;

    if (n.name != NULL)
        attribute(out, 1, STR_LIT("service.name"), str_of(n.name));
    well = otlp_pairs(attributes, resource_pair, &n);
    if (n.name == NULL)
        attribute(out, 1, STR_LIT("service.name"), STR_LIT("cloche"));
    attribute(out, 1, STR_LIT("service.version"), STR_LIT(CLOCHE_VERSION));
    attribute(out, 1, STR_LIT("service.instance.id"), str_of(instance));
    return well && buf_ok(out) ? 0 : -1;
}

/* Resource and InstrumentationScope, of both requests. @part: of the daemon, NULL none. */
static size_t
scope_begin(struct buf *b, const struct buf *resource, const char *part, size_t *whole)
{
    size_t at, scope;

    *whole = begin(b, 1);       /* resource_spans, resource_metrics */
    at = begin(b, 1);           /* resource */
    buf_append(b, resource->p, resource->n);
    if (part != NULL)
        attribute(b, 1, STR_LIT("cloche.part"), str_of(part));
    end(b, at);
    at = begin(b, 2);           /* scope_spans, scope_metrics */
    scope = begin(b, 1);
    put_text(b, 1, "cloche");
    put_text(b, 2, CLOCHE_VERSION);
    end(b, scope);
    return at;
}

/* --- spans -------------------------------------------------------------------------------------------------------- */

int
otlp_span(struct buf *b, const struct export_span *s)
{
    static const uint8_t kinds[EXPORT_KINDS] = { [EXPORT_REQUEST] = 2, [EXPORT_INSIDE] = 1, [EXPORT_CONNECTION] = 3 };
    static const uint8_t none[EDGE_SPAN];
    size_t at = begin(b, 2), status;        /* ScopeSpans.spans */

    put_bytes(b, 1, s->trace, sizeof(s->trace));
    put_bytes(b, 2, s->span, sizeof(s->span));
    if (memcmp(s->parent, none, sizeof(none)) != 0)
        put_bytes(b, 4, s->parent, sizeof(s->parent));
    put_text(b, 5, s->name);
    put_varint(b, 6, kinds[s->kind]);
    put_fixed64(b, 7, s->begin_us * 1000);
    put_fixed64(b, 8, (s->end_us > s->begin_us ? s->end_us : s->begin_us) * 1000);
    for (size_t i = 0; i < s->n_notes; i++) {
        const struct export_note *n = &s->notes[i];
        if (n->is_number)
            attribute_number(b, 9, n->key, n->number);
        else
            attribute(b, 9, str_of(n->key), str_of(n->text));
    }
    if (s->failed) {
        status = begin(b, 15);
        put_varint(b, 3, 2);    /* STATUS_CODE_ERROR */
        end(b, status);
    }
    end(b, at);
    return buf_ok(b) ? 0 : -1;
}

int
otlp_traces(struct buf *b, const struct buf *resource, const struct buf *spans)
{
    size_t whole, at = scope_begin(b, resource, NULL, &whole);

    buf_append(b, spans->p, spans->n);
    end(b, at);
    end(b, whole);
    return buf_ok(b) ? 0 : -1;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* What all points of one request have. */
struct when { uint64_t since_us, now_us; };

static size_t
point_begin(struct buf *b, const struct when *w, unsigned labels, const struct stats_row *row,
            const struct stat_sample *s)
{
    size_t at = begin(b, 1);    /* data_points */

    if (row->kind != STATS_GAUGE)
        put_fixed64(b, 2, w->since_us * 1000);
    put_fixed64(b, 3, w->now_us * 1000);
    for (size_t i = 0; i < STATS_LABELS && row->label[i] != NULL; i++)
        attribute(b, labels, str_of(row->label[i]), str_of(s->label[i]));
    return at;
}

static void
histogram_point(struct buf *b, const struct when *w, const struct stats_row *row, const struct stat_sample *s)
{
    size_t at = point_begin(b, w, 9, row, s), list;
    uint64_t all = 0;

    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        all += s->histogram.bucket[i];
    put_fixed64(b, 4, all);
    put_fixed64(b, 5, bits((double)s->histogram.sum_us / 1e6));
    list = begin(b, 6);         /* bucket_counts */
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        little(b, s->histogram.bucket[i]);
    end(b, list);
    list = begin(b, 7);         /* explicit_bounds */
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++)
        little(b, bits((double)histogram_bound_us(i) / 1e6));
    end(b, list);
    end(b, at);
}

static void
point(struct buf *b, const struct when *w, const struct stats_row *row, const struct stat_sample *s)
{
    size_t at;

    if (row->kind == STATS_HISTOGRAM) {
        histogram_point(b, w, row, s);
        return;
    }
    at = point_begin(b, w, 7, row, s);
    if (row->seconds)
        put_fixed64(b, 4, bits((double)s->value / 1e6));    /* as_double */
    else
        put_fixed64(b, 6, s->value);                        /* as_int */
    end(b, at);
}

struct metric { size_t at, data; };

static struct metric
metric_begin(struct buf *b, const struct stats_row *row)
{
    static const uint8_t fields[] = { [STATS_GAUGE] = 5, [STATS_COUNTER] = 7, [STATS_HISTOGRAM] = 9 };
    struct metric m = { .at = begin(b, 2) };        /* ScopeMetrics.metrics */

    put_text(b, 1, row->name);
    put_text(b, 2, row->help);
    if (row->seconds)
        put_text(b, 3, "s");
    m.data = begin(b, fields[row->kind]);
    if (row->kind != STATS_GAUGE)
        put_varint(b, 2, 2);    /* CUMULATIVE */
    if (row->kind == STATS_COUNTER)
        put_varint(b, 3, 1);    /* is_monotonic */
    return m;
}

static void
metric_end(struct buf *b, struct metric m)
{
    end(b, m.data);
    end(b, m.at);
}

int
otlp_metrics(struct buf *b, struct wire_in in, uint64_t since_us, uint64_t now_us)
{
    const struct when when = { since_us, now_us };
    enum stats_family last = STATS;
    struct metric m = { 0, 0 };
    struct stat_sample s;

    while (in.n > 0) {
        if (!stats_get(&in, &s))
            return -1;
        if (s.which != last && last != STATS)
            metric_end(b, m);
        if (s.which != last)
            m = metric_begin(b, stats_row(s.which));
        last = s.which;
        point(b, &when, stats_row(s.which), &s);
    }
    if (last != STATS)
        metric_end(b, m);
    return buf_ok(b) ? 0 : -1;
}

int
otlp_dropped(struct buf *b, const char *name, const char *help, const char *const *reasons, const uint64_t *values,
             size_t n, uint64_t since_us, uint64_t now_us)
{
    const struct stats_row row = { .name = name, .help = help, .kind = STATS_COUNTER, .label = { "reason" } };
    const struct when when = { since_us, now_us };
    struct metric m = metric_begin(b, &row);

    for (size_t i = 0; i < n; i++)
        point(b, &when, &row, &(struct stat_sample){ .label = { reasons[i] }, .value = values[i] });
    metric_end(b, m);
    return buf_ok(b) ? 0 : -1;
}

int
otlp_numbers(struct buf *b, const struct buf *resource, const char *part, const struct buf *metrics)
{
    size_t whole, at = scope_begin(b, resource, part, &whole);

    buf_append(b, metrics->p, metrics->n);
    end(b, at);
    end(b, whole);
    return buf_ok(b) ? 0 : -1;
}

/* --- an answer ---------------------------------------------------------------------------------------------------- */

static bool
get_varint(struct str *s, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; s->n > 0 && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)s->p[0];
        *s = (struct str){ s->p + 1, s->n - 1 };
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The next field: its number; a number's value, or the bytes. 0: there is none, or nothing that is one. */
static uint64_t
get_field(struct str *s, uint64_t *v, struct str *bytes)
{
    uint64_t tag;

    *v = 0;
    *bytes = (struct str){ s->p, 0 };
    if (!get_varint(s, &tag))
        return 0;
    if ((tag & 7) == VARINT)
        return get_varint(s, v) ? tag >> 3 : 0;
    if ((tag & 7) == LENGTH && !get_varint(s, v))
        return 0;
    if ((tag & 7) != LENGTH)
        *v = (tag & 7) == FIXED64 ? 8 : (tag & 7) == FIXED32 ? 4 : UINT64_MAX;
    if (*v > s->n)
        return 0;
    *bytes = (struct str){ s->p, (size_t)*v };
    *s = (struct str){ s->p + *v, s->n - (size_t)*v };
    return tag >> 3;
}

uint64_t
otlp_rejected(struct str body)
{
    struct str partial, none;
    uint64_t field, v;

    while ((field = get_field(&body, &v, &partial)) != 0) {
        if (field != 1)         /* partial_success */
            continue;
        while ((field = get_field(&partial, &v, &none)) != 0)
            if (field == 1)     /* rejected_spans, rejected_data_points */
                return v <= INT64_MAX ? v : 0;
    }
    return 0;
}
