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
    uint8_t room[64];
    struct buf frame = BUF_INIT_IN(room, sizeof(room));
    size_t at = frame_begin(&frame, EDGE_NET_ANSWER, 0, 0);

    buf_put_be32(&frame, number);
    buf_put_u8(&frame, allow);
    buf_put_u8(&frame, (uint8_t)scope);
    if (frame_end(&frame, at) == 0)
        (void)box_say(b, &frame, -1);
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

/* What a sandbox asks for. */
struct wish {
    uint32_t number, ms;
    uint16_t port;
    bool narrow;
    const char *host, *method, *path;   /* "" each of the last two: a connection as such */
};

static json_t *
params_of(const struct wish *q)
{
    return q->method[0] == '\0' ? json_pack("{s:s, s:i}", "host", q->host, "port", q->port)
                                : json_pack("{s:s, s:i, s:s, s:s}", "host", q->host, "port", q->port,
                                            "method", q->method, "path", q->path);
}

/* Of warden.who, who is the sandbox's owner. */
static void
ask(struct warden *w, struct box *b, const struct wish *q)
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
    if (deed_make(APPROVAL_NETWORK, b->r.id, params_of(q), "", 0, &d, &err) < 0)
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

static bool
host_well(const char *host)
{
    return host[0] != '\0' && host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:")] == '\0';
}

/* As cloche-egress shows them: printable ASCII. */
static bool
request_well(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

int
net_on_ask(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct box *b = w->heard;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct wish q = { .number = wire_be32(&in) };
    struct who before = w->who;
    uint8_t narrow;

    q.port = wire_be16(&in);
    q.ms = wire_be32(&in);
    narrow = wire_u8(&in);
    q.narrow = narrow != 0;
    q.host = wire_cstr(&in, EDGE_HOST_MAX, NULL);
    q.method = wire_cstr(&in, EDGE_METHOD_MAX, NULL);
    q.path = wire_cstr(&in, EDGE_ASKED_MAX, NULL);
    if (!wire_done(&in) || narrow > 1 || q.number == 0 || q.port == 0 || q.ms == 0 || q.ms > EDGE_NET_MS_MAX ||
        !host_well(q.host) || !request_well(q.method) || !request_well(q.path) ||
        (q.method[0] == '\0' && q.path[0] != '\0') || asked(w, b->r.id, q.number) != NULL)
        return -1;
    if (b->r.state == BOX_STOPPING || !owner_is(w, b, &w->who))
        say_answer(b, q.number, false, SCOPE_ONCE);
    else
        ask(w, b, &q);
    w->who = before;
    return 0;
}

int
net_on_over(void *ctx, const struct frame *f)
{
    struct warden *w = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t number = wire_be32(&in);
    struct approval *a = number != 0 ? asked(w, w->heard->r.id, number) : NULL;
    bool late;

    if (!wire_done(&in))
        return -1;
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
