/* egress/egress.h: cloche-egress, one process for one sandbox's network
 *
 * It holds the listeners that were opened inside the sandbox's network namespace and lives itself in the host's. Each
 * connection that arrives is asked where it wants to go (a name: from its address, its proxy request, its ClientHello),
 * decided on once (decide.h), resolved once, and then carried. It reads what a stranger wrote and holds no secret.
 */
#ifndef CLOCHE_EGRESS_EGRESS_H
#define CLOCHE_EGRESS_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/sha256.h"
#include "egress/decide.h"
#include "egress/fake.h"
#include "egress/parent.h"
#include "egress/pool.h"
#include "egress/resolve.h"
#include "egress/strip.h"
#include "wall/capture.h"

#define EGRESS_CONNS_MAX 12288      /* more wait in the listeners' queues */
#define EGRESS_MEMORY    (256UL * 1024 * 1024)  /* of this process: what finds no more ends its connection */

#define ASK_QUESTIONS_MAX 32        /* open at a time */
#define ASK_WAITING_MAX   256       /* connections that wait for an answer */
#define ASK_ALL_MAX       1000      /* questions of one life of the process; then nothing is asked any more */
#define ASK_METHOD_MAX    32        /* bytes of a request that is asked about: more would not be shown as a whole */
#define ASK_SHOWN_MAX     1024      /* ... of its path and query */
#define ASK_BACK_MS       1000      /* one that was allowed does not count, at most one in this time */

struct conn;
struct tls_ctx;
struct vault_client;

#define LOG_SEEN 64         /* allowed ways that are counted instead of told again */

/* A decision that was told. */
struct log_seen {
    enum decide_via via;
    uint16_t port;
    const char *reason;         /* NULL: none here */
    char host[HOST_NAME_MAX_LEN], method[32], rule[HOST_TEXT_MAX], tool[TOOL_NAME_MAX];
    size_t host_n, method_n, rule_n, tool_n;
    uint64_t more;              /* times since then */
};

/* What somebody is asked: may this sandbox connect to that host at that port, or make that request there? */
struct question {
    uint32_t id;                /* 0: none */
    struct host host;
    uint16_t port;
    bool request;               /* it is about one HTTP request, of which @print is the hash; else about a connection */
    uint8_t print[SHA256_SIZE];
    const char *reason;         /* of the verdict, static */
    uint64_t deadline_ms;
};

/* YES is to what was asked about: that request, or that connection; HOST to all that comes on connections that wait. */
struct egress {
    struct loop loop;
    struct resolver *resolver;
    struct fake_table *fakes;
    struct decide_rules *rules;
    struct parents parents;
    struct strip strip;
    struct watch listeners[CAPTURE_LISTENERS];
    struct vault_client *vault; /* NULL: this run has no secrets, and no TLS is opened */
    struct watch vault_watch;
    struct tls_ctx *tls;
    struct watch control;       /* the supervisor: its end is ours; decisions go there */
    struct conn *conns;         /* live */
    struct conn *ended;         /* to be freed after this round */
    struct pool pool;           /* connections to servers that wait for the next client */
    size_t n_conns;
    size_t conns_max;           /* EGRESS_CONNS_MAX, or what the limit of open files lets be */
    size_t tuned_max;           /* so many connections may have buffers that the kernel sizes (conn_buffers.c) */
    int buffer;                 /* size of a socket's buffers now; 0: the kernel's own */
    struct log_seen seen[LOG_SEEN];
    struct buf waiting;         /* decisions that the supervisor has not taken yet (log.c) */
    uint64_t unsaid;            /* ... and those that found no room there */
    unsigned quiet;             /* ticks since something happened */
    uint64_t full_ms;           /* a listener waits for room since then; 0: none does */
    size_t full_at;             /* connections at that time */
    struct question questions[ASK_QUESTIONS_MAX];
    uint32_t n_asked, n_back;   /* questions; those of them that do not count (ASK_BACK_MS) */
    uint64_t back_ms;           /* when the last of these was allowed */
    size_t n_waiting;           /* connections that wait for an answer */
    const struct question *granted;     /* whose yes is being carried out; NULL: none */
    bool judging;               /* all that wait ask again, for the rules have changed */
    uint64_t ask_ms;            /* how long */
    const char *by;             /* who gave the answer that is being carried out; NULL: nobody */
    bool over;                  /* the sandbox has ended: nothing is carried any more, what waits is only decided */
};

/* dns.c: a query came. */
void dns_on_udp(struct watch *w, uint32_t events);
/* One query of @n bytes to its answer (0: none); @tcp: no size limit. */
size_t dns_answer(struct egress *e, const uint8_t *query, size_t n, bool tcp, uint8_t *out, size_t size);

/* conn_buffers.c: read what the host lets buffers be; before confine(). */
void conn_buffers_init(struct egress *e);
/* conn.c */
void conn_on_listener(struct watch *w, uint32_t events);
void conn_tick(struct egress *e);       /* deadlines */
void conn_make_room(struct egress *e);  /* accept again, when that had stopped */
void conn_free_ended(struct egress *e);
/* Those of which something is decided; the others have not been read yet, and what they ask for is to be told. */
/* Whether a tunnel still holds what its client said. */
bool conn_has_tail(const struct egress *e);
void conn_close_known(struct egress *e);
void conn_close_all(struct egress *e);
/* Those secrets (vault/client.h) were revoked: what used one ends. */
void conn_revoked(struct egress *e, uint32_t mask);

/* conn_ask.c: the answer to question @id, given @by somebody; those that nobody answered in time; all connections anew
 * under rules that have changed: how many had to be closed. */
void ask_answer(struct egress *e, uint32_t id, enum ask_says says, const char *by);
void ask_tick(struct egress *e);
bool ask_open(const struct egress *e);  /* some question has no answer yet */
size_t conn_judge_again(struct egress *e);

/* log.c: tell the supervisor what was decided. Never blocks: what the supervisor does not take now waits for it, up to
 * LOG_WAITING_MAX; what does not fit there is counted, and the count is said. */
#define LOG_WAITING_MAX (1024 * 1024)
#define LOG_ANSWERS_ROOM (64 * 1024)    /* of which what the sandbox causes does not fill so much */
void log_decision(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict);
/* ... that the secret @name was the cause of; @critical: it was on its way to where it must not go. */
void log_secret(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
                const char *name, bool critical);
/* What was allowed could not be connected to, for @why. */
void log_failed(struct egress *e, const struct host *host, uint16_t port, const char *why);
void log_tick(struct egress *e);        /* how often what was told has been repeated */
/* The same, @by somebody who was asked (NULL: nobody). */
void log_decided(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
                 const char *by);
struct json_t;
/* Something else for the supervisor: an answer to it, or a question; takes @o. */
void log_say(struct egress *e, struct json_t *o);
void log_flush(struct egress *e);
const char *decide_via_name(enum decide_via via);       /* "connect" */
/* All that waits, in at most @ms, before this process ends. */
void log_finish(struct egress *e, unsigned ms);

#endif
