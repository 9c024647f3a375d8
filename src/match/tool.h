/* match/tool.h: names of MCP tools, and the patterns that rules have for them
 *
 * A name is 1 to TOOL_NAME_MAX letters, digits and "_", "-", ".", "/": what the specification recommends, and what
 * needs no quoting anywhere. A pattern is such a name in which "*" stands for any number of characters. Pure.
 */
#ifndef CLOCHE_MATCH_TOOL_H
#define CLOCHE_MATCH_TOOL_H

#include <stdbool.h>

#include "base/str.h"

#define TOOL_NAME_MAX 128

bool tool_is_name(struct str name);
bool tool_is_pattern(struct str pattern);
/* Whether @pattern, which is one, is the whole of @name; case matters. */
bool tool_match(struct str pattern, struct str name);

#endif
