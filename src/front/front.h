/* front/front.h: cloche-front: HTTP in, questions to the warden out
 *
 * The one process of the daemon that reads strangers' bytes, and so the one that holds nothing: no file, no right, no
 * socket but the clients' own, the warden's edge, and those of operations that the warden granted. One thread, one
 * loop; libmicrohttpd (RFC 9110, 9112) parses, and is told of each connection by us.
 *
 * A request lives from its first line to its last byte. Its route begins it, by a question to the warden; meanwhile
 * its connection is suspended; the answer, or the operation's end, becomes the response.
 */
#ifndef CLOCHE_FRONT_FRONT_H
#define CLOCHE_FRONT_FRONT_H

#include <gnutls/abstract.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "match/door.h"
#include "front/framing.h"
#include "front/reply_e2b.h"
#include "base/hold.h"
#include "front/trace.h"
#include "proto/edge_keeper.h"
#include "proto/edge_launcher.h"
#include "proto/question.h"
#include "warden/epoch.h"
#include "warden/tell.h"
#include "wire/form.h"
#include "wire/json_text.h"
#include "wire/rich.h"

#define FRONT_CONNECTIONS 512                       /* of the owner */
#define FRONT_STRANGERS   6000                      /* of strangers, where the limit of open files has room for them */
#define FRONT_PASSING     128                       /* more, for a moment, until one is closed or refused */
#define FRONT_BODY_MAX    (10UL * 1024 * 1024)      /* of a JSON body */
#define FRONT_BODIES_MAX  (128UL * 1024 * 1024)     /* of all of them together */
#define FRONT_RESULT_MAX  JSON_TEXT_MAX             /* of one command's output in a JSON answer, each stream */
#define FRONT_STREAM_MAX  (256UL * 1024)            /* of a streamed answer that its client did not take yet */
#define FRONT_WAITS_MAX   (256UL * 1024 * 1024)     /* of all that waits for clients, or for what they write to */
#define FRONT_URI_MAX     8192
#define FRONT_IDLE_S      120                       /* a connection on which nothing comes or goes */

struct front;
struct request;
struct visiting;
struct page;

/* What the launcher says (EDGE_SETTINGS). */
struct front_doors {
    struct host_pattern hosts[EDGE_SETTINGS_NAMES];     /* names of ours */
    struct door_origin origins[EDGE_SETTINGS_NAMES];    /* sites whose pages may ask */
    size_t n_hosts, n_origins;
    bool any_address;
    uint32_t rate;                      /* requests a second of one credential; 0 no limit */
    char base[EDGE_BASE_MAX + 1];       /* where browsers find us: "http://HOST:PORT"; "" nowhere */
    uint64_t client_ms;                 /* for a client to say something whole; 0: nothing was said yet */
};

/* A connection. */
struct link {
    struct link *prev, *next;           /* of those that wait for their client, the longest-waiting first */
    uint64_t since_ms;
    bool listed;
    bool unread;                        /* its last request was answered before all of it was read */
    int fd;
    struct ip peer;                     /* family 0: over a unix socket */
    struct framing *framing;            /* NULL: without memory */
};

/* One that is closed, but for what its client still sends (linger.c). */
#define FRONT_LINGERS 64
struct lingering {
    struct front *f;                    /* NULL: the place is free */
    struct watch watch;
    struct timer timer;
    uint64_t begun_ms;
    size_t left;                        /* bytes */
};

#define RATE_SETS 512
#define RATE_WAYS 8
struct rate_bucket {
    uint64_t key, thousandths, at_ms;
};
struct rate {
    uint8_t secret[32];
    struct rate_bucket buckets[RATE_SETS][RATE_WAYS];
};

/* What GET /api/sandbox/status says of somebody's default sandbox; @epoch: as of epochs->defaults. */
struct told_status {
    char *text;                         /* NULL: not known */
    size_t n;
    uint64_t epoch;
};

