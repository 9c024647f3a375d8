/* launcher/launcher_reap.c: who has ended: keepers, and what was left to us
 *
 * With a thousand sandboxes there are two thousand children, keepers and janitors, so it costs something to ask for
 * those that ended: not at every end, and not one by one.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "launcher/launcher.h"

#define CHILDREN_MS   20          /* from an end to a look at who has ended, */
#define CHILDREN_EACH 4           /* and a millisecond more for so many keepers */
#define VACANT_AGAIN_MS 1000      /* after one that ended by itself, as the next one may */

/* Whether somebody else here waits for it by its number, and wants to know how it ended. */
static bool
is_awaited(const struct launcher *l, pid_t pid)
{
    bool is = pid == l->warden_pid || pid == l->maker.pid;

    for (enum which_lesser which = 0; which < LESSERS; which++)
        is |= pid == l->lessers[which].pid;
    for (enum which_front which = 0; which < FRONTS; which++)
        is |= pid == l->fronts[which].pid || pid == l->fronts[which].adapter.pid;
    for (size_t i = 0; i < SCRIBES_MAX; i++)
        is |= pid == l->scribes[i];
    for (const struct keeper *k = l->keepers; k != NULL; k = k->next)
        is |= pid == k->pid;
    return is;
}

/* One that has ended, and stays until it is waited for; 0: none. */
static pid_t
ended(void)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

static bool
orphan_reaped(struct launcher *l, pid_t pid)
{
    /* one that was started too late ends at once, and is killed by its number when that is said (maker_collect) */
    if (l->maker.late != 0 || is_awaited(l, pid) || waitpid(pid, NULL, WNOHANG) != pid)
        return false;
    if (pid == l->sweeper.pid)
        l->sweeper.pid = 0;
    return true;
}

void
reap_orphans(struct launcher *l)
{
    pid_t pid;

    /* whoever stands in front of others is waited for soon; the next beat looks again */
    while ((pid = ended()) > 0 && orphan_reaped(l, pid))
        ;
}

static void
keeper_reaped(struct launcher *l, struct keeper **at)
{
    struct keeper *k = *at;

    *at = k->next;
    l->n_keepers--;
    if (k->edge >= 0) {
        l->n_vacant--;
        vacant_after(l, VACANT_AGAIN_MS);
    }
    close_fd(&k->edge);
    close_fd(&k->control);
    free(k);
}

static struct keeper **
keeper_at(struct launcher *l, pid_t pid)
{
    struct keeper **at = &l->keepers;

    while (*at != NULL && (*at)->pid != pid)
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

/* Asks the kernel who has ended, and not of each keeper whether it has. */
void
reap_keepers(struct launcher *l)
{
    pid_t pid;

    while ((pid = ended()) > 0) {
        struct keeper **at = keeper_at(l, pid);

        if (at == NULL ? !orphan_reaped(l, pid) : waitpid(pid, NULL, WNOHANG) != pid)
            break;
        if (at != NULL)
            keeper_reaped(l, at);
    }
    if (pid == 0)
        return;
    /* somebody else stands in front, who is waited for elsewhere */
    for (struct keeper **at = &l->keepers; *at != NULL;) {
        if (waitpid((*at)->pid, NULL, WNOHANG) == (*at)->pid)
            keeper_reaped(l, at);
        else
            at = &(*at)->next;
    }
}

static void
on_children(struct timer *t)
{
    reap_keepers(t->owner);
}

/* The signal names one of those that have ended. The others are looked for by time: for the same reason not at once. */
void
reap_soon(struct launcher *l, pid_t one)
{
    struct keeper **at = keeper_at(l, one);

    if (at == NULL && one > 0)
        (void)orphan_reaped(l, one);
    else if (at != NULL && waitpid(one, NULL, WNOHANG) == one)
        keeper_reaped(l, at);
    l->children.due = on_children;
    l->children.owner = l;
    if (l->children.at_ms == 0)
        loop_at(&l->loop, &l->children, clock_ms() + CHILDREN_MS + l->n_keepers / CHILDREN_EACH);
}
