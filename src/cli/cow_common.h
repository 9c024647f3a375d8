/* cli/cow_common.h: what diff, apply and discard share */
#ifndef CLOCHE_CLI_COW_COMMON_H
#define CLOCHE_CLI_COW_COMMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"
#include "workspace/cow.h"
#include "workspace/diff.h"
#include "workspace/marks.h"

enum cow_exit {
    COW_DONE = 0,
    COW_CONFLICT = 1,       /* apply: the project changed too; nothing was applied */
    COW_WITHHELD = 2,       /* apply: done, but for changes that are reported */
};

/* A state, opened and locked, with its changes read. */
struct cow_view {
    struct cow_state state;
    int project;
    struct policy policy;           /* for its lists of protected names and places */
    const char **names, **places;
    char **led;                     /* those of @places that are led to (engine/led.h) */
    size_t n_led;
    struct protect protect;
    struct diff_input in;
    struct changes changes;
    struct marks marks;             /* files that the run did not see as they are */
};

#define COW_VIEW_INIT { .state = COW_STATE_INIT, .project = -1, .changes = CHANGES_INIT, .marks = MARKS_INIT }

/* Open the state that @which means (NULL: the newest of the current directory), undo what an interrupted apply left,
 * and read the changes. -1 with @err. Close in any case. */
int cow_view_open(struct cow_view *view, const char *which, struct err *err);
void cow_view_close(struct cow_view *view);

/* {"path", "change", "type", ...} of change @i; "path_encoded" (%XX) beside a path that is not UTF-8. */
json_t *cow_json_change(const struct changes *c, size_t i);
/* "id", "project" and "created" into @object. */
void cow_json_state(json_t *object, const struct cow_state *state);

/* One letter as git has it: A M D T R. */
char cow_letter(const struct change *e);
/* The old name of a rename: told with the new one. */
bool cow_told_elsewhere(const struct change *e);
/* "A<tab>path" on stdout; nothing for what is told elsewhere. */
void cow_print_change(const struct changes *c, size_t i);
/* The path of change @i as text for people, into @out (reset first). */
int cow_quoted(const struct changes *c, size_t i, struct buf *out);
/* Why a change is not applied, or not wholly; "" without flags. One reason per call: @flag is a single bit. */
const char *cow_reason(unsigned flag);
/* "the first reason" of several flags, for one line of text. */
const char *cow_first_reason(unsigned flags);

#endif