/* A credential that the warden knows; good as of epochs->credentials, and until it is over. */
#define KNOWN_SETS 512
#define KNOWN_WAYS 4
struct known {
    uint8_t print[32];                  /* a keyed hash of it */
    uint32_t who;                       /* 0: an empty place */
    enum edge_role role;
    char box[EDGE_ID + 1];
    uint64_t until_ms, epoch, used;     /* 0 for ever; ...; in the order of uses */
    uint64_t end_ms;                    /* @until_ms on the monotonic clock, should the other be set back */
    struct told_status status;
};
struct known_all {
    uint8_t secret[32];
    uint64_t uses;
    struct known at[KNOWN_SETS][KNOWN_WAYS];
};

/* Where a request's answers go; each ends with exactly one reply (or the stream's end). NULL: not expected. */
struct answers {
    void (*box)(struct request *r, const struct edge_box *box);
    void (*item)(struct request *r, const struct edge_box *box);
    void (*event)(struct request *r, const struct edge_event *event);
    void (*line)(struct request *r, const uint8_t *p, size_t n);    /* of the audit record; without an end after... */
    void (*following)(struct request *r);                           /* ... this */
    void (*end)(struct request *r, uint32_t count, bool more);
    const char *list;                                               /* ... where that is reply_list() */
    void (*piece)(struct request *r, const uint8_t *p, size_t n, bool last);
    void (*granted)(struct request *r);                             /* r->op.fd is there */
    void (*stats)(struct request *r, const uint8_t *p, size_t n);   /* samples, warden/stats.h */
    void (*usage)(struct request *r, const char *id, const struct edge_usage *u);
    void (*no)(struct request *r, const struct err *err);    /* NULL: reply_err */
    void (*token)(struct request *r, const struct edge_token *token, const char *text);
    void (*gate)(struct request *r, const struct edge_verdict *v);  /* of ask_gate(); reply or go on */
    void (*approval)(struct request *r, const struct edge_approval *a);
    void (*grant)(struct request *r, const struct edge_grant *g);
    void (*volume)(struct request *r, const struct edge_volume *v);
    void (*port)(struct request *r, const struct edge_port *p, const char *capability);
    void (*attached)(struct request *r, const struct edge_attach *a, const char *text);
    void (*signed_)(struct request *r, bool done, const char *json);
    void (*sign_item)(struct request *r, bool done, const char *json);
    void (*who)(struct request *r);                                 /* r->who, role and role_box are there */
};

/* What an operation says. */
struct op_answers {
    void (*out)(struct request *r, bool is_err, const uint8_t *p, size_t n);
    void (*entry)(struct request *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name);
    void (*exit)(struct request *r, uint8_t flags, uint32_t code, uint64_t ms);
    void (*done)(struct request *r, uint64_t count);
    void (*failed)(struct request *r, const struct err *err);
    void (*taken)(struct request *r, uint32_t bytes);               /* of stdin, of a live command */
    void (*rich)(struct request *r, const uint8_t *p, size_t n, bool last);     /* of a result in a context */
    void (*run)(struct request *r, const struct edge_run *run);     /* a command in the background; and its output, */
    bool (*run_out)(struct request *r, uint8_t stream, uint64_t at, const uint8_t *p, size_t n);   /* false: refused */
    bool (*change)(struct request *r, const struct edge_change *c);     /* of a watch; false: refused */
    void (*wake)(struct request *r);        /* after what was said: for who has no answer of libmicrohttpd's to wake */
};

struct collect;
struct fork;
struct upgraded;
struct live;
struct desk;
struct preview;
struct missed;

struct route {
    const char *method;
    const char *path;       /* "/v1/sandboxes/{}/files/~": {} a segment, {#} a number, {*} the last, ~ the rest */
    void (*begin)(struct request *r);
    bool json;              /* a body that is JSON, or none */
    bool upload;            /* the body is streamed to the operation that begin() asks for */
    bool seen;              /* ... when so much of it is there (request.in) as is judged with it (EDGE_SEEN_MAX) */
    bool open;              /* for whoever comes: no credential is wanted or looked at */
    bool foreign;           /* what is there is a sandbox's: a page of any site may ask */
    bool ours;              /* a page of ours: what another site's may not read, whichever */
    bool named;             /* ... but who comes is said by the address: it is counted when that is known */
    bool spoken;            /* a credential may come as a subprotocol, too: browsers' WebSockets say nothing else */
    bool endless;           /* an answer to GET that goes on, or becomes something else: there is no HEAD of it */
    enum credential_way credential; enum words words;
};

