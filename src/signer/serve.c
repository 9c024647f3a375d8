/* signer/serve.c: one transaction after the other
 *
 * The warden keeps what was signed on record and asks people. What needs none of that is judged here once more, and so
 * are counts since this process began: a warden that says what it should not gets no more than the policy gives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/edge_sign.h"
#include "sign/message.h"
#include "sign/typed.h"
#include "signer/signer.h"
#include "wire/table.h"

struct signer {
    int warden;
    const struct sign_key *key;
    struct sign_policy policy;
    struct sign_past past[RULES_PER_DAY_MAX];
    size_t n_past, next;            /* the oldest is replaced */
    struct msg_gate gate;
    uint8_t in[EDGE_ROOM];
};

static void
say(struct signer *s, uint8_t type, const struct shape *shape, const void *m)
{
    (void)proto_send(s->warden, type, shape, m, -1);    /* its end is noticed where it is read */
}

static void
refuse(struct signer *s, uint32_t number, int r, const struct err *why)
{
    PROTO_SAY(say, s, SIGNER_REFUSED, .number = number, .perhaps = r == SIGN_PERHAPS,
              .ends = !sign_key_lives(s->key), .why = *why);
}

static struct tx
tx_of(const struct edge_tx *m)
{
    struct tx tx = { .type = (enum tx_type)m->type, .chain = m->chain, .nonce = m->nonce, .gas = m->gas,
                     .data = m->data, .n_data = m->n_data, .access = { m->access, m->n_access } };

    memcpy(tx.gas_price.b, m->gas_price, U256_SIZE);
    memcpy(tx.max_fee.b, m->max_fee, U256_SIZE);
    memcpy(tx.tip.b, m->tip, U256_SIZE);
    memcpy(tx.value.b, m->value, U256_SIZE);
    memcpy(tx.to, m->to, TX_ADDRESS);
    return tx;
}

/* It counts before it leaves; what certainly was not made does not. */
static void
count(struct signer *s, const struct sign_past *now)
{
    s->past[s->next] = *now;
    s->next = (s->next + 1) % RULES_PER_DAY_MAX;
    s->n_past = s->n_past < RULES_PER_DAY_MAX ? s->n_past + 1 : s->n_past;
}

/* As sign_key_sign(). */
static int
sign_counted(struct signer *s, const struct sign_past *now, const uint8_t digest[TX_HASH], struct tx_signature *out,
             struct err *err)
{
    const int r = sign_key_sign(s->key, digest, out, err);

    if (r != -1)
        count(s, now);
    return r;
}

/* The same; @raw is the transaction with its signature. */
static int
make(struct signer *s, const struct tx *tx, bool confirmed, struct buf *raw, struct err *err)
{
    struct sign_verdict verdict;
    struct tx_signature signature;
    struct sign_past now = { .at_ms = clock_boot_ms() };
    uint8_t digest[TX_HASH];
    struct u256 fee;
    int r;

    if (tx->type != TX_LEGACY && tx->type != TX_ACCESS_LIST && tx->type != TX_DYNAMIC_FEE)
        return err_set(err, ERR_UNSUPPORTED, "sign.tx.type", "transactions of this type are not signed");
    sign_judge(&s->policy.rules, s->past, s->n_past, tx, false, now.at_ms, &verdict);
    if (!verdict.allowed)
        return err_set(err, ERR_DENIED, "sign.denied", "%s", verdict.reason);
    if (verdict.needs_person && !confirmed)
        return err_set(err, ERR_DENIED, "sign.confirm", "nobody has confirmed it");
    if (!sign_cost(tx, &fee, &now.spent) || tx_digest(tx, digest, err) < 0)
        return -1;
    r = sign_counted(s, &now, digest, &signature, err);
    return r < 0 ? r : tx_write(tx, &signature, raw, err) < 0 ? SIGN_PERHAPS : 0;
}

static int
on_sign(struct signer *s, const struct signer_ask *m)
{
    cleanup_buf struct buf raw = BUF_INIT(SIGN_RAW_MAX);
    const struct tx tx = tx_of(&m->tx);
    struct err err = ERR_INIT;
    const int r = make(s, &tx, m->confirmed, &raw, &err);

    if (r < 0)
        refuse(s, m->number, r, &err);
    else
        PROTO_SAY(say, s, SIGNER_MADE, .number = m->number, .raw = raw.p, .n_raw = raw.n);
    return 0;
}

/* The same: r, s and 27 or 28, as wallets say it. */
static int
make_text(struct signer *s, const struct signer_ask_text *m, uint8_t out[65], struct err *err)
{
    const bool typed = m->form == SIGN_TYPED;
    struct sign_past now = { .at_ms = clock_boot_ms() };
    struct tx_signature signature;
    struct sign_verdict verdict;
    uint8_t digest[TX_HASH];
    int r;

    sign_judge_text(&s->policy.rules, s->past, s->n_past, typed, m->chain, m->has_contract ? m->contract : NULL, false,
                    now.at_ms, &verdict);
    if (!verdict.allowed)
        return err_set(err, ERR_DENIED, "sign.denied", "%s", verdict.reason);
    if (typed)
        typed_digest(m->words, digest);
    else
        message_digest(m->text, strlen(m->text), digest);
    r = sign_counted(s, &now, digest, &signature, err);
    if (r < 0)
        return r;
    memcpy(out, signature.r, 32);
    memcpy(out + 32, signature.s, 32);
    out[64] = (uint8_t)(27 + signature.parity);
    return 0;
}

static int
on_sign_text(struct signer *s, const struct signer_ask_text *m)
{
    struct err err = ERR_INIT;
    uint8_t made[65];
    const int r = make_text(s, m, made, &err);

    if (r < 0)
        refuse(s, m->number, r, &err);
    else
        PROTO_SAY(say, s, SIGNER_MADE, .number = m->number, .raw = made, .n_raw = sizeof(made));
    return 0;
}

#define HEARS(R) \
    R(SIGNER_SIGN, on_sign, false, 1) \
    R(SIGNER_SIGN_TEXT, on_sign_text, false, 1)
PROTO_RULES(rules, HEARS)

static int
hear_all(struct signer *s)
{
    for (;;) {
        struct frame f;
        int r = packet_receive(s->warden, s->in, sizeof(s->in), &f, NULL, 0);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return 0;       /* the warden's end is ours */
        if (msg_dispatch(&s->gate, &f, s) != MSG_OK)
            return -1;
        if (!sign_key_lives(s->key))
            return -1;      /* who started us does so again, with a new process of its module */
    }
}

int
signer_serve(int warden, const struct sign_key *key, const struct buf *text)
{
    struct signer *s = calloc(1, sizeof(*s));
    struct signer_is is = { .policy = text->p, .n_policy = text->n };
    struct err err = ERR_INIT;
    int r;

    if (s == NULL)
        return -1;
    s->warden = warden;
    s->key = key;
    s->gate = (struct msg_gate){ .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 };
    r = sign_policy_read(text->p, text->n, &s->policy, &err);
    if (r == 0) {
        sign_key_address(key, is.address);
        say(s, SIGNER_READY, SIGNER_READY_SHAPE(), &is);
        r = hear_all(s);
    }
    free(s);
    return r;
}
