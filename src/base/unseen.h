/* base/unseen.h: characters that a person does not see, or that move others
 *
 * Whoever shows text that a sandbox chose asks here: a page, a patch on a terminal, a file's name.
 */
#ifndef CLOCHE_BASE_UNSEEN_H
#define CLOCHE_BASE_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a person does not see the character @c, or sees what comes after it elsewhere: control characters, what
 * changes the direction of text, what has no width, spaces that are none of the keyboard's, private use. (Unicode 16:
 * categories Cc, Cf, Co, Zl, Zp, Zs but for the space, variation selectors, tags, fillers.) */
bool utf8_unseen(uint32_t c);

#endif
