/* warden/record_head.c: how far the audit record was written
 *
 * It is in the state file soon after the scribe has said so: with what else is written there, or HEAD_MS later. So the
 * record is as far as that or, after a crash, further, never less. So who cut its end, put an old copy back or wrote
 * another one while no daemon ran is found out by the next scribe, which looks for that entry before it does anything
 * else.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/steady.h"
#include "warden/record_priv.h"

#define HEAD_MS 20      /* a request comes to some entries, one after the other */

int
record_load(struct warden *w, struct err *err)
{
    struct record *r = w->record;

    steady_machine(r->boot);
    if (state_gap(w->state, &r->refused, &r->lost, err) < 0)
        return -1;
    r->gap_kept = r->refused + r->lost > 0;
    return state_head(w->state, r->boot, &r->head, &r->rebooted, err);
}

void
record_keep_gap(struct warden *w, uint64_t refused, uint64_t lost)
{
    struct record *r = w->record;
    struct err err = ERR_INIT;

    if (refused + lost == 0 && !r->gap_kept)
        return;
    r->gap_kept = state_gap_put(w->state, refused, lost, &err) == 0 ? refused + lost > 0 : r->gap_kept;
    if (err.kind != ERR_NONE)
        log_say(LEVEL_WARN, "what is missing in the audit record cannot be kept: %s [%s]", err.msg, err.code);
}

void
record_keep_head(struct warden *w)
{
    struct record *r = w->record;
    struct err err = ERR_INIT;

    if (!r->head_new)
        return;
    r->head_new = false;
    loop_at(&w->loop, &r->keep, 0);
    /* without it the former one counts, behind which the record is */
    if (state_head_put(w->state, &r->head, r->boot, &err) < 0)
        log_say(LEVEL_WARN, "how far the audit record is written cannot be kept: %s [%s]", err.msg, err.code);
}

static void
on_keep(struct timer *t)
{
    record_keep_head(t->owner);     /* flushed before this process waits again */
}

int
record_got_head(struct warden *w, const struct audit_head *head)
{
    struct record *r = w->record;

    if (head->seq == 0)
        return -1;
    r->head = *head;
    r->rebooted = false;
    if (r->head_new)
        return 0;
    r->head_new = true;
    r->keep.due = on_keep;
    r->keep.owner = w;
    loop_at(&w->loop, &r->keep, clock_ms() + HEAD_MS);
    return 0;
}

int
record_on_missed(struct warden *w, const struct scribe_missed *m)
{
    bool rebooted = w->record->rebooted;

    if (record_got_head(w, &m->head) < 0)
        return -1;
    if (m->older)
        log_say(LEVEL_WARN, "the audit record has newer files only than that of entry %llu, which was written last: "
                "whether all of it was there is not known [audit.uncompared]", (unsigned long long)m->seq);
    else
        log_say(LEVEL_ERROR, "the audit record was cut or rewritten: entry %llu, which was written last, is not in "
                "it, and it ended with entry %llu%s; `cloche audit verify` says so too [audit.cut]",
                (unsigned long long)m->seq, (unsigned long long)m->left,
                rebooted ? " (the machine was started anew since: a loss of power does that too)" : "");
    return 0;
}
