/* adapters/desktop_data.h: what a desktop says and is told, as bytes
 *
 * All pure: what a sandbox says is read here and nowhere else (fuzz/fuzz_desktop.c).
 */
#ifndef CLOCHE_ADAPTERS_DESKTOP_DATA_H
#define CLOCHE_ADAPTERS_DESKTOP_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define DESKTOP_PIXELS_MAX 16384        /* of a display, in each direction */
#define DESKTOP_RATE       44100        /* of sound that is recorded: frames a second, */
#define DESKTOP_FRAME      4            /* of two channels of 16 bits */
#define DESKTOP_KEYMAP_MAX (64UL * 1024)

/* Whether p[0..n) is a picture, and its size. Nothing else of it is read. */
bool desktop_png(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height);
/* The 44 bytes before @n bytes of sound. */
void desktop_wav(uint8_t head[44], uint32_t n);

struct desktop_window { struct str id, app, title; };
/* The next line of `wmctrl -lx`, "ID DESKTOP CLASS HOST TITLE", taken from @text. False: there is no more. */
bool desktop_window(struct str *text, struct desktop_window *w);

/* Whether a US keyboard has a key for each character of @text, which is UTF-8. */
bool desktop_plain(struct str text);
/* Writes a keymap for xkbcomp: a US keyboard, and keys for the other characters of @text, as far as there are keys.
 * Returns how many bytes of @text can be typed with it; 0: no memory, or @text does not begin with a character. */
size_t desktop_keymap(struct buf *out, struct str text);

#endif
