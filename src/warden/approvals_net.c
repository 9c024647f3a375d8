/* warden/approvals_net.c: connections of sandboxes that wait for somebody's approval (approvals.h)
 *
 * A sandbox whose policy says `network.ask` has connections that no rule is about wait in its cloche-egress. Its keeper
 * says so here, with a number of its own, and gets an answer for it. The keeper's word is about its own sandbox; how
 * many may wait, and how often it may ask, is bounded here.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "warden/approvals.h"

#define NET_WAITING 8       /* of one sandbox at once */
#define NET_MINUTE  60      /* of one sandbox that are put on record in a minute */
#define MINUTE_MS   60000
#define LATE_MS     1500    /* a question that ends so near its time was not answered in time */

static void
say_answer(struct box *b, uint32_t number, bool allow, enum approval_scope scope)
{
    PROTO_SAY(box_say, b, EDGE_NET_ANSWER, .number = number, .allow = allow, .scope = scope);
}

void
net_answer(struct warden *w, const struct approval *a, bool allow, enum approval_scope scope)
{
    struct box *b = box_of_id(w, a->r.box);

    if (b != NULL)
        say_answer(b, a->net, allow, scope);
}

/* Whose sandbox it is, who is asked for: the owner, or a token. False: that is none any more. */
static bool
owner_is(const struct warden *w, const struct box *b, struct who *out)
{
    const struct token *t = token_of(w, b->r.owner);

    *out = (struct who){ .role = t != NULL ? t->r.role : EDGE_OPERATOR };
    if (t != NULL)
        memcpy(out->id, b->r.owner, sizeof(out->id));
    return t != NULL || b->r.owner[0] == '\0';
}

static struct approval *
asked(const struct warden *w, const char *box, uint32_t number)
{
    for (struct approval *a = w->approvals->open; a != NULL; a = a->next)
        if (a->net == number && strcmp(a->r.box, box) == 0)
            return a;
    return NULL;
}

/* Too many wait, or came in this minute. */
static bool
too_many(const struct warden *w, struct box *b)
{
    uint64_t minute = clock_ms() / MINUTE_MS;
    size_t n = 0;

    for (const struct approval *a = w->approvals->open; a != NULL; a = a->next)
        n += a->net != 0 && strcmp(a->r.box, b->r.id) == 0 ? 1 : 0;
    if (b->net_minute != minute) {
        b->net_minute = minute;
        b->net_asked = 0;
    }
    return n >= NET_WAITING || b->net_asked++ >= NET_MINUTE;
}

static json_t *
params_of(const struct keep_net_ask *q)
{
    return q->method[0] == '\0' ? json_pack("{s:s, s:i}", "host", q->host, "port", q->port)
                                : json_pack("{s:s, s:i, s:s, s:s}", "host", q->host, "port", q->port,
                                            "method", q->method, "path", q->path);
}

/* Of warden.who, who is the sandbox's owner. */
static void
ask(struct warden *w, struct box *b, const struct keep_net_ask *q)
{
    static const char unnamed[] = "A connection to a host that no rule of the sandbox is about";
    static const char leftover[] = "A request to a host of which the sandbox's rules name other requests";
    char rule[GATE_NAME_MAX + 1];
    struct gate_verdict v = { .ask = true, .risk = GATE_HIGH, .timeout_s = (q->ms + 999) / 1000, .rule = rule,
                              .description = q->narrow ? leftover : unnamed };
    struct err err = ERR_INIT;
    struct approval *a;
    struct deed d;
    int settled;

    /* a name that is longer is approved once, each time, and so is what the sandbox's rules have left out */
    if (snprintf(rule, sizeof(rule), strchr(q->host, ':') != NULL ? "[%s]:%u" : "%s:%u", q->host, q->port) >=
        (int)sizeof(rule) || q->narrow)
        rule[0] = '\0';
    if (deed_make(w, APPROVAL_NETWORK, b->r.id, params_of(q), "", 0, &d, &err) < 0)
        return say_answer(b, q->number, false, SCOPE_ONCE);
    settled = gate_settled(w, &d, rule);
    a = settled == 0 && !too_many(w, b) ? approval_new(w, &d, &v, q->number, &err) : NULL;
    if (settled > 0)
        warden_note_id(w, b->r.id, "gate_allowed", "a connection to %s, by a standing grant", rule);
    if (a == NULL)
        say_answer(b, q->number, settled > 0, SCOPE_CALLER);     /* a grant is for the host */
    else
        a->narrow = q->narrow;
    deed_free(&d);
}

int
net_on_ask(struct warden *w, const struct keep_net_ask *q)
{
    struct box *b = w->heard;
    struct who before = w->who;

    if (asked(w, b->r.id, q->number) != NULL)
        return -1;
    if (b->r.state == BOX_STOPPING || !owner_is(w, b, &w->who))
        say_answer(b, q->number, false, SCOPE_ONCE);
    else
        ask(w, b, q);
    w->who = before;
    return 0;
}

int
net_on_over(struct warden *w, const struct edge_number *m)
{
    struct approval *a = m->number != 0 ? asked(w, w->heard->r.id, m->number) : NULL;
    bool late;

    if (a == NULL)
        return 0;       /* it is decided, and the answer on its way */
    late = clock_ms() + LATE_MS >= a->until_ms;
    a->net = 0;
    approval_refuse(w, a, late ? APPROVAL_TIMEOUT : APPROVAL_DENIED, "", "", late ? "nobody decided in time"
                                                                                  : "nobody waits for it any more");
    return 0;
}

void
net_box_gone(struct warden *w, const char *id)
{
    for (struct approval *a = w->approvals->open, *next; a != NULL; a = next) {
        next = a->next;
        if (a->net == 0 || strcmp(a->r.box, id) != 0)
            continue;
        a->net = 0;
        approval_refuse(w, a, APPROVAL_DENIED, "", "", "its sandbox has ended");
    }
}
