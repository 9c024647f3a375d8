/* warden/record_ask.c: questions about the audit record: its newest entries, those that come, transcripts */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/record_priv.h"

#define MILLISECONDS (AUDIT_TIME_TEXT - 4)      /* "…T17:00:00.123": all that is in that one is in it */

static void
say_line(struct warden *w, struct asker to, struct str line)
{
    ANSWER(w, to, EDGE_LINE, .line = (const uint8_t *)line.p, .n_line = line.n);
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
    snprintf(one->by, sizeof(one->by), "%.*s", (int)filter->by.n, filter->by.n > 0 ? filter->by.p : "");
    one->filter.by = str_of(one->by);
    snprintf(one->until, sizeof(one->until), "%.*s", (int)filter->until.n, filter->until.n > 0 ? filter->until.p : "");
    one->filter.until = str_of(one->until);
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

int
asked_unfollow(struct warden *w, const struct nothing *m)
{
    (void)m;
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
    char text[CLOCK_TEXT + 1];

    clock_text((int64_t)ms, text);
    snprintf(out, AUDIT_TIME_TEXT + 1, "%.23s000Z", text);
}

int
asked_audit(struct warden *w, const struct ask_audit *m)
{
    struct telling t = { .reach = { .w = w, .who = &w->who }, .to = w->asker, .after = m->after, .limit = m->limit };
    struct audit_filter filter = { .types = m->types, .severities = m->severities };
    char since[AUDIT_TIME_TEXT + 1], until[AUDIT_TIME_TEXT + 1], id[EDGE_ID + 1] = "";
    struct err err = ERR_INIT;

    moment(m->since_ms, since);
    moment(m->until_ms, until);
    filter.since = m->since_ms > 0 ? str_of(since) : (struct str){ NULL, 0 };
    filter.until = m->until_ms > 0 ? (struct str){ until, MILLISECONDS } : (struct str){ NULL, 0 };
    filter.by = str_of(m->by);
    if ((m->id[0] != '\0' && whose_record(w, m->id, id, &err) < 0) ||
        (filter.sandbox = str_of(id), m->follow && follow(w, &filter, &err) < 0)) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (m->follow) {
        ANSWER(w, w->asker, EDGE_FOLLOWING);
        t.limit = t.after > 0 ? AUDIT_FEED_MAX : 0;     /* who comes again misses nothing that is still there */
    }
    if (m->count) {
        t.count = true;
        (void)audit_feed_query(w->record->feed, &filter, AUDIT_FEED_MAX, tell, &t);
    } else if (t.limit > 0) {
        tell_all(&t, &filter);
    }
    if (!m->follow)
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
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_sys(err, errno, "serve.op", "socketpair");
    if (record_read(w, id, offset, pair[0]) < 0) {
        close(pair[1]);
        return err_set(err, ERR_SYSTEM, "audit.unavailable", "cloche-scribe is starting again; try again");
    }
    ANSWER_WITH(pair[1], w, w->asker, EDGE_GRANTED);
    return 0;
}

int
asked_transcript(struct warden *w, const struct ask_transcript *m)
{
    char id[EDGE_ID + 1];
    struct err err = ERR_INIT;

    if (whose_record(w, m->id, id, &err) < 0 || grant(w, id, m->offset, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}
