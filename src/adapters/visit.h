/* adapters/visit.h: a request that an adapter answers, and all that an adapter can do about it
 *
 * MCP and /api are other words for what the routes of /v1 do. The front has read such a request, and judged where it
 * comes from and whose it is. An adapter turns it into the questions that the routes of /v1 ask as well. Each carries
 * the handle of the request's caller, which an adapter cannot choose: so it can do what this caller may do, and nothing
 * else. Of the front it sees only what is here.
 */
#ifndef CLOCHE_ADAPTERS_VISIT_H
#define CLOCHE_ADAPTERS_VISIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/edge_keeper.h"
#include "proto/question.h"

/* RFC 9110, 15 */
enum http_status {
    HTTP_OK = 200, HTTP_ACCEPTED = 202, HTTP_NO_CONTENT = 204, HTTP_BAD_REQUEST = 400, HTTP_NOT_FOUND = 404,
    HTTP_NOT_ALLOWED = 405, HTTP_NOT_ACCEPTABLE = 406, HTTP_TOO_LARGE = 413, HTTP_MEDIA_TYPE = 415,
    HTTP_UNPROCESSABLE = 422, HTTP_INTERNAL = 500, HTTP_UNAVAILABLE = 503
};

/* Method, path, the adapter's function, and flags: the one list of the paths that adapters answer. */
#define VISIT_JSON       1      /* the body is JSON, or none */
#define VISIT_ENDLESS    2      /* an answer that goes on */
#define VISIT_REMEMBERED 4      /* without a query it tells of the caller's default sandbox and nothing else, so it
                                 * changes only when that does */
