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
#include "wire/packet.h"
#include "wire/table.h"

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

static uint32_t
ask(struct vault_client *c, struct question *q, struct buf *frame, size_t at, struct err *err)
{
    if (frame_end(frame, at) == 0 && vault_send(c->fd, frame, -1) == 0)
        return q->ticket;
    q->ticket = 0;
    if (!buf_ok(frame))
        err_set(err, ERR_LIMIT, "vault.not-bound", "the request is too long for the vault");
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

/* The vault ends an edge that says more than it may, and what is asked for is a stranger's to choose. */
static bool
fits(const struct binding_request *r, const struct vault_to_sign *what, struct err *err)
{
    if (r->method.n > 0 && r->method.n <= BINDING_WORD_MAX && r->path.n <= VAULT_PATH_MAX &&
        (what == NULL || (what->date.n <= VAULT_DATE_MAX && what->region.n <= BINDING_WORD_MAX &&
                          what->service.n <= BINDING_WORD_MAX && what->signed_headers.n <= VAULT_AUTHORIZATION_MAX)))
        return true;
    err_set(err, ERR_LIMIT, "vault.not-bound", "the request is too long for the vault");
    return false;
}

uint32_t
vault_ask_lease(struct vault_client *c, const struct binding_request *request, uint32_t want, vault_lease_fn *fn,
                void *ctx, struct err *err)
{
    struct question *q = fits(request, NULL, err) ? new_question(c, VAULT_LEASED, ctx, err) : NULL;
    cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);
    size_t at;

    if (q == NULL)
        return 0;
    q->fn.lease = fn;
    at = frame_begin(&b, VAULT_ASK_LEASE, 0, 0);
    buf_put_be32(&b, q->ticket);
    buf_put_be32(&b, want);
    vault_put_request(&b, request);
    return ask(c, q, &b, at, err);
}

uint32_t
vault_ask_leaf(struct vault_client *c, const struct host *host, vault_leaf_fn *fn, void *ctx, struct err *err)
{
    struct question *q = new_question(c, VAULT_CERTIFIED, ctx, err);
    cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);
    size_t at;

    if (q == NULL)
        return 0;
    q->fn.leaf = fn;
    at = frame_begin(&b, VAULT_ASK_LEAF, 0, 0);
    buf_put_be32(&b, q->ticket);
    vault_put_bytes(&b, host->name, host->n);
    return ask(c, q, &b, at, err);
}

uint32_t
vault_ask_signature(struct vault_client *c, const struct binding_request *request, uint32_t id,
                    const struct vault_to_sign *what, vault_signature_fn *fn, void *ctx, struct err *err)
{
    struct question *q = fits(request, what, err) ? new_question(c, VAULT_SIGNED, ctx, err) : NULL;
    cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);
    size_t at;

    if (q == NULL)
        return 0;
    q->fn.signature = fn;
    at = frame_begin(&b, VAULT_ASK_SIGNATURE, 0, 0);
    buf_put_be32(&b, q->ticket);
    buf_put_u8(&b, (uint8_t)id);
    vault_put_request(&b, request);
    vault_put_bytes(&b, what->date.p, what->date.n);
    vault_put_bytes(&b, what->region.p, what->region.n);
    vault_put_bytes(&b, what->service.p, what->service.n);
    vault_put_bytes(&b, what->signed_headers.p, what->signed_headers.n);
    buf_append(&b, what->canonical, 32);
    return ask(c, q, &b, at, err);
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
on_announce(void *ctx, const struct frame *f)
{
    struct vault_client *c = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct vault_secret *s = &c->secrets[c->n_secrets < VAULT_SECRETS_MAX ? c->n_secrets : 0];
    uint8_t id = wire_u8(&in), role = wire_u8(&in), state = wire_u8(&in);
    const uint8_t *name, *placeholder, *text;
    size_t name_n, n, text_n;

    name = vault_get_bytes(&in, VAULT_NAME_MAX, &name_n);
    placeholder = vault_get_bytes(&in, VAULT_VALUE_MAX, &n);
    text = vault_get_bytes(&in, BINDING_TEXT_MAX, &text_n);
    if (!wire_done(&in) || c->n_secrets == VAULT_SECRETS_MAX || id != c->n_secrets || role > VAULT_ROLE_AWS_TOKEN ||
        state > VAULT_STATE_EXPIRED || n < VAULT_VALUE_MIN || memchr(name, '\0', name_n) != NULL ||
        binding_parse((struct str){ (const char *)text, text_n }, &s->binding, NULL) < 0)
        return -1;
    s->id = id;
    s->role = (enum vault_role)role;
    s->revoked = state != VAULT_STATE_USABLE;
    s->expired = state == VAULT_STATE_EXPIRED;
    memcpy(s->name, name, name_n);
    s->name[name_n] = '\0';
    memcpy(s->placeholder, placeholder, n);
    s->n = n;
    c->n_secrets++;
    return 0;
}

static int
on_announced(void *ctx, const struct frame *f)
{
    struct vault_client *c = ctx;

    (void)f;
    c->gate.state = ST_OPEN;
    return 0;
}