struct request {
    struct front *f;
    struct MHD_Connection *c;
    const struct route *route;
    const char *method;
    char *uri;                          /* as it came */
    char id[EDGE_NAME_MAX + 1];         /* what {} stood for */
    const char *rest;                   /* what ~ or {*} stood for, in path */
    uint64_t exec;                      /* what {#} stood for */
    char number[17];                    /* the request's id, for logs and clients */
    uint8_t trace_bytes[EDGE_TRACE];    /* the trace's id, as the warden is told */
    struct trace trace;                 /* its part of a trace: the client's, or a new one */
    bool trace_given;                   /* it is the client's, */
    uint8_t parent[EDGE_SPAN];          /* whose span that is */
    uint64_t begun_us, bytes_in, bytes_out;     /* of bodies */
    char allowed[48];                   /* methods of a route that has others than @method */
    unsigned early;                     /* status to refuse with, decided before the body; 0 */
    const char *early_code, *early_why;
    struct buf body;
    unsigned caller;                    /* for whom memory is counted (hold.h); stays, whatever @who becomes */
    size_t held_bytes;                  /* of front.bodies: the body, and what becomes of it */
    size_t waits;                       /* of front.waits */
    bool placed;                        /* of front.places */
    size_t answer_bytes;                /* of a response that is not streamed */
    json_t *json;                       /* the body, or NULL */
    bool seen, begun, whole, suspended, queued, dead;
    bool too_large, no_room;            /* a body: more than it may have, or than there is room for now */
    bool api;                           /* errors in the words of /api: {"error": ...} */
    uint32_t ticket;                    /* of the open question; 0 */
    uint32_t who;                       /* what the warden calls the caller; 0 who came without a credential */
    enum edge_role role;                /* of @who, for what is not asked of the warden; NOBODY with 0 */
    char role_box[EDGE_ID + 1];         /* of a key */
    uint64_t until_ms;                  /* when @who is over; 0 never */
    uint8_t print[32];                  /* of the credential (struct known) */
    uint64_t epoch;                     /* before what is asked was asked */
    bool held;                          /* its beginning will be said again by the library: who it is was not known */
    char key[EDGE_CREDENTIAL_MAX + 1];  /* that came with a sandbox (struct answers: box); "" */
    uint8_t asked;                      /* the question that is or was open */
    uint64_t pings;                     /* late.asked before it */
    bool async;                         /* where somebody has to approve it: say so and do not wait */
    uint32_t followed;                  /* the ticket under which more comes (ask_approvals); 0 */
    const struct answers *answers;
    const struct op_answers *op_answers;
    struct watch peer, op, up;          /* our own look at the client's connection; the operation; after an upgrade;
                                         * peer's and up's descriptors are libmicrohttpd's */
    bool op_over;                       /* it has said its last */
    struct buf in;                      /* stdin that is not sent yet */
    bool in_end;                        /* and after it there is no more; said when sent */
    bool full;                          /* of an upload: its socket takes no more for now */
    struct MHD_Response *response;
    unsigned status;
    bool stream, stream_end;            /* the response is fed from @out */
    bool stream_broken;                 /* and ends as something that failed */
    struct buf out;                     /* streamed, or stdout */
    struct buf err_out;
    struct buf half[2];                 /* the beginning of a character whose rest has not come */
    bool base64, has_stdin, cut_out, cut_err;
    bool had_exit;                      /* of a command in the background: its client knows how it ended, */
    uint64_t had[2];                    /* and has so much of stdout and stderr */
    json_t *list;                       /* what the answer is made of */
    size_t n_entries, entry_bytes;      /* of a listing: what a keeper said of it */
    const char *language;               /* the same: whose interpreter may wait in a sandbox made ahead; "" none */
    char *policy;                       /* of POST /v1/execute: its sandbox's, as JSON, owned; NULL */
    json_t *files;                      /* ... that it brings along (execute_files.c); NULL */
    size_t n_written;                   /* ... of these, so far */
    void (*files_then)(struct request *r);      /* ... when all are */
    struct collect *collect;            /* ... that it wants back; NULL */
    struct fork *fork;                  /* of .../fork: templates.c; NULL */
    uint32_t maker;                     /* of POST /v1/execute: the ticket of its sandbox's making: while it is asked
                                         * for, that lives */
    struct rich *rich;                  /* of a call in a context: results; NULL */
    const char *context_state;          /* ... what became of that; NULL: nobody said */
    char *below;                        /* of a watch: the directory, owned; NULL */
    unsigned tries;
    struct visiting *visit;             /* cloche-adapter answers it: visit.c; NULL */
    const struct upgraded *upgraded;    /* it is, or is about to be */
    struct MHD_UpgradeResponseHandle *up_handle;
    struct live *live;                  /* of a live command; NULL */
    struct desk *desk;                  /* of a viewer of a desktop; NULL */
    struct missed *missed;              /* of the audit record, by who follows it: audit.c; NULL */
    struct page *page;                  /* of a decision in a browser: page.c; NULL */
    struct preview *preview;            /* front/preview.h; NULL */
    bool host_form;                     /* it is one, by its Host */
    bool shared;                        /* a page of a site that may ask is asking (cors.c), */
    bool unshared;                      /* for what is not the API's */
    struct request *next;               /* of all */
    char path[FRONT_URI_MAX];           /* decoded */
    char query[FRONT_URI_MAX];          /* still encoded */
};

