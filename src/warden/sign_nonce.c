/* warden/sign_nonce.c: which nonce is whose (sign.h) */
#include <string.h>

#include "warden/sign.h"

bool
sign_nonce_is_far(uint64_t nonce, uint64_t next)
{
    return nonce > next && nonce - next > SIGN_NONCE_AHEAD;
}

/* Whether @p waits for a person, with a nonce of our account and that chain. */
static bool
is_of(struct warden *w, const struct sign_pending *p, uint64_t chain)
{
    return p->what.form == SIGN_TX && p->what.tx.chain == chain &&
           memcmp(p->address, w->signing->address, sizeof(p->address)) == 0 && sign_approval(w, p) != NULL;
}

/* Whether somebody waits with that nonce, for a person or the signer. */
static bool
is_held(struct warden *w, uint64_t chain, uint64_t nonce)
{
    for (const struct sign_pending *p = w->signing->pendings; p != NULL; p = p->next)
        if (p->what.tx.nonce == nonce && is_of(w, p, chain))
            return true;
    for (const struct sign_wait *wait = w->signing->waits; wait != NULL; wait = wait->next)
        if (wait->form == SIGN_TX && wait->chain == chain && wait->nonce == nonce)
            return true;
    return false;
}

/* The first that was given before, of which there is no signature, and nobody waits with. 1, 0 or -1 with @err. */
static int
free_nonce(struct warden *w, uint64_t chain, uint64_t *nonce, struct err *err)
{
    int r;

    *nonce = 0;
    while ((r = state_sign_free(w->state, w->signing->address, chain, *nonce, nonce, err)) > 0 &&
           is_held(w, chain, *nonce))
        ++*nonce;
    return r;
}

uint64_t
sign_nonce_next(struct warden *w, const char *request, uint64_t chain, struct err *err)
{
    uint64_t next, known, given;
    int r;

    for (const struct sign_pending *p = w->signing->pendings; p != NULL; p = p->next)
        if (strcmp(p->request, request) == 0 && is_of(w, p, chain))
            return p->what.tx.nonce;
    r = free_nonce(w, chain, &given, err);
    if (r < 0 || state_sign_nonce(w->state, w->signing->address, chain, &known, err) < 0)
        return UINT64_MAX;
    next = known;
    for (const struct sign_pending *p = w->signing->pendings; p != NULL; p = p->next)
        if (is_of(w, p, chain) && p->what.tx.nonce >= next && !sign_nonce_is_far(p->what.tx.nonce, known))
            next = p->what.tx.nonce + 1;
    /* one that is further on has a gap before it by now */
    if (r > 0 && given <= next)
        return given;
    return next <= SIGN_NUMBER_MAX ? next : SIGN_NUMBER_MAX;
}

/* The next that waits for the signer with a nonce of the same account and chain, from @o on. */
static struct sign_wait *
beside(struct sign_wait *o, const struct sign_wait *wait)
{
    while (o != NULL && (o == wait || !o->counts || o->chain != wait->chain))
        o = o->next;
    return o;
}

int
sign_nonce_use(struct warden *w, struct sign_wait *wait, const struct sign_tx *what, struct err *err)
{
    const uint8_t *account = w->signing->address;
    const struct tx *tx = &what->tx;
    const struct sign_wait *o = beside(w->signing->waits, wait);
    uint64_t next;
    int was_free;

    wait->nonce = tx->nonce;
    if (state_sign_nonce(w->state, account, tx->chain, &next, err) < 0)
        return -1;
    if (tx->nonce == SIGN_NUMBER_MAX || (!wait->confirmed && sign_nonce_is_far(tx->nonce, next)))
        return 0;
    was_free = state_sign_free_take(w->state, account, tx->chain, tx->nonce, err);
    if (was_free < 0)
        return -1;
    wait->counts = true;
    wait->was_free = was_free > 0;
    wait->leaps = !what->given && tx->nonce > next;
    wait->settled = o != NULL ? o->settled : next;
    return state_sign_nonce_put(w->state, account, tx->chain, tx->nonce + 1, err);
}

void
sign_nonce_done(struct warden *w, const struct sign_wait *wait)
{
    struct signing *g = w->signing;

    if (!wait->counts)
        return;
    if (wait->leaps)
        (void)state_sign_free_below(w->state, g->address, wait->chain, wait->nonce, NULL);
    for (struct sign_wait *o = g->waits; (o = beside(o, wait)) != NULL; o = o->next) {
        if (o->settled <= wait->nonce)
            o->settled = wait->nonce + 1;
        if (o->nonce == wait->nonce)
            o->was_free = false;        /* it is nobody's again, whatever becomes of the others that have it */
    }
}

void
sign_nonce_back(struct warden *w, const struct sign_wait *wait)
{
    struct signing *g = w->signing;
    uint64_t next = wait->settled;
    bool held = false;

    if (!wait->counts)
        return;
    for (struct sign_wait *o = g->waits; (o = beside(o, wait)) != NULL; o = o->next) {
        if (o->nonce >= next)
            next = o->nonce + 1;
        if (o->nonce != wait->nonce)
            continue;
        held = true;
        o->was_free = o->was_free || wait->was_free;
    }
    (void)state_sign_nonce_back(w->state, g->address, wait->chain, next, NULL);
    if (!held && (wait->was_free || wait->nonce >= wait->settled))
        (void)state_sign_free_put(w->state, g->address, wait->chain, wait->nonce, NULL);
}
