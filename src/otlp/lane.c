/* otlp/lane.c: requests of one kind, one after the other; what does not get through is tried again, then dropped */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "otlp/otlp.h"

#define FIRST_WAIT_MS 1000
#define SAY_MS        60000     /* the log says at most so often that something is lost */

/* @why may quote the collector's certificate; never what was sent, nor a header. */
static void
say(struct lane *l, uint64_t n, const char *why)
{
    uint64_t now = clock_ms();

    if (l->said_ms != 0 && clock_since(now, l->said_ms) < SAY_MS)
        return;
    l->said_ms = now;
    log_say(LEVEL_WARN, "%llu %s are not exported: %s; others are counted, and said once a minute at most",
            (unsigned long long)n, l->what, why);
}

void
lane_lose(struct lane *l, enum otlp_lost why, uint64_t n)
{
    static const char *const words[] = { "too many wait", "they did not get through", "the collector refused them" };

    if (n == 0)
        return;
    l->lost[why] += n;
    say(l, n, words[why]);
}

static void
over(struct lane *l)
{
    buf_free(&l->body);
    l->body = (struct buf)BUF_INIT(OTLP_BODY_MAX);
    l->items = 0;
    l->tries = 0;
}

static void
again(struct lane *l, uint32_t after_s, const char *why)
{
    uint64_t wait = (uint64_t)FIRST_WAIT_MS << (l->tries - 1);

    l->failing = true;
    if (l->tries == OTLP_TRIES || l->o->ending) {
        l->lost[LOST_NOT_SENT] += l->items;
        say(l, l->items, why);
        return over(l);
    }
    if (after_s > 0)
        wait = (uint64_t)(after_s < OTLP_AFTER_MAX_S ? after_s : OTLP_AFTER_MAX_S) * 1000;
    l->due_ms = l->o->loop.now_ms + wait;
}

/* As OTLP/HTTP says what may be tried again. */
void
lane_answered(struct post *p, const struct post_answer *a, const char *why)
{
    struct lane *l = p->owner;
    char said[64];

    if (a == NULL)
        return again(l, 0, why);
    snprintf(said, sizeof(said), "the collector answered %d", a->status);
    if (a->status == 429 || (a->status >= 502 && a->status <= 504))
        return again(l, a->after_s, said);
    l->failing = false;
    if (a->status >= 200 && a->status <= 299) {
        uint64_t rejected = otlp_rejected(a->body);
        lane_lose(l, LOST_REFUSED, rejected < l->items ? rejected : l->items);
    } else {
        l->lost[LOST_REFUSED] += l->items;
        say(l, l->items, said);
    }
    over(l);
}

static void
begin(struct lane *l)
{
    struct post *p = &l->post;

    l->tries++;
    post_head(p, "application/x-protobuf", l->body.n);
    buf_append(&p->out, l->o->s.headers.p, l->o->s.headers.n);
    buf_puts(&p->out, "\r\n");
    buf_append(&p->out, l->body.p, l->body.n);
    post_begin(p);
}

void
lane_send(struct lane *l, uint64_t items)
{
    l->items = items;
    l->tries = 0;
    if (buf_ok(&l->body) && l->body.n > 0)
        return begin(l);
    lane_lose(l, LOST_NO_ROOM, items);
    over(l);
}

uint64_t
lane_due(const struct lane *l)
{
    return l->post.state != POST_IDLE ? l->post.deadline_ms : l->body.n > 0 ? l->due_ms : 0;
}

void
lane_time(struct lane *l)
{
    if (!post_late(&l->post) && l->post.state == POST_IDLE && l->body.n > 0 && l->o->loop.now_ms >= l->due_ms)
        begin(l);
}