struct front {
    struct MHD_Daemon *http;
    struct request *requests;
    struct loop loop;
    struct watch adapter;               /* cloche-adapter; there may be none now */
    struct packet_queue to_adapter;
    struct watch warden, door, run;     /* run: libmicrohttpd's own, which is run every round */
    struct packet_queue to_warden;
    uint32_t tickets;
    struct hold bodies;                 /* bytes of bodies, and what becomes of them */
    struct hold waits;                  /* and what waits for clients, or for what they write to */
    struct hold places;                 /* connections whose requests are under way */
    bool pressed, eased;                /* some are not listened to, for want of that; and there is more of it again */
    size_t early;                       /* of previews' answers that are there before their requests (preview.c) */
    bool ended;
    bool given_back;            /* an upgraded connection, which libmicrohttpd has not closed yet */
    bool strangers;                     /* nobody vouches for its connections: each needs a credential */
    bool tls;
    struct front_doors doors;
    struct link *idle_first, *idle_last;
    struct timer idle;                  /* set while there is one */
    struct timer second;                /* set while there are requests: the next look at their times */
    size_t n_links, max_links;          /* connections */
    struct lingering lingering[FRONT_LINGERS];
    struct rate rate;
    struct late {
        bool owed;                      /* an answer to EDGE_PING, */
        unsigned looks;                 /* for so many looks */
        uint64_t asked, answered;       /* how many EDGE_PINGs; answers come in their order */
        uint64_t heard_ms;
    } late;                             /* the warden: late.c */
    const struct epochs *epochs;        /* NULL: the warden has not said anything yet */
    struct known_all known;
    struct told_status owner_status;
    struct metrics *metrics;
    struct teller tell;                 /* cloche-otlp, of requests that are over */
    uint8_t random[4096];               /* for ids of traces */
    size_t random_left;
    uint8_t in[EDGE_ROOM];
};

#define FRONT_SECOND_MS 1000

/* linger.c: @fd, which is about to be closed, has been answered, and its client may still be sending: until it has read
 * the answer, or for a moment, what it sends is thrown away. */
void linger_begin(struct front *f, int fd);

