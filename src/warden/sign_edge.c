/* warden/sign_edge.c: the edge to cloche-signer, and what was asked of it (sign.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "warden/record.h"
#include "warden/sign.h"

static timer_fn on_late;

int
sign_open(struct warden *w, struct err *err)
{
    struct signing *g = calloc(1, sizeof(*g));

    w->signing = g;
    if (g == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    g->edge = (struct watch)WATCH_INIT;
    g->out = (struct packet_queue)PACKET_QUEUE_INIT(EDGE_QUEUE_MAX);
    g->late = (struct timer){ .due = on_late, .owner = w };
    return 0;
}

/* --- what waits for it -------------------------------------------------------------------------------------------- */

static void
take_out(struct signing *g, struct sign_wait *wait)
{
    struct sign_wait **at = &g->waits;

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    g->n_waits--;
    buf_free(&wait->frame);
    free(wait);
}

static struct sign_wait *
wait_of(const struct signing *g, uint32_t number)
{
    struct sign_wait *wait = g->waits;

    while (wait != NULL && wait->number != number)
        wait = wait->next;
    return wait;
}

static void
put_common(const struct sign_wait *wait, struct audit_entry *e)
{
    audit_put_number(e, "chainId", (int64_t)wait->chain);
    audit_put_cstr(e, "to", wait->to_text);
    audit_put_bool(e, "humanConfirmed", wait->confirmed);
    audit_put_cstr(e, "hash", wait->hash);
    audit_put_cstr(e, "who", wait->who);
}

/* There is no signature, as far as is known, and what it took is given back; @kept: but there may be one, so it counts.
 */
static void
failed(struct warden *w, struct sign_wait *wait, const char *why, bool kept)
{
    char text[ERR_MSG_MAX + 64], summary[ERR_MSG_MAX + 256];
    struct audit_entry e;

    if (kept) {
        sign_nonce_done(w, wait);
    } else {
        (void)state_sign_forget(w->state, wait->request, NULL);
        sign_nonce_back(w, wait);
    }
    snprintf(text, sizeof(text), "Signing failed: %s", why);
    snprintf(summary, sizeof(summary), "Signing failed for %s: %s", wait->request, why);
    sign_entry(&e, AUDIT_SIGNING_REJECTED, AUDIT_ERROR, summary, wait->request);
    put_common(wait, &e);
    record_say(w, box_of_id(w, wait->box), &e);
    if (wait->to.ticket != 0)
        sign_answer_no(w, wait->to, text, &wait->verdict, wait->confirmed);
    take_out(w->signing, wait);
}

/* Those that it was not asked for are the next signer's. */
static void
lose(struct warden *w)
{
    struct signing *g = w->signing;

    loop_drop(&w->loop, &g->edge);
    packet_queue_clear(&g->out);
    g->ready = false;
    if (g->waits != NULL && g->waits->sent)
        failed(w, g->waits, "the signer has ended", true);
}

void
sign_front_gone(struct warden *w, uint32_t front)
{
    for (struct sign_wait *wait = w->signing->waits, *next; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->to.front != front)
            continue;
        wait->to.ticket = 0;
        if (!wait->sent)
            failed(w, wait, "nobody waits for it any more", false);
    }
}

static void
expect(struct warden *w, const struct sign_wait *wait)
{
    struct timer *t = &w->signing->late;

    if (t->at_ms == 0 || wait->until_ms < t->at_ms)
        loop_at(&w->loop, t, wait->until_ms);
}

static void
on_late(struct timer *t)
{
    struct warden *w = t->owner;
    const uint64_t now = clock_ms();

    for (struct sign_wait *wait = w->signing->waits, *next; wait != NULL; wait = next) {
        next = wait->next;
        if (now < wait->until_ms) {
            expect(w, wait);
        } else if (wait->sent) {
            log_say(LEVEL_ERROR, "cloche-signer does not answer");
            lose(w);
        } else {
            failed(w, wait, "the signer was away or busy with others; try again", false);
        }
    }
}

/* Ask it for the oldest, one at a time: when it hangs or ends, nothing of the others is in doubt. 0, or -1: it is gone.
 */
