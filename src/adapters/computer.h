/* adapters/computer.h: what is done with a screen, a pointer and a keyboard, in the words that agents have for it
 *
 * One table (computer.c) has the actions of Anthropic's computer use tool ({"action": "left_click", "coordinate": [x,
 * y]}), of OpenAI's ({"type": "click", "x": x, "y": y, "button": "left"}), and a few of our own. Reading one is pure.
 */
#ifndef CLOCHE_ADAPTERS_COMPUTER_H
#define CLOCHE_ADAPTERS_COMPUTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define COMPUTER_WORDS_MAX  512                 /* of one action */
#define COMPUTER_BYTES_MAX  (12UL * 1024)       /* ... together */
#define COMPUTER_TEXT_MAX   4096                /* characters that are typed, as JavaScript counts them */
#define COMPUTER_CLIP_MAX   (64UL * 1024)       /* bytes of a clipboard */

enum computer_kind {
    COMPUTER_SCREENSHOT, COMPUTER_WINDOWS, COMPUTER_WHERE, COMPUTER_INPUT, COMPUTER_TYPE,
    COMPUTER_CLIP_GET, COMPUTER_CLIP_SET
};

struct computer {
    enum computer_kind kind;
    const char *name;           /* the table's: canonical */
    bool has_region;
    uint32_t region[4];         /* of a screenshot: x, y, width, height */
    const char *text;           /* borrowed from what was read */
    uint64_t ms;                /* that it takes by itself */
    struct buf words;           /* of xdotool, each with a NUL; INPUT. computer_free() */
    size_t n_words;
};

/* Reads @action, an object that outlives @c. NULL, or what is wrong with it. */
const char *computer_read(const json_t *action, struct computer *c);
void computer_free(struct computer *c);
/* @action in one form, whichever words it came in, which reads the same: `action` its canonical name
 * (match/computer_name.h) and no `type`, keys as `text`, a position as `x` and `y`. What is judged; an action that
 * cannot be read stays as it is. */
void computer_settle(json_t *action);
/* Where the pointer is, of what `xdotool getmouselocation` says. */
bool computer_where(const uint8_t *p, size_t n, uint32_t *x, uint32_t *y);
/* Characters of @text as JavaScript counts them: one above U+FFFF is two. */
size_t computer_length(struct str text);

#endif
