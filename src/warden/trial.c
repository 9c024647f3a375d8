/* warden/trial.c: whether what somebody would be asked about can be had at all
 *
 * A sandbox's policy is read by its keeper, and an agent's is held against the daemon's settings there. Where somebody
 * has to approve the sandbox, or a change of its policy, a keeper reads that before: what is refused then nobody is
 * asked about. It makes nothing. Its box is a probe as those of reattach.c are: in memory only, in no list and no
 * record. What is made later is judged again, by what the settings are then.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "warden/approvals.h"
#include "warden/record.h"

/* A question that is put aside meanwhile. */
struct trial {
    struct asker to;
    struct proof proof;
    char digest[SHA256_TEXT + 1];
    struct work work;
    uint8_t type, flags;
    size_t n;
    uint8_t question[];
};

void
trial_free(struct box *b)
{
    free(b->trial);
    b->trial = NULL;
}

/* What the question would have read, of @r and with its texts in the frame. False: nothing that is read. */
static bool
subject(struct warden *w, struct edge_create *c, struct edge_box *r)
{
    struct wire_in in = ask_in(w->question);
    uint8_t type = w->question->type;
    struct ask_change change;
    const struct box *b;

    r->bounds = gate_bounds(w);
    if (type == EDGE_ASK_CREATE && edge_create_get(&in, c)) {
        r->name = c->name;
        r->workspace = c->workspace;
        r->policy = c->policy;
        return true;
    }
    b = type == EDGE_ASK_CHANGE && ask_change_get(&in, &change) ? living(w, change.id) : NULL;
    if (b == NULL)
        return false;
    r->policy = change.policy;
    r->bounds = b->r.bounds | ((b->r.bounds & EDGE_BOUNDED) != 0 ? EDGE_JUDGED : 0);
    return true;
}

static struct trial *
put_aside(const struct warden *w, const struct deed *d)
{
    const struct frame *f = w->question;
    struct trial *t = calloc(1, sizeof(*t) + f->length);

    if (t == NULL)
        return NULL;
    t->to = w->asker;
    t->proof = w->proof;
    t->type = f->type;
    t->flags = f->flags;
    t->n = f->length;
    memcpy(t->digest, d->digest, sizeof(t->digest));
    t->work = w->work;
    memcpy(t->question, f->payload, f->length);
    return t;
}

int
trial_begin(struct warden *w, const struct deed *d, struct err *err)
{
    const struct trial *over = w->approvals->tried;
    struct edge_box r = { .state = BOX_INITIALIZING, .created_ms = clock_wall_ms(), .name = "", .labels = "",
                          .policy = "", .facts = "", .detail = "", .workspace = "", .print = "", .how = "" };
    struct edge_create c;
    struct trial *t;

    if (over != NULL && over->to.front == w->asker.front && over->to.ticket == w->asker.ticket &&
        strcmp(over->digest, d->digest) == 0)
        return 0;
    if (!subject(w, &c, &r))
        return 0;
    memcpy(r.owner, w->who.id, sizeof(r.owner));
    t = put_aside(w, d);
    if (t == NULL || new_id(r.id) < 0) {
        free(t);
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    if (box_create(w, &r, w->asker, BOX_PROBE | BOX_TRIAL, err) < 0) {
        free(t);
        return -1;
    }
    box_of_id(w, r.id)->trial = t;
    return 1;
}

void
trial_passed(struct box *b)
{
    struct warden *w = b->w;
    struct trial *t = b->trial;
    struct frame f = { .type = t->type, .flags = t->flags, .length = (uint32_t)t->n, .payload = t->question };
    bool waits = b->waiters != NULL;        /* who went does not ask any more */

    box_forget_waiters(b, t->to.front);
    b->trial = NULL;
    w->approvals->tried = t;
    if (waits)
        approvals_hear(w, &f, t->to, &t->proof, &t->work);
    w->approvals->tried = NULL;
    free(t);
}
