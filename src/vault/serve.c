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
#include "base/steady.h"
#include "vault/bound.h"
#include "vault/ca.h"
#include "vault/wire.h"

#define EXPIRY_LOOK_S 60

enum supervisor_state { ST_FRESH = 1 << 0, ST_RUNNING = 1 << 1 };
enum egress_state { ST_OPEN = 1 << 0 };

struct vault {
    int supervisor, egress;             /* -1: none */
    struct msg_gate to_supervisor, to_egress;
    struct store store;
    struct ca *ca;
    struct bound_set set;
    struct steady clock;                /* from the start on */
    int passed;                         /* the descriptor that came with the message at hand; -1 */
    struct buf out;                     /* one frame to egress, in out_room */
    bool waits;                         /* @out is for egress, which does not read: nothing more is read from it */
    uint32_t revoked, expired;          /* to be said to egress, masks */
    uint8_t in[VAULT_RECEIVE_ROOM];
    uint8_t out_room[VAULT_RECEIVE_ROOM];
};

/* A value that is over stays so, whatever the host's clock is set back to; one that is set forward is believed. */
static uint64_t
now_s(const struct vault *v)
{
    uint64_t wall = clock_wall_ms(), gone = steady_at(&v->clock, clock_boot_ms());

    return (wall > gone ? wall : gone) / 1000;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* Values and keys pass through here. */
static void
wipe(struct vault *v)
{
    explicit_bzero(v->out_room, v->out.n);
    v->out.n = 0;
}

/* No value does here. */
static int
to_supervisor(struct vault *v, uint8_t type, const struct shape *shape, const void *m)
{
    return proto_send(v->supervisor, type, shape, m, -1);
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
    int r = packet_send(v->egress, &v->out, -1);

    v->waits = r < 0 && errno == EAGAIN;
    if (!v->waits)
        wipe(v);
    return r == 0 || v->waits ? 0 : -1;
}

static int
to_egress(struct vault *v, uint8_t type, const struct shape *shape, const void *m)
{
    v->out = (struct buf)BUF_INIT_IN(v->out_room, sizeof(v->out_room));
    if (proto_frame(&v->out, type, shape, m) == 0)
        return push(v);
    wipe(v);
    return -1;
}

static int
say_over(struct vault *v, uint8_t type, uint32_t *mask)
{
    const struct vault_over over = { .mask = *mask };

    if (*mask == 0 || v->waits || v->egress < 0)
        return 0;
    *mask = 0;
    return to_egress(v, type, &vault_over_shape, &over);
}

static int
say_revoked(struct vault *v)
{
    return say_over(v, VAULT_REVOKED, &v->revoked) < 0 || say_over(v, VAULT_EXPIRED, &v->expired) < 0 ? -1 : 0;
}

/* --- the egress edge ---------------------------------------------------------------------------------------------- */

static int
serve_refuse(struct vault *v, uint32_t ticket, const struct err *err)
{
    return PROTO_SAY(to_egress, v, VAULT_REFUSED, .ticket = ticket, .why = *err);
}

/* Borrowed from @m, but for the host. False: it names none. */
static bool
request_of(const struct vault_request *m, struct binding_request *out)
{
    *out = (struct binding_request){ .tls = m->tls, .port = m->port, .method = m->method, .path = m->path };
    return host_canonical(m->host, &out->host) == HOST_OK;
}

static int
on_ask_lease(struct vault *v, const struct vault_ask_lease *m)
{
    struct vault_leased lease = { .ticket = m->ticket };
    struct binding_request request;
    struct err err = ERR_INIT;
    uint32_t mask, use;

    if (!request_of(&m->request, &request))
        return -1;
    use = bound_permitted(&v->set, &request, m->want, now_s(v), &err);
    mask = use | bound_searched(&v->set, &request, m->want);
    if (mask == 0)
        return serve_refuse(v, m->ticket, &err);
    lease.ms = bound_lease_ms(&v->set, use, now_s(v));
    for (size_t i = 0; i < v->set.n; i++)
        if ((mask >> i & 1) != 0)
            lease.value[lease.n_value++] =
                (struct vault_value){ .id = (uint8_t)(i | ((use >> i & 1) != 0 ? 0 : VAULT_SEARCH_ONLY)),
                                      .value = v->set.v[i].value.p, .n_value = v->set.v[i].value.n };
    return to_egress(v, VAULT_LEASED, VAULT_LEASED_SHAPE(), &lease);
}

static int
on_ask_leaf(struct vault *v, const struct vault_ask_leaf *m)
{
    cleanup_buf struct buf certificate = BUF_INIT(VAULT_LEAF_MAX);
    cleanup_secret struct secret key = { NULL, 0 };
    struct err err = ERR_INIT;
    struct host host;

    if (host_canonical(m->host, &host) != HOST_OK)
        return -1;
    if (ca_issue(v->ca, &host, &certificate, &key, &err) < 0)
        return serve_refuse(v, m->ticket, &err);
    return PROTO_SAY(to_egress, v, VAULT_CERTIFIED, .ticket = m->ticket, .ms = CA_RENEW_S * 1000,
                     .certificate = certificate.p, .n_certificate = certificate.n, .key = key.p, .n_key = key.n);
}

static int
on_ask_signature(struct vault *v, const struct vault_ask_signature *m)
{
    const struct vault_to_sign what = { .date = m->date, .region = m->region, .service = m->service,
                                        .signed_headers = m->signed_headers, .canonical = m->canonical };
    cleanup_buf struct buf authorization = BUF_INIT(VAULT_AUTHORIZATION_MAX);
    struct binding_request request;
    struct err err = ERR_INIT;
    int r;

    if (!request_of(&m->request, &request))
        return -1;
    if (bound_sign(&v->set, &request, m->id, &what, clock_wall_ms() / 1000, &authorization, &err) < 0)
        return serve_refuse(v, m->ticket, &err);
    r = PROTO_SAY(to_egress, v, VAULT_SIGNED, .ticket = m->ticket, .authorization = (const char *)authorization.p);
    explicit_bzero(authorization.p, authorization.n);
    return r;
}

#define HEARD_OF_EGRESS(R) \
    R(VAULT_ASK_LEASE,     on_ask_lease,     false, ST_OPEN) \
    R(VAULT_ASK_LEAF,      on_ask_leaf,      false, ST_OPEN) \
    R(VAULT_ASK_SIGNATURE, on_ask_signature, false, ST_OPEN)
PROTO_RULES(egress_rules, HEARD_OF_EGRESS)

/* Say what there is, without a value. The socket is empty yet and takes it all, or the edge is not opened. */
static int
announce(struct vault *v)
{
    for (size_t i = 0; i < v->set.n; i++) {
        const struct bound *s = &v->set.v[i];
        cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
        if (binding_text(&s->binding, &text) < 0 ||
            PROTO_SAY(to_egress, v, VAULT_ANNOUNCE, .id = (uint8_t)i, .role = s->role,
                      .state = s->revoked ? VAULT_STATE_REVOKED : s->over ? VAULT_STATE_EXPIRED : VAULT_STATE_USABLE,
                      .name = str_of(s->name), .placeholder = s->placeholder, .n_placeholder = s->placeholder_n,
                      .binding = { (const char *)text.p, text.n }) < 0 || v->waits)
            return -1;
    }
    return PROTO_SAY(to_egress, v, VAULT_ANNOUNCED, 0) < 0 || v->waits ? -1 : 0;
}

/* --- the supervisor's edge ---------------------------------------------------------------------------------------- */

static int
on_bind(struct vault *v, const struct vault_bind *m)
{
    cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
    struct vault_no no = { .why = ERR_INIT };
    struct vault_bound bound = { .n_part = 0 };
    size_t first;

    if (bound_add(&v->set, &v->store, m->name, m->binding, m->add, m->env, &first, &bound.n_part, &no.why) < 0)
        return to_supervisor(v, VAULT_NO, VAULT_NO_SHAPE(), &no);
    for (size_t i = 0; i < bound.n_part; i++) {
        const struct bound *s = &v->set.v[first + i];
        bound.part[i] = (struct vault_part){ .role = s->role, .env = s->env, .placeholder = s->placeholder,
                                             .n_placeholder = s->placeholder_n };
    }
    if (binding_text(&v->set.v[first].binding, &text) < 0)
        return -1;
    bound.id = v->set.v[first].id;
    bound.binding = (struct str){ (const char *)text.p, text.n };
    return to_supervisor(v, VAULT_BOUND, VAULT_BOUND_SHAPE(), &bound);
}

static int
on_start(struct vault *v, const struct nothing *m)
{
    store_forget_key(&v->store);
    v->to_supervisor.state = ST_RUNNING;
    return to_supervisor(v, VAULT_STARTED, VAULT_STARTED_SHAPE(), m);
}

static int
on_egress(struct vault *v, const struct nothing *m)
{
    (void)m;
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
on_revoke(struct vault *v, const struct vault_revoke *m)
{
    v->revoked |= bound_revoke(&v->set, str_of(m->id));
    return 0;
}

struct printing { struct vault_printed said; const uint8_t *key; const char *name; };

static void
put_print(void *ctx, const void *form, size_t n)
{
    struct printing *p = ctx;
    struct vault_form *f = &p->said.form[p->said.n_form];
    struct mask print;

    if (!mask_print(p->key, form, n, &print))
        return;
    *f = (struct vault_form){ .name = p->name, .n = print.n, .roll = print.roll };
    memcpy(f->sum, print.sum, sizeof(f->sum));
    p->said.n_form++;
}

/* So that a record can leave out what its writer does not know. */
static int
on_print(struct vault *v, const struct vault_print *m)
{
    struct printing p = { .key = m->key };

    for (size_t i = 0; i < v->set.n; i++) {
        const struct bound *s = &v->set.v[i];
        p.name = s->name;
        if (s->value.p != NULL)
            mask_forms(s->value.p, s->value.n, put_print, &p);
    }
    return to_supervisor(v, VAULT_PRINTED, VAULT_PRINTED_SHAPE(), &p.said);
}

#define HEARD_OF_SUPERVISOR(R) \
    R(VAULT_BIND,   on_bind,   false, ST_FRESH) \
    R(VAULT_START,  on_start,  true,  ST_FRESH) \
    R(VAULT_PRINT,  on_print,  false, ST_RUNNING) \
    R(VAULT_EGRESS, on_egress, false, ST_RUNNING) \
    R(VAULT_REVOKE, on_revoke, false, ST_RUNNING)
PROTO_RULES(supervisor_rules, HEARD_OF_SUPERVISOR)

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* One message of a peer. 1; 0 at its end, -1 when it has to be ended. */
static int
hear(struct vault *v, int *peer, struct msg_gate *gate)
{
    struct frame f;
    enum msg_verdict verdict;
    int r = packet_receive(*peer, v->in, sizeof(v->in), &f, peer == &v->supervisor ? &v->passed : NULL, MSG_DONTWAIT);

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
    uint64_t s = bound_next_expiry(&v->set, now_s(v));

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
        v->expired |= bound_expire(&v->set, now_s(v));
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
    return PROTO_SAY(to_supervisor, v, VAULT_CA, .pem = (const char *)pem.p, .folder = v->store.path) < 0
               ? err_sys(err, errno, "vault.protocol", "answer the supervisor") : 0;
}

int
vault_serve(int supervisor, struct err *err)
{
    struct vault *v = calloc(1, sizeof(*v));
    int r = -1;

    if (v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    v->supervisor = supervisor;
    v->clock = steady_begin(clock_wall_ms(), clock_boot_ms());
    v->egress = v->passed = -1;
    v->store = (struct store)STORE_INIT;
    v->to_supervisor = (struct msg_gate){ .rules = supervisor_rules, .state = ST_FRESH,
                                          .n_rules = ARRAY_LEN(supervisor_rules) };
    if (prepare(v, err) == 0)
        r = serve(v, err);
    else
        (void)PROTO_SAY(to_supervisor, v, VAULT_NO, .why = err != NULL ? *err : (struct err)ERR_INIT);
    end_egress(v);
    bound_free(&v->set);
    ca_free(v->ca);
    store_close(&v->store);
    explicit_bzero(v, sizeof(*v));
    free(v);
    return r;
}
