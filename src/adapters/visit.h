/* adapters/visit.h: a request that an adapter answers, and all that an adapter can do about it
 *
 * MCP and /api are other words for what the routes of /v1 do. cloche-front has read such a request, and judged where it
 * comes from and whose it is, and hands it over (proto/edge_adapter.h). An adapter turns it into the questions that the
 * routes of /v1 ask as well. The front asks them, each with the handle of the request's caller, which an adapter does
 * not know: so it can do what its visitors may do while they are there, and nothing else.
 */
#ifndef CLOCHE_ADAPTERS_VISIT_H
#define CLOCHE_ADAPTERS_VISIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "adapters/routes.h"
#include "proto/edge_adapter.h"

/* RFC 9110, 15 */
enum http_status {
    HTTP_OK = 200, HTTP_ACCEPTED = 202, HTTP_NO_CONTENT = 204, HTTP_BAD_REQUEST = 400, HTTP_FORBIDDEN = 403,
    HTTP_CREATED = 201, HTTP_NOT_FOUND = 404, HTTP_CONFLICT = 409, HTTP_NOT_OFFERED = 501,
    HTTP_NOT_ALLOWED = 405, HTTP_NOT_ACCEPTABLE = 406, HTTP_TOO_LARGE = 413, HTTP_MEDIA_TYPE = 415,
    HTTP_UNPROCESSABLE = 422, HTTP_INTERNAL = 500, HTTP_UNAVAILABLE = 503
};

#define VISIT_RESULT_MAX (32UL * 1024 * 1024)       /* of one command's output in an answer, each stream */

struct visit;
struct mcp_call;
struct desktop;
struct e2b;
struct computer_answers;

/* Where answers go; each question ends with exactly one. What is NULL is not expected, but @no and @gate: the front
 * answers the client itself then. */
struct visit_answers {
    void (*box)(struct visit *r, const struct edge_box *box);
    void (*item)(struct visit *r, const struct edge_box *box);
    void (*event)(struct visit *r, const struct edge_event *event);
    void (*end)(struct visit *r, uint32_t count, bool more);
    void (*granted)(struct visit *r);
    void (*port)(struct visit *r, json_t *port);        /* that was exposed, as it is shown; taken */
    void (*gate)(struct visit *r, const struct edge_verdict *v);    /* of visit_gate(); reply or go on */
    void (*signed_)(struct visit *r, bool done, json_t *said);      /* of a request to sign; taken */
    void (*sign_item)(struct visit *r, bool done, json_t *said);    /* that waits; taken */
    void (*no)(struct visit *r, const struct err *err);
};

/* What an operation says. */
struct visit_op_answers {
    void (*out)(struct visit *r, bool is_err, const uint8_t *p, size_t n);
    void (*entry)(struct visit *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name);
    void (*rich)(struct visit *r, const uint8_t *p, size_t n, bool last);       /* of a result in a context */
    void (*run)(struct visit *r, const struct edge_run *run);       /* a context, or a command in the background; */
    void (*run_out)(struct visit *r, const struct edge_run_out *out);           /* and that one's output */
    void (*exit)(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms);
    void (*done)(struct visit *r, uint64_t count);
    void (*failed)(struct visit *r, const struct err *err);
};

struct visit {
    struct visit *next;                 /* of all of them */
    unsigned row;                       /* of VISIT_ROUTES */
    char path_id[EDGE_NAME_MAX + 1];    /* what {} in its path stood for */
    struct str body;
    bool no_room;                       /* for the body's values, read as JSON */
    bool strangers, tls;                /* how its connection came */
    uint32_t who;                       /* what the warden calls the caller; 0 who came without a credential */
    unsigned caller;                    /* for whom memory is counted */
    bool async;                         /* where somebody has to approve it: say so and do not wait */
    bool has_address;                   /* exposed ports have one */
    size_t held;                        /* bytes that are kept for it (visit_keep) */
    const struct visit_answers *answers;
    const struct visit_op_answers *op_answers;
    /* the adapter's own, freed by adapters_gone() */
    char id[EDGE_NAME_MAX + 1];
    json_t *json, *list;
    struct buf out, err_out;
    bool cut_out, cut_err;
    struct mcp_call *mcp;
    struct desktop *desktop;
    struct e2b *e2b;
    const struct computer_answers *computer;
    void (*docker)(struct visit *r, uint8_t is);        /* waits to be told (visit_docker) */
};

