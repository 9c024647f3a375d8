/* match/computer_name.h: one name for each action of a desktop, whichever an agent's words are (docs/desktop.md)
 *
 * What an action is called decides what the gate says, so rules, requests and what is done all go by this one table.
 */
#ifndef CLOCHE_MATCH_COMPUTER_NAME_H
#define CLOCHE_MATCH_COMPUTER_NAME_H

#include <stdbool.h>

/* The canonical name of @name; @button is what the action says, or NULL. A name that is no alias is its own, known or
 * not; NULL: there is no such button. */
const char *computer_name(const char *name, const char *button);
/* What rules call it instead, where @name is none that the gate is ever shown; else NULL. */
const char *computer_alias(const char *name);

#endif
