/* warden/waiters.c: who waits for what comes of a sandbox */
#include <stdlib.h>

#include "base/clock.h"
#include "warden/warden.h"

void
box_forget_waiters(struct box *b, uint32_t front)
{
    for (struct waiter **at = &b->waiters, *one; (one = *at) != NULL;) {
        if (one->to.front != front) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free(one);
    }
    if (b->change.to.front == front)
        b->change.to.ticket = 0;        /* it is awaited all the same */
    if (b->copy.to.front == front)
        b->copy.to.ticket = 0;
    if (b->maker.front == front)
        b->maker.ticket = 0;            /* its tickets are others now */
}

/* The answer may have been said by then, and is on its way to nobody. */
void
box_maker_gone(struct warden *w, struct asker maker)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->maker.ticket != maker.ticket || b->maker.front != maker.front)
            continue;
        b->maker.ticket = 0;
        box_stop(b, b->once ? "the call that it was made for is over" : "who asked for it is gone");
        return;
    }
}

int
box_wait(struct box *b, enum wait_for what, struct asker to, struct err *err)
{
    struct waiter *one;
    size_t n = 0;

    for (one = b->waiters; one != NULL; one = one->next)
        n++;
    if (n >= WARDEN_WAITERS)
        return err_set(err, ERR_LIMIT, "sandbox.busy", "%zu requests wait for this sandbox", n);
    one = malloc(sizeof(*one));
    if (one == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *one = (struct waiter){ .next = b->waiters, .to = to, .what = what };
    b->waiters = one;
    if (what == WAIT_MADE && b->recover_ms > 0)
        b->recover_ms = clock_ms();     /* somebody wants it: no pause */
    return 0;
}

void
box_unheard_answers(struct box *b, const struct err *err)
{
    for (struct waiter **at = &b->waiters, *one; (one = *at) != NULL;) {
        if (one->what != WAIT_PAUSED && one->what != WAIT_SHOWN) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        answer_no(b->w, one->to, err);
        free(one);
    }
}

void
box_gone_answers(struct box *b)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_SYSTEM, "sandbox.gone", "%s", b->r.detail[0] != '\0' ? b->r.detail : "the sandbox ended");
    for (struct waiter *one; (one = b->waiters) != NULL;) {
        b->waiters = one->next;
        if (one->what == WAIT_GONE)
            answer_box(b->w, one->to, &b->r, NULL);
        else
            answer_no(b->w, one->to, &err);
        free(one);
    }
}
