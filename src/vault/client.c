/* vault/client.c: see client.h */
#include "vault/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "vault/wire.h"

#define PATIENCE_MS 10000

enum state { ST_INTRODUCED = 1 << 0, ST_OPEN = 1 << 1 };

/* A question without an answer. */
struct question {
    uint32_t ticket;            /* 0: free */
    uint8_t answer;             /* the message that answers it, but for VAULT_REFUSED */
    union {
        vault_lease_fn *lease;
        vault_leaf_fn *leaf;
        vault_signature_fn *signature;
    } fn;                       /* lease NULL: forgotten */
    void *ctx;
};

struct vault_client {
    int fd;
    struct msg_gate gate;
    struct vault_client_events events;
    struct vault_secret secrets[VAULT_SECRETS_MAX];
    size_t n_secrets;
    struct question *questions; /* VAULT_QUESTIONS_MAX */
    size_t high;                /* none is used from here on */
    uint32_t next_ticket;
    uint8_t in[VAULT_RECEIVE_ROOM];
};

static const struct err *
ended(struct err *err)
{
    err_set(err, ERR_PROTOCOL, "vault.ended", "the vault has ended");
    return err;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static struct question *
find(struct vault_client *c, uint32_t ticket)
{
    for (size_t i = 0; ticket != 0 && i < c->high; i++)
        if (c->questions[i].ticket == ticket)
            return &c->questions[i];
    return NULL;
}

static struct question *
new_question(struct vault_client *c, uint8_t answer, void *ctx, struct err *err)
{
    size_t i = 0;

    if (c->fd < 0) {
        ended(err);
        return NULL;
    }
    while (i < c->high && c->questions[i].ticket != 0)
        i++;
    if (i == VAULT_QUESTIONS_MAX) {
        err_set(err, ERR_LIMIT, "vault.busy", "%d questions wait for the vault", VAULT_QUESTIONS_MAX);
        return NULL;
    }
    if (i == c->high)
        c->high++;
    do
        c->next_ticket++;
    while (c->next_ticket == 0 || find(c, c->next_ticket) != NULL);
    c->questions[i] = (struct question){ .ticket = c->next_ticket, .answer = answer, .ctx = ctx };
    return &c->questions[i];
}

/* The vault ends an edge that says more than it may, and what is asked for is a stranger's to choose: what does not fit
 * is not sent. */
static struct question *
too_long(struct err *err)
{
    err_set(err, ERR_LIMIT, "vault.not-bound", "the request is too long for the vault");
    return NULL;
}

static uint32_t
ask(struct vault_client *c, struct question *q, uint8_t type, const struct shape *shape, const void *m, struct err *err)
{
    if (proto_send(c->fd, type, shape, m, -1) == 0)
        return q->ticket;
    q->ticket = 0;
    if (errno == EMSGSIZE)
        too_long(err);
    else if (errno == EAGAIN)
        err_set(err, ERR_LIMIT, "vault.busy", "the vault does not keep up");
    else
        ended(err);
    return 0;
}

/* @why is set: there is no answer. */
static void
client_refuse(struct question *q, const struct err *why)
{
    struct question was = *q;

    q->ticket = 0;
    if (was.fn.lease == NULL)
        return;
    if (was.answer == VAULT_LEASED)
        was.fn.lease(was.ctx, NULL, why);
    else if (was.answer == VAULT_CERTIFIED)
        was.fn.leaf(was.ctx, NULL, why);
    else
        was.fn.signature(was.ctx, NULL, why);
}

static void
end_all(struct vault_client *c)
{
    struct err why = ERR_INIT;
    size_t n = c->high;

    close_fd(&c->fd);
    for (size_t i = 0; i < n; i++)
        if (c->questions[i].ticket != 0)
            client_refuse(&c->questions[i], ended(&why));
}

static struct vault_request
said(const struct binding_request *r)
{
    return (struct vault_request){ .tls = r->tls, .host = { r->host.name, r->host.n }, .port = r->port,
                                   .method = r->method, .path = r->path };
}

uint32_t
vault_ask_lease(struct vault_client *c, const struct binding_request *request, uint32_t want, vault_lease_fn *fn,
                void *ctx, struct err *err)
{
    struct question *q = request->method.n > 0 ? new_question(c, VAULT_LEASED, ctx, err) : too_long(err);

    if (q == NULL)
        return 0;
    q->fn.lease = fn;
    return ask(c, q, VAULT_ASK_LEASE, VAULT_ASK_LEASE_SHAPE(),
               &(struct vault_ask_lease){ .ticket = q->ticket, .want = want, .request = said(request) }, err);
}

uint32_t
vault_ask_leaf(struct vault_client *c, const struct host *host, vault_leaf_fn *fn, void *ctx, struct err *err)
{
    struct question *q = new_question(c, VAULT_CERTIFIED, ctx, err);

    if (q == NULL)
        return 0;
    q->fn.leaf = fn;
    return ask(c, q, VAULT_ASK_LEAF, VAULT_ASK_LEAF_SHAPE(),
               &(struct vault_ask_leaf){ .ticket = q->ticket, .host = { host->name, host->n } }, err);
}

uint32_t
vault_ask_signature(struct vault_client *c, const struct binding_request *request, uint32_t id,
                    const struct vault_to_sign *what, vault_signature_fn *fn, void *ctx, struct err *err)
{
    struct question *q = request->method.n > 0 ? new_question(c, VAULT_SIGNED, ctx, err) : too_long(err);

    if (q == NULL)
        return 0;
    q->fn.signature = fn;
    return ask(c, q, VAULT_ASK_SIGNATURE, VAULT_ASK_SIGNATURE_SHAPE(),
               &(struct vault_ask_signature){ .ticket = q->ticket, .id = (uint8_t)id, .request = said(request),
                                              .date = what->date, .region = what->region, .service = what->service,
                                              .signed_headers = what->signed_headers, .canonical = what->canonical },
               err);
}

void
vault_forget(struct vault_client *c, uint32_t ticket)
{
    struct question *q = c != NULL ? find(c, ticket) : NULL;

    if (q != NULL)
        q->fn.lease = NULL;     /* its answer still comes, and has to be known */
}

void
vault_lease_free(struct vault_lease *lease)
{
    if (lease == NULL)
        return;
    explicit_bzero(lease, sizeof(*lease) + lease->size);
    free(lease);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static int
on_announce(struct vault_client *c, const struct vault_announce *m)
{
    struct vault_secret *s = &c->secrets[m->id];

    if (m->id != c->n_secrets || m->n_placeholder < VAULT_VALUE_MIN ||
        memchr(m->name.p, '\0', m->name.n) != NULL || binding_parse(m->binding, &s->binding, NULL) < 0)
        return -1;
    s->id = m->id;
    s->role = m->role;
    s->revoked = m->state != VAULT_STATE_USABLE;
    s->expired = m->state == VAULT_STATE_EXPIRED;
    memcpy(s->name, m->name.p, m->name.n);
    s->name[m->name.n] = '\0';
    memcpy(s->placeholder, m->placeholder, m->n_placeholder);
    s->n = m->n_placeholder;
    c->n_secrets++;
    return 0;
}

static int
on_announced(struct vault_client *c, const struct nothing *m)
{
    (void)m;
    c->gate.state = ST_OPEN;
    return 0;
}

/* The values into one piece of memory, checked against what was announced. NULL: malformed, or no memory. */
static struct vault_lease *
read_lease(const struct vault_client *c, const struct vault_leased *m)
{
    struct vault_lease *lease;
    size_t size = 0, used = 0;

    for (size_t i = 0; i < m->n_value; i++)
        size += m->value[i].n_value;
    lease = calloc(1, sizeof(*lease) + size);
    if (lease == NULL)
        return NULL;
    lease->size = size;
    lease->expires_ms = clock_ms() + m->ms;
    for (size_t i = 0; i < m->n_value; i++) {
        const struct vault_value *v = &m->value[i];
        uint8_t id = v->id & (uint8_t)~VAULT_SEARCH_ONLY;
        if (id >= c->n_secrets || v->n_value != c->secrets[id].n || lease->value[id] != NULL) {
            lease->search = 0;
            break;
        }
        memcpy(lease->memory + used, v->value, v->n_value);
        lease->value[id] = lease->memory + used;
        lease->search |= UINT32_C(1) << id;
        if (v->id == id)
            lease->mask |= UINT32_C(1) << id;
        used += v->n_value;
    }
    if (lease->search != 0)
        return lease;
    vault_lease_free(lease);
    return NULL;
}

/* Whose answer of type @answer that is, who waits no more. False: nobody's. */
static bool
answered(struct vault_client *c, uint32_t ticket, uint8_t answer, struct question *out)
{
    struct question *q = find(c, ticket);

    if (q == NULL || q->answer != answer)
        return false;
    *out = *q;
    q->ticket = 0;
    return true;
}

static int
on_leased(struct vault_client *c, const struct vault_leased *m)
{
    struct question *q = find(c, m->ticket), was;
    struct vault_lease *lease = q != NULL && q->answer == VAULT_LEASED ? read_lease(c, m) : NULL;

    if (lease == NULL || !answered(c, m->ticket, VAULT_LEASED, &was))
        return -1;
    if (was.fn.lease != NULL)
        was.fn.lease(was.ctx, lease, NULL);
    else
        vault_lease_free(lease);
    return 0;
}

static int
on_certified(struct vault_client *c, const struct vault_certified *m)
{
    const struct vault_leaf leaf = { .certificate = m->certificate, .certificate_n = m->n_certificate,
                                     .key = m->key, .key_n = m->n_key, .renew_ms = clock_ms() + m->ms };
    struct question was;

    if (!answered(c, m->ticket, VAULT_CERTIFIED, &was))
        return -1;
    if (was.fn.leaf != NULL)
        was.fn.leaf(was.ctx, &leaf, NULL);
    return 0;
}

static int
on_signed(struct vault_client *c, const struct vault_signed *m)
{
    struct question was;

    if (!answered(c, m->ticket, VAULT_SIGNED, &was))
        return -1;
    if (was.fn.signature != NULL)
        was.fn.signature(was.ctx, m->authorization, NULL);
    return 0;
}

static int
on_refused(struct vault_client *c, const struct vault_refused *m)
{
    struct question *q = find(c, m->ticket);

    if (q == NULL)
        return -1;
    client_refuse(q, &m->why);
    return 0;
}

static int
over(struct vault_client *c, uint32_t mask, bool expired)
{
    if (c->n_secrets < 32 && mask >> c->n_secrets != 0)
        return -1;
    for (size_t i = 0; i < c->n_secrets; i++)
        if (mask >> i & 1) {
            c->secrets[i].revoked = true;
            c->secrets[i].expired = expired;
        }
    if (c->events.revoked != NULL)
        c->events.revoked(c->events.ctx, mask);
    return 0;
}

static int
on_revoked(struct vault_client *c, const struct vault_over *m)
{
    return over(c, m->mask, false);
}

static int
on_expired(struct vault_client *c, const struct vault_over *m)
{
    return over(c, m->mask, true);
}

#define HEARD(R) \
    R(VAULT_ANNOUNCE,  on_announce,  false, ST_INTRODUCED) \
    R(VAULT_ANNOUNCED, on_announced, true,  ST_INTRODUCED) \
    R(VAULT_LEASED,    on_leased,    false, ST_OPEN) \
    R(VAULT_CERTIFIED, on_certified, false, ST_OPEN) \
    R(VAULT_SIGNED,    on_signed,    false, ST_OPEN) \
    R(VAULT_REFUSED,   on_refused,   false, ST_OPEN) \
    R(VAULT_REVOKED,   on_revoked,   false, ST_OPEN) \
    R(VAULT_EXPIRED,   on_expired,   false, ST_OPEN)
PROTO_RULES(rules, HEARD)

/* One message. 1, 0 when none is there, -1 with @err. */
static int
take(struct vault_client *c, int flags, struct err *err)
{
    struct frame f;
    enum msg_verdict v;
    int r = packet_receive(c->fd, c->in, sizeof(c->in), &f, NULL, flags);

    if (r < 0 && errno == EAGAIN)
        return 0;
    if (r <= 0) {
        ended(err);
        return -1;
    }
    v = msg_dispatch(&c->gate, &f, c);
    /* values and keys pass through here */
    explicit_bzero(c->in, FRAME_HEADER + f.length);
    return v == MSG_OK ? 1 : err_set(err, ERR_PROTOCOL, "vault.ended", "the vault sent a bad message: %s",
                                     msg_verdict_text(v));
}

int
vault_client_ready(struct vault_client *c, struct err *err)
{
    int r = c->fd >= 0 ? 1 : 0;

    for (int i = 0; i < 256 && r == 1 && c->fd >= 0; i++)
        r = take(c, MSG_DONTWAIT, err);
    if (r < 0)
        end_all(c);
    return r < 0 ? -1 : 0;
}

static int
introduce(struct vault_client *c, struct err *err)
{
    uint64_t until = clock_ms() + PATIENCE_MS;

    while (c->gate.state == ST_INTRODUCED) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        uint64_t now = clock_ms();
        int r = now < until ? poll(&p, 1, (int)(until - now)) : 0;
        if (r == 0)
            return err_set(err, ERR_SYSTEM, "vault.ended", "the vault said nothing for %d s", PATIENCE_MS / 1000);
        if (r > 0 && take(c, MSG_DONTWAIT, err) < 0)
            return -1;
    }
    return 0;
}

struct vault_client *
vault_client_new(int fd, const struct vault_client_events *events, struct err *err)
{
    cleanup_close int own = fd;
    struct vault_client *c = calloc(1, sizeof(*c));

    if (c != NULL)
        c->questions = calloc(VAULT_QUESTIONS_MAX, sizeof(*c->questions));
    if (c == NULL || c->questions == NULL) {
        free(c);
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    c->fd = take_fd(&own);
    c->events = *events;
    c->gate = (struct msg_gate){ .rules = rules, .n_rules = ARRAY_LEN(rules), .state = ST_INTRODUCED };
    if (io_set_nonblock(c->fd, true) == 0 && introduce(c, err) == 0)
        return c;
    vault_client_free(c);
    return NULL;
}

void
vault_client_free(struct vault_client *c)
{
    if (c == NULL)
        return;
    end_all(c);
    explicit_bzero(c->in, sizeof(c->in));
    free(c->questions);
    free(c);
}

int
vault_client_fd(const struct vault_client *c)
{
    return c->fd;
}

const struct vault_secret *
vault_client_secrets(const struct vault_client *c, size_t *n)
{
    *n = c->n_secrets;
    return c->secrets;
}

uint32_t
vault_client_concerned(const struct vault_client *c, bool tls, const struct host *host, uint16_t port)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < c->n_secrets; i++)
        if (binding_concerns(&c->secrets[i].binding, tls, host, port))
            mask |= UINT32_C(1) << i;
    return mask;
}

uint32_t
vault_client_known(const struct vault_client *c, const struct host *host)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < c->n_secrets; i++)
        if (binding_knows(&c->secrets[i].binding, host))
            mask |= UINT32_C(1) << i;
    return mask;
}
