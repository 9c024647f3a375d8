/* egress/swap.h: replace byte strings by others of the same length, in a stream
 *
 * Outbound it turns placeholders into values, inbound values into placeholders, and where nothing may be replaced it
 * finds placeholders that have no business there. Lengths are equal, so Content-Length and chunk sizes stay right. A
 * pattern is found however the stream is cut into reads; at most longest pattern - 1 bytes are held back for it.
 *
 * Who reads an answer can have a server say what it likes and see how much of it comes at once. So of answers not the
 * bytes that begin a value are held back, but those that begin like one: swap_hide().
 *
 * Leftmost match first, the longest of those, never overlapping; what was put in is not looked at again. One pass:
 * a Horspool skip over the shortest pattern. Pure; the memory it allocates holds the patterns and is wiped when freed.
 */
#ifndef CLOCHE_EGRESS_SWAP_H
#define CLOCHE_EGRESS_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SWAP_PATTERNS_MAX 256
#define SWAP_PATTERN_MIN  4             /* bytes; a shorter one would be found everywhere, and is refused */
#define SWAP_PATTERN_MAX  (3 * 4096)    /* bytes of one in its longest form */

/* How a string may be written in what passes. */
enum swap_form {
    SWAP_RAW     = 1 << 0,
    SWAP_PERCENT = 1 << 1,  /* every byte but RFC 3986's unreserved ones as %XX, in either case of the digits; blanks
                             * also as "+" */
    SWAP_JSON    = 1 << 2,  /* with the backslashes of a JSON string, "/" escaped and not; line ends and tabs as \n,
                             * \r, \t */
    SWAP_BASE64  = 1 << 3,  /* within base64 of something longer, at any offset, both alphabets: the characters that it
                             * alone decides (all but two at either end); needs 8 bytes, which are 10 such characters */
};
#define SWAP_ALL (SWAP_RAW | SWAP_PERCENT | SWAP_JSON | SWAP_BASE64)

struct swap;

struct swap *swap_new(void);                /* NULL: no memory */
void swap_free(struct swap *s);             /* NULL is fine */

/* What is held back shall tell nothing of what is looked for: it follows from lengths and classes of characters alone
 * (upper case, lower case, digit; any other byte is a class of its own), which @from and @to then have to share, byte
 * by byte; of SWAP_BASE64 from lengths alone. Before the first swap_add(). */
void swap_hide(struct swap *s);

/* Replace @from by @to, both of @n bytes (copied), in every form of @forms; to only find it, give @from twice. Two
 * strings whose bytes are of the same classes (letters and digits for each other, anything else unchanged) have forms
 * of equal length; a form in which they have not is refused. @id (0 to 31) is what swap_seen() says. Before the first
 * swap_feed(). 0, or -1: not so, too many, too long, no memory. */
int swap_add(struct swap *s, unsigned id, const void *from, const void *to, size_t n, unsigned forms);

/* Append to @out what is certain of the stream so far, @p[0..n) included; with @end everything (the stream may then
 * begin anew). 0, or -1 when @out cannot take it. @p and @out do not overlap. */
int swap_feed(struct swap *s, const void *p, size_t n, bool end, struct buf *out);

/* Bytes held back now: less than the longest pattern. */
size_t swap_held(const struct swap *s);

/* A mask of the ids that were found since the last call. */
uint32_t swap_seen(struct swap *s);

#endif
