/* warden/record_ask.c: questions about the audit record: its newest entries, those that come, transcripts */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "warden/record_priv.h"

#define LIMIT_MAX 1000
#define LATEST_MS 4102444800000   /* the year 2100 */
#define ALL_TYPES ((1U << AUDIT_TYPES) - 1)
#define ALL_LEVELS ((1U << AUDIT_SEVERITIES) - 1)

static void
say_line(struct warden *w, struct asker to, struct str line)
{
    cleanup_buf struct buf b = BUF_INIT(AUDIT_LINE_MAX + 64);
    size_t at = answer_begin(&b, EDGE_LINE, to);

    buf_append(&b, line.p, line.n);
    answer_send(w, to, &b, at, -1);
}

/* --- whose entries ------------------------------------------------------------------------------------------------ */

struct reach {
    struct warden *w;
    const struct who *who;
    char id[EDGE_ID + 1];       /* the sandbox that was looked up last; "" none */
    bool yes;
};

static void
take_reach(void *ctx, const struct edge_box *r)
{
    struct reach *reach = ctx;

    reach->yes = who_reaches(reach->who, r);
}

/* An agent sees what is said about its own sandboxes; what is about none is the operators' and auditors'. */
static bool
reaches(struct reach *reach, const struct audit_line *line)
{
    const struct box *b;

    if (who_owner(reach->who) == NULL)
        return true;
    if (line->sandbox.n != EDGE_ID)
        return false;
    if (memcmp(reach->id, line->sandbox.p, EDGE_ID) == 0)
        return reach->yes;
    memcpy(reach->id, line->sandbox.p, EDGE_ID);
    reach->id[EDGE_ID] = '\0';
    reach->yes = false;
    b = box_of_id(reach->w, reach->id);
    if (b != NULL)
        take_reach(reach, &b->r);
    else
        (void)state_find(reach->w->state, reach->id, take_reach, reach, NULL);
    return reach->yes;
}

/* --- those that come ---------------------------------------------------------------------------------------------- */

static void
tell_follower(struct warden *w, struct follower *one, struct str text, const struct audit_line *line)
{
    struct who who;
    struct reach reach = { .w = w, .who = &who };
    struct err err = ERR_INIT;

    if (who_still(w, one->to.front, &one->proof, EDGE_ASK_AUDIT, &who, &err) < 0) {
        answer_no(w, one->to, &err);    /* a token that is none any more */
        one->to.ticket = 0;
    } else if (reaches(&reach, line)) {
        say_line(w, one->to, text);
    }
}

void
record_line(struct warden *w, struct str text)
{
    struct record *r = w->record;
    struct audit_line line;

    if (!audit_feed_push(r->feed, text) || !audit_parse(text, &line))
        return;
    for (size_t i = 0; i < RECORD_FOLLOWERS; i++)
        if (r->followers[i].to.ticket != 0 && audit_filter_match(&r->followers[i].filter, &line))
            tell_follower(w, &r->followers[i], text, &line);
}

static int
follow(struct warden *w, const struct audit_filter *filter, struct err *err)
{
    struct follower *one = NULL;
    struct follow_count n = { .all = 0 };

    for (size_t i = 0; i < RECORD_FOLLOWERS; i++) {
        struct follower *at = &w->record->followers[i];
        if (at->to.ticket != 0)
            follow_counts(w, &at->who, &at->proof, &n);
        else
            one = at;
    }
    if (follow_may(w, &n, "audit.followers", err) < 0 || one == NULL)
        return -1;
    *one = (struct follower){ .to = w->asker, .proof = w->proof, .who = w->who, .filter = *filter };
    snprintf(one->id, sizeof(one->id), "%.*s", (int)filter->sandbox.n, filter->sandbox.p);
    one->filter.sandbox = str_of(one->id);
    one->filter.since = (struct str){ NULL, 0 };
    follow_look(w);
    return 0;
}

void
record_judge(struct warden *w, struct follow_count *c)
{
    for (size_t i = 0; i < RECORD_FOLLOWERS; i++) {
        struct follower *one = &w->record->followers[i];
        struct err err = ERR_INIT;
        struct who who;
        if (one->to.ticket == 0)
            continue;
        if (who_still(w, one->to.front, &one->proof, EDGE_ASK_AUDIT, &who, &err) == 0) {
            follow_counts(w, &one->who, &one->proof, c);
            continue;
        }
        answer_no(w, one->to, &err);
        one->to.ticket = 0;
    }
}

static int
on_unfollow(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;

    (void)f;
    for (size_t i = 0; i < RECORD_FOLLOWERS; i++)
        if (w->record->followers[i].to.ticket == w->asker.ticket && w->record->followers[i].to.front == w->asker.front)
            w->record->followers[i].to.ticket = 0;
    watch_unfollow(w);
    return 0;
}

/* --- those that there are ----------------------------------------------------------------------------------------- */

struct telling {
    struct reach reach;
    struct asker to;
    uint64_t after;
    size_t limit, skip, n;
    bool count, more;           /* @count: only how many there are */
};

