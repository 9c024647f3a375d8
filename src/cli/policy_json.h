/* cli/policy_json.h: a policy as JSON, each value with where it was said */
#ifndef CLOCHE_CLI_POLICY_JSON_H
#define CLOCHE_CLI_POLICY_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "policy/policy.h"

/* What policy_describe says, as members of @object: "limits.memory" is the member "memory" of the object "limits";
 * a value is {"value", "from": {"kind", "name", "line"}}, a list an array of these. The entries of the built-in lists
 * only when @builtin. */
void policy_json(const struct policy *p, bool builtin, json_t *object);

/* A string that need not be UTF-8: "?" for each byte above ASCII where it is not. NULL: null. */
json_t *policy_json_text(const char *s);

#endif
