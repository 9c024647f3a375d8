/* vault/serve.c: see serve.h */
#include "vault/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mask.h"
#include "vault/bound.h"
#include "vault/ca.h"
#include "vault/wire.h"
#include "wire/packet.h"
#include "wire/table.h"

#define EXPIRY_LOOK_S 60

enum supervisor_state { ST_FRESH = 1 << 0, ST_RUNNING = 1 << 1 };
enum egress_state { ST_OPEN = 1 << 0 };

struct vault {
    int supervisor, egress;             /* -1: none */
    struct msg_gate to_supervisor, to_egress;
    struct store store;
    struct ca *ca;
    struct bound_set set;
    int passed;                         /* the descriptor that came with the message at hand; -1 */
    struct buf out;                     /* one frame, in out_room */
    bool waits;                         /* @out is for egress, which does not read: nothing more is read from it */
    uint32_t revoked, expired;          /* to be said to egress, masks */
    uint8_t in[VAULT_RECEIVE_ROOM];
    uint8_t out_room[VAULT_RECEIVE_ROOM];
};

static uint64_t
now_s(void)
{
    return clock_wall_ms() / 1000;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static struct buf *
serve_begin(struct vault *v, uint8_t type, size_t *at)
{
    v->out = (struct buf)BUF_INIT_IN(v->out_room, sizeof(v->out_room));
    *at = frame_begin(&v->out, type, 0, 0);
    return &v->out;
}

/* Values and keys pass through here. */
static void
wipe(struct vault *v)
{
    explicit_bzero(v->out_room, v->out.n);
    v->out.n = 0;
}

static int
to_supervisor(struct vault *v, size_t at)
{
    int r = frame_end(&v->out, at) < 0 ? -1 : vault_send(v->supervisor, &v->out, -1);

    wipe(v);
    return r;
}

static void
end_egress(struct vault *v)
{
    close_fd(&v->egress);
    if (v->waits)
        wipe(v);
    v->waits = false;
}

/* What is in @out goes to egress, now or when it reads again. 0, or -1 when the edge is to end. */
static int
push(struct vault *v)
{
    int r = vault_send(v->egress, &v->out, -1);

    v->waits = r < 0 && errno == EAGAIN;
    if (!v->waits)
        wipe(v);
    return r == 0 || v->waits ? 0 : -1;
}

static int
to_egress(struct vault *v, size_t at)
{
    return frame_end(&v->out, at) < 0 ? -1 : push(v);
}

static int
say_mask(struct vault *v, uint8_t type, uint32_t *mask)
{
    size_t at;

    if (*mask == 0 || v->waits || v->egress < 0)
        return 0;
    buf_put_be32(serve_begin(v, type, &at), *mask);
    *mask = 0;
    return to_egress(v, at);
}

static int
say_revoked(struct vault *v)
{
    return say_mask(v, VAULT_REVOKED, &v->revoked) < 0 || say_mask(v, VAULT_EXPIRED, &v->expired) < 0 ? -1 : 0;
}

/* --- the egress edge ---------------------------------------------------------------------------------------------- */

static int
serve_refuse(struct vault *v, uint32_t ticket, const struct err *err)
{
    size_t at;
    struct buf *b = serve_begin(v, VAULT_REFUSED, &at);

    buf_put_be32(b, ticket);
    packet_put_err(b, err);
    return to_egress(v, at);
}

static int
on_ask_lease(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t ticket = wire_be32(&in), want = wire_be32(&in), mask, use;
    struct binding_request request;
    struct err err = ERR_INIT;
    struct buf *b;
    size_t at;

    if (!vault_get_request(&in, &request) || !wire_done(&in))
        return -1;
    use = bound_permitted(&v->set, &request, want, now_s(), &err);
    mask = use | bound_searched(&v->set, &request, want);
    if (mask == 0)
        return serve_refuse(v, ticket, &err);
    b = serve_begin(v, VAULT_LEASED, &at);
    buf_put_be32(b, ticket);
    buf_put_be32(b, bound_lease_ms(&v->set, use, now_s()));
    buf_put_u8(b, (uint8_t)__builtin_popcount(mask));
    for (size_t i = 0; i < v->set.n; i++) {
        if ((mask >> i & 1) == 0)
            continue;
        buf_put_u8(b, (uint8_t)(i | ((use >> i & 1) != 0 ? 0 : VAULT_SEARCH_ONLY)));
        vault_put_bytes(b, v->set.v[i].value.p, v->set.v[i].value.n);
    }
    return to_egress(v, at);
}

static int
on_ask_leaf(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    cleanup_buf struct buf certificate = BUF_INIT(VAULT_LEAF_MAX);
    cleanup_secret struct secret key = { NULL, 0 };
    uint32_t ticket = wire_be32(&in);
    struct err err = ERR_INIT;
    struct host host;
    struct str name;
    struct buf *b;
    size_t at;

    name.p = (const char *)vault_get_bytes(&in, HOST_NAME_MAX_LEN, &name.n);
    if (!wire_done(&in) || host_canonical(name, &host) != HOST_OK)
        return -1;
    if (ca_issue(v->ca, &host, &certificate, &key, &err) < 0)
        return serve_refuse(v, ticket, &err);
    b = serve_begin(v, VAULT_CERTIFIED, &at);
    buf_put_be32(b, ticket);
    buf_put_be32(b, CA_RENEW_S * 1000);
    vault_put_bytes(b, certificate.p, certificate.n);
    vault_put_bytes(b, key.p, key.n);
    return to_egress(v, at);
}

static int
on_ask_signature(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    cleanup_buf struct buf authorization = BUF_INIT(VAULT_AUTHORIZATION_MAX);
    uint32_t ticket = wire_be32(&in);
    uint8_t id = wire_u8(&in);
    struct binding_request request;
    struct vault_to_sign what;
    struct err err = ERR_INIT;
    bool well = vault_get_request(&in, &request);
    size_t at;
    int r;

    what.date.p = (const char *)vault_get_bytes(&in, VAULT_DATE_MAX, &what.date.n);
    what.region.p = (const char *)vault_get_bytes(&in, BINDING_WORD_MAX, &what.region.n);
    what.service.p = (const char *)vault_get_bytes(&in, BINDING_WORD_MAX, &what.service.n);
    what.signed_headers.p = (const char *)vault_get_bytes(&in, VAULT_AUTHORIZATION_MAX, &what.signed_headers.n);
    what.canonical = wire_bytes(&in, 32);
    if (!well || !wire_done(&in))
        return -1;
    if (bound_sign(&v->set, &request, id, &what, now_s(), &authorization, &err) < 0)
        return serve_refuse(v, ticket, &err);
    buf_put_be32(serve_begin(v, VAULT_SIGNED, &at), ticket);
    wire_put_cstr(&v->out, (const char *)authorization.p, VAULT_AUTHORIZATION_MAX);
    r = to_egress(v, at);
    explicit_bzero(authorization.p, authorization.n);
    return r;
}

static const struct msg_rule egress_rules[] = {
    /* type                 once   flags states   min  max length                                     handler */
    { VAULT_ASK_LEASE,      false, 0, ST_OPEN,    23,  VAULT_PATH_MAX + 512,                          on_ask_lease },
    { VAULT_ASK_LEAF,       false, 0, ST_OPEN,    9,   HOST_NAME_MAX_LEN + 8,                         on_ask_leaf },
    { VAULT_ASK_SIGNATURE,  false, 0, ST_OPEN,    68,  VAULT_PATH_MAX + 2048,                        on_ask_signature },
};

/* Say what there is, without a value. The socket is empty yet and takes it all, or the edge is not opened. */
static int
announce(struct vault *v)
{
    size_t at;

    for (size_t i = 0; i < v->set.n; i++) {
        const struct bound *s = &v->set.v[i];
        cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
        struct buf *b = serve_begin(v, VAULT_ANNOUNCE, &at);
        if (binding_text(&s->binding, &text) < 0)
            return -1;
        buf_put_u8(b, (uint8_t)i);
        buf_put_u8(b, (uint8_t)s->role);
        buf_put_u8(b, s->revoked ? VAULT_STATE_REVOKED : s->over ? VAULT_STATE_EXPIRED : VAULT_STATE_USABLE);
        vault_put_bytes(b, s->name, strlen(s->name));
        vault_put_bytes(b, s->placeholder, s->placeholder_n);
        vault_put_bytes(b, text.p, text.n);
        if (to_egress(v, at) < 0 || v->waits)
            return -1;
    }
    serve_begin(v, VAULT_ANNOUNCED, &at);
    return to_egress(v, at) < 0 || v->waits ? -1 : 0;
}

/* --- the supervisor's edge ---------------------------------------------------------------------------------------- */

static int
say_no(struct vault *v, const struct err *err)
{
    size_t at;

    packet_put_err(serve_begin(v, VAULT_NO, &at), err);
    return to_supervisor(v, at);
}

static int
on_bind(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    const char *name = wire_cstr(&in, VAULT_NAME_MAX, NULL), *builtin = wire_cstr(&in, BINDING_WORD_MAX, NULL);
    const char *add = wire_cstr(&in, VAULT_ADD_MAX, NULL), *env = wire_cstr(&in, BINDING_WORD_MAX, NULL);
    cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
    struct err err = ERR_INIT;
    size_t at, first, count;
    struct buf *b;

    if (!wire_done(&in))
        return -1;
    if (bound_add(&v->set, &v->store, name, builtin, add, env, &first, &count, &err) < 0)
        return say_no(v, &err);
    b = serve_begin(v, VAULT_BOUND, &at);
    wire_put_cstr(b, v->set.v[first].id, VAULT_ID_TEXT);
    buf_put_u8(b, (uint8_t)count);
    for (size_t i = first; i < first + count; i++) {
        buf_put_u8(b, (uint8_t)v->set.v[i].role);
        wire_put_cstr(b, v->set.v[i].env, BINDING_WORD_MAX);
        vault_put_bytes(b, v->set.v[i].placeholder, v->set.v[i].placeholder_n);
    }
    if (binding_text(&v->set.v[first].binding, &text) < 0)
        return -1;
    vault_put_bytes(b, text.p, text.n);
    return to_supervisor(v, at);
}

static int
on_start(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    size_t at;

    (void)f;
    store_forget_key(&v->store);
    v->to_supervisor.state = ST_RUNNING;
    serve_begin(v, VAULT_STARTED, &at);
    return to_supervisor(v, at);
}

static int
on_egress(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;

    (void)f;
    if (v->passed < 0)
        return -1;
    end_egress(v);
    v->egress = take_fd(&v->passed);
    v->revoked = v->expired = 0;
    v->to_egress = (struct msg_gate){ .rules = egress_rules, .n_rules = ARRAY_LEN(egress_rules),
                                      .state = ST_OPEN };
    if (io_set_nonblock(v->egress, true) < 0 || announce(v) < 0)
        end_egress(v);
    return 0;
}

static int
on_revoke(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct wire_in in = wire_in_of(f->payload, f->length);
    uint32_t n = 0;
    const char *id = wire_cstr(&in, VAULT_ID_TEXT, &n);

    if (!wire_done(&in))
        return -1;
    v->revoked |= bound_revoke(&v->set, (struct str){ id, n });
    return 0;
}

struct printing { struct buf *b; const uint8_t *key; const char *name; uint8_t n; };

static void
put_print(void *ctx, const void *form, size_t n)
{
    struct printing *p = ctx;
    struct mask print;

    if (!mask_print(p->key, form, n, &print))
        return;
    wire_put_cstr(p->b, p->name, VAULT_NAME_MAX);
    buf_put_be32(p->b, print.n);
    buf_put_be64(p->b, print.roll);
    buf_append(p->b, print.sum, sizeof(print.sum));
    p->n++;
}

/* So that a record can leave out what its writer does not know. */
static int
on_print(void *ctx, const struct frame *f)
{
    struct vault *v = ctx;
    struct printing p = { .key = f->payload };
    size_t at, count;

    p.b = serve_begin(v, VAULT_PRINTED, &at);
    count = p.b->n;
    buf_put_u8(p.b, 0);
    for (size_t i = 0; i < v->set.n; i++) {
        const struct bound *s = &v->set.v[i];
        p.name = s->name;
        if (s->value.p != NULL)
            mask_forms(s->value.p, s->value.n, put_print, &p);
    }
    p.b->p[count] = p.n;
    return to_supervisor(v, at);
}

_Static_assert(VAULT_SECRETS_MAX * MASK_FORMS < 256, "their number is a byte");

#define BIND_MAX (VAULT_NAME_MAX + 2 * BINDING_WORD_MAX + VAULT_ADD_MAX + 20)

static const struct msg_rule supervisor_rules[] = {
    /* type          once   flags states                 min max length                        handler */
    { VAULT_BIND,    false, 0, ST_FRESH,                 20, BIND_MAX,                         on_bind },
    { VAULT_START,   true,  0, ST_FRESH,                 0,  0,                                on_start },
    { VAULT_PRINT,   false, 0, ST_RUNNING,               MASK_KEY, MASK_KEY,                   on_print },
    { VAULT_EGRESS,  false, 0, ST_RUNNING,               0,  0,                                on_egress },
    { VAULT_REVOKE,  false, 0, ST_RUNNING,               5,  VAULT_ID_TEXT + 5,                on_revoke },
};

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* One message of a peer. 1; 0 at its end, -1 when it has to be ended. */
static int
hear(struct vault *v, int *peer, struct msg_gate *gate)
{
    struct frame f;
    enum msg_verdict verdict;
    int r = vault_receive(*peer, v->in, &f, peer == &v->supervisor ? &v->passed : NULL, MSG_DONTWAIT);

    if (r < 0 && errno == EAGAIN)
        return 1;
    if (r <= 0)
        return r;
    verdict = msg_dispatch(gate, &f, v);
    close_fd(&v->passed);
    return verdict == MSG_OK ? 1 : -1;
}

/* Until the next secret's time is up, for poll(2). The clock may be set meanwhile: it is asked again now and then. */
static int
patience_ms(const struct vault *v)
{
    uint64_t s = bound_next_expiry(&v->set, now_s());

    return s == UINT64_MAX ? -1 : s >= EXPIRY_LOOK_S ? EXPIRY_LOOK_S * 1000 : (int)s * 1000;
}

static int
serve(struct vault *v, struct err *err)
{
    for (;;) {
        struct pollfd p[2] = {
            { .fd = v->supervisor, .events = POLLIN },
            { .fd = v->egress, .events = v->waits ? POLLOUT : POLLIN },
        };
        bool there;

        if (poll(p, 2, patience_ms(v)) < 0) {
            if (errno != EINTR)
                return err_sys(err, errno, "vault.poll", "poll");
            continue;
        }
        v->expired |= bound_expire(&v->set, now_s());
        if (p[0].revents != 0) {
            int r = hear(v, &v->supervisor, &v->to_supervisor);
            if (r <= 0)
                return r == 0 ? 0 : err_set(err, ERR_PROTOCOL, "vault.protocol", "the supervisor broke the dialogue");
        }
        there = p[1].revents != 0 && p[1].fd == v->egress;
        if (there && v->waits && push(v) < 0)
            end_egress(v);
        /* first that, so that no answer looks as if it had not been said */
        if (say_revoked(v) < 0)
            end_egress(v);
        if (there && p[1].events == POLLIN && !v->waits && p[1].fd == v->egress &&
            hear(v, &v->egress, &v->to_egress) <= 0)
            end_egress(v);
    }
}

/* Everything from the disk, then away from it. */
static int
prepare(struct vault *v, struct err *err)
{
    cleanup_secret struct secret packed = { NULL, 0 };
    cleanup_buf struct buf pem = BUF_INIT(VAULT_CA_PEM_MAX);
    int r = store_open(&v->store, false, err) < 0 ? -1 : store_ca(&v->store, &packed, err);
    size_t at;

    if (r == 0) {
        /* the first run with secrets: now the store has to be written */
        store_close(&v->store);
        v->store = (struct store)STORE_INIT;
        if (store_open(&v->store, true, err) < 0)
            return -1;
        r = store_ca(&v->store, &packed, err);
    }
    if (r == 0 && ca_make(&packed, err) < 0)
        return -1;
    if (r < 0 || (v->ca = ca_open(&packed, err)) == NULL || ca_pem(v->ca, &pem, err) < 0 ||
        (r == 0 && store_put_ca(&v->store, &packed, &pem, err) < 0) || buf_nul(&pem) < 0)
        return -1;
    close_fd(&v->store.lock);
    close_fd(&v->store.dir);
    /* said only when nothing can be reached any more */
    if (vault_confine(err) < 0)
        return -1;
    wire_put_cstr(serve_begin(v, VAULT_CA, &at), (const char *)pem.p, VAULT_CA_PEM_MAX);
    wire_put_cstr(&v->out, v->store.path, sizeof(v->store.path));
    return to_supervisor(v, at) < 0 ? err_sys(err, errno, "vault.protocol", "answer the supervisor") : 0;
}

int
vault_serve(int supervisor, struct err *err)
{
    struct vault *v = calloc(1, sizeof(*v));
    int r = -1;

    if (v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    v->supervisor = supervisor;
    v->egress = v->passed = -1;
    v->store = (struct store)STORE_INIT;
    v->to_supervisor = (struct msg_gate){ .rules = supervisor_rules, .state = ST_FRESH,
                                          .n_rules = ARRAY_LEN(supervisor_rules) };
    if (prepare(v, err) == 0)
        r = serve(v, err);
    else
        (void)say_no(v, err);
    end_egress(v);
    bound_free(&v->set);
    ca_free(v->ca);
    store_close(&v->store);
    explicit_bzero(v, sizeof(*v));
    free(v);
    return r;
}