/* http.c: connections and requests. Opened with f->second set up. */
int http_open(struct front *f, struct err *err);
int http_connection(struct front *f, int fd, const struct sockaddr *from, socklen_t n);     /* owned from here on */
void http_run(struct front *f);
int http_timeout(struct front *f);              /* milliseconds, -1 none */
void http_bury(struct front *f);                /* free what has ended; between two rounds of the loop */
void http_wake(struct request *r);              /* it has what it waited for */
/* Notice when its client goes. @half: a client that only says no more has gone too. */
void http_watch_peer(struct request *r, bool half);
void http_unwatch_peer(struct request *r);
/* Whether there is memory for the body read as JSON: a few bytes of text can be a hundred of values. */
bool http_json_room(struct request *r);

/* ask.c: questions to the warden (proto/question.h), ASK() by number and fields. Each takes the request's ticket; the
 * answers go to @answers, and of what is granted to r->op_answers. */
void ask(struct request *r, uint8_t type, const struct shape *shape, const void *m, const struct answers *answers);
#define ASK(r, number, answers, ...) ask(r, number, number##_SHAPE(), &(const number##_IS){ __VA_ARGS__ }, answers)
void ask_create(struct request *r, const struct edge_create *create, const struct answers *answers);
/* @was: SHA-256 of the policy that @policy was made of. */
void ask_change(struct request *r, const char *id, const uint8_t *was, const char *policy,
                const struct answers *answers);
/* Whether its words are no more than a command can have; false: said. */
bool ask_words_fit(struct request *r, const struct edge_op *op);
void ask_op(struct request *r, const char *id, const struct edge_op *op, const struct answers *answers,
            const struct op_answers *said);
/* Whether the caller may do that: @tool with @params (an object, borrowed) in the sandbox @id ("" none yet). The answer
 * comes to answers->gate: ALLOWED (go on: what is asked for this request from then on belongs to the call, and is not
 * judged again where it is a part of it), DENIED with its reason, or, when not @hold, WAIT: an approval is needed and
 * has an id. With @hold it comes when it is decided. Asking for the same again by the same caller finds the approval
 * that waits, or was given and not used yet. answers->no: no such sandbox, or text that cannot be shown. */
void ask_gate(struct request *r, const char *id, const char *tool, const json_t *params, bool hold,
              const struct answers *answers);
/* @state 0: any. @after: a cursor, "" none. @follow: after the end the request's ticket is to be r->followed again, and
 * more comes. */
void ask_approvals(struct request *r, bool follow, unsigned state, uint16_t limit, const char *id, const char *after,
                   const struct answers *answers);
/* About commands in the background (edge_run.h); the answers are the socket's. */
void ask_run(struct request *r, const struct edge_run_ask *what, const struct answers *answers,
             const struct op_answers *said);
void ask_cancel(struct request *r, uint32_t ticket);    /* nobody waits for what was asked by that any more */
int ask_hear(struct front *f);                  /* -1: the warden is gone */
/* late.c: a warden that does not answer */
void late_time(struct front *f);                /* once a second while there are requests */
void late_heard(struct front *f);               /* it said something */
bool late_is(const struct front *f);
void late_begins(struct request *r);            /* a question of its is next */
void late_ready(struct request *r);             /* is it there? */
void ask_drop(struct request *r);               /* its answer is not waited for any more */

/* waits.c: what waits for clients. Whether there is room for @n bytes more for that one; count anew what it has; and
 * listen again to those that were not, for want of room. */
bool waits_room(const struct request *r, size_t n);
bool hold_room(const struct request *r, const struct hold *h, size_t n);    /* the same of @h, one of the front's */
void waits_count(struct request *r);
void waits_turn(struct front *f);
/* Its connection is kept from here on, whoever else comes, and counted; false: it has been answered, for its caller has
 * too many. Until it is over. */
bool waits_place(struct request *r);
void waits_unplace(struct request *r);
void waits_move(struct request *r, unsigned caller);        /* what it has counts for that one from here on */
/* Of output that is told whole: p[0..n), or what there is room for; then *cut, and nothing of it comes any more. */
void waits_keep(struct request *r, struct buf *into, bool *cut, const uint8_t *p, size_t n);

