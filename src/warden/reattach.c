/* warden/reattach.c: a sandbox that is made only unless its caller has one like it already
 *
 * Whether one is like it is judged by a closed list: the profile that it would be held to, the template below that, the
 * image, the host, and cloche itself. Each is told as a digest by a keeper that has made nothing yet, so that neither a
 * sandbox nor what keeps it has a say in what it is taken for. Until that is judged the new one is a probe: in memory
 * only, in no list and no record; then it ends, or takes the place of the other, which is destroyed first.
 *
 * What is looked at is the newest sandbox of the same caller with the same workspace's key. Requests at once are judged
 * one after the other, the oldest first.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "warden/approvals.h"

static const char *const parts[] = { "profile", "template", "image", "host", "runtime" };
#define PARTS ARRAY_LEN(parts)

static bool
print_well(const char *print)
{
    if (!edge_labels_well(print))
        return false;
    for (size_t i = 0; i < PARTS; i++)
        if (edge_line(print, parts[i]).n == 0)
            return false;
    return true;
}

static bool
same_recovery(const struct edge_recovery *a, const struct edge_recovery *b)
{
    return a->after_s == b->after_s && a->tries == b->tries && a->window_s == b->window_s;
}

/* What keeps @old from being what @new would be: names of parts, "" nothing. */
static void
differences(const struct edge_box *old, const struct edge_box *new, char out[128])
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < PARTS; i++) {
        struct str was = edge_line(old->print, parts[i]), is = edge_line(new->print, parts[i]);
        bool same = was.p != NULL && is.p != NULL && str_eq(was, is);
        if (i == 0)
            same = same && old->idle_s == new->idle_s && old->asked_s == new->asked_s && old->bounds == new->bounds &&
                   old->persists == new->persists &&
                   same_recovery(&old->recovery, &new->recovery) && strcmp(old->volume, new->volume) == 0 &&
                   strcmp(old->base, new->base) == 0;
        if (!same)
            used += (size_t)snprintf(out + used, 128 - used, "%s%s", used > 0 ? "," : "", parts[i]);
    }
    if (old->state == BOX_DEGRADED || old->state == BOX_RECOVERING)
        snprintf(out + used, 128 - used, "%sstate", used > 0 ? "," : "");
}

static void
end_probe(struct box *p)
{
    p->r.state = BOX_STOPPING;
    p->stop_ms = clock_ms();
    box_say_short(p, EDGE_STOP);
}

static void
reattach_refuse(struct box *p, const struct err *err)
{
    (void)state_once_forget(p->w->state, p->r.id, NULL);
    keep_refused(p, err);
    end_probe(p);
}

/* @old is what @p would be. */
static void
take(struct box *p, struct box *old)
{
    struct warden *w = p->w;
    struct edge_box told;

    (void)state_once_move(w->state, p->r.id, old->r.id, NULL);
    box_used(old);
    volume_taken(p);        /* it is the volume of both */
    warden_note(w, old, "reattached", "to its workspace");
    told = old->r;
    told.how = "\nreattached=yes\n";
    keep_found(p, &told);
    end_probe(p);
}

static void
destroy(struct box *p, struct box *old, const char *differs)
{
    char how[EDGE_HOW_MAX], why[256];

    snprintf(how, sizeof(how), "\nreattached=no\nreplaced=%s\ndiffers=%s\n", old->r.id, differs);
    box_text(&p->r.how, how);
    snprintf(why, sizeof(why), "another one takes its place, which differs in: %s", differs);
    box_stop(old, why);
}

static void
make(struct box *p)
{
    struct err err = ERR_INIT;

    if (p->r.how[0] == '\0')
        box_text(&p->r.how, "\nreattached=no\n");
    if (box_record(p, &err) < 0)
        reattach_refuse(p, &err);
    else
        keep_make(p);
}

/* Those behind @p in the list are older. */
static void
judge(struct box *p)
{
    struct box *newest = NULL;
    char differs[128];

    for (struct box *b = p->next; b != NULL; b = b->next) {
        if (!box_same_key(b, &p->r) || (b->probe && b->r.state == BOX_STOPPING))
            continue;
        if (b->r.state != BOX_READY && b->r.state != BOX_DEGRADED && !recovery_waits(b))
            return;         /* what becomes of it is known later */
        if (newest == NULL || b->r.started_ms > newest->r.started_ms)
            newest = b;
    }
    if (newest == NULL) {
        make(p);
        return;
    }
    differences(&newest->r, &p->r, differs);
    if (p->r.how[0] == '\0' && differs[0] == '\0')
        take(p, newest);
    else if (p->r.how[0] == '\0')
        destroy(p, newest, differs);
    else
        make(p);        /* others of that key are not in its way */
}

void
reattach_turn(struct warden *w)
{
    bool some = false;

    /* asked often, and there may be a thousand sandboxes of which none is in question */
    if (!w->probes_printed)
        return;
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->probe && b->printed && b->r.state == BOX_INITIALIZING) {
            some = true;
            judge(b);
        }
    }
    w->probes_printed = some;
}

void
reattach_changed(struct box *b)
{
    char rest[EDGE_PRINT_MAX + 1];
    struct str profile = edge_line(b->r.print, parts[0]);

    if (profile.p == NULL)
        return;
    snprintf(rest, sizeof(rest), "%.*s%s", (int)(profile.p - b->r.print - (ptrdiff_t)strlen("\nprofile=")), b->r.print,
             profile.p + profile.n);
    box_text(&b->r.print, rest);
}

void
reattach_ask(struct box *b)
{
    struct keep_tell_print m = { .bounds = b->r.bounds, .policy = b->r.policy };

    memcpy(m.owner, b->r.owner, sizeof(m.owner));
    b->asked.print = true;
    box_say(b, EDGE_TELL_PRINT, EDGE_TELL_PRINT_SHAPE(), &m);
}

int
reattach_on_print(struct warden *w, const struct keep_print *m)
{
    struct box *b = w->heard;

    if (!print_well(m->print) || !b->asked.print)
        return -1;
    b->asked.print = false;
    if (b->printed || (b->r.state != BOX_INITIALIZING && b->r.state != BOX_RECOVERING))
        return 0;
    box_text(&b->r.print, m->print);
    b->printed = true;
    w->probes_printed |= b->probe;
    if (b->tries) {
        end_probe(b);
        trial_passed(b);
    } else if (b->probe) {
        reattach_turn(w);
    } else {
        keep_make(b);
    }
    return 0;
}
