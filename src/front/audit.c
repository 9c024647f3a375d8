/* front/audit.c: the audit record's newest entries, those that come, and transcripts (docs/audit.md, docs/daemon.md)
 *
 * A transcript's lines were written by a sandbox's keeper: they are a stranger's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "front/front.h"

#define LIMIT_MAX  1000
#define LIMIT      100
#define LATEST_MS  4102444800000    /* the year 2100 */

/* --- what is asked for -------------------------------------------------------------------------------------------- */

struct wanted {
    uint32_t types, severities;
    uint64_t since_ms, until_ms, after;
    uint16_t limit;
    char by[EDGE_WHO_MAX + 1];
};

static bool
number_of(const struct request *r, const char *key, uint64_t max, uint64_t *out, bool *bad)
{
    char room[24];
    const char *text = query_get(r, key, room, sizeof(room), bad);

    if (text == NULL)
        return false;
    if (!str_parse_u64(str_of(text), max, out))
        *bad = true;
    return true;
}

/* "a,b": a bit for each word. */
static bool
words_of(const struct request *r, const char *key, bool types, uint32_t *out, bool *bad)
{
    char room[600];
    const char *at = query_get(r, key, room, sizeof(room), bad);

    while (at != NULL && *at != '\0') {
        struct str word = { at, strcspn(at, ",") };
        enum audit_type type;
        enum audit_severity severity;
        if (types ? !audit_type_parse(word, &type) : !audit_severity_parse(word, &severity))
            return false;
        *out |= types ? 1U << type : 1U << severity;
        at += word.n + (at[word.n] == ',' ? 1 : 0);
    }
    return true;
}

static bool
wanted_of(struct request *r, struct wanted *out)
{
    uint64_t limit = LIMIT;
    bool bad = false, well;

    *out = (struct wanted){ .limit = 0 };
    well = words_of(r, "type", true, &out->types, &bad) && words_of(r, "severity", false, &out->severities, &bad);
    (void)number_of(r, r->api ? "sinceMs" : "since_ms", LATEST_MS, &out->since_ms, &bad);
    (void)number_of(r, r->api ? "untilMs" : "until_ms", LATEST_MS, &out->until_ms, &bad);
    if (query_get(r, "by", out->by, sizeof(out->by), &bad) == NULL)
        out->by[0] = '\0';
    (void)number_of(r, "after", INT64_MAX, &out->after, &bad);
    (void)number_of(r, "limit", LIMIT_MAX, &limit, &bad);
    out->limit = (uint16_t)limit;
    if (well && !bad && limit > 0)
        return true;
    reply_error(r, MHD_HTTP_BAD_REQUEST, "audit.request", "docs/audit.md lists types and severities",
                r->api ? "type, severity, sinceMs (milliseconds since 1970) and limit (1 to 1000) are wanted"
                       : "type=A,B, severity=A,B, by=WHO, since_ms=MILLISECONDS, until_ms=MILLISECONDS, after=NUMBER, "
                         "limit=1..1000");
    return false;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static json_t *
json_of_line(const uint8_t *p, size_t n)
{
    return json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES, NULL);
}

static void
on_line(struct request *r, const uint8_t *p, size_t n)
{
    json_t *entry = json_of_line(p, n);

    if (entry != NULL)
        json_array_append_new(r->list, entry);
}

static void
on_end(struct request *r, uint32_t count, bool more)
{
    size_t n = json_array_size(r->list);
    const json_t *last = n > 0 ? json_object_get(json_array_get(r->list, n - 1), "seq") : NULL;

    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O, s:o, s:b}", "entries", r->list, "next", last != NULL
                                         ? json_integer(json_integer_value(last)) : json_null(), "more", more));
}

