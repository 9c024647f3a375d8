/* workspace/apply.h: taking a sandbox's changes over into the project, all of the chosen ones or none
 *
 *   1. decide   apply_decide() gives every change its fate. Nothing is touched. Any conflict ends it here.
 *   2. stage    New content is copied into a stage directory on the project's own mount: in the state where that is
 *               possible, else in the project's root. Running out of space or of rights ends here, and leaves nothing.
 *   3. commit   A journal is written, then everything is moved: stage ↔ project, by rename alone. What is replaced or
 *               removed ends in the stage. A failure, or a project that changed under our hands, moves everything back;
 *               so does the next verb when we were killed (apply_recover), and at once a helper process that outlives
 *               us.
 *   4. done     The stage goes.
 *
 * The project may be changed by others at the same time, even by another sandbox: every path in it is resolved below an
 * open directory, following no symlink and crossing no mount, and a file is never written in place, so that neither a
 * planted symlink nor a hard link leads a write elsewhere.
 */
#ifndef CLOCHE_WORKSPACE_APPLY_H
#define CLOCHE_WORKSPACE_APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "workspace/cow.h"
#include "workspace/diff.h"
#include "workspace/journal.h"

struct apply_options {
    const char *const *paths;       /* below the project, normal, "" for all of it; borrowed */
    size_t n_paths;                 /* 0: everything */
    bool include_protected;         /* with @paths: also what is protected */
    bool allow_outside_links;
    bool force;                     /* conflicts: the sandbox's version wins */
};

enum fate {
    FATE_LEFT,          /* not chosen, or no change */
    FATE_APPLIED,       /* is (or will be) in the project */
    FATE_WITHHELD,      /* reported: its flags say why; without any its directory was withheld, or is not empty */
    FATE_CONFLICT,
};

struct apply_plan {
    enum fate *fate;            /* one per change */
    size_t n_applied, n_withheld, n_conflicts;
};

/* Decide. 0 with @plan (free with apply_plan_free), or -1 with @err: workspace.apply.no-such-change for a path that
 * holds none. */
int apply_decide(const struct changes *c, const struct apply_options *options, struct apply_plan *plan,
                 struct err *err);
void apply_plan_free(struct apply_plan *plan);

/* Do what @plan says; it has no conflicts. The state is locked and has no journal. -1 with @err: nothing was changed
 * (workspace.apply.raced: the project changed meanwhile; workspace.apply.undo: undoing failed too, and the
 * journal stays). */
int apply_commit(const struct cow_state *state, const struct diff_input *in, const struct changes *c,
                 const struct apply_plan *plan, struct err *err);

/* Undo what an interrupted apply has done; the state is locked. 1: there was something, 0: no, -1 with @err. */
int apply_recover(const struct cow_state *state, int project, struct err *err);

#endif