static int
ask_next(struct warden *w)
{
    struct signing *g = w->signing;
    struct sign_wait *wait = g->waits;

    if (!g->ready || wait == NULL || wait->sent)
        return 0;
    if (packet_queue_send(&g->out, g->edge.fd, &wait->frame, -1) < 0)
        return -1;
    buf_free(&wait->frame);
    wait->sent = true;
    wait->until_ms = clock_ms() + SIGN_MADE_MS;
    expect(w, wait);
    return warden_watch(w, &g->edge, &g->out);
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

static int
on_ready(struct warden *w, const struct signer_is *m)
{
    struct signing *g = w->signing;
    char text[SIGN_ADDRESS_TEXT + 1];
    struct err err = ERR_INIT;

    if (sign_policy_read(m->policy, m->n_policy, &g->policy, &err) < 0) {
        log_say(LEVEL_ERROR, "nothing is signed: %s [%s]", err.msg, err.code);
        return -1;
    }
    /* what waits was asked of another account */
    while (g->waits != NULL && memcmp(g->address, m->address, sizeof(g->address)) != 0)
        failed(w, g->waits, "the signer has another key by now", false);
    memcpy(g->address, m->address, sizeof(g->address));
    sign_address_text(g->address, text);
    g->ready = true;
    warden_note(w, NULL, "signer", "requests are signed by %s, as the signing policy says", text);
    return ask_next(w);
}

/* Whether p[0..n) is what was asked for, with a signature. */
static bool
is_it(const struct sign_wait *wait, const uint8_t *p, size_t n)
{
    struct err err = ERR_INIT;
    struct tx_signature s;
    uint8_t digest[TX_HASH];
    char hash[2 * TX_HASH + 1];
    struct tx tx;

    if (wait->form != SIGN_TX)
        return n == 65;         /* nothing but the signature */
    if (tx_read(p, n, &tx, &s, &err) < 0 || tx_digest(&tx, digest, &err) < 0)
        return false;
    str_hex(digest, sizeof(digest), hash);
    return strcmp(hash, wait->hash) == 0;
}

static int
on_made(struct warden *w, const struct signer_raw *m)
{
    struct sign_wait *wait = wait_of(w->signing, m->number);
    char raw[2 + 2 * SIGN_RAW_MAX + 1] = "0x", summary[SIGN_REQUEST_MAX + 128];
    struct audit_entry e;

    if (wait == NULL || !wait->sent)
        return -1;
    if (!is_it(wait, m->raw, m->n_raw)) {
        log_say(LEVEL_ERROR, "cloche-signer signed something else than it was asked to");
        failed(w, wait, "the signer signed something else", true);
        return -1;
    }
    sign_nonce_done(w, wait);
    snprintf(summary, sizeof(summary), "Signed request %s: chain=%llu to=%s", wait->request,
             (unsigned long long)wait->chain, wait->to_text);
    sign_entry(&e, AUDIT_SIGNING_APPROVED, AUDIT_INFO, summary, wait->request);
    put_common(wait, &e);
    record_say(w, box_of_id(w, wait->box), &e);
    str_hex(m->raw, m->n_raw, raw + 2);
    if (wait->to.ticket != 0)
        sign_answer(w, wait->to, true, json_pack("{s:b, s:s, s:o, s:b}", "success", 1, "signature", raw,
                                                 "policyDecision", sign_decision(&wait->verdict), "humanConfirmed",
                                                 wait->confirmed));
    take_out(w->signing, wait);
    return ask_next(w);
}

static int
on_refused(struct warden *w, const struct signer_no *m)
{
    struct sign_wait *wait = wait_of(w->signing, m->number);

    if (wait == NULL || !wait->sent)
        return -1;
    failed(w, wait, m->why.msg, m->perhaps);
    if (m->ends)
        w->signing->ready = false;      /* its end comes next */
    return ask_next(w);
}

#define HEARS(R) \
    R(SIGNER_READY, on_ready, true, 1) \
    R(SIGNER_MADE, on_made, false, 1) \
    R(SIGNER_REFUSED, on_refused, false, 1)
PROTO_RULES(signer_table, HEARS)

static int
hear(struct warden *w)
{
    struct signing *g = w->signing;
    enum msg_verdict verdict;
    struct frame f;
    int r = packet_receive(g->edge.fd, w->in, sizeof(w->in), &f, NULL, MSG_DONTWAIT);

    if (r < 0 && errno == EAGAIN)
        return 0;
    if (r <= 0)
        return -1;
    verdict = msg_dispatch(&g->gate, &f, w);
    if (verdict != MSG_OK)
        log_say(LEVEL_ERROR, "the signer's message %u: %s", f.type, msg_verdict_text(verdict));
    return verdict == MSG_OK ? 0 : -1;
}

static void
on_signer(struct watch *edge, uint32_t events)
{
    struct warden *w = edge->owner;
    struct signing *g = w->signing;

    if ((events & EPOLLOUT) != 0 && packet_queue_flush(&g->out, edge->fd) < 0)
        lose(w);
    else if ((events & ~(uint32_t)EPOLLOUT) != 0 && hear(w) < 0)
        lose(w);
    else
        (void)warden_watch(w, edge, &g->out);
}

int
sign_on_edge(struct warden *w, const struct nothing *m)
{
    struct signing *g = w->signing;

    (void)m;
    if (w->passed < 0)
        return -1;
    lose(w);
    g->gate = (struct msg_gate){ .rules = signer_table, .n_rules = ARRAY_LEN(signer_table), .state = 1 };
    g->edge = (struct watch){ .fd = take_fd(&w->passed), .ready = on_signer, .owner = w };
    if (io_set_nonblock(g->edge.fd, true) < 0 || warden_watch(w, &g->edge, &g->out) < 0)
        lose(w);
    return 0;
}

/* --- asking it ---------------------------------------------------------------------------------------------------- */

static struct edge_tx
edge_of(const struct tx *tx)
{
    struct edge_tx m = { .type = (uint8_t)tx->type, .chain = tx->chain, .nonce = tx->nonce, .gas = tx->gas,
                         .data = tx->data, .n_data = tx->n_data, .access = tx->access.p, .n_access = tx->access.n };

    memcpy(m.gas_price, tx->gas_price.b, SIGN_AMOUNT);
    memcpy(m.max_fee, tx->max_fee.b, SIGN_AMOUNT);
    memcpy(m.tip, tx->tip.b, SIGN_AMOUNT);
    memcpy(m.value, tx->value.b, SIGN_AMOUNT);
    memcpy(m.to, tx->to, SIGN_ADDRESS);
    return m;
}

/* Before anything is asked of the signer: what is on the disk now counts. The request is put last: that is what waits
 * for the disk, and it takes along what was written before. */
static int
count(struct warden *w, struct sign_wait *wait, const struct sign_tx *what, struct err *err)
{
    struct u256 fee, spent = u256_of(0);

    if (what->form == SIGN_TX && !sign_cost(&what->tx, &fee, &spent))
        return err_set(err, ERR_DENIED, "sign.cost", "it costs more than any amount");
    if ((what->form != SIGN_TX || sign_nonce_use(w, wait, what, err) == 0) &&
        state_sign_put(w->state, wait->request, time_steady(w), spent.b, err) == 0)
        return 0;
    sign_nonce_back(w, wait);
    return -1;
}

/* The question for @what. 0, or -1: no memory. */
static int
question(struct buf *out, const struct sign_tx *what, uint32_t number, bool confirmed)
{
    const struct typed *t = &what->typed;
    struct signer_ask ask = { .number = number, .confirmed = confirmed };
    struct signer_ask_text text = { .number = number, .form = what->form, .chain = t->chain,
                                    .has_contract = t->has_contract, .text = what->text };

    if (what->form == SIGN_TX) {
        ask.tx = edge_of(&what->tx);
        return proto_frame(out, SIGNER_SIGN, SIGNER_SIGN_SHAPE(), &ask);
    }
    memcpy(text.contract, t->contract, sizeof(text.contract));
    memcpy(text.words, t->words, sizeof(text.words));
    return proto_frame(out, SIGNER_SIGN_TEXT, SIGNER_SIGN_TEXT_SHAPE(), &text);
}

int
sign_room(struct warden *w, struct err *err)
{
    const size_t n = w->signing->n_waits;

    return n < SIGN_WAITS_MAX ? 0 : err_set(err, ERR_LIMIT, "sign.busy", "%zu requests wait for the signer already", n);
}

int
sign_now(struct warden *w, const char *request, const char *box, const struct sign_tx *what,
         const struct sign_verdict *verdict, bool confirmed, struct err *err)
{
    struct signing *g = w->signing;
    struct sign_wait *wait, **at = &g->waits;

    if (what->form != SIGN_TX && !confirmed)
        return err_set(err, ERR_DENIED, "sign.confirm", "nobody has confirmed it");
    if (sign_room(w, err) < 0)
        return -1;
    wait = calloc(1, sizeof(*wait));
    if (wait == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *wait = (struct sign_wait){ .frame = BUF_INIT(EDGE_ROOM), .to = w->asker, .confirmed = confirmed,
                                .form = what->form,
                                .chain = what->form == SIGN_TX ? what->tx.chain : what->typed.chain,
                                .verdict = *verdict };
    snprintf(wait->request, sizeof(wait->request), "%s", request);
    memcpy(wait->hash, what->hash, sizeof(wait->hash));
    memcpy(wait->box, box, strlen(box) + 1);
    who_text(w, &w->who, wait->who);
    if (what->form == SIGN_TX || what->typed.has_contract)
        sign_address_text(what->form == SIGN_TX ? what->tx.to : what->typed.contract, wait->to_text);
    if (count(w, wait, what, err) < 0) {
        free(wait);
        return -1;
    }
    wait->number = ++g->numbers;
    wait->until_ms = clock_ms() + SIGN_TURN_MS;
    while (*at != NULL)
        at = &(*at)->next;
    *at = wait;
    g->n_waits++;
    if (question(&wait->frame, what, wait->number, confirmed) < 0) {
        failed(w, wait, "out of memory", false);
        return 0;
    }
    expect(w, wait);
    if (ask_next(w) < 0)
        lose(w);
    return 0;
}