/* An entry has there what the sheet names; the sandbox is part of the metadata. */
static void
on_feed_line(struct request *r, const uint8_t *p, size_t n)
{
    static const char *const kept[] = { "timestamp", "type", "summary", "severity", "traceId" };
    json_t *entry = json_of_line(p, n), *out = json_object(), *metadata;

    for (size_t i = 0; entry != NULL && i < ARRAY_LEN(kept); i++)
        if (json_object_get(entry, kept[i]) != NULL)
            json_object_set(out, kept[i], json_object_get(entry, kept[i]));
    metadata = json_object_get(entry, "metadata");
    metadata = metadata != NULL ? json_copy(metadata) : json_object();
    if (json_object_get(entry, "sandbox") != NULL)
        json_object_set(metadata, "sandbox", json_object_get(entry, "sandbox"));
    json_object_set_new(out, "metadata", metadata);
    json_array_append_new(r->list, out);
    json_decref(entry);
}

static void
on_feed_end(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "entries", r->list));
}

static const struct answers list_answers = { .line = on_line, .end = on_end };
static const struct answers feed_answers = { .line = on_feed_line, .end = on_feed_end };

static void
on_size(struct request *r, uint32_t count, bool more)
{
    (void)more;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:I}", "size", (json_int_t)count));
}

static const struct answers size_answers = { .line = on_line, .end = on_size };

static void
audit_list(struct request *r, const char *id, const struct answers *answers)
{
    struct wanted want;

    if (!wanted_of(r, &want))
        return;
    r->list = json_array();
    ASK(r, EDGE_ASK_AUDIT, answers, .count = answers == &size_answers, .types = want.types,
        .severities = want.severities, .since_ms = want.since_ms, .until_ms = want.until_ms, .after = want.after,
        .limit = want.limit, .by = want.by, .id = id);
}

static bool
sandbox_of(struct request *r, char out[EDGE_NAME_MAX + 1])
{
    bool bad = false;
    const char *id = query_get(r, "sandbox", out, EDGE_NAME_MAX + 1, &bad);

    if (id == NULL)
        out[0] = '\0';
    if (!bad)
        return true;
    reply_error(r, MHD_HTTP_BAD_REQUEST, "audit.request", "", "sandbox is a name or an id");
    return false;
}

static void
audit(struct request *r)
{
    char id[EDGE_NAME_MAX + 1];

    if (sandbox_of(r, id))
        audit_list(r, id, &list_answers);
}

static void
audit_of(struct request *r)
{
    audit_list(r, r->id, &list_answers);
}

static void
feed(struct request *r)
{
    audit_list(r, "", &feed_answers);
}

static void
size(struct request *r)
{
    char id[EDGE_NAME_MAX + 1];

    if (sandbox_of(r, id))
        audit_list(r, id, &size_answers);
}

/* --- those that come ---------------------------------------------------------------------------------------------- */

/* Who comes again is told what it missed first: a page, and another one when that is taken, until there are no more.
 * Only then it follows, from the last one on, so that the warden never says more than its client reads. */
#define PAGE 200

struct missed {
    struct wanted want;                 /* after: the last one that was told */
    char id[EDGE_NAME_MAX + 1];
    bool due, more;                     /* the next question is; and whether it is for another page */
    bool full;                          /* there is no room for the rest of this one: it is asked for again */
};

void
audit_free(struct request *r)
{
    free(r->missed);
    r->missed = NULL;
}

static void
audit_begin(struct request *r)
{
    reply_stream(r, "text/event-stream");
    waits_count(r);
    http_wake(r);
}

static void
on_following(struct request *r)
{
    audit_begin(r);
    audit_free(r);
}

static bool
tell(struct request *r, const uint8_t *p, size_t n, uint64_t *seq)
{
    json_t *entry = json_of_line(p, n);
    char head[64];
    int k;

    if (entry == NULL)
        return false;
    *seq = (uint64_t)json_integer_value(json_object_get(entry, "seq"));
    k = snprintf(head, sizeof(head), "id: %llu\nevent: entry\ndata: ", (unsigned long long)*seq);
    (void)buf_append(&r->out, head, (size_t)k);
    (void)buf_append(&r->out, p, n);
    (void)buf_append(&r->out, "\n\n", 2);
    json_decref(entry);
    return true;
}