/* The values into one piece of memory, checked against what was announced. NULL: malformed, or no memory. */
static struct vault_lease *
read_lease(const struct vault_client *c, struct wire_in *in, uint32_t ms)
{
    uint8_t count = wire_u8(in);
    struct vault_lease *lease = calloc(1, sizeof(*lease) + in->n);
    size_t used = 0;

    if (lease == NULL)
        return NULL;
    lease->size = in->n;
    lease->expires_ms = clock_ms() + ms;
    for (uint8_t i = 0; i < count; i++) {
        uint8_t said = wire_u8(in), id = said & (uint8_t)~VAULT_SEARCH_ONLY;
        size_t n;
        const uint8_t *value = vault_get_bytes(in, VAULT_VALUE_MAX, &n);
        if (value == NULL || id >= c->n_secrets || n != c->secrets[id].n || lease->value[id] != NULL) {
            in->bad = true;
            break;
        }
        memcpy(lease->memory + used, value, n);
        lease->value[id] = lease->memory + used;
        lease->search |= UINT32_C(1) << id;
        if (said == id)
            lease->mask |= UINT32_C(1) << id;
        used += n;
    }
    if (wire_done(in) && lease->search != 0)
        return lease;
    vault_lease_free(lease);
    return NULL;
}

static struct question *
answered(struct vault_client *c, const struct frame *f, struct wire_in *in, uint32_t *ms)
{
    struct question *q = find(c, wire_be32(in));

    *ms = f->type != VAULT_SIGNED ? wire_be32(in) : 0;
    return q != NULL && q->answer == f->type && !in->bad ? q : NULL;
}

static int
on_leased(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t ms;
    struct question *q = answered(ctx, f, &in, &ms), was;
    struct vault_lease *lease;

    if (q == NULL)
        return -1;
    lease = read_lease(ctx, &in, ms);
    if (lease == NULL)
        return -1;
    was = *q;
    q->ticket = 0;
    if (was.fn.lease != NULL)
        was.fn.lease(was.ctx, lease, NULL);
    else
        vault_lease_free(lease);
    return 0;
}

static int
on_certified(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct vault_leaf leaf;
    uint32_t ms;
    struct question *q = answered(ctx, f, &in, &ms), was;

    leaf.certificate = vault_get_bytes(&in, VAULT_LEAF_MAX, &leaf.certificate_n);
    leaf.key = vault_get_bytes(&in, VAULT_LEAF_MAX, &leaf.key_n);
    if (q == NULL || !wire_done(&in))
        return -1;
    leaf.renew_ms = clock_ms() + ms;
    was = *q;
    q->ticket = 0;
    if (was.fn.leaf != NULL)
        was.fn.leaf(was.ctx, &leaf, NULL);
    return 0;
}

static int
on_signed(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t ms, n;
    struct question *q = answered(ctx, f, &in, &ms), was;
    const char *text = wire_cstr(&in, VAULT_AUTHORIZATION_MAX, &n);

    if (q == NULL || !wire_done(&in))
        return -1;
    was = *q;
    q->ticket = 0;
    if (was.fn.signature != NULL)
        was.fn.signature(was.ctx, text, NULL);
    return 0;
}

static int
on_refused(void *ctx, const struct frame *f)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct question *q = find(ctx, wire_be32(&in));
    struct err why = ERR_INIT;

    if (q == NULL || !packet_get_err(&in, &why))
        return -1;
    client_refuse(q, &why);
    return 0;
}

static int
on_revoked(void *ctx, const struct frame *f)
{
    struct vault_client *c = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t mask = wire_be32(&in);

    if (!wire_done(&in) || (c->n_secrets < 32 && mask >> c->n_secrets != 0))
        return -1;
    for (size_t i = 0; i < c->n_secrets; i++)
        if (mask >> i & 1) {
            c->secrets[i].revoked = true;
            c->secrets[i].expired = f->type == VAULT_EXPIRED;
        }
    if (c->events.revoked != NULL)
        c->events.revoked(c->events.ctx, mask);
    return 0;
}

#define ANNOUNCE_MAX (VAULT_NAME_MAX + VAULT_VALUE_MAX + BINDING_TEXT_MAX + 16)

static const struct msg_rule rules[] = {
    /* type            once   flags states                  min  max length                      handler */
    { VAULT_ANNOUNCE,  false, 0, ST_INTRODUCED,             15,  ANNOUNCE_MAX,                   on_announce },
    { VAULT_ANNOUNCED, true,  0, ST_INTRODUCED,             0,   0,                              on_announced },
    { VAULT_LEASED,    false, 0, ST_OPEN,                   9,   VAULT_MESSAGE_MAX,              on_leased },
    { VAULT_CERTIFIED, false, 0, ST_OPEN,                   16,  2 * VAULT_LEAF_MAX + 16,        on_certified },
    { VAULT_SIGNED,    false, 0, ST_OPEN,                   9,   VAULT_AUTHORIZATION_MAX + 16,   on_signed },
    { VAULT_REFUSED,   false, 0, ST_OPEN,                   24,  4 + PACKET_ERR_MAX,             on_refused },
    { VAULT_REVOKED,   false, 0, ST_OPEN,                   4,   4,                              on_revoked },
    { VAULT_EXPIRED,   false, 0, ST_OPEN,                   4,   4,                              on_revoked },
};

/* One message. 1, 0 when none is there, -1 with @err. */
static int
take(struct vault_client *c, int flags, struct err *err)
{
    struct frame f;
    enum msg_verdict v;
    int r = vault_receive(c->fd, c->in, &f, NULL, flags);

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