#define VISIT_ROUTES(R) \
    R("GET",    "/api/sandbox/platform",          api_platform,          0) \
    R("POST",   "/api/sandbox/docker/start",      api_docker_start,      VISIT_JSON) \
    R("GET",    "/api/sandbox/status",            api_status,            VISIT_REMEMBERED) \
    R("GET",    "/api/sandbox/events",            api_events,            0) \
    R("POST",   "/api/sandbox/start",             api_start,             VISIT_JSON) \
    R("POST",   "/api/sandbox/stop",              api_stop,              VISIT_JSON) \
    R("POST",   "/api/sandbox/recover",           api_recover,           VISIT_JSON) \
    R("POST",   "/api/sandbox/exec",              api_exec,              VISIT_JSON) \
    R("GET",    "/api/sandbox/browser",           api_browser,           0) \
    R("POST",   "/api/sandbox/sign",              api_no_signer,         0) \
    R("POST",   "/api/sandbox/sign/approve",      api_no_signer,         0) \
    R("POST",   "/api/sandbox/sign/reject",       api_no_signer,         0) \
    R("GET",    "/api/sandbox/sign/pending",      api_no_signer,         0) \
    R("GET",    "/api/sandbox/sign/address",      api_no_signer,         0) \
    R("GET",    "/api/sandbox/capabilities",      api_capabilities,      0) \
    R("GET",    "/api/sandbox/screen/screenshot", api_screenshot,        0) \
    R("POST",   "/api/sandbox/screen/screenshot", api_screenshot_region, VISIT_JSON) \
    R("GET",    "/api/sandbox/screen/windows",    api_windows,           0) \
    R("POST",   "/api/sandbox/audio/record",      api_audio_record,      VISIT_JSON) \
    R("POST",   "/api/sandbox/audio/play",        api_audio_play,        VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/click",    api_click,             VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/type",     api_type,              VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/keypress", api_keypress,          VISIT_JSON) \
    R("POST",   "/mcp",                           mcp_post,              0) \
    R("GET",    "/mcp",                           mcp_get,               VISIT_ENDLESS) \
    R("DELETE", "/mcp",                           mcp_delete,            0)

#define VISIT_RESULT_MAX (32UL * 1024 * 1024)       /* of one command's output in an answer, each stream */

struct visit;
struct mcp_call;

/* Where answers go; each question ends with exactly one. What is NULL is not expected, but @no and @gate: the front
 * answers the client itself then. */
struct visit_answers {
    void (*box)(struct visit *r, const struct edge_box *box);
    void (*item)(struct visit *r, const struct edge_box *box);
    void (*event)(struct visit *r, const struct edge_event *event);
    void (*end)(struct visit *r, uint32_t count, bool more);
    void (*granted)(struct visit *r);
    void (*port)(struct visit *r, const struct edge_port *p, const char *capability);
    void (*gate)(struct visit *r, const struct edge_verdict *v);    /* of visit_gate(); reply or go on */
    void (*no)(struct visit *r, const struct err *err);
};

/* What an operation says. */
struct visit_op_answers {
    void (*out)(struct visit *r, bool is_err, const uint8_t *p, size_t n);
    void (*entry)(struct visit *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name);
    void (*exit)(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms);
    void (*done)(struct visit *r, uint64_t count);
    void (*failed)(struct visit *r, const struct err *err);
};

struct visit {
    void *host;                         /* the front's side of it */
    struct visit *next;                 /* of all of them */
    const char *path, *query;           /* decoded; still encoded */
    struct str body;
    bool no_room;                       /* for the body's values, read as JSON */
    bool strangers, tls;                /* how its connection came */
    uint32_t who;                       /* what the warden calls the caller; 0 who came without a credential */
    unsigned caller;                    /* for whom memory is counted */
    bool leaves;                        /* to be set: a client that only says no more has gone */
    bool async;                         /* where somebody has to approve it: say so and do not wait */
    bool has_input;                     /* visit_input() was called */
    size_t held;                        /* bytes that the adapter holds for it, counted by the front */
    const struct visit_answers *answers;
    const struct visit_op_answers *op_answers;
    /* the adapter's own, freed by adapters_gone() */
    char id[EDGE_NAME_MAX + 1];
    json_t *json, *list;
    struct buf out, err_out;
    bool cut_out, cut_err;
    struct mcp_call *mcp;
};

/* --- what the front does for adapters ----------------------------------------------------------------------------- */

/* A header of the request's; NULL: it has none. */
const char *visit_header(const struct visit *r, const char *name);
/* The decoded value of a query's key, in @room; NULL when it is not there (or malformed: *bad). */
const char *visit_query(const struct visit *r, const char *key, char *room, size_t size, bool *bad);

/* The answer. A further header comes before it, or right behind visit_stream(). */
void visit_put(struct visit *r, const char *name, const char *value);
void visit_json(struct visit *r, unsigned status, json_t *body);        /* takes the reference */
void visit_empty(struct visit *r, unsigned status);
void visit_err(struct visit *r, const struct err *err);
bool visit_stream(struct visit *r, const char *type);   /* false: it has an answer already, or there is no memory */
void visit_add(struct visit *r, const void *p, size_t n);
void visit_close(struct visit *r);
void visit_break(struct visit *r);                                      /* it ends, as something that failed */
/* @err; or that its credential, which was good when it came, is none any more. */
const struct err *visit_ended(const struct visit *r, const struct err *err);

/* Questions of the caller (proto/question.h). With @answers NULL nobody waits for what becomes of it. */
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
void visit_drop(struct visit *r);               /* what it asked, and what runs, is not waited for any more */

/* Of output that is told whole: p[0..n), or what there is room for; then *cut, and nothing of it comes any more. */
void visit_keep(struct visit *r, struct buf *into, bool *cut, const uint8_t *p, size_t n);

/* An exposed port with its addresses, and whether there are any. */
json_t *visit_port(const struct visit *r, const struct edge_port *p, const char *capability);
bool visit_has_address(const struct visit *r);

void visit_no_memory(struct visit *r);          /* the process ends, and comes anew */

/* --- what adapters do for the front ------------------------------------------------------------------------------- */

extern const uint8_t visit_flags[];             /* of VISIT_ROUTES */
int adapters_open(const char *engine);          /* before confinement; -1: no memory */
int adapters_languages(void);                   /* with the first settings, and anew with each; -1: no memory */
void adapters_begin(struct visit *r, unsigned row);
void adapters_gone(struct visit *r);            /* answered or not, nobody is there any more: frees what is its own */
/* Every round of the front's loop; how long it may wait at most, -1 for ever. */
void adapters_tick(void);
int adapters_timeout(void);

#endif
