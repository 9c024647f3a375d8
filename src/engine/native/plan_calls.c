/* engine/native/plan_calls.c: system calls that the policy opens and closes, and labels that it names (see plan.h) */
#include "engine/native/plan.h"

#include "match/calls.h"
#include "wire/msg.h"

_Static_assert((int)SECCOMP_LIST_LIGHT == (int)CALLS_LIGHT && (int)SECCOMP_LIST_MAX == (int)CALLS_MAX, "");

static bool
is_opened(const struct seccomp_plan *s, uint16_t nr)
{
    for (size_t i = 0; i < s->n_opened; i++)
        if (s->opened[i] == nr)
            return true;
    return false;
}

/* policy_validate has refused what may not be opened in this mode: it is not opened here either. A call that this
 * architecture has not is neither opened nor closed, for nobody can make it. */
static void
open_calls(struct seccomp_plan *s, const struct policy *p)
{
    for (size_t i = 0; i < p->allow_calls.n; i++) {
        const struct call *c = call_find(str_of(p->allow_calls.v[i].value));

        if (c != NULL && c->nr >= 0 && c->opens[s->list] && s->n_opened < SECCOMP_OPENED_MAX &&
            !is_opened(s, (uint16_t)c->nr))
            s->opened[s->n_opened++] = (uint16_t)c->nr;
    }
}

int
plan_calls(struct native_plan *plan, const struct policy *p, struct err *err)
{
    plan->denied = (uint8_t *)plan_room(plan, 2 * MSG_DENIED_MAX);
    if (plan->denied == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    open_calls(&plan->seccomp, p);
    for (size_t i = 0; i < p->deny_calls.n; i++) {
        const struct call *c = call_find(str_of(p->deny_calls.v[i].value));

        if (c == NULL || c->nr < 0)
            continue;
        if (plan->n_denied >= MSG_DENIED_MAX)
            return err_set(err, ERR_LIMIT, "policy.syscall.too-many", "more than %d denied system calls",
                           MSG_DENIED_MAX);
        plan->denied[2 * plan->n_denied] = (uint8_t)(c->nr >> 8);
        plan->denied[2 * plan->n_denied + 1] = (uint8_t)c->nr;
        plan->n_denied++;
    }
    return 0;
}

int
plan_labels(struct native_plan *plan, const struct policy *p, struct err *err)
{
    const struct policy_string *said[LABELS] = { [LABEL_APPARMOR] = &p->apparmor, [LABEL_SELINUX] = &p->selinux };

    for (enum label which = 0; which < LABELS; which++) {
        if (said[which]->p == NULL)
            continue;
        if (label_is_there(which)) {
            plan->labels[which] = said[which]->p;
            continue;
        }
        if (p->fallback.v == FALLBACK_REFUSE) {
            err_set(err, ERR_UNSUPPORTED, "wall.label.absent", "this host has no %s: nothing can run under %s",
                    label_name(which), said[which]->p);
            return err_hint(err, "leave it out, or --fallback warn to run without it; `cloche doctor` says what the "
                            "host has");
        }
        plan_warn(plan, "this host has no %s: nothing runs under %.100s; the other walls are there", label_name(which),
                  said[which]->p);
    }
    return 0;
}
