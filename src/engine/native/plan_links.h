/* engine/native/plan_links.h: links on the way to what is opened, and which of them may have been planted
 *
 * What runs inside can leave a link at any place that a run may write; a later run whose rules name that place would
 * open what the link leads to. So of every path that opens or shows something:
 *
 *   - a link that lies in a place that this policy lets be written must not lead out of it, unless to what another
 *     rule, which no such link is on the way of, opens anyway;
 *   - nor, of what is to be written, a link in the caller's folder out of that: other runs may write it;
 *   - what cloche itself opens by default (SRT's places) has no link on its way below the home, or below /tmp;
 *   - a folder of the system is written only where it is named, never behind a link;
 *   - as root, what is root's is never written behind somebody else's link.
 *
 * A run is refused (policy.link), for SRT settings the rule is left out with a warning.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PLAN_LINKS_H
#define CLOCHE_ENGINE_NATIVE_PLAN_LINKS_H

#include "engine/native/plan.h"
#include "engine/native/plan_real.h"

struct plan_named {
    struct plan_way way;
    const struct policy_entry *rule;    /* the entry of a list; NULL for the workspace and binds */
    const struct origin *from;
    const char *name;                   /* the path as the rule has it */
    const char *what;                   /* "workspace", "bind", "unix socket"; NULL: of a list, may be left out */
    bool write;
};

/* One more path that opens something; kept until plan_links_check. 1: it counts. 0: it is left out, said as a warning.
 * -1 with @err. */
int plan_links_note(struct native_plan *plan, const struct plan_named *named, struct err *err);

/* All of them are noted: judge them against each other. Entries of @real's allow-read and allow-write that may not be
 * followed are taken out where that is not refused. 0 or -1 with @err. */
int plan_links_check(struct native_plan *plan, struct policy *real, struct err *err);

#endif
