/* program/agent_home.h: the home that an agent keeps: $STATE/agents/NAME/home
 *
 * What ran in it before wrote it: nothing here follows a link in it, and no path is looked up as a whole.
 */
#ifndef CLOCHE_PROGRAM_AGENT_HOME_H
#define CLOCHE_PROGRAM_AGENT_HOME_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "policy/agent.h"

/* Where it is, whether it is there or not. */
int agent_home_path(const char *name, char out[PATH_MAX], struct err *err);
/* Make it. Returns a descriptor that the caller owns, or -1 with @err. */
int agent_home_open(const char *name, struct err *err);
/* A place for a mount at @relative, a folder or a file. 0 or -1 with @err. */
int agent_home_place(int home, const char *relative, bool folder, struct err *err);
/* An empty file there, which was such a place, goes. */
void agent_home_unplace(int home, const char *relative);
/* The file @relative with @text, unless something is there. 0 or -1 with @err. */
int agent_home_seed(int home, const char *relative, const char *text, struct err *err);

#endif
