/* workspace/changes.h: building the tree of changes; only workspace/diff*.c */
#ifndef CLOCHE_WORKSPACE_CHANGES_H
#define CLOCHE_WORKSPACE_CHANGES_H

#include "workspace/diff.h"

/* Give @e its own copy of @name, counted against the ceiling of @c. */
int changes_name(struct changes *c, struct change *e, const char *name, struct err *err);
/* Append @e, which @c then owns; on failure it is freed. */
int changes_add(struct changes *c, struct change *e, struct err *err);
/* Free what @e owns and pass @r on. */
int changes_drop(struct change *e, int r);
/* Say that @i has changes, and so do the directories above it. */
void changes_mark(struct changes *c, size_t i);

#endif
