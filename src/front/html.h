/* front/html.h: text of strangers in a page of ours */
#ifndef CLOCHE_FRONT_HTML_H
#define CLOCHE_FRONT_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Append p[0..n) as text of HTML, good between tags and within double quotes... but for what nobody sees, or what makes
 * the rest look like something else: control characters, bytes that are no UTF-8, characters that reorder, join or have
 * no width, and spaces that are none of the keyboard's. Each of these becomes <b>U+202E</b> (a byte: <b>0xFF</b>), so
 * within quotes only text without them is. @lines: newline and tab stay as they are. 0 or -1 as buf_append. */
int html_put(struct buf *out, const char *p, size_t n, bool lines);

#endif
