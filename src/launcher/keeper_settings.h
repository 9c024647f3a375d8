/* launcher/keeper_settings.h: what a keeper is told of the daemon's settings when it is started
 *
 * Every local user can read the arguments of a process; the same user can read its environment. The settings may
 * contain the password of a parent proxy, so they are passed in a sealed memory file (base/memfile.h).
 */
#ifndef CLOCHE_LAUNCHER_KEEPER_SETTINGS_H
#define CLOCHE_LAUNCHER_KEEPER_SETTINGS_H

#include "base/buf.h"
#include "wire/frame.h"

/* Strings, none of them NULL; "" is none. */
struct keeper_settings {
    const char *settings, *config, *security;   /* as in struct serve_plan */
    const char *audit, *transcript;             /* the daemon's own, each as a word ("off", "try" ...) */
    const char *transcripts, *volumes, *leavings;   /* folders */
};

#define KEEPER_SETTINGS_MAX (160UL * 1024)      /* bytes of all of them, as they are written */

/* 0; -1: one of them is too long. */
int keeper_settings_put(struct buf *b, const struct keeper_settings *s);
/* Borrowed of what is read, which has to be that and nothing else. */
bool keeper_settings_get(struct wire_in *in, struct keeper_settings *s);

#endif
