/* webhook/send.c: the queue, and one try after the other (webhook.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "webhook/webhook.h"

#define FIRST_WAIT_MS 1000

/* --- the queue ---------------------------------------------------------------------------------------------------- */

static void
say(const struct webhook_event *e, const char *what, const char *why)
{
    log_say(LEVEL_WARN, "%s of %s %s: %s", e->name, e->id, what, why);
}

static void
drop(struct webhook *h, size_t i)
{
    buf_free(&h->queue[i].body);
    h->n--;
    memmove(&h->queue[i], &h->queue[i + 1], (h->n - i) * sizeof(h->queue[0]));
}

/* The oldest event of whoever has most of them, so that who asks much pushes nobody else's out. Not the first one,
 * which may be under way. */
static size_t
one_too_many(const struct webhook *h)
{
    size_t found = 1, most = 0;

    for (size_t i = 1; i < h->n; i++) {
        size_t n = 0;
        for (size_t k = i; k < h->n; k++)
            n += strcmp(h->queue[k].caller, h->queue[i].caller) == 0;
        if (n > most) {
            most = n;
            found = i;
        }
    }
    return found;
}

void
webhook_put(struct webhook *h, const struct edge_approval *a, const char *name)
{
    struct webhook_event e = { .name = name, .body = BUF_INIT(WEBHOOK_BODY_MAX) };

    memcpy(e.id, a->id, sizeof(e.id));
    snprintf(e.caller, sizeof(e.caller), "%s", strncmp(a->caller, "key:", 4) == 0 ? "key:" : a->caller);
    e.until_ms = a->state == APPROVAL_PENDING ? clock_boot_ms() + clock_since(a->until_ms, clock_wall_ms()) : 0;
    if (webhook_body(a, name, h->s->page, &e.body) < 0) {
        say(&e, "is not told", "it does not fit");
        buf_free(&e.body);
        return;
    }
    if (h->n == WEBHOOK_QUEUE) {
        size_t i = one_too_many(h);
        say(&h->queue[i], "is not told", "too many wait");
        drop(h, i);
    }
    h->queue[h->n++] = e;
}

/* --- one try ------------------------------------------------------------------------------------------------------ */

/* @again: it may go better later. */
static void
fail(struct webhook *h, bool again, const char *why)
{
    struct webhook_event *e = &h->queue[0];

    if (again && e->tries < WEBHOOK_TRIES) {
        e->due_ms = h->loop.now_ms + ((uint64_t)FIRST_WAIT_MS << 2 * (e->tries - 1));
        return;
    }
    say(e, "was not told", why);
    drop(h, 0);
}

void
webhook_answered(struct post *p, const struct post_answer *a, const char *why)
{
    struct webhook *h = p->owner;
    char said[64];

    if (a == NULL)
        return fail(h, true, why);
    snprintf(said, sizeof(said), "the server answered %d", a->status);
    if (a->status < 200 || a->status > 299)
        fail(h, a->status == 408 || a->status == 425 || a->status == 429 || a->status >= 500, said);
    else
        drop(h, 0);
}

/* The signature is of now: a server may refuse what is old. */
static bool
request(struct webhook *h)
{
    const struct webhook_settings *s = h->s;
    const struct webhook_event *e = &h->queue[0];
    uint64_t seconds = clock_wall_ms() / 1000;
    char signature[WEBHOOK_SIGNATURE + 1];
    struct buf *out = &h->post.out;

    post_head(&h->post, "application/json", e->body.n);
    buf_printf(out, "Cloche-Event: %s\r\nCloche-Delivery: %s.%s\r\n", e->name, e->id, strchr(e->name, '.') + 1);
    if (s->n_secret > 0) {
        if (!webhook_sign(s->secret, s->n_secret, seconds, e->body.p, e->body.n, signature))
            return false;
        buf_printf(out, "Cloche-Signature: %s\r\n", signature);
    }
    buf_puts(out, "\r\n");
    return buf_append(out, e->body.p, e->body.n) == 0;
}

static void
send_begin(struct webhook *h)
{
    struct webhook_event *e = &h->queue[0];

    if (e->until_ms > 0 && clock_boot_ms() >= e->until_ms) {
        e->tries = WEBHOOK_TRIES;
        return fail(h, false, "its time is over");
    }
    e->tries++;
    if (request(h))
        return post_begin(&h->post);
    buf_reset(&h->post.out);
    fail(h, true, "out of memory");
}

/* What is under way is late, or what is next is due; not what an answer of the same round has changed. */
static void
on_time(struct timer *t)
{
    struct webhook *h = t->owner;

    if (!post_late(&h->post) && h->post.state == POST_IDLE && h->n > 0 && h->loop.now_ms >= h->queue[0].due_ms)
        send_begin(h);
}

void
webhook_turn(struct webhook *h)
{
    uint64_t at = h->post.state != POST_IDLE ? h->post.deadline_ms : h->n == 0 ? 0
                  : h->queue[0].due_ms > h->loop.now_ms ? h->queue[0].due_ms : h->loop.now_ms;

    h->time.due = on_time;
    h->time.owner = h;
    loop_at(&h->loop, &h->time, at);
}
