/* workspace/lines.h: what is different between two texts, in lines, as `diff -u` has it
 *
 * Pure, and bounded: time and memory grow with LINES_MAX and LINES_APART whatever the texts are. Where two texts have
 * more lines, or are further apart, what is between their common beginning and end is shown as replaced whole: that is
 * right too, only longer.
 */
#ifndef CLOCHE_WORKSPACE_LINES_H
#define CLOCHE_WORKSPACE_LINES_H

#include "base/buf.h"
#include "base/str.h"

#define LINES_MAX     20000     /* lines of each text that are compared one by one */
#define LINES_APART   600       /* lines removed and added, together */
#define LINES_CONTEXT 3         /* unchanged lines around a change */

/* Hunks ("@@ -1,2 +1,3 @@", then lines that begin with ' ', '-' or '+') to @out; nothing where the texts are equal.
 * What would make @out longer than @max is left out, from a line's beginning on: 1 then, otherwise 0; -1: no memory. */
int lines_diff(struct str before, struct str after, size_t max, struct buf *out);

#endif
