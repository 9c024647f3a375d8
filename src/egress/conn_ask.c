/* egress/conn_ask.c: connections that wait for somebody's decision
 *
 * Where nothing but the want of a rule stands against a connection, its owner may be asked. Equal ones are one
 * question. The connection waits, unread, until the answer or the deadline, and is then decided on as if it had only
 * now come.
 */
#include <string.h>
#include <sys/epoll.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "egress/way.h"

static bool
same_host(const struct host *a, const struct host *b)
{
    return a->n == b->n && memcmp(a->name, b->name, a->n) == 0;
}

static void
conn_ask_refuse(struct decide_verdict *v, const char *reason, const char *detail)
{
    v->kind = DECIDE_DENY;
    v->reason = reason;
    v->detail = detail;
}

/* Method, path and query, each behind its length. */
static void
print_of(const struct decide_request *request, uint8_t out[SHA256_SIZE])
{
    const struct str parts[] = { request->method, request->path, request->query };
    struct sha256 h;

    sha256_init(&h);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        uint64_t n = parts[i].n;
        sha256_add(&h, &n, sizeof(n));
        sha256_add(&h, parts[i].p, parts[i].n);
    }
    sha256_end(&h, out);
}

/* What people are shown of it; bytes that nobody sees in percent. */
static json_t *
shown_path(const struct decide_request *request)
{
    cleanup_buf struct buf b = BUF_INIT(3 * ASK_SHOWN_MAX + 1);
    const struct str parts[] = { request->path, request->query };

    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        for (size_t i = 0; i < parts[k].n; i++) {
            uint8_t byte = (uint8_t)parts[k].p[i];
            if (byte > ' ' && byte < 0x7f)
                buf_put_u8(&b, byte);
            else
                buf_printf(&b, "%%%02X", byte);
        }
    return buf_nul(&b) == 0 ? json_string((const char *)b.p) : NULL;
}

static void
say_question(struct egress *e, const struct question *q, const struct decide_request *request, const char *reason)
{
    json_t *o = json_pack("{s:s, s:I, s:s#, s:i, s:s, s:s, s:I}", "event", "ask", "id", (json_int_t)q->id, "host",
                          q->host.name, (int)q->host.n, "port", q->port, "via", decide_via_name(request->via), "reason",
                          reason, "ms", (json_int_t)(q->deadline_ms - e->loop.now_ms));

    if (q->request) {
        json_object_set_new(o, "method", json_stringn(request->method.p, request->method.n));
        json_object_set_new(o, "path", shown_path(request));
    }
    log_say(e, o);
}

static void
say_over(struct egress *e, const struct question *q)
{
    log_say(e, json_pack("{s:s, s:I}", "event", "asked", "id", (json_int_t)q->id));
}

/* @q is what @request asks at that host. */
static bool
same_question(const struct question *q, const struct host *host, const struct decide_request *request)
{
    uint8_t print[SHA256_SIZE];

    if (q->id == 0 || q->port != request->port || !same_host(&q->host, host) || q->request != (request->method.n > 0))
        return false;
    if (!q->request)
        return true;
    print_of(request, print);
    return memcmp(print, q->print, sizeof(print)) == 0;
}

/* The question about that: the one that is open, or a new one. NULL: too many. */
static struct question *
question_for(struct egress *e, const struct decide_request *request, const struct decide_verdict *v)
{
    struct question *unused = NULL;

    for (size_t i = 0; i < ASK_QUESTIONS_MAX; i++) {
        struct question *q = &e->questions[i];
        bool same = same_question(q, &v->host, request);
        if (same && e->judging && strcmp(q->reason, v->reason) != 0) {
            say_over(e, q);     /* the answer may be another one then; who waits for this asks again too */
            q->id = 0;
        } else if (same) {
            return q;
        }
        if (q->id == 0 && unused == NULL)
            unused = q;
    }
    if (unused == NULL || e->n_asked - e->n_back >= ASK_ALL_MAX)
        return NULL;
    *unused = (struct question){ .id = ++e->n_asked, .host = v->host, .port = request->port, .reason = v->reason,
                                 .request = request->method.n > 0, .deadline_ms = e->loop.now_ms + e->ask_ms };
    if (unused->request)
        print_of(request, unused->print);
    say_question(e, unused, request, v->reason);
    return unused;
}

/* Requests of its stage wait each by itself, while the others go on. */
static bool
waits_in_part(const struct conn *c)
{
    return conn_stages[c->state]->waits_for != NULL;
}

