/* proto/languages.h: the languages of the user's own, as the launcher says them (edge_launcher.h) */
#ifndef CLOCHE_PROTO_LANGUAGES_H
#define CLOCHE_PROTO_LANGUAGES_H

#include "proto/edge_launcher.h"

void languages_none(void);
int languages_add(const struct frame *message);     /* -1: no language, or no memory for it */

#endif
