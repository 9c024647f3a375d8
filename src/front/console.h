/* front/console.h: the page for people, its files and its tickets (docs/console.md) */
#ifndef CLOCHE_FRONT_CONSOLE_H
#define CLOCHE_FRONT_CONSOLE_H

#include <stddef.h>

#include "front/front.h"

/* The files of console/, inside ours: each a text, ended by a NUL. The first one is the page. */
struct console_file { const char *name, *type, *text; };
extern const struct console_file console_files[];
extern const size_t console_n_files;

/* tokens.c: the answer to the making of a token, which a session's is, too. */
void token_reply(struct request *r, const struct edge_token *token, const char *text);

extern const struct route console_routes[];
extern const size_t console_n_routes;

#endif