/* 1: it waits; 0: it is refused, and @v says why. */
static int
ask(struct conn *c, const struct decide_request *request, struct decide_verdict *v)
{
    struct egress *e = c->e;
    const struct question *q;
    bool in_part = waits_in_part(c);

    if (e->over || conn_stages[c->state]->again == NULL) {
        conn_ask_refuse(v, v->reason, v->detail);
        return 0;
    }
    if (request->method.n > ASK_METHOD_MAX || request->path.n + request->query.n > ASK_SHOWN_MAX ||
        request->meant.method.n > 0 || request->meant.unclear) {
        conn_ask_refuse(v, "ask-too-long", "a request of which nobody would be shown the whole is not asked about");
        return 0;
    }
    q = e->n_waiting < ASK_WAITING_MAX ? question_for(e, request, v) : NULL;
    if (q == NULL || (!in_part && (loop_watch(&e->loop, &c->client, EPOLLRDHUP) < 0 ||
                                   loop_watch(&e->loop, &c->server, 0) < 0))) {
        conn_ask_refuse(v, "ask-too-many", "too many connections wait for a decision");
        return 0;
    }
    c->question = q->id;
    c->asked_via = request->via;
    if (in_part) {          /* the stream waits, and those that ask the same; the others go on */
        e->n_waiting += !c->h2_waits;
        c->h2_waits = true;
        return 1;
    }
    c->asked_in = c->state;
    c->state = CONN_ASKING;
    c->deadline_ms = UINT64_MAX;
    e->n_waiting++;
    return 1;
}

bool
conn_approved(const struct conn *c, const struct host *host, uint16_t port)
{
    return c->approved && c->approved_port == port && same_host(&c->approved_host, host);
}

/* What was approved is what is asked for now: the request that a yes is being carried out for, or one on a connection
 * that was approved as such. What rules about requests leave out is never approved with the connection. */
static bool
is_approved(const struct conn *c, const struct decide_request *request, const struct decide_verdict *v)
{
    if (!conn_approved(c, &v->host, request->port))
        return false;
    if (c->e->granted != NULL && same_question(c->e->granted, &v->host, request))
        return true;
    return request->method.n == 0 || (c->approved_all != NULL && strcmp(c->approved_all, v->reason) == 0);
}

bool
conn_decide(struct conn *c, const struct decide_request *request, struct decide_verdict *out)
{
    const char *by = NULL;

    decide(c->e->rules, request, out);
    if (out->unread)
        return true;
    if (out->kind == DECIDE_ASK && is_approved(c, request, out)) {
        out->kind = DECIDE_ALLOW;
        out->reason = "asked";
        out->detail = "";
        by = c->e->by;
    }
    if (out->kind == DECIDE_ASK && ask(c, request, out) == 1)
        return false;
    log_decided(c->e, request, out, by);
    return true;
}

/* It waits no more for @question (0: for none); streams that wait for something else go on waiting. */
static void
unwait(struct conn *c, uint32_t question)
{
    bool others = false;

    if (waits_in_part(c)) {
        if (question != 0)
            (void)conn_stages[c->state]->waits_for(c, question, &others);
        c->h2_waits = others;
        c->e->n_waiting -= others ? 0 : 1;
        return;
    }
    c->e->n_waiting--;
    c->state = c->asked_in;
}

/* It goes on from where it waited. */
static void
wake(struct conn *c, uint32_t question)
{
    bool whole = !waits_in_part(c);

    unwait(c, question);
    if (whole) {
        c->seen = 0;
        conn_patience(c, CONN_FIRST_MS);
    }
    conn_stages[c->state]->again(c);
}

static void
deny(struct conn *c, const struct question *q, const char *reason, const char *detail)
{
    const struct decide_request request = { .via = c->asked_via, .port = q->port };
    const struct decide_verdict verdict = { .kind = DECIDE_DENY, .reason = reason, .detail = detail, .host = q->host,
                                            .rule = { "", 0 } };

    log_decided(c->e, &request, &verdict, c->e->by);
    unwait(c, q->id);
    conn_stages[c->state]->refused(c, q->id, &request, &verdict);
}

static bool
waits_for(const struct conn *c, uint32_t question)
{
    bool others;

    return c->h2_waits ? conn_stages[c->state]->waits_for(c, question, &others)
                       : c->state == CONN_ASKING && c->question == question;
}

static void
grant(struct conn *c, const struct question *q, bool all)
{
    c->approved = true;
    c->approved_host = q->host;
    c->approved_port = q->port;
    c->approved_all = all || !q->request ? q->reason : NULL;
    wake(c, q->id);
}

static void
settle(struct egress *e, struct question *q, enum ask_says says, const char *reason, const char *detail)
{
    const struct question was = *q;

    q->id = 0;
    e->granted = says != ASK_NO ? &was : NULL;
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (!waits_for(c, was.id))
            continue;
        if (says == ASK_NO)
            deny(c, &was, reason, detail);
        else
            grant(c, &was, says == ASK_HOST);
    }
    e->granted = NULL;
}

/* Where a standing grant answers, each connection is a question: those do not use up what may be asked. A flood of them
 * does, for each is heard and put on record by others. */
static void
give_back(struct egress *e)
{
    if (e->n_back > 0 && e->loop.now_ms - e->back_ms < ASK_BACK_MS)
        return;
    e->n_back++;
    e->back_ms = e->loop.now_ms;
}

