/* front/visit.c: requests that an adapter answers: the front's side of adapters/visit.h */
#include "adapters/visit.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "front/front.h"
#include "front/preview.h"

static struct request *
request_of(const struct visit *v)
{
    return v->host;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static bool
is_remembered(const struct request *r)
{
    return (visit_flags[r->route - adapter_routes] & VISIT_REMEMBERED) != 0 && r->query[0] == '\0';
}

/* Asked for far more often than it changes: remembered until the warden counts on (warden/epoch.h). */
static bool
told_before(struct request *r)
{
    const struct told_status *s = is_remembered(r) ? who_status(r) : NULL;

    if (s == NULL)
        return false;
    r->visit_epoch = atomic_load(&r->f->epochs->defaults);
    if (s->text == NULL || s->epoch != r->visit_epoch)
        return false;
    reply_text(r, MHD_HTTP_OK, "application/json", s->text, s->n);
    return true;
}

static void
remember(struct request *r, unsigned status, const json_t *body)
{
    struct told_status *s = status == MHD_HTTP_OK && is_remembered(r) ? who_status(r) : NULL;

    if (s == NULL)
        return;
    free(s->text);
    *s = (struct told_status){ .text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL, .epoch = r->visit_epoch };
    s->n = s->text != NULL ? strlen(s->text) : 0;
}

static void
begin(struct request *r)
{
    struct visit *v;

    if (told_before(r))
        return;
    v = calloc(1, sizeof(*v));
    if (v == NULL) {
        r->f->ended = true;
        return;
    }
    *v = (struct visit){ .host = r, .path = r->path, .query = r->query, .strangers = r->f->strangers, .tls = r->f->tls,
                         .body = { (const char *)r->body.p, r->body.n }, .who = r->who, .caller = r->caller,
                         .async = r->async };
    v->no_room = r->body.n > 0 && !http_json_room(r);
    r->visit = v;
    adapters_begin(v, (unsigned)(r->route - adapter_routes));
}

#define ROUTE(method, path, function, flags) \
    { method, path, begin, false, false, .endless = ((flags) & VISIT_ENDLESS) != 0 },
const struct route adapter_routes[] = { VISIT_ROUTES(ROUTE) };
const size_t adapter_n_routes = ARRAY_LEN(adapter_routes);

void
visit_over(struct request *r)
{
    if (r->visit == NULL)
        return;
    adapters_gone(r->visit);
    free(r->visit);
    r->visit = NULL;
    for (size_t i = 0; i < VISIT_PUTS; i++)
        free(r->puts[i]);
}

size_t
visit_held(const struct request *r)
{
    return r->visit != NULL ? r->visit->held : 0;
}

bool
visit_leaves(const struct request *r)
{
    return r->visit != NULL && r->visit->leaves;
}

void
visit_no_memory(struct visit *v)
{
    request_of(v)->f->ended = true;
}

/* --- what was asked ----------------------------------------------------------------------------------------------- */

const char *
visit_header(const struct visit *v, const char *name)
{
    return MHD_lookup_connection_value(request_of(v)->c, MHD_HEADER_KIND, name);
}

const char *
visit_query(const struct visit *v, const char *key, char *room, size_t size, bool *bad)
{
    return query_get(request_of(v), key, room, size, bad);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* What came before the answer, or comes behind the beginning of a stream. */
static void
put(struct request *r)
{
    for (size_t i = 0; i < VISIT_PUTS && r->response != NULL; i++) {
        if (r->puts[i] != NULL)
            (void)MHD_add_response_header(r->response, r->puts[i], r->puts[i] + strlen(r->puts[i]) + 1);
        free(r->puts[i]);
        r->puts[i] = NULL;
    }
}

void
visit_put(struct visit *v, const char *name, const char *value)
{
    struct request *r = request_of(v);
    size_t i = 0, n = strlen(name) + 1, m = strlen(value) + 1;

    while (i < VISIT_PUTS - 1 && r->puts[i] != NULL)
        i++;
    free(r->puts[i]);
    r->puts[i] = malloc(n + m);
    if (r->puts[i] == NULL) {
        r->f->ended = true;
        return;
    }
    memcpy(r->puts[i], name, n);
    memcpy(r->puts[i] + n, value, m);
    put(r);
}

/* What the answer was made of need not be there any more. */
static void
release(struct visit *v)
{
    buf_free(&v->out);
    buf_free(&v->err_out);
    v->held = 0;
}

void
visit_json(struct visit *v, unsigned status, json_t *body)
{
    struct request *r = request_of(v);

    release(v);
    remember(r, status, body);
    reply_json(r, status, body);
    put(r);
    http_wake(r);
}

void
visit_empty(struct visit *v, unsigned status)
{
    reply_empty(request_of(v), status);
    put(request_of(v));
    http_wake(request_of(v));
}

void
visit_err(struct visit *v, const struct err *err)
{
    release(v);
    reply_err(request_of(v), err);
    http_wake(request_of(v));
}

bool
visit_stream(struct visit *v, const char *type)
{
    struct request *r = request_of(v);

    if (r->response != NULL)
        return false;
    reply_stream(r, type);
    put(r);
    http_watch_peer(r, true);
    r->visit_epoch = r->epoch;
    return r->response != NULL;
}

void
visit_add(struct visit *v, const void *p, size_t n)
{
    if (!request_of(v)->stream_end)
        stream_add(request_of(v), p, n);
}

void
visit_close(struct visit *v)
{
    stream_close(request_of(v));
}

void
visit_break(struct visit *v)
{
    stream_break(request_of(v));
}

const struct err *
visit_ended(const struct visit *v, const struct err *err)
{
    return ended_of(request_of(v), err);
}

void
visit_keep(struct visit *v, struct buf *into, bool *cut, const uint8_t *p, size_t n)
{
    size_t had = into->cap;

    waits_keep(request_of(v), into, cut, p, n);
    v->held += into->cap - had;
    waits_count(request_of(v));
}

/* --- questions and answers ---------------------------------------------------------------------------------------- */

/* An answer that was not to be expected: nothing that comes behind it can be trusted. */
#define ANSWER(member, parameters, ...) \
    static void \
    on_##member parameters \
    { \
        if (r->visit->answers->member != NULL) \
            r->visit->answers->member(r->visit, __VA_ARGS__); \
        else \
            r->f->ended = true; \
    }

ANSWER(box, (struct request *r, const struct edge_box *box), box)
ANSWER(item, (struct request *r, const struct edge_box *box), box)
ANSWER(event, (struct request *r, const struct edge_event *event), event)
ANSWER(end, (struct request *r, uint32_t count, bool more), count, more)
ANSWER(port, (struct request *r, const struct edge_port *p, const char *capability), p, capability)

static void
on_granted(struct request *r)
{
    if (r->visit->answers->granted != NULL)
        r->visit->answers->granted(r->visit);
    if (!r->visit->has_input)
        return;
    r->in_end = true;
    op_hear(r, EPOLLOUT);
}

static void
on_gate(struct request *r, const struct edge_verdict *verdict)
{
    if (r->visit->answers->gate != NULL)
        r->visit->answers->gate(r->visit, verdict);
    else
        reply_waits(r, verdict);
}

static void
on_no(struct request *r, const struct err *err)
{
    if (r->visit->answers->no != NULL)
        r->visit->answers->no(r->visit, err);
    else
        visit_err(r->visit, err);
}

static const struct answers answers = { .box = on_box, .item = on_item, .event = on_event, .end = on_end,
                                        .granted = on_granted, .port = on_port, .gate = on_gate, .no = on_no };

#define SAYS(member, parameters, ...) \
    static void \
    says_##member parameters \
    { \
        if (r->visit->op_answers->member != NULL) \
            r->visit->op_answers->member(r->visit, __VA_ARGS__); \
    }

SAYS(out, (struct request *r, bool is_err, const uint8_t *p, size_t n), is_err, p, n)
SAYS(entry, (struct request *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name), mode, size,
     mtime_ns, name)
SAYS(exit, (struct request *r, uint8_t flags, uint32_t code, uint64_t ms), flags, code, ms)
SAYS(done, (struct request *r, uint64_t count), count)
SAYS(failed, (struct request *r, const struct err *err), err)

static const struct op_answers said = { .out = says_out, .entry = says_entry, .exit = says_exit, .done = says_done,
                                        .failed = says_failed };

void
visit_ask(struct visit *v, uint8_t type, const struct shape *shape, const void *m, const struct visit_answers *then)
{
    struct request *r = request_of(v);

    v->answers = then;
    r->async = v->async;
    ask(r, type, shape, m, &answers);
    if (then == NULL)
        r->ticket = 0;
}

void
visit_create(struct visit *v, const struct edge_create *create, const struct visit_answers *then)
{
    v->answers = then;
    request_of(v)->async = v->async;
    ask_create(request_of(v), create, &answers);
}

void
visit_gate(struct visit *v, const char *id, const char *tool, const json_t *params, bool hold,
           const struct visit_answers *then)
{
    v->answers = then;
    v->async = !hold;
    ask_gate(request_of(v), id, tool, params, hold, &answers);
}

bool
visit_input(struct visit *v, const void *p, size_t n)
{
    v->has_input = true;
    return buf_append(&request_of(v)->in, p, n) == 0;
}

void
visit_content(struct visit *v, struct edge_op *op)
{
    op_content(op, &request_of(v)->in, true);
}

void
visit_op(struct visit *v, const char *id, const struct edge_op *op, const struct visit_answers *then,
         const struct visit_op_answers *says)
{
    v->answers = then;
    v->op_answers = says;
    request_of(v)->async = v->async;
    ask_op(request_of(v), id, op, &answers, &said);
}

void
visit_drop(struct visit *v)
{
    ask_drop(request_of(v));
    op_drop(request_of(v));
}

json_t *
visit_port(const struct visit *v, const struct edge_port *p, const char *capability)
{
    return json_of_port(request_of(v), p, capability);
}

bool
visit_has_address(const struct visit *v)
{
    return ports_have_address(request_of(v));
}

/* --- a stream on which nothing goes on, and whose caller may have none to go on with ------------------------------ */

static void
on_approval(struct request *r, const struct edge_approval *a)
{
    (void)r;
    (void)a;
}

static void
on_still_good(struct request *r, uint32_t count, bool more)
{
    (void)r;
    (void)count;
    (void)more;
}

static void
on_ended(struct request *r, const struct err *err)
{
    if (strncmp(err->code, "auth.", 5) == 0)
        stream_refuse(r, err);
}

/* What a command or a question of it does is ended by who does it (warden/ends.c). Any caller may ask this. */
static void
look(struct request *r)
{
    static const struct answers still = { .approval = on_approval, .end = on_still_good, .no = on_ended };
    uint64_t epoch = r->f->epochs != NULL ? atomic_load(&r->f->epochs->credentials) : 0;
    uint32_t who = r->who;

    if (r->visit->who == 0 || r->ticket != 0 || r->op.fd >= 0 ||
        (epoch == r->visit_epoch && (r->until_ms == 0 || clock_wall_ms() < r->until_ms)))
        return;
    r->who = r->visit->who;     /* not the call's own: that is judged no more */
    ask_approvals(r, false, 0, 1, "", "", &still);
    r->who = who;
    if (r->ticket != 0)
        r->visit_epoch = epoch;
}

void
visit_time(struct front *f)
{
    for (struct request *r = f->requests; r != NULL; r = r->next)
        if (r->visit != NULL && !r->dead && r->stream && !r->stream_end)
            look(r);
}