/* The line is one: no newline of its own can be in it. Who does not read is cut off, and can come again where it
 * was. */
static void
on_followed(struct request *r, const uint8_t *p, size_t n)
{
    uint64_t seq;

    if (r->stream_end)
        return;
    if (r->out.n > FRONT_STREAM_MAX) {
        ask_drop(r);
        stream_break(r);
    } else if (tell(r, p, n, &seq)) {
        stream_add(r, "", 0);
    }
}

static void
on_missed(struct request *r, const uint8_t *p, size_t n)
{
    struct missed *m = r->missed;

    m->full = m->full || !waits_room(r, n);
    if (!m->full)
        (void)tell(r, p, n, &m->want.after);
    waits_count(r);
}

static void
on_page_of_missed(struct request *r, uint32_t count, bool more)
{
    (void)count;
    more = more || r->missed->full;
    r->missed->due = true;
    r->missed->more = more;
    r->missed->full = false;
    if (more || r->out.n > FRONT_STREAM_MAX / 2)
        audit_begin(r);       /* else a refusal to follow can still be said */
    audit_flow(r);
}

static const struct answers follow_answers = { .line = on_followed, .following = on_following, .no = stream_refuse };
static const struct answers missed_answers = { .line = on_missed, .end = on_page_of_missed, .no = stream_refuse };

void
audit_flow(struct request *r)
{
    struct missed *m = r->missed;
    const struct wanted *w = m != NULL ? &m->want : NULL;

    if (m == NULL || !m->due || r->stream_end || r->out.n > FRONT_STREAM_MAX / 2)
        return;
    if (m->more && r->stream && !waits_room(r, FRONT_STREAM_MAX)) {
        r->f->pressed = true;
        return;
    }
    m->due = false;
    ASK(r, EDGE_ASK_AUDIT, m->more ? &missed_answers : &follow_answers, .follow = !m->more, .types = w->types,
        .severities = w->severities, .since_ms = w->since_ms, .until_ms = w->until_ms, .after = w->after,
        .limit = PAGE, .by = w->by, .id = m->id);
    if (r->ticket == 0 && r->stream)
        stream_break(r);        /* the warden does not listen; it can come again */
}

static void
stream(struct request *r)
{
    static const char hello[] = ": the audit record\n\n";
    const char *last = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Last-Event-ID");
    char id[EDGE_NAME_MAX + 1];
    struct wanted want;

    if (!sandbox_of(r, id) || !wanted_of(r, &want))
        return;
    if (last != NULL && !str_parse_u64(str_of(last), INT64_MAX, &want.after)) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, "audit.request", "", "Last-Event-ID is the number of an entry");
        return;
    }
    r->missed = calloc(1, sizeof(*r->missed));
    if (r->missed == NULL) {
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "out of memory");
        return;
    }
    *r->missed = (struct missed){ .want = want, .due = true, .more = want.after > 0 };
    memcpy(r->missed->id, id, sizeof(id));
    (void)buf_append(&r->out, hello, sizeof(hello) - 1);
    audit_flow(r);
}

/* --- transcripts -------------------------------------------------------------------------------------------------- */

static void
on_page(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    (void)buf_append(&r->out, p, n);
}

/* @event: those entries alone, without saying so in each; NULL all. A line without an event says whose it is. */
static json_t *
entries_of(const struct request *r, const char *event)
{
    json_t *entries = json_array();

    for (size_t at = 0; at < r->out.n;) {
        const uint8_t *end = memchr(r->out.p + at, '\n', r->out.n - at);
        size_t n = end != NULL ? (size_t)(end - r->out.p) - at : r->out.n - at;
        json_t *one = json_of_line(r->out.p + at, n);
        const char *is = json_string_value(json_object_get(one, "event"));
        if (is != NULL && (event == NULL || strcmp(is, event) == 0)) {
            if (event != NULL)
                (void)json_object_del(one, "event");
            json_array_append(entries, one);
        }
        json_decref(one);
        at += n + 1;
    }
    return entries;
}

