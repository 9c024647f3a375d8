/* policy/secret_text.h: the text of a file with placeholders
 *
 * "${NAME}" gives way to what stands for NAME, "$${" is "${", everything else is as it is. Pure.
 */
#ifndef CLOCHE_POLICY_SECRET_TEXT_H
#define CLOCHE_POLICY_SECRET_TEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define SECRET_TEXT_MAX (64 * 1024)     /* bytes of such a text, before and after */

/* What stands for @name into *@out, which lives until the text is made. False: it is not known. */
typedef bool secret_text_fn(void *ctx, struct str name, struct str *out);

enum secret_text { SECRET_TEXT_OK, SECRET_TEXT_UNKNOWN, SECRET_TEXT_OPEN, SECRET_TEXT_PLAIN, SECRET_TEXT_LONG };

/* Append @text to @out. UNKNOWN: @name is a name that @look does not know; OPEN: a "${" has no end; PLAIN: there is no
 * name in it at all, so it is not what it should be; LONG: @out cannot take it. */
enum secret_text secret_text_make(struct str text, secret_text_fn *look, void *ctx, struct buf *out, struct str *name);

#endif