/* op.c: operations */
int op_take(struct request *r, int fd);
void op_hear(struct request *r, uint32_t events);
/* What has come from who answers @r, as much of it as goes in one round. False: that one broke off. */
bool op_receive(struct request *r, struct msg_gate *gate);
void op_drop(struct request *r);                /* cancels it when it still runs */
void op_flow(struct request *r);                /* listen or not, by how much waits for the client */
/* Of an upload: as much of p[0..n) as is taken now. */
size_t op_upload(struct request *r, const uint8_t *p, size_t n);
void op_upload_end(struct request *r);
void op_send(struct request *r);                /* what is in r->in, as far as it is taken */

/* reply.c */
void reply_json(struct request *r, unsigned status, json_t *body);      /* takes the reference */
void reply_location(struct request *r, const char *at);     /* where what it made is, once it is answered */
void reply_hints(struct request *r);            /* headers that go with the status of its answer */
/* 400 @code: what is wrong with the request, whose form is in docs/daemon.md. Returns false. */
bool reply_unfit(struct request *r, const char *code, const char *what);
/* The first member of @object whose name is not among @known (NULL behind the last); NULL: all are, or it is no object.
 */
const char *json_unknown(const json_t *object, const char *const known[]);
/* A whole number from @min to @max. NULL, a member that is not there, is well too: @out stays as it is. */
bool json_number(const json_t *v, json_int_t min, json_int_t max, uint32_t *out);
/* 400 @code: it has no member @name; @known says which there are. Returns false. */
bool reply_member(struct request *r, const char *code, const char *name, const char *known);
/* As it is, of that type; copied. */
void reply_text(struct request *r, unsigned status, const char *type, const void *p, size_t n);
/* The same of a page of ours, or a file of one, in nobody's frame. @own: further headers, then NULL. */
void reply_page(struct request *r, unsigned status, const char *type, const void *p, size_t n,
                const char *const own[][2]);