/* --- what is done for adapters (host.c) --------------------------------------------------------------------------- */

/* A header of the request's; NULL: it has none. */
const char *visit_header(const struct visit *r, const char *name);
/* The decoded value of a query's key, in @room; NULL when it is not there (or malformed: *bad). */
const char *visit_query(const struct visit *r, const char *key, char *room, size_t size, bool *bad);

/* The answer. Further headers of it come before it. */
void visit_put(struct visit *r, const char *name, const char *value);
void visit_json(struct visit *r, unsigned status, json_t *body);        /* takes the reference */
void visit_png(struct visit *r, const void *p, size_t n);
void visit_empty(struct visit *r, unsigned status);
void visit_err(struct visit *r, const struct err *err);
void visit_stream(struct visit *r);                                     /* text/event-stream */
void visit_stream_of(struct visit *r, uint8_t type);                    /* enum adapt_type */
bool visit_answered(const struct visit *r);                             /* or its stream has begun */
void visit_keyed(struct visit *r);      /* ADAPT_KEY in its answer is the key of the sandbox that it was told of */
/* A refusal in the words that clients of its path know. */
void visit_refuse(struct visit *r, unsigned status, const char *code, const char *detail, const char *text);
void visit_add(struct visit *r, const void *p, size_t n);
void visit_close(struct visit *r);
void visit_break(struct visit *r);                                      /* it ends, as something that failed */
/* Ask the launcher of Docker; @told hears LAUNCH_DOCKER_... (main.c). */
void visit_docker(struct visit *r, void (*told)(struct visit *r, uint8_t is));
/* Questions of the caller (proto/question.h). One after the other. */
void visit_ask(struct visit *r, uint8_t type, const struct shape *shape, const void *m,
               const struct visit_answers *answers);
#define VISIT_ASK(r, number, answers, ...) \
    visit_ask(r, number, number##_SHAPE(), &(const number##_IS){ __VA_ARGS__ }, answers)
void visit_create(struct visit *r, const struct edge_create *create, const struct visit_answers *answers);
/* Whether the caller may do that: @tool with @params (an object, borrowed) in the sandbox @id ("" none yet). The answer
 * comes to answers->gate: ALLOWED (go on: what is asked for this request from then on belongs to the call, and is not
 * judged again where it is a part of it), DENIED with its reason, or, when not @hold, WAIT: an approval is needed and
 * has an id. With @hold it comes when it is decided. Asking for the same again by the same caller finds the approval
 * that waits, or was given and not used yet. answers->no: no such sandbox, or text that cannot be shown. */
void visit_gate(struct visit *r, const char *id, const char *tool, const json_t *params, bool hold,
                const struct visit_answers *answers);
/* An operation in the sandbox @id; before it, all that it is given to read. */
bool visit_input(struct visit *r, const void *p, size_t n);             /* false: too much */
/* What an @op, a WRITE, says of its content, which is all that visit_input() was given. */
void visit_content(struct visit *r, struct edge_op *op);
void visit_op(struct visit *r, const char *id, const struct edge_op *op, const struct visit_answers *answers,
              const struct visit_op_answers *said);
/* About commands in the background, which contexts are (edge_run.h). */
void visit_run(struct visit *r, const char *id, const struct edge_run_ask *ask, const struct visit_answers *answers,
               const struct visit_op_answers *said);
void visit_drop(struct visit *r);               /* what it asked, and what runs, is not waited for any more */

/* Of output that is told whole: p[0..n), or what there is room for; then *cut, and nothing of it comes any more. */
bool visit_room(struct visit *r, size_t n);     /* for so much more, which is kept until the visit ends: taken */
void visit_keep(struct visit *r, struct buf *into, bool *cut, const uint8_t *p, size_t n);

/* The client is told of the sandbox made for it with EDGE_FLEETING. Until then that ends if the client goes. */
void visit_told(struct visit *r);

void visits_at(struct timer *t, uint64_t at_ms);     /* loop_at() of the loop that all visits are in */
void visit_no_memory(struct visit *r);          /* the process ends, and comes anew */

/* --- what adapters do --------------------------------------------------------------------------------------------- */

int adapters_open(const char *engine);          /* before confinement; -1: no memory */
int adapters_languages(void);                   /* at the start, and whenever they change; -1: no memory */
void adapters_begin(struct visit *r);           /* all of it has come */
void adapters_gone(struct visit *r);            /* answered or not, nobody is there any more: frees what is its own */

#endif