static void
tell(void *ctx, struct str text, const struct audit_line *line)
{
    struct telling *t = ctx;

    if (line->seq <= t->after || !reaches(&t->reach, line))
        return;
    if (t->count) {
        t->n++;
    } else if (t->skip > 0) {
        t->skip--;
    } else if (t->n == t->limit) {
        t->more = true;
    } else {
        t->n++;
        say_line(t->reach.w, t->to, text);
    }
}

/* From @after on the oldest, else the newest. */
static void
tell_all(struct telling *t, const struct audit_filter *filter)
{
    const struct audit_feed *feed = t->reach.w->record->feed;

    if (t->after == 0) {
        t->count = true;
        (void)audit_feed_query(feed, filter, AUDIT_FEED_MAX, tell, t);
        t->count = false;
        t->skip = t->n > t->limit ? t->n - t->limit : 0;
        t->n = 0;
    }
    (void)audit_feed_query(feed, filter, AUDIT_FEED_MAX, tell, t);
}

static void
moment(uint64_t ms, char out[AUDIT_TIME_TEXT + 1])
{
    time_t seconds = (time_t)(ms / 1000);
    char date[32];
    struct tm utc;

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    snprintf(out, AUDIT_TIME_TEXT + 1, "%.19s.%03u000Z", date, (unsigned)(ms % 1000));
}

static void
say_following(struct warden *w)
{
    cleanup_buf struct buf b = BUF_INIT(64);
    size_t at = answer_begin(&b, EDGE_FOLLOWING, w->asker);

    answer_send(w, w->asker, &b, at, -1);
}

static int
on_audit(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    struct telling t = { .reach = { .w = w, .who = &w->who }, .to = w->asker };
    uint8_t following = wire_u8(&in);
    struct audit_filter filter = { .types = wire_be32(&in) };
    char since[AUDIT_TIME_TEXT + 1], id[EDGE_ID + 1] = "";
    struct err err = ERR_INIT;
    uint64_t since_ms;
    const char *name;

    filter.severities = wire_be32(&in);
    since_ms = wire_be64(&in);
    t.after = wire_be64(&in);
    t.limit = wire_be16(&in);
    name = wire_cstr(&in, EDGE_NAME_MAX, NULL);
    if (!wire_done(&in) || following > 1 || (filter.types & ~ALL_TYPES) != 0 || t.limit > LIMIT_MAX ||
        (filter.severities & ~ALL_LEVELS) != 0 || since_ms > LATEST_MS)
        return -1;
    moment(since_ms, since);
    filter.since = since_ms > 0 ? str_of(since) : (struct str){ NULL, 0 };
    if ((name[0] != '\0' && whose_record(w, name, id, &err) < 0) ||
        (filter.sandbox = str_of(id), following != 0 && follow(w, &filter, &err) < 0)) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (following != 0) {
        say_following(w);
        t.limit = t.after > 0 ? AUDIT_FEED_MAX : 0;     /* who comes again misses nothing that is still there */
    }
    if (t.limit > 0)
        tell_all(&t, &filter);
    if (following == 0)
        answer_end(w, w->asker, (uint32_t)t.n, t.more);
    return 0;
}

/* --- transcripts -------------------------------------------------------------------------------------------------- */

static void
take_id(void *ctx, const struct edge_box *r)
{
    memcpy(ctx, r->id, EDGE_ID + 1);
}

int
whose_record(struct warden *w, const char *name, char id[EDGE_ID + 1], struct err *err)
{
    const struct box *b = living(w, name);

    if (b != NULL)
        memcpy(id, b->r.id, EDGE_ID + 1);
    else if (find_record(w, name, take_id, id, err) <= 0 && err->kind == ERR_NONE) {
        if (!edge_is_id(name) || who_owner(&w->who) != NULL)
            return not_found(name, err);
        memcpy(id, name, EDGE_ID + 1);
    }
    return err->kind == ERR_NONE ? 0 : -1;
}

static int
grant(struct warden *w, const char *id, uint64_t offset, struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(64);
    int pair[2];
    size_t at;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_sys(err, errno, "serve.op", "socketpair");
    if (record_read(w, id, offset, pair[0]) < 0) {
        close(pair[1]);
        return err_set(err, ERR_SYSTEM, "audit.unavailable", "cloche-scribe is starting again; try again");
    }
    at = answer_begin(&b, EDGE_GRANTED, w->asker);
    answer_send(w, w->asker, &b, at, pair[1]);
    return 0;
}

static int
on_transcript(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = ask_in(f);
    const char *name = wire_cstr(&in, EDGE_NAME_MAX, NULL);
    uint64_t offset = wire_be64(&in);
    char id[EDGE_ID + 1];
    struct err err = ERR_INIT;

    if (!wire_done(&in))
        return -1;
    if (whose_record(w, name, id, &err) < 0 || grant(w, id, offset, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

const struct msg_rule record_rules[] = {
    /* type                 once   flags states min  max length           handler */
    { EDGE_ASK_AUDIT,       false, 0,    1,     40,  40 + EDGE_NAME_MAX,  on_audit },
    { EDGE_ASK_UNFOLLOW,    false, 0,    1,     8,   8,                   on_unfollow },
    { EDGE_ASK_TRANSCRIPT,  false, 0,    1,     21,  21 + EDGE_NAME_MAX,  on_transcript },
};
const size_t record_n_rules = ARRAY_LEN(record_rules);
