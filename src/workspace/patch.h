/* workspace/patch.h: one change as text that `git apply` and `patch -p1` understand
 *
 * Content is compared by diff(1) (GNU diffutils), which gets two anonymous files and no path: it never sees the trees.
 */
#ifndef CLOCHE_WORKSPACE_PATCH_H
#define CLOCHE_WORKSPACE_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "workspace/diff.h"

#define PATCH_FILE_MAX (16UL * 1024 * 1024)     /* bytes of one side; larger files only "differ" */
#define PATCH_TEXT_MAX (64UL * 1024 * 1024)     /* bytes of one patch */

struct patch_style {
    bool colour;
    bool terminal;      /* what a terminal would obey or not show is made visible; the text is no exact patch then */
};

/* Append the patch of change @i to @out (made with PATCH_TEXT_MAX); nothing for directories, and for the old name of a
 * rename. -1 with @err: workspace.diff.no-diff when diff(1) is not installed. */
int patch_write(const struct diff_input *in, const struct changes *c, size_t i, const struct patch_style *style,
                struct buf *out, struct err *err);

struct patch_count {
    uint64_t added, removed;    /* lines */
    bool binary;                /* or too large: no lines */
};
int patch_count(const struct diff_input *in, const struct changes *c, size_t i, struct patch_count *out,
                struct err *err);

/* Append @text with the bytes that a terminal would obey, and the characters that nobody sees or that move others
 * (base/unseen.h), made visible: ^[, <U+202E>, <9B>. Tab and newline are kept. */
int patch_visible(struct buf *out, const uint8_t *text, size_t n);

#endif
