/* workspace/quote.h: names that may hold any byte, for people and for our own files
 *
 * A name from a sandbox may hold newlines, escape sequences and bytes that are no UTF-8. For people it is written as
 * git writes it: plain when it is harmless, else "in quotes" with C escapes. For our own files: %XX.
 */
#ifndef CLOCHE_WORKSPACE_QUOTE_H
#define CLOCHE_WORKSPACE_QUOTE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Whether @s is well-formed UTF-8 in which everything is seen, and where it stands (base/unseen.h). */
bool quote_harmless(struct str s);
/* Append @prefix and @s as one name for people. */
int quote_name(struct buf *out, const char *prefix, struct str s);

/* Append @s with every byte outside [!-~] and every '%' as %XX. */
int quote_encode(struct buf *out, struct str s);
/* The reverse, strictly: -1 with errno EINVAL on a byte that quote_encode does not write, an encoded NUL, or no
 * memory. */
int quote_decode(struct buf *out, struct str s);

#endif