void
ask_answer(struct egress *e, uint32_t id, enum ask_says says, const char *by)
{
    e->by = by;
    for (size_t i = 0; id != 0 && i < ASK_QUESTIONS_MAX; i++) {
        if (e->questions[i].id != id)
            continue;
        if (says != ASK_NO)
            give_back(e);
        settle(e, &e->questions[i], says, "ask-denied", "it was asked about, and refused");
    }
    e->by = NULL;
}

void
ask_tick(struct egress *e)
{
    for (size_t i = 0; i < ASK_QUESTIONS_MAX; i++) {
        struct question *q = &e->questions[i];
        if (q->id == 0 || e->loop.now_ms < q->deadline_ms)
            continue;
        say_over(e, q);
        settle(e, q, ASK_NO, "ask-timeout", "it was asked about, and nobody answered in time");
    }
}

bool
ask_open(const struct egress *e)
{
    for (size_t i = 0; i < ASK_QUESTIONS_MAX; i++)
        if (e->questions[i].id != 0)
            return true;
    return false;
}

/* --- after the rules have changed --------------------------------------------------------------------------------- */

/* Whether @c, which @v allows, is looked into as the rules of now say. What is opened goes on unless it is to stay
 * closed, for each request in it is decided by itself; of what passes closed nobody can read the beginning any more. */
static bool
still_looked_into(const struct conn *c, const struct decide_verdict *v)
{
    if (c->tls)
        return !c->open || v->open || v->inspect;
    return c->http || ((c->inspect || !v->inspect) && (c->open || !v->open) && (c->clear || !v->clear));
}

/* Whether the rules of now still carry @c. */
static bool
still_good(struct conn *c, struct decide_verdict *out)
{
    struct decide_request request = { .via = DECIDE_CONNECT, .host = { c->host.name, c->host.n }, .port = c->port };

    if (c->host.is_ip)
        request = (struct decide_request){ .via = DECIDE_TCP, .ip = &c->host.ip, .port = c->port };
    decide(c->e->rules, &request, out);
    if (out->kind == DECIDE_DENY && !(conn_approved(c, &c->host, c->port) && out->rule.n == 0))
        return false;
    if (!still_looked_into(c, out)) {
        conn_ask_refuse(out, "look-changed", "what is looked into of this host is something else now");
        out->rule = (struct str){ "", 0 };
        return false;
    }
    c->inspect = out->inspect;
    c->open = out->open;
    c->clear = out->clear;
    /* addresses that are not this host's: none is dialled yet, or a parent's */
    if (c->server.fd < 0 || c->parent != NULL || c->next_address == 0)
        return true;
    if (c->host_port)
        return decide_is_host_port(c->e->rules, &c->host, c->port);
    decide_address(c->e->rules, &c->addresses[c->next_address - 1], 1, c->port, out);
    return out->kind == DECIDE_ALLOW || (conn_approved(c, &c->host, c->port) && out->rule.n == 0);
}

static bool
leads_out(const struct conn *c)
{
    return conn_stages[c->state]->leads_out != NULL && conn_stages[c->state]->leads_out(c);
}

static bool
is_waited_for(const struct egress *e, uint32_t question)
{
    for (const struct conn *c = e->conns; c != NULL; c = c->next)
        if (waits_for(c, question))
            return true;
    return false;
}

size_t
conn_judge_again(struct egress *e)
{
    size_t closed = 0;

    pool_clear(e);
    e->judging = true;
    for (struct conn *c = e->conns, *next; c != NULL; c = next) {
        struct decide_request request = { .via = DECIDE_TCP, .port = c->port };
        struct decide_verdict verdict;
        next = c->next;
        if (c->state == CONN_ASKING) {
            wake(c, 0);
            continue;
        }
        if (!leads_out(c) || still_good(c, &verdict)) {
            if (c->h2_waits)
                wake(c, 0);
            continue;
        }
        request.host = (struct str){ c->host.name, c->host.n };
        verdict.host = (struct host){ .n = 0 };
        log_decision(e, &request, &verdict);
        conn_end(c);
        closed++;
    }
    e->judging = false;
    /* what is settled by a rule now is no question any more; those who waited have gone on already, or asked again */
    for (size_t i = 0; i < ASK_QUESTIONS_MAX; i++) {
        struct question *q = &e->questions[i];
        const struct decide_request request = { .via = DECIDE_CONNECT, .host = { q->host.name, q->host.n },
                                                .port = q->port };
        struct decide_verdict verdict;
        if (q->id == 0 || is_waited_for(e, q->id))
            continue;
        decide(e->rules, &request, &verdict);
        if (verdict.kind == DECIDE_ASK)
            continue;
        say_over(e, q);
        q->id = 0;
    }
    return closed;
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

/* The client has given up. */
static void
client(struct conn *c, uint32_t events)
{
    (void)events;
    conn_end(c);
}

static void
left(struct conn *c)
{
    c->e->n_waiting--;
}

const struct conn_stage stage_asking = { .client = client, .left = left };
