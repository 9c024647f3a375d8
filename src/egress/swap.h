/* egress/swap.h: replace byte strings by others of the same length, in a stream
 *
 * Outbound it turns placeholders into values, inbound values into placeholders, and where nothing may be replaced it
 * finds placeholders that have no business there. Lengths are equal, so Content-Length and chunk sizes stay right. A
 * pattern is found however the stream is cut into reads, and in other spellings than its own, mixed as they may be.
 *
 * Who reads an answer can have a server say what it likes, and see how much of it comes at once, and when. So of
 * answers not the bytes that begin a value are held back, but those that begin like one (swap_hide()), and the search
 * does the same work for each byte, whatever it looks for.
 *
 * Leftmost match first, the longest of those, never overlapping; what was put in is not looked at again. Pure; the
 * memory it allocates holds the patterns and is wiped when freed.
 */
#ifndef CLOCHE_EGRESS_SWAP_H
#define CLOCHE_EGRESS_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SWAP_PATTERNS_MAX 256
#define SWAP_PATTERN_MIN  4             /* bytes; a shorter one would be found everywhere, and is refused */
#define SWAP_PATTERN_MAX  4096
#define SWAP_HELD_MAX     24576         /* bytes that are ever held back */

/* How a string may be written in what passes. */
enum swap_form {
    SWAP_RAW     = 1 << 0,
    SWAP_SPELLED = 1 << 1,  /* each character as itself or in one of the ways of swap_find.c: %XX, %25XX, %u00XX, =XX
                             * (quoted-printable, its soft line ends too), \xXX, \u00XX, \u{XX}, octal, CSS's, HTML's
                             * &#N; and &name; (";" or not), with one to three backslashes before it (not letters and
                             * digits, but \n, \r, \t), "+" for a blank; NULs in between (UTF-16) */
    SWAP_BASE64  = 1 << 2,  /* within base64 of something longer, at any offset, both alphabets: the characters that it
                             * alone decides (all but one at either end, of which a hidden search puts its bits right);
                             * needs 8 bytes, which are 10 such characters */
    SWAP_HEX     = 1 << 3,  /* in hexadecimal digits, from 8 bytes on; of these two each character may be spelled as
                             * above, with line ends, blanks and colons in between */
};
#define SWAP_ALL (SWAP_RAW | SWAP_SPELLED | SWAP_BASE64 | SWAP_HEX)

struct swap;

struct swap *swap_new(void);                /* NULL: no memory */
void swap_free(struct swap *s);             /* NULL is fine */

/* What is held back shall tell nothing of what is looked for: it follows from lengths and classes of characters alone
 * (upper case, lower case, digit; any other byte is a class of its own), which @from and @to then have to share, byte
 * by byte; of base64 and hexadecimal from lengths alone. Such a search also reads what could be of a coding, and what
 * that becomes, several times over (swap_peel.c): of a value that is beneath codings nothing is left. Before the first
 * swap_add(). */
void swap_hide(struct swap *s);

/* Instead of that: always as many bytes are held back as what is looked for can take. For what need not come at once;
 * @from and @to of swap_add() then need have nothing in common. Before the first swap_add(). */
void swap_blind(struct swap *s);

/* Replace @from by @to, both of @n bytes (copied), in every form of @forms; to only find it, give @from twice. With
 * SWAP_SPELLED their bytes have to be of the same classes (letters and digits for each other, anything else unchanged).
 * @id (0 to 31) is what swap_seen() says. Before the first swap_feed(). 0, or -1: not so, too many, too long, no
 * memory. */
int swap_add(struct swap *s, unsigned id, const void *from, const void *to, size_t n, unsigned forms);

/* Append to @out what is certain of the stream so far, @p[0..n) included; with @end everything (the stream may then
 * begin anew). 0, or -1 when @out cannot take it. @p and @out do not overlap. */
int swap_feed(struct swap *s, const void *p, size_t n, bool end, struct buf *out);

/* Bytes held back now: at most SWAP_HELD_MAX. */
size_t swap_held(const struct swap *s);

/* A mask of the ids that were found since the last call. */
uint32_t swap_seen(struct swap *s);

#endif