static void
on_page_end(struct request *r, uint64_t next)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:I}", "entries", entries_of(r, NULL), "next", (json_int_t)next));
}

static void
on_logs_end(struct request *r, uint64_t next)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:I}", "logs", entries_of(r, "output"), "next", (json_int_t)next));
}

static void
on_page_failed(struct request *r, const struct err *err)
{
    reply_err(r, err);
}

static const struct answers page_granted = { .box = NULL };
static const struct op_answers page_answers = { .out = on_page, .done = on_page_end, .failed = on_page_failed };
static const struct op_answers logs_answers = { .out = on_page, .done = on_logs_end, .failed = on_page_failed };

static void
ask_page(struct request *r, const struct op_answers *said)
{
    uint64_t offset = 0;
    bool bad = false;

    (void)number_of(r, "offset", INT64_MAX, &offset, &bad);
    r->op_answers = said;
    if (bad)
        reply_error(r, MHD_HTTP_BAD_REQUEST, "transcript.request", "", "offset is what the page before said as next");
    else
        ASK(r, EDGE_ASK_TRANSCRIPT, &page_granted, .id = r->id, .offset = offset);
}

static void
transcript(struct request *r)
{
    ask_page(r, &page_answers);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static void
on_messages_end(struct request *r, uint64_t next)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:I}", "messages", entries_of(r, "message"), "next", (json_int_t)next));
}

static const struct op_answers messages_answers = { .out = on_page, .done = on_messages_end,
                                                    .failed = on_page_failed };

static void
messages(struct request *r)
{
    ask_page(r, &messages_answers);
}

static void
on_message_done(struct request *r, uint64_t number)
{
    reply_json(r, MHD_HTTP_CREATED, json_pack("{s:I}", "operation", (json_int_t)number));
}

static const struct op_answers message_answers = { .done = on_message_done, .failed = on_page_failed };

/* A text as it is; any other value as JSON. */
static void
message(struct request *r)
{
    const json_t *role = json_object_get(r->json, "role"), *content = json_object_get(r->json, "content");
    cleanup_free char *text = content != NULL && !json_is_string(content)
                                  ? json_dumps(content, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    struct edge_run_ask ask = { .what = RUN_MESSAGE, .json = text != NULL, .role = json_string_value(role),
                                .text = text != NULL ? text : json_string_value(content) };

    if (!json_is_object(r->json) || json_object_size(r->json) != 2 || ask.role == NULL || ask.text == NULL ||
        strlen(ask.role) > EDGE_MESSAGE_ROLE || !edge_role_well(ask.role) ||
        (text == NULL && json_string_length(content) != strlen(ask.text)))
        reply_unfit(r, "message.request", "{\"role\": a word of small letters, \"content\": a text, or another value}");
    else if (strlen(ask.text) > EDGE_MESSAGE_TEXT)
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "message.too-large", "send it in parts", "a message has at most %d "
                    "bytes", EDGE_MESSAGE_TEXT);
    else
        ask_run(r, &ask, &page_granted, &message_answers);
}

static void
logs(struct request *r)
{
    ask_page(r, &logs_answers);
}

const struct route audit_routes[] = {
    { "GET", "/v1/audit",                    audit,      false, false },
    { "GET", "/v1/audit/stream",             stream,     false, false, .endless = true },
    { "GET", "/v1/sandboxes/{}/audit",       audit_of,   false, false },
    { "GET", "/v1/sandboxes/{}/transcript",  transcript, false, false },
    { "GET", "/v1/sandboxes/{}/logs",        logs,       false, false },
    { "GET", "/v1/sandboxes/{}/messages",    messages,   false, false },
    { "POST", "/v1/sandboxes/{}/messages",   message,    true,  false },
    { "GET", "/v1/audit/size",               size,       false, false },
    { "GET", "/api/audit/feed",              feed,       false, false },
    { "GET", "/api/audit/feed/size",         size,       false, false },
};
const size_t audit_n_routes = ARRAY_LEN(audit_routes);
