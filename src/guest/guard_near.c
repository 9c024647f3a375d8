/* guest/guard_near.c: a descriptor is passed without waking another processor
 *
 * A caller that is answered goes on where the guard runs (GS_SYNC_WAKE_UP). Whoever gets a descriptor does not: the
 * kernel wakes it to take it, then the guard because it was taken, and each of them on another processor if one is
 * idle. To wake an idle processor takes long, in a virtual machine ten times as long as all the rest of the call. So
 * for this moment both may run on this processor only. The descriptor is passed first and the call answered after that:
 * between the two the caller waits in the kernel, and is given its processors back. It never runs without them, and
 * starts no thread that would not have them.
 *
 * That costs seven system calls, and is for nothing where no processor is idle. So it is done only for a while after
 * the guard found itself on another processor than before. It needs a pid namespace of our own: there a thread's number
 * is one of the sandbox's, whoever has it, and what is changed for a moment is never a stranger's.
 *
 * It decides nothing: each of these calls may fail.
 */
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "guest/guard_priv.h"

/* descriptors that are passed so before it is tried without: few at first, for a busy machine moves a process now and
 * then; twice as many each time when it is moved again at once */
#define CALLS_FIRST 8
#define CALLS_MOST  256
#define AT_ONCE     4           /* descriptors */

static bool
mask_of(pid_t tid, struct near_mask *out)
{
    memset(out, 0, sizeof(*out));
    return syscall(SYS_sched_getaffinity, tid, sizeof(out->bits), out->bits) > 0;
}

static bool
mask_set(pid_t tid, const struct near_mask *mask)
{
    return syscall(SYS_sched_setaffinity, tid, sizeof(mask->bits), mask->bits) == 0;
}

static bool
mask_eq(const struct near_mask *a, const struct near_mask *b)
{
    return memcmp(a->bits, b->bits, sizeof(a->bits)) == 0;
}

static bool
mask_only(int cpu, struct near_mask *out)
{
    const unsigned word = CHAR_BIT * sizeof(out->bits[0]);

    memset(out, 0, sizeof(*out));
    if (cpu < 0 || (size_t)cpu >= NEAR_WORDS * word)
        return false;
    out->bits[(unsigned)cpu / word] = 1ul << (unsigned)cpu % word;
    return true;
}

static bool
mask_has(const struct near_mask *mask, const struct near_mask *only)
{
    for (size_t i = 0; i < NEAR_WORDS; i++)
        if ((mask->bits[i] & only->bits[i]) != only->bits[i])
            return false;
    return true;
}

void
near_init(struct guard *g)
{
    struct near_mask only;
    int cpu = sched_getcpu();

    g->near.cpu = cpu;
    g->near.span = CALLS_FIRST;
    g->near.possible = g->pid == 1 && mask_of(0, &g->near.own) && mask_only(cpu, &only) &&
                       !mask_eq(&g->near.own, &only);
}

void
near_look(struct guard *g)
{
    struct near *n = &g->near;
    int cpu = sched_getcpu();

    if (cpu != n->cpu) {
        n->span = n->calls_free > AT_ONCE ? CALLS_FIRST : n->span < CALLS_MOST ? 2 * n->span : CALLS_MOST;
        n->calls_left = n->span;
        n->calls_free = 0;
    }
    n->cpu = cpu;
}

bool
near_is_worth(struct call *c)
{
    struct near *n = &c->g->near;

    if (!n->possible)
        return false;
    /* a kernel that has this does not let signals end the wait of a caller whose processors are changed */
    if (!n->asked && syscall(SYS_ioctl, c->listener, GS_NOTIF_SET_FLAGS, GS_SYNC_WAKE_UP) < 0)
        return n->possible = false;
    n->asked = true;
    if (n->calls_left > 0) {
        n->cpu = sched_getcpu();
        return true;
    }
    n->calls_free += n->calls_free <= AT_ONCE;
    near_look(c->g);
    return n->calls_left > 0;
}

void
near_begin(struct call *c, struct near_hold *h)
{
    struct near *n = &c->g->near;

    h->own = h->caller = false;
    if (!mask_only(n->cpu, &h->only) || !mask_of(c->tid, &h->former) ||
        !mask_has(&h->former, &h->only))
        return;
    n->calls_left--;
    h->own = mask_set(0, &h->only);
    h->caller = h->own && !mask_eq(&h->former, &h->only) && mask_set(c->tid, &h->only);
}

void
near_end(struct call *c, const struct near_hold *h)
{
    struct near *n = &c->g->near;
    struct near_mask now;

    if (h->caller && mask_of(c->tid, &now) && mask_eq(&now, &h->only))
        (void)mask_set(c->tid, &h->former);
    if (!h->own || mask_set(0, &n->own))
        return;
    /* these processors are not ours any more: all that are */
    memset(n->own.bits, 0xff, sizeof(n->own.bits));
    n->possible = mask_set(0, &n->own);
}