json_t *json_of_event(const struct edge_event *event);
/* r->list as {NAME: ...}, by the name that struct answers has for it: the end of a list that has no pages */
void reply_list(struct request *r, uint32_t count, bool more);
/* {"error": MESSAGE, "code": CODE, "detail": HINT, "request_id": ID}; under /api {"error": MESSAGE} */
void reply_error(struct request *r, unsigned status, const char *code, const char *detail, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void reply_err(struct request *r, const struct err *err);
/* @err; or that its credential, which was good when it came, is none any more. */
const struct err *ended_of(const struct request *r, const struct err *err);
unsigned status_of(const struct err *err);
void reply_empty(struct request *r, unsigned status);
void reply_stream(struct request *r, const char *type);
bool wants_events(const struct request *r);     /* it accepts text/event-stream */
void reply_stream_of(struct request *r, unsigned status, const char *type, uint64_t size);   /* of so many bytes */
void reply_stream_bare(struct request *r, unsigned status, uint64_t size);  /* without a type or other headers */
void stream_add(struct request *r, const void *p, size_t n);
void stream_close(struct request *r);
void stream_break(struct request *r);           /* it ends, as something that failed */
/* One event (text/event-stream): "id: ID" (NULL none), its name, @data as JSON (taken). One that cannot be said breaks
 * the stream: who reads it is told nothing instead of half of it. */
void stream_event(struct request *r, const char *id, const char *name, json_t *data);
/* The answer `no` about what is followed, as its only word or its last event: `error`, with auth.ended when the
 * caller's credential opens nothing any more. */
void stream_refuse(struct request *r, const struct err *err);
json_t *json_of_box(const struct edge_box *box);
/* Where @list goes on, as edge_cursor() reads it, or null: behind its last one, with its time, so whatever becomes of
 * that one's record meanwhile. */
json_t *json_of_next(const json_t *list, bool more);
/* The decoded value of a query's key, in @room; NULL when it is not there (or malformed: *bad). */
const char *query_get(const struct request *r, const char *key, char *room, size_t size, bool *bad);
/* "true", "1", or nothing behind the key; false where it is absent, "false" or "0". Anything else: *bad. */
bool query_true(const struct request *r, const char *key, bool *bad);

/* doors.c: settings, connections, where requests come from. The two take a message of the launcher's: 0, -1 when it is
 * malformed or cannot be answered. */
int doors_settings(struct front *f, const struct frame *message, int pem);
int doors_say(struct front *f, uint8_t type, const struct err *err);     /* to the launcher; @err NULL: none */
int doors_connection(struct front *f, const struct frame *message, int fd);     /* @fd is taken */
/* A header of the request's, whose name is in any case: how many there are, and the value of the last one. */
struct header {
    const char *name, *value;
    size_t size;
    unsigned n;
};
struct header header_of(const struct request *r, const char *name);
/* Refuse (r->early) what came by a name that is not ours, or from a page that may not ask. */
void doors_judge(struct request *r);
/* Whether nothing says that the request comes from a page of another site, be it one that may ask. */
bool doors_own_page(struct request *r);
const char *doors_hint(const char *code);       /* the way out, for the codes of early refusals */
void doors_notify(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_ConnectionNotificationCode what);
struct link *doors_link(struct request *r);     /* NULL: without memory */
void doors_busy(struct request *r, bool busy);  /* we work for it; or it is the client's turn, from now on */
void doors_expire(struct timer *t);             /* f->idle: who has said nothing whole for too long is cut off */

/* cors.c: what browsers are told of pages of other sites that may ask. To every answer; and the answer to a browser's
 * question whether such a page may (false: it is none). */
void cors_put(struct request *r);
bool cors_preflight(struct request *r);

/* rate.c: 0 when this request may go on, otherwise in how many seconds it may come again. */
unsigned rate_take(struct rate *rate, const struct ip *peer, const char *credential, uint32_t per_s);

/* tls.c: a certificate and its key, PEM one after the other in the file @pem; checked first. 0 or -1 with @err, then
 * the former ones stay. */
int tls_take(int pem, uint32_t cert_n, uint32_t key_n, struct err *err);
gnutls_certificate_retrieve_function3 tls_identity;

/* who.c: what a request presents: how many credentials (of any header), and the one of it that there is; "" where
 * it is malformed, or there are several. Wipe it. */
struct presented {
    unsigned n;
    enum edge_credential kind;
    char text[EDGE_CREDENTIAL_MAX + 1];
};
struct presented who_presents(const struct request *r);
/* Whose request it is, by its credential, before its body is read. True: it may go on; otherwise it waits for
 * the warden (r->ticket) or has been refused. What each caller may is the warden's to judge. */
bool who_admit(struct request *r);
void who_count(struct request *r);              /* the warden said who it is: it is counted for that one */
/* Where this caller's default sandbox is remembered; NULL: nowhere, or its credential may be good no more. */
struct told_status *who_status(struct request *r);

/* gate.c: approvals (docs/gate.md) */
extern const struct route gate_routes[];
extern const size_t gate_n_routes;
void gate_look(struct request *r);                      /* what its headers say about waiting */
void reply_waits(struct request *r, const struct edge_verdict *v);      /* 202: somebody has to approve it */

/* page.c: a page to decide on approvals */
extern const struct route page_routes[];
extern const size_t page_n_routes;
void page_free(struct request *r);

/* route.c */
const struct route *route_find(struct request *r);      /* NULL: r->early says why */
void route_wipe(struct request *r);                     /* its address, which may have a credential in it */
void route_allow(struct request *r, const char *method);        /* one more method of this path, for Allow */

/* exec.c: commands. */
json_t *exec_exit_json(const struct request *r, uint8_t flags, uint32_t code, uint64_t ms);
/* A signal's number, by that or by a name such as INT or SIGINT; -1. */
int exec_signal(const json_t *v);
/* The members rows and cols, each from 1 to EXEC_SIDE_MAX. */
#define EXEC_SIDE_MAX 4096
bool exec_size(const json_t *v, uint16_t *rows, uint16_t *cols);
/* From r->json; one that is OP_BACKGROUND is for run_begin(). Replies itself and returns false when it is malformed.
 * Strings are the JSON's. */
bool exec_request(struct request *r, struct edge_op *op);
/* Run it; the result as JSON (snake_case, or as /api has it), or as events when @events. */
void exec_run(struct request *r, const char *id, const struct edge_op *op, bool events);

/* contexts.c: code in a context. What is said of that, or of a result (the one that is whole with it, borrowed; NULL);
 * what came of it, into an answer. */
extern const struct route context_routes[];
extern const size_t context_n_routes;
void contexts_ran(struct request *r, const struct edge_run *run);
json_t *contexts_result(struct request *r, const uint8_t *p, size_t n, bool last);
void contexts_put(const struct request *r, json_t *answer, bool results);
void contexts_free(struct request *r);

/* execute.c: what a call of its own needs its sandbox for is done, or nobody waits for it any more */
void execute_over(struct request *r);

/* execute_files.c: files of a call of its own. Whether r->files is such a list; false: said. */
bool execute_files_well(struct request *r);
/* What is wrong with it; NULL: it is a relative path, or pattern, that says plainly where it leads. */
const char *execute_path_fault(const char *path);
/* Whether the call brought along a file of that path that holds exactly that. */
bool execute_files_same(struct request *r, const char *path, const struct buf *content);
/* As what writing them is judged by (proto/edge_write.h); NULL: no memory. */
json_t *execute_files_params(struct request *r);
/* Write the next of r->files into the sandbox r->id, and so on, then() with the last one. */
void execute_files_write(struct request *r, void (*then)(struct request *r));

/* metrics.c */
int metrics_open(struct front *f);                      /* before confinement; -1 no memory */
void metrics_connection(struct front *f);
void metrics_request(const struct request *r, bool whole);  /* it is over: counted, and logged */
int metrics_put(const struct front *f, struct buf *b);  /* samples */

/* runs.c: commands in the background. Begin one (exec_request()). */
void run_begin(struct request *r, const struct edge_op *op);
/* The answer to what could not be begun, or was asked of in vain. */
void run_not_begun(struct request *r, const struct err *err);
extern const struct route run_routes[];
extern const size_t run_n_routes;

/* audit.c: who follows is told more of what it missed, when there is room for it. */
void audit_flow(struct request *r);
void audit_free(struct request *r);

/* changes.c: watching */
extern const struct route change_routes[];
extern const size_t change_n_routes;

/* visit.c: requests that cloche-adapter answers */
extern const struct route adapter_routes[];
extern const size_t adapter_n_routes;
void visit_adapter(struct front *f, int fd);            /* adapter.c: there is a new one; @fd, its edge, is taken */
void visit_over(struct request *r);
bool visit_leaves(const struct request *r);             /* a client that only says no more has gone */
bool visit_waits(const struct request *r);              /* something is to be said to the adapter, */
size_t visit_held(const struct request *r);             /* so many bytes, */
void visit_granted(struct request *r, int fd);          /* as this is: an operation. @fd is taken */
void visit_time(struct front *f);       /* those whose stream goes on are looked at: they end with their credential */

/* v1.c: the body's name for a sandbox, or a template; "" there is none. False: it is no name, which is said. */
bool box_name_of(struct request *r, const char **out);

/* v1.c, files.c, life.c, tokens.c, audit.c, watch.c: the routes. */
extern const struct route volume_routes[], execute_routes[], template_routes[];
extern const size_t volume_n_routes, execute_n_routes, template_n_routes;
void fork_free(struct request *r);
extern const struct route v1_routes[], files_routes[], life_routes[], token_routes[], audit_routes[];
extern const size_t v1_n_routes, files_n_routes, life_n_routes, token_n_routes, audit_n_routes;
void attach_connect(struct request *r, const struct answers *answers);     /* what its first message asks for */
extern const struct route attach_routes[];
extern const size_t attach_n_routes;
extern const struct route watch_routes[];
extern const size_t watch_n_routes;

int front_confine(struct err *err);

#endif
