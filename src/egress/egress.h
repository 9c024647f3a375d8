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

#include "base/err.h"
#include "egress/decide.h"
#include "egress/fake.h"
#include "egress/loop.h"
#include "egress/parent.h"
#include "egress/resolve.h"
#include "wall/capture.h"

#define EGRESS_CONNS_MAX 1024       /* more wait in the listeners' queues; each may hold some 3 MiB of kernel memory */

struct conn;
struct tls_ctx;
struct vault_client;

#define LOG_SEEN 64         /* allowed ways that are counted instead of told again */

/* A decision that was told. */
struct log_seen {
    enum decide_via via;
    uint16_t port;
    const char *reason;         /* NULL: none here */
    char host[HOST_NAME_MAX_LEN], method[32], rule[HOST_TEXT_MAX];
    size_t host_n, method_n, rule_n;
    uint64_t more;              /* times since then */
};

struct egress {
    struct loop loop;
    struct resolver *resolver;
    struct fake_table *fakes;
    struct decide_rules *rules;
    struct parents parents;
    struct watch listeners[CAPTURE_LISTENERS];
    struct vault_client *vault; /* NULL: this run has no secrets, and no TLS is opened */
    struct watch vault_watch;
    struct tls_ctx *tls;
    struct watch control;       /* the supervisor: its end is ours; decisions go there */
    struct conn *conns;         /* live */
    struct conn *ended;         /* to be freed after this round */
    size_t n_conns;
    struct log_seen seen[LOG_SEEN];
    uint64_t unsaid;            /* decisions that the supervisor did not take */
    uint64_t full_ms;           /* a listener waits for room since then; 0: none does */
    size_t full_at;             /* connections at that time */
    bool over;
};

/* dns.c: a query came. */
void dns_on_udp(struct watch *w, uint32_t events);
/* One query of @n bytes to its answer (0: none); @tcp: no size limit. */
size_t dns_answer(struct egress *e, const uint8_t *query, size_t n, bool tcp, uint8_t *out, size_t size);

/* conn.c */
void conn_on_listener(struct watch *w, uint32_t events);
void conn_tick(struct egress *e);       /* deadlines */
void conn_make_room(struct egress *e);  /* accept again, when that had stopped */
void conn_free_ended(struct egress *e);
void conn_close_all(struct egress *e);
/* Those secrets (vault/client.h) were revoked: what used one ends. */
void conn_revoked(struct egress *e, uint32_t mask);

/* log.c: tell the supervisor what was decided. Never blocks; what does not fit is counted. */
void log_decision(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict);
/* ... that the secret @name was the cause of; @critical: it was on its way to where it must not go. */
void log_secret(struct egress *e, const struct decide_request *request, const struct decide_verdict *verdict,
                const char *name, bool critical);
void log_tick(struct egress *e);        /* how often what was told has been repeated */

#endif
