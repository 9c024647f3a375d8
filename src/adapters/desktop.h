/* adapters/desktop.h: a display and sound inside a sandbox, and what is done with them (docs/desktop.md)
 *
 * All of it are programs of the sandbox's own tree, run as commands: each by its words, no shell, with a time and a
 * ceiling on what it says. What they say is the sandbox's word: it is bounded, looked at, and passed on. The display
 * and the sound server are started when they are needed first. The host's are never used: a sandbox that shares the
 * host's network, where it can reach such servers, is refused.
 */
#ifndef CLOCHE_ADAPTERS_DESKTOP_H
#define CLOCHE_ADAPTERS_DESKTOP_H

#include "adapters/desktop_data.h"
#include "adapters/visit.h"

#define DESKTOP_DISPLAY  ":77"
#define DESKTOP_OUT_MAX  (16UL * 1024 * 1024)   /* of what one action says */
#define DESKTOP_WORD_MAX (32UL * 1024)          /* of its words together */

enum desktop_part { DESKTOP_SCREEN, DESKTOP_SOUND };

struct desktop;

/* What an action came to: @out is r->out. */
typedef void desktop_done(struct visit *r);
typedef void desktop_failed(struct visit *r, const char *why);

/* An action, which desktop_go() begins in the sandbox @id. @failed hears what is wrong, but no refusals of the warden.
 * NULL: no memory. */
struct edge_op *desktop_action(struct visit *r, enum desktop_part part, desktop_done *done, desktop_failed *failed);
/* Who hears those, instead of the client as it is. */
void desktop_refused(struct visit *r, void (*no)(struct visit *r, const struct err *err));
/* Each of its words. */
void desktop_word(struct visit *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void desktop_words(struct visit *r, const char *const list[]);      /* ended by NULL */
#define DESKTOP_WORDS(r, ...) desktop_words(r, (const char *const[]){ __VA_ARGS__, NULL })
void desktop_input(struct visit *r, struct buf *in);            /* it reads that: taken */
/* Its last word, "-", is where it writes. Where the sandbox's limits.output cut that, or with @large at once, it is a
 * file of the sandbox instead, which is read in pieces, and removed. */
void desktop_output(struct visit *r, bool large);
/* @params: what the gate is asked about first, as the tool `computer`; taken. NULL: it has been asked. */
void desktop_go(struct visit *r, const char *id, json_t *params);
/* From @done: another command of the same action, and what is done then. Then its words, and desktop_act(). */
void desktop_next(struct visit *r, desktop_done *done);
void desktop_act(struct visit *r);
/* For a text, which outlives it, that is typed by parts: the part at hand, which begins at 0. */
struct desktop_stretch { struct str text; size_t begin, end; } *desktop_stretch(struct visit *r);
void desktop_gone(struct visit *r);             /* frees what is its own */

#endif
